"""Plant one bug at a time in the backward of every op, and count those found and named.

    python -m benchmarks.planted_bugs [--only layer_norm,...] [--correct 1000] [--no-torch]

Every single edit of a backward's program is a mutant. Mutants that do not run on the usual
inputs are left out (Python reports those), and so are those that are the same function: equal to
the original to 1e-12 on every sample and on random ones, with two random cotangents each; two
different rational functions agree on random points with probability 0. The rest are checked as
black boxes: the checker gets the forward, the mutated backward, and the name of the op. A fault is
named rightly if it has the kind of the edit or the term it concerns, or is another edit that gives
the same numbers on all samples. For comparison the same mutants go through PyTorch's gradcheck,
which can say that a gradient is wrong, but not why.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import numpy as np
from rich.console import Console
from rich.table import Table

from handgrad.checking import CheckReport, check
from handgrad.checking.trial import leaves, like_nested, random_like
from handgrad.dispatch import engine
from handgrad.ops import OPS
from handgrad.ops.samples import (
    SampleInput,
    forward_arguments,
    gradient_names,
    random_sample_input,
    sample_inputs,
)
from handgrad.program import recorded
from handgrad.program.edits import Edit, edits
from handgrad.program.planting import Planted

SEED: Final = 1234
#: Random samples on which a mutant must equal the original to count as the same function.
RANDOM: Final = 10


@dataclass
class Count:
    """The counts of the mutants of one op."""

    mutants: int = 0
    equal: int = 0
    caught: int = 0
    named: int = 0
    torch_caught: int = 0
    missed: list[str] = field(default_factory=list)
    misnamed: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Point:
    """The arguments with which backwards are compared: a cotangent and the reference's cache."""

    dy: Any
    cache: Any
    gradients: tuple[Any, ...]


class Bench:
    """One op: its points, its mutants, and how two backwards are compared."""

    def __init__(self, op: str) -> None:
        self.op = op
        self.module = import_module(f"handgrad.ops.{op}")
        rng = np.random.default_rng(SEED)
        self.samples = sample_inputs(op, rng)
        drawn = [random_sample_input(op, rng) for _ in range(RANDOM)]
        self.points = [
            point for sample in (*self.samples, *drawn) for point in self.points_of(sample, rng)
        ]
        self._results: dict[Any, tuple[Any, ...]] = {}

    def points_of(self, sample: SampleInput, rng: np.random.Generator) -> Iterator[Point]:
        for _ in range(2):
            args, kwargs = forward_arguments(self.op, sample)
            with engine("reference"):
                y, cache = self.module.forward(*args, **kwargs)
            dy = random_like(y, rng)
            yield Point(dy, cache, _several(self.module.backward(dy, cache)))

    def mutants(self) -> list[Edit]:
        """Every edit of the usual run, and of runs with settings that take another path, once."""
        found: dict[Any, Edit] = {}
        seen: set[Any] = set()
        for sample, point in zip(self.samples, self.points[::2], strict=False):
            if sample.situation not in ("usual", "option"):
                continue
            program = recorded(self.module.backward, point.dy, point.cache)
            for edit in edits(program):
                if edit.key[0] not in seen:
                    found.setdefault(edit.key, edit)
            seen |= {edit.key[0] for edit in found.values()}
        return list(found.values())

    def planted(self, edit: Edit) -> Callable[..., Any]:
        return Planted(self.module.backward, edit)

    def results(self, edit: Edit) -> tuple[Any, ...]:
        """The results of the backward with this edit at every point, or the exception's name."""
        if edit.key not in self._results:
            planted = self.planted(edit)
            self._results[edit.key] = tuple(_result(planted, point) for point in self.points)
        return self._results[edit.key]

    def is_right(self, edit: Edit) -> bool:
        rights = (point.gradients for point in self.points)
        return all(_equal(a, b) for a, b in zip(self.results(edit), rights, strict=True))

    def same(self, one: Edit, other: Edit) -> bool:
        """True where two mutants are one function, as far as all points show."""
        return all(
            _equal(a, b) for a, b in zip(self.results(one), self.results(other), strict=True)
        )

    def runs(self, edit: Edit) -> bool:
        return not isinstance(self.results(edit)[0], str)


def _several(gradients: Any) -> tuple[Any, ...]:
    return gradients if isinstance(gradients, tuple) else (gradients,)


def _result(function: Callable[..., Any], point: Point) -> Any:
    try:
        with np.errstate(all="ignore"):
            return _several(function(point.dy, point.cache))
    except Exception as error:
        return type(error).__name__


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return bool(isinstance(one, str) and isinstance(other, str))
    if len(one) != len(other):
        return False
    for a, b in zip(one, other, strict=True):
        if a is None or b is None:
            if a is not b:
                return False
            continue
        a, b = np.asarray(a), np.asarray(b)
        scale = float(np.max(np.abs(b[np.isfinite(b)]), initial=0.0))
        if a.shape != b.shape or not np.allclose(
            a, b, rtol=1e-12, atol=1e-12 * scale, equal_nan=True
        ):
            return False
    return True


def measure(op: str, *, with_torch: bool) -> Count:
    bench, count = Bench(op), Count()
    mutants = bench.mutants()
    for mutant in mutants:
        if not bench.runs(mutant):
            continue
        if bench.is_right(mutant):
            count.equal += 1
            continue
        count.mutants += 1
        label = f"{op}, line {mutant.line}: {mutant.kind}, {mutant.part}"
        report = check(bench.planted(mutant), like=op, seed=SEED)
        if report.ok:
            count.missed.append(label)
        else:
            count.caught += 1
            if _named(bench, mutants, mutant, report):
                count.named += 1
            else:
                fault = report.faults[0]
                count.misnamed.append(
                    f"{label}\n    reported: {fault.kind}, {fault.term}: {fault.message}"
                )
        if with_torch:
            count.torch_caught += _caught_by_torch(bench, mutant)
    return count


