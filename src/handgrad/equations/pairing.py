"""The runs of a forward and its backward in letters, and the statements of each."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from handgrad.equations.dimensions import Dimensions, Letters, sizes_of_inputs
from handgrad.equations.lettered import Computer
from handgrad.equations.shaping import shape
from handgrad.equations.subject import Subject, parameters
from handgrad.equations.tracing import Float, Int, NotesRecorder, Runs, outputs
from handgrad.errors import ArgumentError
from handgrad.program import Assignment, Frame, Node, Program, Round, Site, leaves
from handgrad.program.functions import is_array
from handgrad.program.sizes import ONE


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


def runs_in_letters(
    subject: Subject, dimensions: Dimensions | None = None
) -> tuple[Runs, Dimensions]:
    """Both passes on the example, their sizes in the letters of the annotations.

    Sizes are numbers where an array has no annotation, or where a function is not known on tracers.
    """
    arguments = parameters(subject.backward)
    if len(arguments) != 2:
        name = getattr(subject.backward, "__name__", "backward")
        raise ArgumentError(
            f"notes: {name} takes {len(arguments)} arguments; allowed: two, the "
            "gradient that comes in and the cache"
        )
    if dimensions is not None:
        return NotesRecorder().runs(subject), dimensions
    known = sizes_of_inputs(parameters(subject.forward), subject.arrays, subject.options)
    if known is not None:
        sizes, lengths = known
        compute = Computer(lengths)
        try:
            runs = NotesRecorder(compute).runs(subject, sizes)
        except ArgumentError:  # which a run of numbers raises again, where it is the subject's
            return NotesRecorder().runs(subject), Dimensions()
        output = arguments[0].shape
        order = sorted(lengths, key=lambda letter: letter not in output.split())
        letters = Letters(lengths, order)
        nodes = [node for program in runs[:2] for node in program.nodes if node.sizes]
        every = dict.fromkeys(size for node in nodes for size in node.sizes or ())
        reshaped = [
            (math.prod(shape(node.args[0])) * ONE, math.prod(shape(node)) * ONE)
            for node in nodes
            if node.op == "reshape"
        ]
        letters.learn([*compute.equalities(), *reshaped], every)
        for node in nodes:
            node.sizes = tuple(size.at(letters.known) for size in node.sizes or ())
        y = outputs(subject.forward, runs.forward.result)[0]
        return runs, letters.dimensions(output, shape(y))
    return NotesRecorder().runs(subject), Dimensions()


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


def with_generic(statements: list[Statement]) -> Iterator[tuple[Statement, Statement, bool]]:
    """Every statement with the one that its equation is written from, and whether it ran before.

    In a loop that is the one of the second round: in the first, what is carried over is not yet
    what a round has made.
    """
    by_key: defaultdict[Any, list[Statement]] = defaultdict(list)
    for each in statements:
        by_key[each.key].append(each)
    seen: set[Any] = set()
    for each in statements:
        yield each, max(by_key[each.key], key=_generality), each.key in seen
        seen.add(each.key)


def _generality(statement: Statement) -> int:
    return -abs(sum(1 for each in statement.rounds if each.number != 1))


def is_number(value: Any) -> bool:
    return isinstance(value, Int | Float)
