"""Schedules: the learning rate as a pure function of the update's number.

`schedule(step)` is the rate of update number `step`, counted from 0:

    optimizer.step(parameters, gradients, schedule(step))

A schedule is frozen and remembers nothing: the number of the update is all of its state. Past its
last step it stays where it ended (PyTorch's cosine turns back up, its one-cycle raises).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from handgrad.errors import ArgumentError


class Schedule(Protocol):
    """Anything that gives the learning rate of an update by its number."""

    def __call__(self, step: int) -> float: ...


def _check_least(schedule: str, least: float, **values: float) -> None:
    for name, value in values.items():
        if not value >= least:
            raise ArgumentError(f"{schedule}: {name} is {value}; allowed: {least} or more")


def _cosine(start: float, end: float, fraction: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * fraction)) / 2


@dataclass(frozen=True)
class Constant:
    """lr at every step."""

    lr: float

    def __post_init__(self) -> None:
        _check_least("Constant", 0, lr=self.lr)

    def __call__(self, step: int) -> float:
        return self.lr


@dataclass(frozen=True)
class Step:
    """lr · gamma^⌊step / step_size⌋, as PyTorch's `StepLR`."""

    lr: float
    step_size: int
    gamma: float = 0.1

    def __post_init__(self) -> None:
        _check_least("Step", 0, lr=self.lr, gamma=self.gamma)
        _check_least("Step", 1, step_size=self.step_size)

    def __call__(self, step: int) -> float:
        return self.lr * float(self.gamma ** (step // self.step_size))


@dataclass(frozen=True)
class Cosine:
    """Half a cosine from lr down to `eta_min` over `steps`, as PyTorch's `CosineAnnealingLR`."""

    lr: float
    steps: int
    eta_min: float = 0.0

    def __post_init__(self) -> None:
        _check_least("Cosine", 0, lr=self.lr, eta_min=self.eta_min)
        _check_least("Cosine", 1, steps=self.steps)

    def __call__(self, step: int) -> float:
        return _cosine(self.lr, self.eta_min, min(step / self.steps, 1.0))


@dataclass(frozen=True)
class LinearWarmup:
    """A straight line from start_factor · lr up to lr over `steps`, as PyTorch's `LinearLR`, where
    lr is where the schedule `after` begins; then `after`, which counts from its own 0."""

    after: Schedule
    steps: int
    start_factor: float = 0.0

    def __post_init__(self) -> None:
        _check_least("LinearWarmup", 0, start_factor=self.start_factor)
        _check_least("LinearWarmup", 1, steps=self.steps)

    def __call__(self, step: int) -> float:
        if step >= self.steps:
            return self.after(step - self.steps)
        return self.after(0) * (self.start_factor + (1 - self.start_factor) * step / self.steps)


@dataclass(frozen=True)
class OneCycle:
    """Half a cosine from max_lr/div_factor up to max_lr over the first `pct_start` of the steps,
    then half a cosine down to max_lr/(div_factor · final_div_factor), as PyTorch's `OneCycleLR`.

    Source: Smith, Topin, Super-convergence: very fast training of neural networks using large
    learning rates (2019), in the two-phase form of fast.ai.
    """

    max_lr: float
    total_steps: int
    pct_start: float = 0.3
    div_factor: float = 25.0
    final_div_factor: float = 1e4

    def __post_init__(self) -> None:
        _check_least("OneCycle", 0, max_lr=self.max_lr)
        _check_least("OneCycle", 1, total_steps=self.total_steps, div_factor=self.div_factor)
        _check_least("OneCycle", 1, final_div_factor=self.final_div_factor)
        if not 0 <= self.pct_start < 1:
            raise ArgumentError(
                f"OneCycle: pct_start is {self.pct_start}; allowed: 0 or more, less than 1"
            )

    def __call__(self, step: int) -> float:
        first = self.max_lr / self.div_factor
        peak = self.pct_start * self.total_steps - 1
        last = self.total_steps - 1
        if step < peak:
            return _cosine(first, self.max_lr, step / peak)
        fraction = min((step - peak) / (last - peak), 1.0)
        return _cosine(self.max_lr, first / self.final_div_factor, fraction)
