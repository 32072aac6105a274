"""Plant one bug at a time in the backward of every op, and count those found and named.

    python -m benchmarks.planted_bugs [--only layer_norm,...] [--every 5] [--details] [--no-torch]

Every mutant is the op's own file with one expression of its backward changed, or of a function that
only backward calls: it is checked as a user's pair of functions, with no word of what op it is.
Mutants that do not run on the usual inputs are left out (Python reports those), and so are those
that are the same function there: equal to the original to 1e-12 with two random cotangents. A fault
is named where a cause is told with its line; the line is right where it is the one that was
changed. The mutations are a list of their own
(`benchmarks.mutations`), not the checker's. For comparison the same mutants go through PyTorch's
gradcheck, which can say that a gradient is wrong, but not why.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.mutations import Mutant, mutants
from handgrad.checking import CheckReport, check
from handgrad.checking.trial import leaves, like_nested, random_like
from handgrad.dispatch import engine
from handgrad.ops import OPS
from handgrad.ops.samples import forward_arguments, gradient_names, sample_inputs

SEED: Final = 1234


@dataclass
class Count:
    """The counts of the mutants of one op."""

    mutants: int = 0
    equal: int = 0
    caught: int = 0
    named: int = 0
    line: int = 0
    torch_caught: int = 0
    seconds: list[float] = field(default_factory=list)
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

    def __init__(self, op: str, folder: Path) -> None:
        self.op, self.folder = op, folder
        self.module = import_module(f"handgrad.ops.{op}")
        rng = np.random.default_rng(SEED)
        self.sample = sample_inputs(op, rng)[0]
        self.points = list(self._points(rng))

    def _points(self, rng: np.random.Generator) -> Iterator[Point]:
        for _ in range(2):
            args, kwargs = forward_arguments(self.op, self.sample)
            with engine("reference"):
                y, cache = self.module.forward(*args, **kwargs)
                dy = random_like(y, rng)
                yield Point(dy, cache, _several(self.module.backward(dy, cache)))

    def mutants(self) -> list[Mutant]:
        source = Path(str(self.module.__file__)).read_text("utf-8")
        return list(mutants(source, "backward", "forward", decorator="operation"))

    def planted(self, mutant: Mutant, number: int) -> ModuleType:
        """The op's file with the mutant in it, as a module of its own."""
        name = f"{self.op}_{number}"
        path = self.folder / f"{name}.py"
        path.write_text(mutant.source, "utf-8")
        spec = spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    def runs(self, module: ModuleType) -> bool:
        return not isinstance(_result(module, self.points[0]), str)

    def is_right(self, module: ModuleType) -> bool:
        return all(_equal(_result(module, point), point.gradients) for point in self.points)

    def report(self, module: ModuleType) -> CheckReport:
        args, kwargs = forward_arguments(self.op, self.sample)
        target = module.forward, module.backward
        if any(isinstance(each, np.random.Generator) for each in args):  # it draws its mask
            return check(target, like=self.op, seed=SEED)
        given = dict(zip(signature(module.forward).parameters, args, strict=False))
        arrays = [each for each in given.values() if isinstance(each, np.ndarray)]
        settings = {name: each for name, each in given.items() if isinstance(each, int | float)}
        wrt = gradient_names(self.op)
        return check(target, *arrays, wrt=wrt, seed=SEED, **settings, **kwargs)


def _several(gradients: Any) -> tuple[Any, ...]:
    return gradients if isinstance(gradients, tuple) else (gradients,)


def _result(module: ModuleType, point: Point) -> Any:
    try:
        with np.errstate(all="ignore"):
            return _several(module.backward(point.dy, point.cache))
    except Exception as error:
        return type(error).__name__


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, str) or len(one) != len(other):
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


