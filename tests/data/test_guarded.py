"""All that the package tokenizers raises, its panics too, is one sentence of handgrad."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import handgrad as hg
from handgrad.data.subwords import Guarded, PretrainedTokenizer, Subwords
from handgrad.errors import DataError, HandgradError

tokenizers: Any = pytest.importorskip("tokenizers")

TOKENS: list[Any] = [[-1], [2**32], [10**30]]
TEXTS: list[Any] = [None, 5, b"a", ["a"]]
BATCHES: list[Any] = [[None], [5], [("a", "b", "c")], 5]


def panics() -> Any:
    """A tokenizer with steps that the package has not written yet, for which it panics."""
    found = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    template = tokenizers.processors.TemplateProcessing(single="$A $A $A", special_tokens=[])
    found.post_processor = tokenizers.processors.Sequence([template, template])
    return found


def without_unknown() -> Any:
    return tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, unk_token="[UNK]"))


def plain() -> Any:
    return tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))


@pytest.mark.parametrize("kind", [hg.hf.Tokenizer, PretrainedTokenizer, Subwords])
def test_what_the_package_raises_is_one_sentence(kind: Any) -> None:
    found = kind(plain())
    calls: list[Callable[[], object]] = [lambda t=tokens: found.decode(t) for tokens in TOKENS]
    calls += [lambda t=text: found.encode(t) for text in TEXTS]
    if kind is hg.hf.Tokenizer:
        calls += [lambda t=texts: found.batch(t) for texts in BATCHES]
    for call in calls:
        with pytest.raises(HandgradError) as caught:
            call()
        assert "\n" not in str(caught.value)
        assert "expected" in str(caught.value) or "allowed" in str(caught.value)


@pytest.mark.parametrize("make", [panics, without_unknown])
def test_a_panic_is_one_sentence(make: Callable[[], Any]) -> None:
    with pytest.raises(DataError, match="fails in encode") as caught:
        hg.hf.Tokenizer(make()).encode("b")
    assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match="fails in encode_batch"):
        hg.hf.Tokenizer(make()).batch(["b"])


def test_a_damaged_file_raises_nothing_else(tmp_path: Path) -> None:
    content = json.loads(plain().to_str())
    for name in content:
        for value in (5, "x", [], {}, {"type": "x"}, [5], {"type": "Sequence"}):
            (tmp_path / "tokenizer.json").write_text(json.dumps({**content, name: value}))
            with suppress(HandgradError):
                found = hg.hf.Tokenizer.from_pretrained(tmp_path)
                found.decode(found.encode("a"))


def test_a_user_who_stops_is_obeyed() -> None:
    class Stops:
        def encode(self, text: str) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Guarded(Stops()).encode("a")


def test_copies_are_as_good() -> None:
    found = hg.hf.Tokenizer(plain())
    for other in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert other.encode("a").tolist() == [0]
