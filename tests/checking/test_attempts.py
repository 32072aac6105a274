"""A hypothesis that raises is left out and noted; the search for causes goes on."""

from __future__ import annotations

import numpy as np
import pytest

import handgrad as hg
from handgrad.checking import causes, diagnosis, hypotheses
from handgrad.checking.attempts import attempt, attempted, noted


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


USUAL = hypotheses.general


def predicting(name, draws):
    """The general hypotheses, and before them one whose prediction raises."""
    yield [hypotheses.Explanation("unknown", "", "", 0.0, raising)]
    yield from USUAL(name, draws)


@pytest.mark.parametrize(
    ("module", "name", "planted"),
    [
        (hypotheses, "_permuted", raising),
        (hypotheses, "_permuted", raising_at_the_end),
        (diagnosis, "of_elements", raising_at_the_end),
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
    assert report.faults == expected
    assert report.dropped
    assert all(each.startswith("PlantedError: a planted fault") for each in report.dropped)
    assert "on the cause could not be tried: PlantedError" in str(report)
    assert report.to_dict()["dropped"] == list(report.dropped)
    dropped.clear()


def test_the_cause_is_named_although_a_hypothesis_raises(monkeypatch, dropped):
    expected = checked().faults
    monkeypatch.setattr(diagnosis, "general", predicting)
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