def measure(op: str, folder: Path, *, every: int, with_torch: bool) -> Count:
    bench, count = Bench(op, folder), Count()
    for number, mutant in enumerate(bench.mutants()[::every]):
        try:
            module = bench.planted(mutant, number)
        except Exception:  # a default or a decorator that does not stand the change
            continue
        if not bench.runs(module):
            continue
        if bench.is_right(module):
            count.equal += 1
            continue
        count.mutants += 1
        label = f"{op}, line {mutant.line}: {mutant.told}"
        started = time.perf_counter()
        report = bench.report(module)
        count.seconds.append(time.perf_counter() - started)
        if report.ok:
            count.missed.append(label)
        else:
            _judge(count, mutant, report, label)
        if with_torch:
            count.torch_caught += _caught_by_torch(bench, module)
    return count


def _judge(count: Count, mutant: Mutant, report: CheckReport, label: str) -> None:
    count.caught += 1
    causes = [fault for fault in report.faults if fault.line and fault.confidence > 0.0]
    is_line = any(fault.line in mutant.lines for fault in report.faults)
    count.named += bool(causes)
    count.line += is_line
    if not causes or not is_line:
        fault = (causes or report.faults)[0]
        count.misnamed.append(f"{label}\n    reported: {fault.message}")


def _caught_by_torch(bench: Bench, module: ModuleType) -> bool:
    """torch.autograd.gradcheck, at its defaults, on the usual inputs."""
    import torch

    sample = bench.sample
    names = gradient_names(bench.op)
    order = list(sample.arrays)

    class Wrong(torch.autograd.Function):
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
            found = _several(module.backward(dy, ctx.cache))
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
        return not torch.autograd.gradcheck(Wrong.apply, tensors, raise_exception=False)
    except Exception:  # a wrong shape, which torch refuses itself
        return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", default=",".join(OPS), help="ops, with commas between")
    parser.add_argument("--every", type=int, default=1, help="every so many-th mutant alone")
    parser.add_argument("--no-torch", action="store_true", help="leave PyTorch's gradcheck out")
    parser.add_argument("--details", action="store_true", help="list what was missed or misnamed")
    given = parser.parse_args()
    unknown = [op for op in given.only.split(",") if op not in OPS]
    if unknown:
        sys.exit(f"planted_bugs: --only has {unknown[0]!r}; allowed: {', '.join(OPS)}")
    with_torch = not given.no_torch and find_spec("torch") is not None
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        counts = {
            op: measure(op, Path(folder), every=given.every, with_torch=with_torch)
            for op in given.only.split(",")
        }
    console.print(_table(counts, with_torch))
    if given.details:
        for count in counts.values():
            for label in count.missed:
                console.print(f"missed: {label}", markup=False)
            for label in count.misnamed:
                console.print(f"misnamed: {label}", markup=False)


def _table(counts: dict[str, Count], with_torch: bool) -> Table:
    table = Table(title="Planted bugs", title_justify="left")
    table.add_column("op")
    columns = ("mutants", "equal, left out", "caught", "named", "line right", "median s", "worst s")
    for column in (*columns, *(["gradcheck caught, named 0"] if with_torch else [])):
        table.add_column(column, justify="right")
    total = Count()
    for op, count in counts.items():
        table.add_row(op, *_cells(count, with_torch))
        for name in ("mutants", "equal", "caught", "named", "line", "torch_caught"):
            setattr(total, name, getattr(total, name) + getattr(count, name))
        total.seconds += count.seconds
    table.add_section()
    table.add_row("all", *_cells(total, with_torch))
    share = max(total.mutants, 1)
    parts = [f"{part / share:.1%}" for part in (total.caught, total.named, total.line)]
    torch = [f"{total.torch_caught / share:.1%}"] if with_torch else []
    table.add_row("", "", "", *parts, "", "", *torch)
    return table


def _cells(count: Count, with_torch: bool) -> list[str]:
    cells = [count.mutants, count.equal, count.caught, count.named, count.line]
    times = [statistics.median(count.seconds), max(count.seconds)] if count.seconds else [0.0, 0.0]
    return [
        *map(str, cells),
        *(f"{each:.1f}" for each in times),
        *([str(count.torch_caught)] if with_torch else []),
    ]


if __name__ == "__main__":
    main()
