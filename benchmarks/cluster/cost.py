"""What a training step costs on p ranks: compute, the sum of the gradients, and their overlap.

A message of n bytes takes α + β n. The sum of n bytes over p ranks, scattered and gathered again,

    T(n) = 2 ⌈log₂ p⌉ α + 2 (p − 1)/p β n

A backward pass makes the buckets of the gradients ready one after another, at times r₁ ≤ r₂ ≤ …,
and the network sums them in that order, so bucket k is done at

    d₀ = 0,  dₖ = max(rₖ, dₖ₋₁) + T(nₖ)

What the last of them exceeds the end of the backward pass by is what a step waits for. Beside it a
step has two messages of a few bytes (⌈log₂ p⌉ α each) and the optimizer's sweep, which with its
state cut over the ranks is 1/p of it and a gather of the parameters, half of the sum again.

Source: Thakur, Rabenseifner, Gropp, Optimization of collective communication operations in MPICH
(2005), sections 3 and 4.5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

#: Small messages of a step: what all ranks weigh, and whether one wants to stop.
_SMALL_MESSAGES: Final = 2
#: Bytes that Adam reads and writes for each parameter in float32: p, g, m, v, and p, m, v again.
_ADAM_BYTES: Final = 28


@dataclass(frozen=True)
class Machine:
    """One rank: FLOP/s of training, bytes/s of its memory, bytes of a gradient's value; and the
    network between ranks: α in seconds, β in seconds per byte."""

    name: str
    flops: float
    memory: float
    alpha: float
    beta: float
    value_bytes: int = 4
    bucket_bytes: int = 4 << 20


@dataclass(frozen=True)
class Layout:
    """A GPT: parameters and FLOPs of a token going forward, in the order of the flat buffer.

    The head is tied to the table, which stands first, so that its gradient is ready last.
    """

    name: str
    width: int
    blocks: int
    steps: int
    vocabulary: int = 50_257

    @property
    def block(self) -> int:
        """Parameters of a block: four projections, two maps to and from 4 × width, two norms."""
        return 12 * self.width**2 + 13 * self.width

    @property
    def tables(self) -> int:
        return (self.vocabulary + self.steps) * self.width + 2 * self.width

    @property
    def parameters(self) -> int:
        return self.tables + self.blocks * self.block

    @property
    def block_flops(self) -> float:
        """Of a token going forward: its products and the attention to all steps."""
        return 24 * self.width**2 + 4 * self.steps * self.width

    @property
    def head_flops(self) -> float:
        return 2 * self.vocabulary * self.width

    @property
    def flops(self) -> float:
        """Of a sequence in a whole step; backward costs twice as much as forward."""
        return 3 * self.steps * (self.blocks * self.block_flops + self.head_flops)


@dataclass(frozen=True)
class Step:
    """The seconds of a step, by what they are spent on."""

    compute: float
    exposed: float
    small: float
    optimizer: float

    @property
    def seconds(self) -> float:
        return self.compute + self.exposed + self.small + self.optimizer


def sum_seconds(size: float, ranks: int, machine: Machine) -> float:
    """T(n): the sum of so many bytes over the ranks."""
    if ranks == 1 or size == 0:
        return 0.0
    hops = 2 * math.ceil(math.log2(ranks)) * machine.alpha
    return hops + 2 * (ranks - 1) / ranks * size * machine.beta


def exposed(ready: Sequence[float], sums: Sequence[float], end: float) -> float:
    """How long after `end`, the end of the backward pass, the last bucket is done.

    ready: when each bucket can leave, rising; sums: the seconds of each.
    """
    done = 0.0
    for at, seconds in zip(ready, sums, strict=True):
        done = max(at, done) + seconds
    return max(0.0, done - end)


def step(
    layout: Layout, sequences: float, ranks: int, machine: Machine, *, overlap: bool = True
) -> Step:
    """The step of each of so many ranks, which has `sequences` of the batch."""
    tokens = sequences * layout.steps
    second = 1 / machine.flops
    forward = tokens * (layout.blocks * layout.block_flops + layout.head_flops) * second
    ready, sums = [], []
    now = 2 * tokens * layout.head_flops * second
    for _ in range(layout.blocks):
        now += 2 * tokens * layout.block_flops * second
        ready.append(now)
        sums.append(_buckets(layout.block, ranks, machine))
    ready.append(now)
    sums.append(_buckets(layout.tables, ranks, machine))
    if not overlap:
        ready = [now] * len(ready)
    small = _SMALL_MESSAGES * math.ceil(math.log2(ranks)) * machine.alpha
    sweep = layout.parameters * _ADAM_BYTES / machine.memory
    return Step(forward + now, exposed(ready, sums, now), small, sweep)


def _buckets(parameters: int, ranks: int, machine: Machine) -> float:
    """The sum of these gradients, in as many buckets as they fill."""
    size = parameters * machine.value_bytes
    count = max(1, round(size / machine.bucket_bytes))
    return count * sum_seconds(size / count, ranks, machine)


def strong(layout: Layout, batch: int, ranks: int, machine: Machine) -> float:
    """The efficiency of sharing one batch: the speed of p ranks over p times that of one."""
    alone = step(layout, batch, 1, machine).seconds
    return alone / (ranks * step(layout, batch / ranks, ranks, machine).seconds)


def weak(layout: Layout, sequences: int, ranks: int, machine: Machine) -> float:
    """The efficiency of a batch that grows with the ranks, with so many sequences on each."""
    alone = step(layout, sequences, 1, machine).seconds
    return alone / step(layout, sequences, ranks, machine).seconds


def pays_to(layout: Layout, batch: int, most: int, machine: Machine, least: float = 0.5) -> int:
    """The largest power of two of ranks, up to `most`, that shares a batch at this efficiency."""
    ranks = 1
    while 2 * ranks <= min(most, batch) and strong(layout, batch, 2 * ranks, machine) >= least:
        ranks *= 2
    return ranks
