"""A run on the example, and its twin on inputs in which every letter has a size of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from handgrad.equations.dimensions import (
    Dimensions,
    output_letters,
    renamed_inputs,
    setting_letters,
)
from handgrad.equations.subject import Subject, parameters
from handgrad.equations.tracing import Float, Int, NotesRecorder, Runs, outputs
from handgrad.errors import ArgumentError, ShapeError
from handgrad.program import Assignment, Frame, Node, Program, Round, Site, leaves
from handgrad.program.functions import is_array


class Statement(NamedTuple):
    """Names that one statement set, and what to: nodes, or lists of nodes."""

    frame: Frame
    site: Site
    rounds: tuple[Round, ...]
    names: tuple[str, ...]
    values: tuple[Any, ...]
    #: The number of nodes by then.
    made: int

    @property
    def key(self) -> Any:
        return self.frame.function, self.site, self.names


@dataclass(frozen=True)
class PairedRuns:
    """The runs that have the values, and those that equations are written from."""

    run: Runs
    lettered: Runs
    dimensions: Dimensions


def pair(subject: Subject, dimensions: Dimensions | None = None) -> PairedRuns:
    """Both runs. Sizes go by the letters of the annotations, or by `dimensions`."""
    arguments = parameters(subject.backward)
    if len(arguments) != 2:
        name = getattr(subject.backward, "__name__", "backward")
        raise ArgumentError(
            f"notes: {name} takes {len(arguments)} arguments; allowed: two, the "
            "gradient that comes in and the cache"
        )
    run = NotesRecorder().runs(subject)
    if dimensions is not None:
        return PairedRuns(run, run, dimensions)
    arrays = {name: np.asarray(value) for name, value in subject.arrays.items()}
    output = arguments[0].shape
    for inputs, letters in renamed_inputs(parameters(subject.forward), arrays, output):
        other = _lettered(subject, inputs)
        if other is None or not (
            _is_alike(run.forward, other.forward) and _is_alike(run.backward, other.backward)
        ):
            continue
        y = outputs(subject.forward, other.forward.result)[0]
        if isinstance(y, Node) and is_array(y.value):
            letters = output_letters(output, tuple(y.value.shape), letters)
        return PairedRuns(run, other, Dimensions(setting_letters(subject.options, letters)))
    return PairedRuns(run, run, Dimensions())


def _lettered(subject: Subject, inputs: dict[str, np.ndarray]) -> Runs | None:
    other = replace(subject, arrays=inputs, cotangent=None, gradients=None)
    try:
        if other.validate is not None:
            other.validate(**inputs, **other.fresh_options())
        with np.errstate(all="ignore"):
            return NotesRecorder().runs(other, _random_like)
    except (ArgumentError, ShapeError):  # sizes that do not fit
        return None


def _random_like(y: Any) -> Any:
    if isinstance(y, tuple | list):
        return tuple(map(_random_like, y))
    return np.asarray(np.random.default_rng(1).uniform(0.5, 1.5, np.shape(y)))


def _is_alike(program: Program, other: Program) -> bool:
    """True where both took the same way; loops may have more rounds in one of them."""
    return list(dict.fromkeys(map(_place, program.nodes))) == list(
        dict.fromkeys(map(_place, other.nodes))
    ) and {(each.site, each.taken) for each in program.branches} == {
        (each.site, each.taken) for each in other.branches
    }


def _place(node: Node) -> Any:
    return node.frame.function, node.site, node.op


def statements(program: Program) -> list[Statement]:
    """The statements of a function, and of the functions that do a part of its work.

    Several names are together where they take the parts of one value.
    """
    found: list[Statement] = []
    last: tuple[Any, ...] = ()
    gathered = {each.name for each in program.assignments if _added(each) is not None}
    for each in program.assignments:
        if each.site is None or not _is_own(program, each):
            last = ()
            continue
        item = _added(each)
        if each.name in gathered and item is None and not each.rounds:
            several = list(leaves(each.value)) if isinstance(each.value, tuple | list) else []
            item = several[0] if len(several) == 1 else None
        if item is not None:
            each = each._replace(name=_of_one(each.name), value=item)
        here = each.frame, each.site, each.rounds, each.made, _whole(each.value)
        if here == last and here[-1] is not None and each.name not in found[-1].names:
            before = found.pop()
            names, values = (*before.names, each.name), (*before.values, each.value)
            found.append(before._replace(names=names, values=values))
        else:
            single = (each.name,), (each.value,)
            site = each.site or Site(0, 0, 0, 0, each.name)
            found.append(Statement(each.frame, site, each.rounds, *single, each.made))
        last = here
    return found


def _added(assignment: Assignment) -> Node | None:
    """The node that a round adds to a list, behind or in front, where it has no name of its own."""
    value, rounds = assignment.value, assignment.rounds
    if not isinstance(value, tuple | list) or hasattr(value, "_fields") or not value or not rounds:
        return None
    for item in (value[-1], value[0]):
        is_made = isinstance(item, Node) and is_array(item.value) and item.rounds == rounds
        if is_made and not item.names:
            return item
    return None


def _of_one(name: str) -> str:
    """`h` for an element of `hs`."""
    return name[0] if len(name) == 2 and name[1] == "s" else name


def _whole(value: Any) -> Any:
    """The node that a value is a part of, among the several results of a function."""
    return value.args[0] if isinstance(value, Node) and value.op == "element" else None


def _is_own(program: Program, assignment: Assignment) -> bool:
    frame = assignment.frame
    if frame is program.frame:
        return True
    is_part = getattr(frame.function, "__name__", "").startswith("backward")
    is_foreign = not getattr(frame.function, "__module__", "").startswith("handgrad.")
    return (is_part or is_foreign) and assignment.site is not frame.site


def twins(
    own: list[Statement], other: list[Statement]
) -> Iterator[tuple[Statement, Statement, bool]]:
    """Every statement with the one that its equation is written from, and whether it ran before.

    In a loop that is the one of the second round: in the first, what is carried over is not yet
    what a round has made.
    """
    by_key: defaultdict[Any, list[Statement]] = defaultdict(list)
    for each in other:
        by_key[each.key].append(each)
    seen: set[Any] = set()
    for each in own:
        candidates = by_key.get(each.key, [each])
        yield each, max(candidates, key=_generality), each.key in seen
        seen.add(each.key)


def _generality(statement: Statement) -> int:
    return -abs(sum(1 for each in statement.rounds if each.number != 1))


def is_number(value: Any) -> bool:
    return isinstance(value, Int | Float)
