"""handgrad beside the checkers of PyTorch, JAX and HIPS' autograd, on programs that these take.

`python -m tests.checking.abroad.peers` prints the table. A peer says that a gradient is wrong, on
the inputs that it is given; it names no cause. A program that it cannot be given, as one with
several outputs for autograd, is counted apart. Seconds are the median of a program.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
from rich.console import Console
from rich.table import Table

from tests.checking.abroad.case import Program, programs
from tests.checking.abroad.judge import Judge
from tests.checking.abroad.verify import is_float

#: Options of the check, and none of the forward.
_OF_THE_CHECK: Final = ("wrt", "like", "seed")


class NotTakenError(Exception):
    """A program that a peer has no form for."""


def of_torch(target: Any, inputs: Sequence[Any], options: dict[str, Any]) -> bool:
    """Return whether torch.autograd.gradcheck, at its defaults, finds a gradient wrong."""
    import torch

    if options or not hasattr(target, "apply"):
        raise NotTakenError
    given = [
        each.detach().clone().requires_grad_()
        if torch.is_tensor(each) and each.is_floating_point()
        else each
        for each in inputs
    ]
    return not torch.autograd.gradcheck(target.apply, given, raise_exception=False)


def of_jax(target: Any, inputs: Sequence[Any], options: dict[str, Any]) -> bool:
    """Return whether jax.test_util.check_grads, backward and to first order, finds one wrong."""
    from jax.test_util import check_grads

    if options or not hasattr(target, "defvjp"):
        raise NotTakenError
    floats = [i for i, each in enumerate(inputs) if is_float(each)]

    def function(*arrays: Any) -> Any:
        return target(*_filled(inputs, floats, arrays))

    return _raises(check_grads, function, tuple(inputs[i] for i in floats), 1, ["rev"])


def of_autograd(target: Any, inputs: Sequence[Any], options: dict[str, Any]) -> bool:
    """Return whether autograd.test_util.check_grads, with the backward as its vjp, does."""
    from autograd.extend import defvjp, primitive
    from autograd.test_util import check_grads

    if not isinstance(target, tuple):
        raise NotTakenError
    forward, backward = target
    floats = [i for i, each in enumerate(inputs) if is_float(each)]

    def ran(arrays: Sequence[Any]) -> Any:
        result = forward(*_filled(inputs, floats, arrays), **options)
        if type(result) is not tuple or len(result) != 2:
            raise NotTakenError
        if not is_float(result[0]):  # several outputs
            raise NotTakenError
        return result

    def gradient(k: int, g: Any, arrays: Sequence[Any]) -> Any:
        found = backward(g, ran(arrays)[1])
        every = found if type(found) is tuple else (found,)
        if len(every) not in (len(floats), len(inputs)):
            raise NotTakenError
        return every[k if len(every) == len(floats) else floats[k]]

    @primitive  # type: ignore[untyped-decorator]
    def function(*arrays: Any) -> Any:
        return ran(arrays)[0]

    def vjp(k: int) -> Callable[..., Any]:
        return lambda _, *arrays: lambda g: gradient(k, g, arrays)

    defvjp(function, *map(vjp, range(len(floats))))
    return _raises(check_grads(function, modes=["rev"], order=1), *(inputs[i] for i in floats))


def _filled(inputs: Sequence[Any], floats: Sequence[int], arrays: Sequence[Any]) -> list[Any]:
    """The inputs, with these arrays where there are floats."""
    given = dict(zip(floats, arrays, strict=True))
    return [given.get(i, each) for i, each in enumerate(inputs)]


def _raises(check: Callable[..., Any], *given: Any) -> bool:
    """Return whether a checker finds something wrong."""
    try:
        check(*given)
    except AssertionError:
        return True
    return False


@dataclass
class Count:
    """What one checker says of the programs of a part."""

    caught: int = 0
    alarms: int = 0
    named: int = 0
    not_taken: int = 0
    seconds: list[float] = field(default_factory=list)


PEERS: Final = {
    "torch": ("gradcheck", of_torch, "torch"),
    "jax": ("check_grads of JAX", of_jax, "jax"),
    "numpy": ("check_grads of autograd", of_autograd, "autograd"),
}


def part_of(program: Program) -> str | None:
    """The part that a program belongs to: that of its framework, or NumPy's functions."""
    if program.style == "frameworks":
        return next(iter(program.needs), None)
    return "numpy" if program.style == "functions" else None


def judged(program: Program, folder: Path, own: Count, peer: Count, check: Any) -> tuple[int, int]:
    """Count what both say of a program and of each of its wrong variants; their numbers."""
    judge, is_taken = Judge(program, folder), True
    texts = [program.text, *(program.planted(faults) for faults in program.variants)]
    for number, text in enumerate(texts):
        outcome = judge.wrong(number - 1) if number else judge.right()
        own.seconds.append(outcome.seconds)
        own.caught += bool(number) and outcome.caught
        own.alarms += not number and outcome.caught
        own.named += outcome.named == "strictly"
        scope = program.scope(text, folder)
        inputs = scope["inputs"](np.random.default_rng(3))
        options = {k: v for k, v in scope.get("OPTIONS", {}).items() if k not in _OF_THE_CHECK}
        begin = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                is_wrong = is_taken and check(scope["TARGET"], inputs, options)
        except Exception:
            # What is right is no form of it; of what is wrong it refuses a shape itself.
            is_taken, is_wrong = is_taken and bool(number), bool(number)
        if is_taken:
            peer.seconds.append(time.perf_counter() - begin)
            peer.caught += bool(number) and is_wrong
            peer.alarms += not number and is_wrong
        else:
            peer.not_taken += 1
    return len(texts) - 1, 1


def rows(every: int) -> Iterator[tuple[str, str, int, int, Count]]:
    """A part, a checker, the wrong and the right programs, and its count."""
    with tempfile.TemporaryDirectory() as folder:
        for part, (name, check, needed) in PEERS.items():
            if find_spec(needed) is None:
                continue
            own, peer, wrong, right = Count(), Count(), 0, 0
            for program in [each for each in programs() if part_of(each) == part][::every]:
                more = judged(program, Path(folder), own, peer, check)
                wrong, right = wrong + more[0], right + more[1]
            yield part, "handgrad", wrong, right, own
            yield part, name, wrong, right, peer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--every", type=int, default=1, help="every so many-th program alone")
    table = Table(title="Beside other checkers", title_justify="left")
    for column in ("part", "checker", "wrong", "caught", "named with the line", "right", "blamed"):
        table.add_column(column, justify="left" if column in ("part", "checker") else "right")
    table.add_column("not taken", justify="right")
    table.add_column("seconds", justify="right")
    for part, name, wrong, right, count in rows(parser.parse_args().every):
        numbers = wrong, count.caught, count.named, right, count.alarms, count.not_taken
        median = f"{statistics.median(count.seconds):.3f}" if count.seconds else "–"
        table.add_row(part, name, *map(str, numbers), median)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
