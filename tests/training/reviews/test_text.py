"""The report about models that continue text."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from handgrad.data import Blocks, load_text
from handgrad.models.gpt import GPT
from handgrad.training.reviews import TextReview
from tests.training.html import check_html, opacity

WORDS = "It was <not> the best of times & not\nthe worst — of times: ok. "


def review(folder: Path, text: str, unit: str = "characters", block: int = 8) -> TextReview:
    file = folder / "text.txt"
    file.write_text(text, "utf-8")
    loaded = load_text(file, unit=unit, validation=0.4)
    return TextReview(loaded, Blocks(loaded.validation, block))


def gpt(looked_at: TextReview, blocks: int = 3) -> GPT:
    rng = np.random.default_rng(0)
    size, context = looked_at.text.tokenizer.size, looked_at.blocks.size
    return GPT(size, context=context, width=8, heads=2, blocks=blocks, rng=rng)


@pytest.mark.parametrize("unit", ["characters", "bytes"])
def test_samples_begin_with_a_prompt(tmp_path: Path, unit: str) -> None:
    found = review(tmp_path, WORDS * 6, unit)
    samples, _ = found.sections(gpt(found))
    check_html(samples.body)
    prompts = re.findall(r'<pre class="sample"><b>(.*?)</b>', samples.body, re.S)
    assert len(prompts) == 3
    assert len(set(prompts)) == 1
    assert not prompts[0][0].isspace()
    texts = re.findall(r"<pre.*?</pre>", samples.body, re.S)
    assert len(set(texts)) == 3
    assert "320 tokens" in samples.note


def test_every_head_of_the_first_and_last_block(tmp_path: Path) -> None:
    found = review(tmp_path, WORDS * 6)
    model = gpt(found)
    _, looked = found.sections(model)
    check_html(looked.body)
    captions = re.findall("<figcaption>(.*?)</figcaption>", looked.body)
    assert captions == [f"block {block}, head {head}" for block in (1, 3) for head in (1, 2)]
    for shown in opacity(looked.body):
        assert shown.shape == (8, 8)
        assert not np.triu(shown, 1).any()
        np.testing.assert_array_equal(shown.max(axis=1), 1)
    assert len(re.findall("<figcaption>", found.sections(gpt(found, 1))[1].body)) == 2


@pytest.mark.parametrize("text", ["a" * 40, " \n" * 40, "ab " * 9, "\n" + "b" * 60])
def test_poor_texts_have_a_passage_too(tmp_path: Path, text: str) -> None:
    found = review(tmp_path, text)
    for section in found.sections(gpt(found)):
        check_html(section.body)


def test_the_seed_decides(tmp_path: Path) -> None:
    found = review(tmp_path, WORDS * 6)
    model = gpt(found)
    assert found.sections(model) == found.sections(model)