def _named(bench: Bench, mutants: list[Edit], planted: Edit, report: CheckReport) -> bool:
    reported = {
        each for fault in report.faults for each in ((fault.kind, fault.term), *fault.alternatives)
    }
    if any(kind == planted.kind or (term and term == planted.part) for kind, term in reported):
        return True
    return any(
        (other.kind, other.part) in reported and bench.same(other, planted) for other in mutants
    )


def _caught_by_torch(bench: Bench, mutant: Edit) -> bool:
    """torch.autograd.gradcheck, at its defaults, on the usual inputs."""
    import torch

    sample = bench.samples[0]
    names = gradient_names(bench.op)
    order = list(sample.arrays)

    class Mutant(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *tensors: Any) -> Any:
            arrays = (tensor.detach().numpy() for tensor in tensors)
            given = replace(sample, arrays=dict(zip(order, arrays, strict=True)))
            args, kwargs = forward_arguments(bench.op, given)
            with engine("reference"):
                ctx.y, ctx.cache = bench.module.forward(*args, **kwargs)
            outputs = tuple(torch.from_numpy(np.array(each)) for each in leaves(ctx.y))
            return outputs if len(outputs) > 1 else outputs[0]

        @staticmethod
        def backward(ctx: Any, *dys: Any) -> Any:
            flat = iter(dys)
            dy = like_nested(ctx.y, lambda _: next(flat).numpy())
            found = _several(bench.planted(mutant)(dy, ctx.cache))
            by_name = dict(zip(names, found, strict=True))
            return tuple(
                torch.from_numpy(np.array(by_name[name])) if name in by_name else None
                for name in order
            )

    tensors = []
    for name, array in sample.arrays.items():
        tensor = torch.from_numpy(np.array(array))
        tensors.append(tensor.requires_grad_() if name in names else tensor)
    try:
        return not torch.autograd.gradcheck(Mutant.apply, tensors, raise_exception=False)
    except Exception:  # a wrong shape, which torch refuses itself
        return True


def false_alarms(cases: int) -> list[str]:
    """Correct ops on random inputs, float32 included, half of them by their kernels."""
    rng = np.random.default_rng(SEED)
    found = []
    for number in range(cases):
        op = OPS[number % len(OPS)]
        sample = random_sample_input(op, rng)
        module = import_module(f"handgrad.ops.{op}")
        keyword = {n: a for n, a in sample.arrays.items() if _keyword_only(module, n)}
        names = list(inspect.signature(module.forward).parameters)
        last = max(names.index(name) for name in sample.arrays if name not in keyword)
        inputs = [sample.arrays.get(name) for name in names[: last + 1]]
        with engine("auto" if number // len(OPS) % 2 else "reference"):
            report = check(op, *inputs, seed=number, **keyword, **sample.options)
        if not report.ok:
            found.append(f"{op}, {sample.label}, seed {number}: {report.faults[0].message}")
    return found


def _keyword_only(module: Any, name: str) -> bool:
    parameter = inspect.signature(module.forward).parameters[name]
    return parameter.kind is inspect.Parameter.KEYWORD_ONLY


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", default=",".join(OPS), help="ops, with commas between")
    parser.add_argument("--correct", type=int, default=1000, help="correct cases to try")
    parser.add_argument("--no-torch", action="store_true", help="leave PyTorch's gradcheck out")
    parser.add_argument("--details", action="store_true", help="list what was missed or misnamed")
    given = parser.parse_args()
    unknown = [op for op in given.only.split(",") if op not in OPS]
    if unknown:
        sys.exit(f"planted_bugs: --only has {unknown[0]!r}; allowed: {', '.join(OPS)}")
    with_torch = not given.no_torch and find_spec("torch") is not None
    console = Console()
    counts = {op: measure(op, with_torch=with_torch) for op in given.only.split(",")}
    console.print(_table(counts, with_torch))
    if given.details:
        for count in counts.values():
            for label in count.missed:
                console.print(f"missed: {label}", markup=False)
            for label in count.misnamed:
                console.print(f"misnamed: {label}", markup=False)
    if given.correct:
        alarms = false_alarms(given.correct)
        console.print(f"false alarms on {given.correct} correct cases: {len(alarms)}")
        for label in alarms:
            console.print(f"  {label}", markup=False)


def _table(counts: dict[str, Count], with_torch: bool) -> Table:
    table = Table(title="Planted bugs", title_justify="left")
    table.add_column("op")
    for column in ("mutants", "equal, left out", "caught", "named", "gradcheck caught, named 0"):
        if with_torch or not column.startswith("gradcheck"):
            table.add_column(column, justify="right")
    total = Count()
    for op, count in counts.items():
        table.add_row(op, *_cells(count, with_torch))
        for name in ("mutants", "equal", "caught", "named", "torch_caught"):
            setattr(total, name, getattr(total, name) + getattr(count, name))
    table.add_section()
    table.add_row("all", *_cells(total, with_torch))
    share = max(total.mutants, 1)
    percent = ["", "", f"{total.caught / share:.1%}", f"{total.named / share:.1%}"]
    table.add_row("", *percent, *([f"{total.torch_caught / share:.1%}"] if with_torch else []))
    return table


def _cells(count: Count, with_torch: bool) -> list[str]:
    cells = [count.mutants, count.equal, count.caught, count.named]
    return [str(cell) for cell in (*cells, *([count.torch_caught] if with_torch else []))]


if __name__ == "__main__":
    main()
