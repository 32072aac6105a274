"""The page: everything that is done, to PyTorch's module and to ours with the same weights.

Every cell is run, and what comes out is compared, values and gradients. It needs PyTorch and
compiled kernels.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn

import handgrad.torch as ours
from docs.torch_manners.done import (
    CHANGES,
    MANNERS,
    MODULES,
    NARROW,
    NothingThereError,
    made,
    results,
)

PAGE: Final = Path(__file__).parents[1] / "torch-manners.md"
#: Of the length of a difference relative to that of the values: of float64, and of 16 bits.
PRECISE: Final = 1e-9
COARSE: Final = 0.03

_INTRODUCTION: Final = """\
# Manners of the modules of handgrad.torch

What people do to modules of PyTorch, done to each module of `handgrad.torch` and to PyTorch's own
with the same weights. Values and the gradients of the input and of every parameter, for a random
cotangent, are compared. No cell is written by hand: in a clone of the repository,
`python -m docs.torch_manners` runs all of it again and writes this page, and a test compares the
two.

- **equal**: handgrad's module gives the same numbers, in float64 to 10⁻⁹, in types of 16 bits to
  3 %.
- **left** with a number: the module leaves this call to PyTorch's own code, with the
  `RuntimeWarning` of that number below, and gives the same numbers.
- **both refuse**: PyTorch ends in an error, and handgrad's module too.
- **–**: there is nothing to do it to.
- Everything else is a difference, in words.

Attention is called with `need_weights=False`; with the weights, PyTorch's own always computes.
"""
_OF_ACCELERATE: Final = """\
## Accelerate

A changed module given to `accelerate`, and one that is changed after it. **left** is what the
report says of the module; then nothing is replaced, and the numbers keep their bits. The product
has 65,536 weights here, below which `accelerate` leaves it.
"""
_REASON: Final = re.compile(r"handgrad\.torch\.\w+: (.*), so PyTorch's own")


class Notes:
    """The reasons that cells refer to, by number."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def cell(self, reasons: Sequence[str]) -> str:
        for reason in reasons:
            if reason not in self.reasons:
                self.reasons.append(reason)
        return "left " + ", ".join(f"[{self.reasons.index(reason) + 1}]" for reason in reasons)


def outcome(do: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What comes of it, or the exception, and why calls were left to PyTorch."""
    torch.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = do()
        except NothingThereError:
            raise
        except Exception as error:  # PyTorch's errors are of every class
            found = error
    texts = (_REASON.search(str(each.message)) for each in caught)
    return found, list(dict.fromkeys(text[1] for text in texts if text is not None))


def difference(found: Any, expected: Any, tolerance: float = PRECISE) -> str:
    """How what came of ours differs from PyTorch's, "" where it does not."""
    if isinstance(expected, Exception):
        return "both refuse" if isinstance(found, Exception) else "computes; PyTorch refuses"
    if isinstance(found, Exception):
        return f"refused: {type(found).__name__}"
    own = found[0].dtype
    for each, wanted in zip(found, expected, strict=True):
        if each.shape != wanted.shape:
            return f"shape {tuple(each.shape)}, PyTorch's {tuple(wanted.shape)}"
        if not torch.equal(each.isnan(), wanted.isnan()):
            return "a number where PyTorch has NaN" if wanted.isnan().any() else "NaN"
        values = wanted.double().nan_to_num()
        gap = (each.double().nan_to_num() - values).norm()
        if gap > tolerance * (1 + values.norm()):
            return "other numbers"
    if own is not expected[0].dtype:
        kinds = [str(each).removeprefix("torch.") for each in (own, expected[0].dtype)]
        return f"equal, y in {kinds[0]} and not {kinds[1]}"
    return ""


def verdict(name: str, what: str, notes: Notes) -> str:
    """The cell of one thing that is done to one module."""
    manner = MANNERS[what]
    theirs, mine = made(nn, name), made(ours, name)
    mine.load_state_dict(theirs.state_dict())
    try:
        expected, _ = outcome(lambda: manner(theirs, name))
        found, reasons = outcome(lambda: manner(mine, name))
    except NothingThereError:
        return "–"
    differs = difference(found, expected, COARSE if what in NARROW else PRECISE)
    return differs or (notes.cell(reasons) if reasons else "equal")


def accelerated(name: str, change: Callable[[Any], Any], after: bool, notes: Notes) -> str:
    """The cell of a change before `accelerate`, or after it."""
    theirs, mine = made(nn, name, wide=True), made(nn, name, wide=True)
    mine.load_state_dict(theirs.state_dict())
    try:
        expected, _ = outcome(lambda: results(change(theirs), name))
        if after:
            report = ours.accelerate(mine)
            found, reasons = outcome(lambda: results(change(mine), name))
        else:
            mine = change(mine)
            report = ours.accelerate(mine)
            found, reasons = outcome(lambda: results(mine, name))
    except NothingThereError:
        return "–"
    if "" in report.left:
        same = not isinstance(found, Exception) and all(map(torch.equal, found, expected))
        both = isinstance(found, Exception) and isinstance(expected, Exception)
        return notes.cell([report.left[""]]) if same or both else "left, other bits"
    return difference(found, expected) or (notes.cell(reasons) if reasons else "equal")


def table(rows: Iterator[tuple[str, list[str]]]) -> str:
    head = ["", *(f"`{name}`" for name in MODULES)]
    lines = [head, ["---"] * len(head), *([what, *cells] for what, cells in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def reasons_of(notes: Notes) -> str:
    return "\n".join(f"{i}. {reason}" for i, reason in enumerate(notes.reasons, 1))


def page() -> str:
    """The page in Markdown."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    of_modules, of_accelerate = Notes(), Notes()
    done = table((what, [verdict(name, what, of_modules) for name in MODULES]) for what in MANNERS)
    rows = [
        (f"{what}, {'after' if after else 'before'}", change, after)
        for what, change in CHANGES.items()
        for after in (False, True)
    ]
    changed = table(
        (what, [accelerated(name, change, after, of_accelerate) for name in MODULES])
        for what, change, after in rows
    )
    torch.set_num_threads(threads)
    parts = [_INTRODUCTION, done, "Left to PyTorch, because:", reasons_of(of_modules)]
    parts += [_OF_ACCELERATE, changed, "Left, because:", reasons_of(of_accelerate)]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"
