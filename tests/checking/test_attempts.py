"""A hypothesis that raises is left out and noted; the search for causes goes on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import handgrad as hg
from handgrad.checking import causes, diagnosis, hypotheses
from handgrad.checking.attempts import attempt, attempted, noted
from handgrad.program import edits


class PlantedError(Exception):
    """Raised by hypotheses of these tests alone."""


def raising(*args, **kwargs):
    raise PlantedError("a planted fault\nin two lines")


def raising_at_the_end(*args):
    yield from ()
    raise PlantedError("a planted fault")


def forward(x, w):
    return np.tanh(x * w), (x, w)


def backward(dy, cache):
    x, w = cache
    da = dy * (1 - np.tanh(x * w) ** 2)
    return 2 * da * w, da * x


def checked():
    x = np.random.default_rng(0).normal(size=(2, 4, 5))
    return hg.check((forward, backward), *x)


def checked_product():
    """The report on a known op, of which the right backward is edited too."""
    x = np.random.default_rng(0).normal(size=(4, 5))

    def tanh(x):
        y = np.tanh(x)
        return y, y

    return hg.check((tanh, lambda dy, y: 2 * dy * (1 - y * y)), x, like="tanh")


def predicting(kind):
    """A general hypothesis, planted before all others, whose prediction or comparison raises."""
    usual = hypotheses.general

    def general(name, draws):
        bad = hypotheses.Explanation("unknown", "", "", 0.0, lambda draw: draw.found[name])
        yield [replace(bad, **{kind: raising})]
        yield from usual(name, draws)

    return general


@pytest.mark.parametrize(
    ("module", "name", "planted"),
    [
        (hypotheses, "_permuted", raising),
        (hypotheses, "_permuted", raising_at_the_end),
        (diagnosis, "of_elements", raising_at_the_end),
        (diagnosis, "additive_terms", raising),
        (diagnosis, "_least_squares", raising),
        (edits, "_stale", raising),
        (edits, "_swapped", raising_at_the_end),
    ],
)
def test_the_cause_is_named_although_a_source_of_hypotheses_raises(
    monkeypatch, dropped, module, name, planted
):
    expected = checked_product().faults
    monkeypatch.setattr(module, name, planted)
    report = checked_product()
    assert report.verdict == "wrong"
    assert [fault.gradient for fault in report.faults] == ["x"]
    if name != "_stale":  # one of the variants of each operation, and so the end of all of them
        assert report.faults == expected
    assert report.dropped
    assert all(each.startswith("PlantedError: a planted fault") for each in report.dropped)
    assert "on the cause could not be tried: PlantedError" in str(report)
    assert report.to_dict()["dropped"] == list(report.dropped)
    dropped.clear()


@pytest.mark.parametrize("kind", ["predict", "spoils"])
def test_the_cause_is_named_although_a_hypothesis_raises(monkeypatch, dropped, kind):
    expected = checked().faults
    monkeypatch.setattr(diagnosis, "general", predicting(kind))
    report = checked()
    assert report.faults == expected
    assert len(report.dropped) == 1
    dropped.clear()


@pytest.mark.parametrize("stage", ["changed", "_not_linear"])
def test_what_is_known_stays_although_a_later_stage_raises(monkeypatch, dropped, stage):
    def cubed(dy, cache):
        x, w = cache
        return np.sinh(dy * w) + x, dy * x * (1 - np.tanh(x * w) ** 2)

    monkeypatch.setattr(causes, stage, raising)
    x = np.random.default_rng(0).normal(size=(2, 4, 5))
    report = hg.check((forward, cubed), *x)
    assert report.verdict == "wrong"
    assert report.faults
    assert any("PlantedError" in each for each in report.dropped)
    dropped.clear()


def test_nothing_is_noted_in_usual_checks():
    report = checked()
    assert not report.ok
    assert report.dropped == ()
    assert "could not be tried" not in str(report)


def test_outside_of_a_check_exceptions_pass():
    with pytest.raises(PlantedError):
        attempt(raising, None)
    with noted() as found:
        assert attempt(raising, 3) == 3
        assert list(attempted(raising_at_the_end())) == []
    assert len(found) == 2
    with pytest.raises(PlantedError):
        list(attempted(raising_at_the_end()))
