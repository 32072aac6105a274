"""BERT: gradients, masks and lengths, pooling, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import ArgumentError, ShapeError
from tests.layers.gradients import check_destinations, check_gradients
from tests.tolerances import assert_close

F64 = np.float64
SETTINGS: dict[str, dict[str, Any]] = {
    "hidden states": {},
    "first": {"pooling": "first", "hidden": 5},
    "mean": {"pooling": "mean", "approximate": "tanh"},
    "direction": {"pooling": "mean", "normalize": True, "types": 3},
}
ALL = pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)


def model(**settings: Any) -> hg.Bert:
    """A small model with weights large enough for every gradient to count."""
    rng = np.random.default_rng(5)
    sizes: dict[str, Any] = {"context": 6, "width": 8, "heads": 2, "blocks": 2}
    bert = hg.Bert(7, rng=rng, dtype=F64, **{**sizes, **settings})
    for array in bert.parameters.values():
        array[...] = rng.normal(0.0, 0.3, array.shape)
    return bert


def text(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(0, 7, shape)


@ALL
@pytest.mark.parametrize("training", [False, True])
def test_gradients_match_differences(settings: dict[str, Any], training: bool) -> None:
    types = np.array([[0, 0, 1, 1, 1], [0, 1, 1, 1, 1], [0, 0, 0, 0, 0]])
    bert, lengths = model(dropout=0.2, **settings), np.array([5, 3, 1])
    check_gradients(bert, text(3, 5), types, training=training, lengths=lengths)


@ALL
def test_gradients_go_where_they_are_sent(settings: dict[str, Any]) -> None:
    check_destinations(model(**settings), text(3, 5), training=True)


@ALL
def test_padding_does_not_count(settings: dict[str, Any]) -> None:
    bert, tokens = model(**settings), text(2, 6)
    alone, _ = bert.forward(tokens[:, :4])
    mask = np.arange(6) < np.array([[4], [4]])
    for padded in (
        bert.forward(tokens, lengths=np.array([4, 4])),
        bert.forward(tokens, mask=mask),
        bert.forward(tokens, mask=mask | (np.arange(6) == 5), lengths=np.array([4, 5])),
    ):
        found = padded[0] if bert.pooling != "none" else padded[0][:, :4]
        assert_close(found, alone, "float64")


def test_a_text_without_tokens_has_the_mean_0() -> None:
    for settings in (SETTINGS["mean"], SETTINGS["direction"]):
        bert = model(**settings)
        y, cache = bert.forward(text(2, 4), lengths=np.array([0, 4]))
        assert not y[0].any()
        _, gradients = bert.backward(np.ones_like(y), cache)
        assert all(np.isfinite(array).all() for array in gradients.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["first", "direction"])
def test_the_checker_finds_nothing(name: str) -> None:
    report = hg.check(model(**SETTINGS[name], blocks=1), text(2, 3))
    assert report.ok, str(report)


def test_notes_are_printed() -> None:
    assert "tanh" in hg.notes(model(pooling="first"), text(2, 4)).to_markdown()


def test_the_summary_has_every_layer() -> None:
    bert = model(pooling="first")
    assert bert.summary((5,)).parameters == sum(a.size for a in bert.parameters.values())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"types": 0}, "Bert: types is 0; allowed: 1 or more"),
        ({"pooling": "max"}, "Bert: pooling is 'max'; allowed: none, first, mean"),
        ({"normalize": True}, 'normalize is True with pooling="none"; allowed: "mean"'),
    ],
)
def test_settings_that_do_not_fit(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        model(**settings)


def test_inputs_that_do_not_fit() -> None:
    with pytest.raises(ShapeError, match=r"tokens have shape \(2, 7\); allowed: \(N, T\) with T"):
        model().forward(text(2, 7))
    with pytest.raises(ShapeError, match=r"mask has shape \(2, 3\); allowed: \(2, 4\), that of"):
        model().forward(text(2, 4), mask=np.ones((2, 3), bool))
