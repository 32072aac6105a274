"""The product's share of the machine's peak as a model predicts it, beside the measured one.

    python -m benchmarks.model [M×N×K …] [--threads N] [--rounds N]

The model counts what the product has to do besides multiply-adds in registers, by its own plan
(`native.plan_product`), and prices each by a rate that is measured here in the same run. In units
of the time that M N K multiply-adds take at the peak:

    edges     N filled up to whole vectors, and threads that wait for the last block of C
    packing   A and B copied into micro-panels, as often as the plan says
    sums      C read and written again for every block of K but one, from the second-level cache
    result    C written once
    streams   by so much micro-panels of B from the second-level cache, one sweep for each of A,
              take longer than the multiply-adds beside which they arrive

A byte costs what it costs to copy an array of the same size, on all threads at once. What is left
between prediction and measurement is what no count explains: latencies, collisions, pages.
Source: Low, Igual, Smith, Quintana-Ortí, Analytical modeling is enough for high-performance BLIS
(2016), sections 3 and 4, for what moves between which caches in the five loops.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass
from typing import Any, Final

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import machine, matmul, peak

FLOAT: Final = 4  # bytes

Size = tuple[int, int, int]
#: Bytes per second at which an array of so many bytes is copied, what is read and written counted.
Rate = Callable[[int], float]


@dataclass(frozen=True)
class Costs:
    """Parts of the time that the multiply-adds alone would take."""

    edges: float
    packing: float
    sums: float
    result: float
    streams: float

    @property
    def share(self) -> float:
        """The predicted share of the peak."""
        return 1 / (1 + sum(astuple(self)))


@dataclass(frozen=True)
class Engine:
    """The engine and the machine that it runs on: MR, NR, bytes of the second-level cache, FLOP/s.

    vector: values that fill one. The peak is that of all threads together.
    """

    mr: int
    nr: int
    l2: int
    threads: int
    peak: float

    @property
    def vector(self) -> int:
        return self.nr // 2


def costs(size: Size, plan: Mapping[str, Any], engine: Engine, rate: Rate) -> Costs:
    """The work of a product by its plan besides multiply-adds, as parts of their time."""
    m, n, k = (size[1], size[0], size[2]) if plan["transposed"] else size
    ideal = 2 * m * n * k / engine.peak
    filled = -(-n // engine.vector) * engine.vector
    blocks = plan["down"] * plan["across"]
    waiting = -(-blocks // engine.threads) * engine.threads / blocks
    multiplying = ideal * filled / n * waiting

    def seconds(values: float, footprint: int) -> float:
        return FLOAT * values / rate(footprint * FLOAT)

    packs_a = 0 if plan["a_in_place"] else 1 if plan["pack_a_once"] else plan["across"]
    packs_b = 1 if plan["pack_b_once"] else plan["down"]
    packing = seconds(2 * packs_a * m * k, m * k) + seconds(2 * packs_b * k * n, k * n)
    turns = -(-k // plan["kc"])
    # Micro-panels of A are as many sweeps over those of B as there are rows over MR.
    streamed = seconds(-(-m // engine.mr) * k * n, engine.l2 // FLOAT // 2)
    return Costs(
        edges=multiplying / ideal - 1,
        packing=packing / ideal,
        sums=seconds(2 * (turns - 1) * m * n, engine.l2 // FLOAT // 2) / ideal,
        result=seconds(m * n, m * n) / ideal,
        streams=max(0.0, streamed - multiplying) / ideal,
    )


def described(plan: Mapping[str, Any]) -> str:
    """A plan in one line: KC and NC, the blocks of C, and where A and B are packed."""
    of = "Cᵀ" if plan["transposed"] else "C"
    a = "in place" if plan["a_in_place"] else "once" if plan["pack_a_once"] else "by block"
    b = "once" if plan["pack_b_once"] else "by block"
    blocks = f"{of} {plan['down']}×{plan['across']}"
    return f"KC {plan['kc']}, NC {plan['nc']}, {blocks}, A {a}, B {b}"


def measured_rate(threads: int, seconds: float = 0.05) -> Rate:
    """Copies of `threads` parts side by side; each size is timed once and kept."""
    known: dict[int, float] = {}

    def rate(size: int) -> float:
        if size not in known:
            known[size] = _copied(max(size // threads, 64), threads, seconds)
        return known[size]

    return rate


def _copied(size: int, threads: int, seconds: float) -> float:
    pairs = [(np.ones(size // 8), np.empty(size // 8)) for _ in range(threads)]

    def copy(pair: tuple[np.ndarray, np.ndarray], until: float) -> int:
        count = 0
        while time.perf_counter() < until:
            for _ in range(max(1, (1 << 22) // size)):
                np.copyto(pair[1], pair[0])
            count += max(1, (1 << 22) // size)
        return count

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(copy, pairs, [time.perf_counter() + seconds / 5] * threads))
        began = time.perf_counter()
        counts = pool.map(copy, pairs, [began + seconds] * threads)
        return sum(counts) * 2 * size / (time.perf_counter() - began)


def _size(text: str) -> Size:
    parts = text.replace("x", "×").split("×")
    if len(parts) != 3 or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise argparse.ArgumentTypeError(f"a size is {text!r}; allowed: M×N×K such as 1024×768×512")
    return int(parts[0]), int(parts[1]), int(parts[2])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    products = [size for size, precision in matmul.PRODUCTS if precision == "float32"]
    parser.add_argument("sizes", nargs="*", type=_size, default=products, metavar="M×N×K")
    parser.add_argument("--threads", type=int, default=machine.cores())
    parser.add_argument("--rounds", type=int, default=5, help="bursts of every product")
    given = parser.parse_args()
    if given.threads < 1 or given.rounds < 1:
        parser.error("--threads and --rounds; allowed: 1 or more")
    from handgrad import kernels
    from handgrad.dispatch.cpu_caches import known_caches

    native = kernels.native
    if native is None:
        print(f"benchmarks.model: no kernels to predict, because {kernels.reason}", file=sys.stderr)
        return 2
    import handgrad as hg

    hg.set_threads(given.threads)
    noise = machine.warning(machine.load())
    console = Console() if sys.stdout.isatty() else Console(width=140)
    mr, nr, kc, mc, nc = native.block_sizes()
    l2 = known_caches()["l2"]
    limit = peak.measure(given.threads, 0.5)
    timing = {"threads": given.threads, "rounds": given.rounds, "burst": 0.2}
    found = {size: matmul.measure(size, "float32", [], **timing) for size in given.sizes}
    highest = peak.highest(limit, peak.measure(given.threads, 0.5))["float32"]
    engine = Engine(mr, nr, l2.bytes // l2.shared, given.threads, highest)
    rate = measured_rate(given.threads)
    table = Table("product M×N×K", "plan", *Costs.__dataclass_fields__, "predicted", "measured")
    for size, one in found.items():
        plan = native.plan_product(*size)
        each = costs(size, plan, engine, rate)
        reached = one["flops"] / one["contenders"]["handgrad"]["median"] / highest
        parts = [f"{100 * part:.1f} %" for part in astuple(each)]
        shares = [f"{100 * share:.0f} %" for share in (each.share, reached)]
        table.add_row("×".join(map(str, size)), described(plan), *parts, *shares)
    console.print(
        f"MR {mr}, NR {nr}, KC ≤ {kc}, MC {mc}, NC {nc}; peak {highest / 1e9:.0f} GFLOP/s on "
        f"{given.threads} threads"
    )
    console.print(table)
    if noise:
        console.print(f"Warning: {noise}.", style="bold")
    return 0


if __name__ == "__main__":
    sys.exit(main())
