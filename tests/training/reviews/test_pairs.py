"""The report about models that make one text from another."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from handgrad.data.pairs import PairData, assemble
from handgrad.data.tokens import END, START, Symbols
from handgrad.models.seq2seq import Seq2Seq
from handgrad.models.transformer import Transformer
from handgrad.training.reviews import PairsReview
from handgrad.training.reviews.pairs import _marked, _symbols, edit_distance
from tests.training.html import check_html, opacity, pictures

ROWS = [("ab", "x y"), ("b<a", "y"), ("a b", "x"), ("bba", "y y"), ("bba", "x")]


def data(name: str, rows: list[tuple[str, str]] = ROWS) -> PairData:
    def learn(train: list[tuple[str, str]]) -> tuple[Symbols, Symbols]:
        return (
            Symbols.learn((source for source, _ in train), marked=True),
            Symbols.learn((target for _, target in train), words=True, marked=True),
        )

    return assemble(name, [rows, rows, rows], learn)


def seq2seq(pairs: PairData, **settings: Any) -> Seq2Seq:
    rng = np.random.default_rng(3)
    return Seq2Seq(pairs.source.size, pairs.target.size, embedding=4, hidden=5, rng=rng, **settings)


def transformer(pairs: PairData) -> Transformer:
    sizes: dict[str, Any] = {
        "d_model": 12,
        "heads": 3,
        "hidden": 8,
        "encoder_blocks": 1,
        "decoder_blocks": 2,
    }
    rng = np.random.default_rng(3)
    return Transformer(pairs.source.size, pairs.target.size, rng=rng, **sizes)


def test_mistakes_come_first() -> None:
    pairs = data("pronounce")
    review = PairsReview(pairs, _made=["x y", "x", "y", "x"])
    texts, _ = review.sections(seq2seq(pairs))
    check_html(texts.body)
    rows = re.findall("<tr>(.*?)</tr>", texts.body)[1:]
    assert [("✗" in row, "✓" in row) for row in rows] == [(True, False)] * 2 + [(False, True)] * 2
    assert "b&lt;a" in texts.body
    assert "<bdi>y y</bdi> or <bdi>x</bdi>" in texts.body
    assert "4 different sources" in texts.note


def test_all_right() -> None:
    pairs = data("dates")
    review = PairsReview(pairs, _made=["x y", "y", "x", "y y"])
    texts, looked = review.sections(seq2seq(pairs))
    assert "✗" not in texts.body
    assert "all were made right" in texts.note
    assert "wrong" not in looked.body


def test_texts_that_are_neither_right_nor_wrong() -> None:
    pairs = data("verses")
    texts, looked = PairsReview(pairs).sections(seq2seq(pairs))
    check_html(texts.body)
    assert texts.body.count("<tr>") == 5
    assert "✗" not in texts.body
    assert "wrong" not in looked.body


@pytest.mark.parametrize("score", ["additive", "cosine", "dot"])
def test_rows_are_what_was_made_and_columns_the_source(score: str) -> None:
    pairs = data("verses")
    _, looked = PairsReview(pairs).sections(seq2seq(pairs, score=score))
    check_html(looked.body)
    maps = re.findall("<svg.*?</svg>", looked.body, re.S)
    assert len(maps) == 4
    for drawing in maps:
        columns = re.findall(r'text-anchor="middle">(.*?)</text>', drawing)
        rows = re.findall(r'text-anchor="end">(.*?)</text>', drawing)
        assert columns[-1] == "●"
        assert pictures(drawing)[0].shape[:2] == (len(rows), len(columns))
        assert opacity(drawing)[0].max() == 1
    assert any("␣" in drawing for drawing in maps)


def test_weights_are_those_of_the_steps_of_decoding() -> None:
    pairs = data("verses", [("ab", "x y")])
    model = seq2seq(pairs)
    _, looked = PairsReview(pairs).sections(model)
    source = np.append(pairs.source.encode("ab"), END)[None]
    state, token, expected = model.start(source, np.array([3])), START, []
    (shown,) = opacity(looked.body)
    for _ in range(len(shown)):
        scores, state = model.step(np.array([token]), state)
        scores[:, [0, 1, 3]] = -np.inf
        token = int(scores.argmax())
        assert state.attention is not None
        expected.append(state.attention[0])
    weights = np.array(expected)
    np.testing.assert_allclose(shown, weights / weights.max(), atol=0.003)


def test_heads_stand_beside_their_mean() -> None:
    pairs = data("verses")
    _, looked = PairsReview(pairs).sections(transformer(pairs))
    check_html(looked.body)
    assert looked.body.count("<figcaption>head ") == 4 * 3
    assert "mean of the last block" in looked.note


def test_long_sources_have_no_map() -> None:
    pairs = data("verses", [("ab" * 40, "x"), ("ba" * 40, "y")])
    _, looked = PairsReview(pairs).sections(seq2seq(pairs))
    assert looked.body == ""


def test_differences_are_marked() -> None:
    assert _marked("1996-06", ["2001-01", "1996-07"], words=False) == (
        "<bdi>1996-0<mark>6</mark></bdi>"
    )
    assert _marked("A C", ["A B C"], words=True) == "<bdi>A <mark></mark> C</bdi>"
    assert _marked("<", [">"], words=False) == "<bdi><mark>&lt;</mark></bdi>"


def test_marks_have_symbols() -> None:
    tokenizer = data("verses").source
    assert _symbols(tokenizer, np.array([2, 3, 4])) == ["●", "\N{REPLACEMENT CHARACTER}", " "]


def test_edit_distance() -> None:
    assert edit_distance("kitten", "sitting") == 3
    assert edit_distance([], ["a", "b"]) == 2
