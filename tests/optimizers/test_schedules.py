"""Schedules: values worked out by hand, and PyTorch's where it has the same."""

from __future__ import annotations

import dataclasses
import math
import warnings
from importlib.util import find_spec
from typing import Any

import pytest

from handgrad.errors import ArgumentError
from handgrad.optimizers import Constant, Cosine, LinearWarmup, OneCycle, Schedule, Step
from tests.tolerances import assert_close


def _values(schedule: Schedule, *steps: int) -> list[float]:
    return [schedule(step) for step in steps]


def test_constant() -> None:
    assert _values(Constant(0.3), 0, 1000) == [0.3, 0.3]


def test_step() -> None:
    schedule = Step(1.0, step_size=10, gamma=0.5)
    assert _values(schedule, 0, 9, 10, 19, 20) == [1.0, 1.0, 0.5, 0.5, 0.25]


def test_cosine_goes_down_half_a_cosine_and_stays() -> None:
    schedule = Cosine(1.0, steps=4, eta_min=0.2)
    quarter = 0.2 + 0.4 * (1 + math.sqrt(0.5))
    expected = [1.0, quarter, 0.6, 0.2, 0.2]
    assert_close(_values(schedule, 0, 1, 2, 4, 9), expected, "float64")


def test_warmup_then_another_schedule_from_its_beginning() -> None:
    schedule = LinearWarmup(Step(2.0, step_size=3, gamma=0.1), steps=4, start_factor=0.5)
    expected = [1.0, 1.25, 1.75, 2.0, 2.0, 0.2]
    assert_close(_values(schedule, 0, 1, 3, 4, 6, 7), expected, "float64")


def test_one_cycle_rises_falls_and_stays() -> None:
    schedule = OneCycle(1.0, total_steps=11, pct_start=6 / 11, div_factor=10, final_div_factor=10)
    expected = [0.1, 0.55, 1.0, 0.01, 0.01]
    found = [schedule(0), schedule(2.5), schedule(5), schedule(10), schedule(99)]
    assert_close(found, expected, "float64")


@pytest.mark.parametrize("total_steps", [1, 2, 3])
def test_a_short_one_cycle_ends_at_its_end(total_steps: int) -> None:
    schedule = OneCycle(1.0, total_steps)
    assert_close(schedule(total_steps - 1), 1 / 25 / 1e4, "float64")


def test_a_schedule_is_its_fields() -> None:
    schedule = OneCycle(0.1, 100)
    assert OneCycle(**dataclasses.asdict(schedule)) == schedule


@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")
@pytest.mark.parametrize(
    ("schedule", "name", "arguments"),
    [
        (Step(0.1, 7, 0.3), "StepLR", {"step_size": 7, "gamma": 0.3}),
        (Cosine(0.1, 30, 0.01), "CosineAnnealingLR", {"T_max": 30, "eta_min": 0.01}),
        (
            LinearWarmup(Constant(0.1), 10, 0.25),
            "LinearLR",
            {"start_factor": 0.25, "total_iters": 10},
        ),
        (OneCycle(0.1, 30), "OneCycleLR", {"max_lr": 0.1, "total_steps": 30}),
    ],
)
def test_matches_pytorch(schedule: Schedule, name: str, arguments: dict[str, Any]) -> None:
    import torch

    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    theirs = getattr(torch.optim.lr_scheduler, name)(optimizer, **arguments)
    expected = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch wants optimizer.step() before every step
        for _ in range(29):
            expected.append(optimizer.param_groups[0]["lr"])
            theirs.step()
    assert_close(_values(schedule, *range(29)), expected, "torch float64")


def test_impossible_values_are_refused() -> None:
    with pytest.raises(ArgumentError, match="Step: step_size is 0; allowed: 1 or more"):
        Step(0.1, 0)
    with pytest.raises(ArgumentError, match="Cosine: lr is -1; allowed: 0 or more"):
        Cosine(-1, 10)
    with pytest.raises(ArgumentError, match=r"OneCycle: pct_start is 1; allowed: .* less than 1"):
        OneCycle(0.1, 10, pct_start=1)
