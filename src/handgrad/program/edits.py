"""Every single wrong step that a program allows: the right one with one thing changed.

The same list serves twice. The benchmark plants each edit and asks the checker to find it; the
checker compares a wrong gradient with what each edit of the right backward would have given. An
edit concerns a position in the source, and so all nodes from there, as in the rounds of a loop.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.program.arranging import is_transpose
from handgrad.program.functions import size
from handgrad.program.nodes import Frame, Node, Program, mapped
from handgrad.program.running import Change, Execution
from handgrad.program.text import SHAPING, definition, operand_text, symbol, text

Of = Callable[[Any], Any]
_REDUCTIONS: Final = {"sum": "mean", "mean": "sum"}


@dataclass(frozen=True)
class Edit:
    """The kind of change, the part it concerns, the line of the source, and the changed nodes.

    `swapped` are positions of the result that come back in each other's place. Edits of two runs
    with the same `key` change the same thing.
    """

    kind: str
    part: str
    line: int
    changes: Mapping[Node, Change]
    swapped: tuple[int, int] | None = None
    key: Any = None

    def results(self, run: Execution) -> tuple[Any, ...]:
        """The results of a run with this change made, one by one; raises what that raises."""
        found = list(run.changed(self.changes, run.program.results))
        if self.swapped is not None:
            i, j = self.swapped
            found[i], found[j] = found[j], found[i]
        return tuple(found)


class Variant(NamedTuple):
    """One change of one node."""

    kind: str
    part: str
    change: Change


def edits(program: Program) -> list[Edit]:
    """Every edit of an operation that the program made."""
    return [edit for source in sources(program) for edit in source]


def sources(program: Program) -> Iterator[Iterator[Edit]]:
    """The edits in parts, each made when it is read: of one site, of arguments, of results."""
    for group in by_site(program):
        yield merged(program, group, _variants)
    yield _stale_arguments(program)
    yield _swapped(program)


def same_edit(program: Program, edit: Edit) -> Edit | None:
    """The edit that changes the same in another run; None where that has no such operation.

    A variable that has another shape there stands in the other's place all the same, as it would in
    the source.
    """
    if edit.swapped is not None:
        among: Iterable[Edit] = _swapped(program)
    elif edit.key[1] == "argument":
        among = _stale_arguments(program)
    else:
        site, op = edit.key[:2]
        groups = (each for each in by_site(program) if (each[0].site, each[0].op) == (site, op))
        variants = partial(_variants, any_shape=True)
        among = (found for group in groups for found in merged(program, group, variants))
    return next((found for found in among if found.key == edit.key), None)


def merged(
    program: Program, group: list[Node], variants: Callable[[Program, Node], Iterator[Variant]]
) -> Iterator[Edit]:
    """One edit for every variant of a site, of all its nodes that have this variant."""
    found: dict[Any, dict[Node, Change]] = {}
    for node in group:
        met: Counter[Any] = Counter()
        for kind, part, change in variants(program, node):
            met[kind, part] += 1
            found.setdefault((kind, part, met[kind, part]), {})[node] = change
    first = group[0]
    for (kind, part, number), changes in found.items():
        key = (first.site, first.op, kind, part, number)
        yield Edit(kind, part, first.line, changes, key=key)


def by_site(program: Program) -> list[list[Node]]:
    """The nodes that come from one position of the source and are of one kind."""
    groups: dict[Any, list[Node]] = {}
    for node in program.nodes:
        if node.function is not None and node.site is not None:
            groups.setdefault((node.frame.function, node.site, node.op), []).append(node)
    return list(groups.values())


def _variants(program: Program, node: Node, *, any_shape: bool = False) -> Iterator[Variant]:
    args = node.args
    match node.op:
        case "add" | "subtract" if is_floats(node.value):
            yield from _of_sum(node)
        case "multiply" | "divide" if is_floats(node.value):
            yield from _of_product(node)
        case "negative":
            yield Variant("wrong sign", definition(node), lambda own, of: of(args[0]))
        case "matmul":
            yield Variant(
                "operands swapped", definition(node), lambda own, of: of(args[1]) @ of(args[0])
            )
            if not is_transpose(args[0]):
                left = operand_text(node, args[0])
                yield Variant("transposed", left, lambda own, of: of(args[0]).mT @ of(args[1]))
            if not is_transpose(args[1]):
                right = operand_text(node, args[1])
                yield Variant("transposed", right, lambda own, of: of(args[0]) @ of(args[1]).mT)
        case _ if is_transpose(node):
            yield Variant("transpose missing", definition(node), lambda own, of: of(args[0]))
        case "where" if len(args) == 3:
            yield Variant(
                "mask forgotten", operand_text(node, args[0]), lambda own, of: of(args[1])
            )
            yield Variant(
                "wrong branch",
                operand_text(node, args[0]),
                lambda own, of: node.function(of(args[0]), of(args[2]), of(args[1])),  # type: ignore[misc]
            )
        case "bitwise_invert":
            yield Variant("wrong branch", definition(node), lambda own, of: of(args[0]))
        case "less" | "less_equal" | "greater" | "greater_equal" | "equal" | "not_equal":
            if "bool" in str(getattr(node.value, "dtype", "")):
                yield Variant("wrong branch", definition(node), lambda own, of: ~own)
        case "bitwise_and":
            yield Variant(
                "mask forgotten", operand_text(node, args[0]), lambda own, of: of(args[1])
            )
            yield Variant(
                "mask forgotten", operand_text(node, args[1]), lambda own, of: of(args[0])
            )
        case _:
            yield from _of_call(node)
    yield from _stale(program, node, any_shape=any_shape)


def _of_sum(node: Node) -> Iterator[Variant]:
    left, right = node.args
    left_text, right_text = operand_text(node, left), operand_text(node, right)
    adds = node.op == "add"
    sign = "" if adds else "−"
    yield Variant("term missing", left_text, lambda own, of: of(right) if adds else -of(right))
    yield Variant("term missing", sign + right_text, lambda own, of: of(left))
    yield Variant(
        "wrong sign",
        left_text,
        lambda own, of: of(right) - of(left) if adds else -of(left) - of(right),
    )
    yield Variant(
        "wrong sign",
        sign + right_text,
        lambda own, of: of(left) - of(right) if adds else of(left) + of(right),
    )


def _of_product(node: Node) -> Iterator[Variant]:
    left, right = node.args
    left_text, right_text = operand_text(node, left), operand_text(node, right)
    times = node.op == "multiply"
    first = "scale missing" if _is_scalar(left) else "factor missing"
    second = "scale missing" if _is_scalar(right) else "factor missing"
    yield Variant(first, left_text, lambda own, of: of(right) if times else 1.0 / of(right))
    yield Variant(second, ("" if times else "1/") + right_text, lambda own, of: of(left))
    if times and not _is_scalar(right):
        return
    yield Variant(
        "scale inverted",
        ("" if times else "1/") + right_text,
        lambda own, of: of(left) / of(right) if times else of(left) * of(right),
    )


def _of_call(node: Node) -> Iterator[Variant]:
    first = node.args[0] if node.args else None
    unchanging = node.op in SHAPING or node.op in ("getitem", "store", "element")
    unchanging |= node.op.endswith("_like")
    if unchanging or not isinstance(first, Node) or not hasattr(first.value, "ndim"):
        return
    if node.op in _REDUCTIONS:
        other = _REDUCTIONS[node.op]
        yield Variant(f"{other} for {node.op}", definition(node), _times(_ratio(node)))
    if is_floats(first.value) and is_floats(node.value):
        if node.op in ("sum", "mean", "max", "min"):
            yield Variant("not reduced", definition(node), lambda own, of: of(first))
        elif np.ndim(first.value) == np.ndim(node.value):
            yield Variant("function missing", definition(node), lambda own, of: of(first))
    yield from _other_axes(node, first)


def _ratio(node: Node) -> float:
    """By how much the mean is smaller than the sum, or the sum larger."""
    count = max(size(node.args[0].value), 1) / max(size(node.value), 1)
    return 1.0 / count if node.op == "sum" else count


def _times(factor: float) -> Change:
    return lambda own, of: own * factor


def _other_axes(node: Node, first: Node) -> Iterator[Variant]:
    """The operation along another axis, or along axes moved on by one."""
    dimensions = np.ndim(first.value)
    for name in ("axis", "dim"):
        for other in other_axes(node.kwargs.get(name), dimensions):
            yield Variant("wrong axis", definition(node), _with_keyword(node, name, other))
    if node.op in ("sum", "mean", "max", "min", "softmax") and len(node.args) > 1:
        for other in other_axes(node.args[1], dimensions):
            yield Variant("wrong axis", definition(node), _with_axis(node, other))


def _with_keyword(node: Node, name: str, axis: Any) -> Change:
    return lambda own, of: node.function(*of(node.args), **{**of(dict(node.kwargs)), name: axis})  # type: ignore[misc]


def _with_axis(node: Node, axis: Any) -> Change:
    return (
        lambda own, of: node.function(  # type: ignore[misc]
            of(node.args[0]), axis, *of(node.args[2:]), **of(dict(node.kwargs))
        )
    )


def other_axes(now: Any, dimensions: int) -> list[Any]:
    """Other values for an axis, or for a tuple of axes those moved on by one."""
    if dimensions < 2 or isinstance(now, bool):
        return []
    if isinstance(now, int):
        return [other for other in range(dimensions) if other != now % dimensions]
    if isinstance(now, tuple) and len(now) < dimensions:
        return [tuple((each + 1) % dimensions for each in now)]
    return []


def _stale(program: Program, node: Node, *, any_shape: bool) -> Iterator[Variant]:
    """Another variable, of the same shape unless `any_shape`, in the place of an operand."""
    known = program.named_before(node)
    for operand in dict.fromkeys(node.operands):
        if not operand.name or not is_floats(operand.value):
            continue
        for name, other in sorted(known.items()):
            alike = any_shape or np.shape(other.value) == np.shape(operand.value)
            fits = alike and is_floats(other.value)
            if fits and other is not operand and name != operand.name:
                part = f"{symbol(name)} for {operand_text(node, operand)}"
                yield Variant("stale variable", part, with_operand(node, operand, other))


def _stale_arguments(program: Program) -> Iterator[Edit]:
    """Another variable of the same shape as an argument of a function that was followed."""
    within: defaultdict[Frame, list[Node]] = defaultdict(list)
    for node in program.nodes:
        for frame in _callers(node.frame):
            within[frame].append(node)
    found: dict[Any, dict[Node, Change]] = {}
    for frame, nodes in within.items():
        if frame.caller is None or frame.site is None:
            continue
        known = program.names_at(frame.caller, nodes[0].number, nodes[0].rounds)
        given = [
            each.value
            for each in program.assignments
            if each.frame is frame and each.site == frame.site
        ]
        for old in dict.fromkeys(each for each in given if isinstance(each, Node)):
            readers = [node for node in nodes if old in node.operands]
            for name, new in sorted(known.items() if is_floats(old.value) else ()):
                alike = is_floats(new.value) and np.shape(new.value) == np.shape(old.value)
                if alike and new is not old and old.name and readers:
                    part = f"{symbol(name)} for {text(old)}"
                    changes = found.setdefault((frame.site, "argument", "stale variable", part), {})
                    changes |= {node: with_operand(node, old, new) for node in readers}
    for key, changes in found.items():
        yield Edit(key[2], key[3], key[0].line, changes, key=key)


def _callers(frame: Frame) -> Iterator[Frame]:
    """The frame, and those that it was called from."""
    while frame.caller is not None:
        yield frame
        frame = frame.caller
    yield frame


def with_operand(node: Node, old: Node, new: Node) -> Change:
    """The node with another operand in the place of one."""
    return lambda own, of: recomputed(node, lambda each: of(new if each is old else each))


def recomputed(node: Node, value: Of) -> Any:
    """The node from other values of its operands."""
    assert node.function is not None
    return node.function(*mapped(value, node.args), **mapped(value, dict(node.kwargs)))


def _swapped(program: Program) -> Iterator[Edit]:
    """Two gradients of one shape, each returned in the other's place."""
    if not isinstance(program.result, tuple):
        return
    nodes = [(i, each) for i, each in enumerate(program.result) if isinstance(each, Node)]
    for (i, one), (j, other) in combinations(nodes, 2):
        if np.shape(one.value) == np.shape(other.value):
            part = f"{text(one)} and {text(other)}"
            yield Edit("gradients swapped", part, one.line, {}, (i, j), ("swapped", i, j))


def is_floats(value: Any) -> bool:
    """True for an array of floats, of any library."""
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.kind == "f"
    return hasattr(value, "shape") and "float" in str(getattr(value, "dtype", ""))


def _is_scalar(value: Any) -> bool:
    return np.ndim(value.value if isinstance(value, Node) else value) == 0
