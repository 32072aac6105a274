"""Llama: gradients, decoding with a cache, scaled rotary positions, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import ArgumentError
from handgrad.models.rotary_scaling import scaled
from tests.layers.gradients import check_destinations, check_gradients
from tests.tolerances import assert_close

F64 = np.float64
SMALL: dict[str, Any] = {
    "context": 6,
    "width": 8,
    "heads": 2,
    "blocks": 2,
    "hidden": 5,
    "dtype": F64,
}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
SETTINGS: dict[str, dict[str, Any]] = {
    "untied": {},
    "tied-and-grouped": {"tied": True, "kv_heads": 1, "head_size": 6},
    "qwen2": {"attention_bias": ("q_proj", "k_proj", "v_proj"), "rotary_base": 100.0},
    "all-biases": {"bias": True, "attention_bias": True, "rotary_scaling": LLAMA3},
    "qwen3": {"qk_norm": True, "kv_heads": 1, "head_size": 6},
    "yarn": {"rotary_scaling": YARN, "tied": True},
}
ALL = pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)


def model(**settings: Any) -> hg.Llama:
    """A small model with weights large enough for every gradient to count."""
    rng = np.random.default_rng(5)
    llama = hg.Llama(7, rng=rng, **{**SMALL, **settings})
    for array in llama.parameters.values():
        array[...] = rng.normal(0.0, 0.3, array.shape)
    return llama


def text(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(0, 7, shape)


@ALL
@pytest.mark.parametrize("training", [False, True])
def test_gradients_match_differences(settings: dict[str, Any], training: bool) -> None:
    check_gradients(model(dropout=0.2, **settings), text(3, 5), training=training)


@ALL
def test_gradients_go_where_they_are_sent(settings: dict[str, Any]) -> None:
    check_destinations(model(**settings), text(3, 5), training=True)


@ALL
def test_decoding_gives_what_forward_gives(settings: dict[str, Any]) -> None:
    llama, tokens = model(**settings), text(2, 6)
    expected, _ = llama.forward(tokens)
    logits, state = llama.start(tokens[:, :3])
    for t in range(3, 6):
        assert_close(logits, expected[:, t - 1], "float64", f"step {t}")
        logits, state = llama.step(tokens[:, t], state)
    assert_close(logits, expected[:, 5], "float64")


def test_text_is_generated_beyond_the_context() -> None:
    written = model().generate(text(2, 3), length=9, rng=np.random.default_rng(0), temperature=0)
    assert written.shape == (2, 12)


@pytest.mark.slow
def test_the_checker_finds_nothing() -> None:
    settings = {**SETTINGS["yarn"], **SETTINGS["qwen2"], "qk_norm": True, "kv_heads": 1}
    report = hg.check(model(**settings, blocks=1), text(2, 3))
    assert report.ok, str(report)


def test_notes_are_printed() -> None:
    page = hg.notes(model(tied=True, blocks=1), text(2, 4)).to_markdown()
    assert r"\theta_{1}^{(1)} = (o, o + 1, \cdots, o + 3)" in page
    assert "gate" in page


def test_fast_turns_stay_and_slow_ones_are_stretched() -> None:
    w = 10000.0 ** (-np.arange(8) / 8)
    for settings in (LLAMA3, YARN):
        found = np.array(scaled(16, 10000.0, settings).frequencies)
        assert found[0] == w[0]
        assert_close(found[-1], w[-1] / settings["factor"], "float64")  # type: ignore[operator]
    assert scaled(16, 10000.0, LLAMA3).factor == 1.0
    assert_close(scaled(16, 10000.0, YARN).factor, 0.1 * np.log(4.0) + 1.0, "float64")
    linear = scaled(16, 10000.0, {"rope_type": "linear", "factor": 2})
    assert_close(np.array(linear.frequencies), w / 2, "float64")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"head_size": 3}, "Llama: head_size is 3; allowed: an even number, because pairs"),
        ({"width": 0}, "Llama: width is 0; allowed: 1 or more"),
        ({"attention_bias": ("gate",)}, "bias names 'gate'; allowed: q_proj, k_proj, v_proj, o_"),
        ({"rotary_scaling": {"rope_type": "dynamic"}}, "rope_type is 'dynamic'; allowed: linear"),
        ({"rotary_scaling": {"rope_type": "linear"}}, "factor is missing; allowed: a number abo"),
        (
            {"rotary_scaling": {"rope_type": "linear", "factor": 2, "low": 1}},
            "low is given; allowed of linear: factor",
        ),
        ({"rotary_scaling": {**YARN, "factor": "4"}}, "factor is '4'; allowed: a number above 0"),
    ],
)
def test_settings_that_do_not_fit(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        model(**settings)
