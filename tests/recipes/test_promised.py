"""The figures that recipes promise, and which runs keep them."""

from __future__ import annotations

import pytest

from handgrad.recipes.promised import Promise


def test_a_recipe_without_a_figure_promises_nothing() -> None:
    assert Promise.of({"seconds": 3}) is None


def test_a_figure_without_a_measure_is_an_accuracy() -> None:
    assert Promise.of({"expected": 0.98}) == Promise("accuracy", 0.98)


@pytest.mark.parametrize(
    ("measure", "value", "text"),
    [
        ("accuracy", 0.994, "99.4\N{NO-BREAK SPACE}%"),
        ("exact_match", 0.998, "99.8\N{NO-BREAK SPACE}% exact match"),
        ("phoneme_error_rate", 0.1, "10\N{NO-BREAK SPACE}% phoneme error rate"),
        ("bits_per_character", 2.214, "2.21 bits per character"),
    ],
)
def test_a_promise_in_words(measure: str, value: float, text: str) -> None:
    assert str(Promise(measure, value)) == text


# Three standard errors of 0.9 among 100 examples are 0.09.
@pytest.mark.parametrize(
    ("measure", "found", "kept"),
    [
        ("accuracy", 0.99, True),
        ("accuracy", 0.8101, True),
        ("accuracy", 0.8099, False),
        ("exact_match", 0.8099, False),
        ("phoneme_error_rate", 0.5, True),
        ("phoneme_error_rate", 0.9899, True),
        ("phoneme_error_rate", 0.9901, False),
        ("bits_per_character", 0.5, True),
        ("bits_per_character", 0.9269, True),
        ("bits_per_character", 0.9271, False),
        ("accuracy", float("nan"), False),
        ("bits_per_character", float("nan"), False),
    ],
)
def test_a_promise_is_kept_up_to_chance(measure: str, found: float, kept: bool) -> None:
    name = "test_accuracy" if measure == "accuracy" else measure
    assert Promise(measure, 0.9).is_kept({name: found, "test_examples": 100}) == kept
