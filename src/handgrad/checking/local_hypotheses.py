"""Hypotheses on one line of a backward, for where no edit that the whole is tried with explains it.

Of a single line more can be asked. From the forward: is it right but for what comes back through
one of the later nodes, or but for the derivative of one operation, or but for one array that stands
where another belongs? From the line itself: is it right with one part of it multiplied by a number,
with one variable for another wherever it stands, with a part summed, with two arrays of a list
exchanged, without two factors?
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any, Final

import numpy as np

from handgrad.checking.attempts import Inapplicable
from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.hypotheses import Draw, Explanation
from handgrad.program import Node, Program
from handgrad.program.edits import Edit, is_floats, with_operand
from handgrad.program.functions import total
from handgrad.program.running import Change
from handgrad.program.text import text

#: The gradient at a node of a contraction with these settings, for a draw.
Gradient = Callable[..., Any]
#: True where a gradient like that may be the one found, along one direction.
Screen = Callable[..., bool]
#: Numbers that a part may have to be multiplied by; others are reported too, but cost more.
_PLAIN: Final = (-1.0, 0.0, 0.5, 2.0, 3.0, 1 / 3)
_NEAR: Final = 1e-7


def of_paths(
    run: ForwardTrace,
    node: Node,
    describe: Callable[[Node], str],
    gradient: Gradient,
    screen: Screen,
) -> Iterator[Explanation]:
    """The gradient without what comes back through one node, or with one derivative left out.

    `describe` gives the text of a node.
    """
    for reader in run.readers(node):
        if screen(unread=reader):
            via = describe(reader) if isinstance(reader, Node) else "y itself"
            phrase = f"what comes back through {via} is missing"
            yield Explanation("term missing", via, phrase, 1.5, _predict(gradient, unread=reader))
    behind = [each for each in run.behind(node) if is_floats(each.value)]
    for other in behind:
        if screen(held={other}):
            via = describe(other)
            phrase = f"what comes back through {via} is missing: it is taken as a constant"
            yield Explanation("term missing", via, phrase, 1.6, _predict(gradient, held={other}))
    named = [nodes[-1] for nodes in run.versions.values() if nodes[-1] in behind]
    for first, second in combinations(named, 2):
        held = {first, second}
        if screen(held=held):
            via = f"{describe(first)} and {describe(second)}"
            phrase = f"what comes back through {via} is missing: they are taken as constants"
            yield Explanation("term missing", via, phrase, 1.9, _predict(gradient, held=held))
    for one, other in combinations([node, *behind], 2):
        alike = np.shape(one.value) == np.shape(other.value)
        if alike and other in run.behind(one) and screen(passed=(one, other)):
            phrase = (
                f"the derivative of {describe(other)} with respect to {describe(one)} is forgotten"
            )
            kind = "activation derivative forgotten"
            yield Explanation(
                kind, describe(other), phrase, 1.7, _predict(gradient, passed=(one, other))
            )

    yield from _of_mistaken(run, node, gradient, screen)


def _of_mistaken(
    run: ForwardTrace,
    node: Node,
    gradient: Gradient,
    screen: Screen,
) -> Iterator[Explanation]:
    """The gradient as if another array of the forward stood where one is that meets the node."""
    moving = {node, *run.behind(node)}
    still = [each for each in run.program.nodes if is_floats(each.value) and each not in moving]
    met = (each for reader in run.program.users.get(node, ()) for each in reader.operands)
    for operand in dict.fromkeys(each for each in met if each in still):
        for other in still:
            alike = np.shape(other.value) == np.shape(operand.value) and other is not operand
            if alike and screen(mistaken=(operand, other)):
                label = f"{text(other)} for {text(operand)}"
                phrase = f"one array of the forward stands where another belongs: {label}"
                predict = _predict(gradient, mistaken=(operand, other))
                yield Explanation("stale variable", label, phrase, 1.9, predict)


def _predict(gradient: Gradient, **settings: Any) -> Callable[[Draw], Any]:
    def predict(draw: Draw) -> Any:
        return gradient(draw, **settings)

    return predict


def of_lines(draws: tuple[Draw, ...], name: str) -> Iterator[Iterator[Explanation]]:
    """Changes of the operations that make a gradient, each of which may put it right."""
    run = draws[0].own_run
    assert run is not None
    for node in run.program.nodes:
        yield _of_changes(run.program, node)
        yield _of_factor(node, draws[0], name)


def _of_changes(program: Program, node: Node) -> Iterator[Explanation]:
    for cost, edit, phrase in _changes(program, node):
        yield Explanation(*(edit.kind, edit.part, phrase, cost, _results(edit)), True, edit.line)


def _of_factor(node: Node, draw: Draw, name: str) -> Iterator[Explanation]:
    """The operation multiplied by a number."""
    found = _factor(node, draw, name)
    if found is not None:
        factor, edit = found
        cost = 1.9 if any(abs(factor - each) < _NEAR for each in _PLAIN) else 2.6
        if factor == 0.0:
            kind, phrase = "extra term", f"{edit.part} is too many"
        elif factor == -1.0:
            kind, phrase = "wrong sign", f"{edit.part} has the wrong sign"
        else:
            kind, phrase = "scaled", f"{edit.part} should be multiplied by {factor:.6g}"
        yield Explanation(kind, edit.part, phrase, cost, _results(edit), True, edit.line)


def _results(edit: Edit) -> Callable[[Draw], Any]:
    def predict(draw: Draw) -> Any:
        assert draw.own_run is not None
        try:
            return edit.results(draw.own_run)[0]
        except Exception as error:  # operands that one of its operations does not take
            raise Inapplicable from error

    return predict


def _changes(program: Program, node: Node) -> Iterator[tuple[float, Edit, str]]:
    known = [each for each in program.named_before(node).values() if is_floats(each.value)]
    if node is program.result:
        yield from _renamings(program)
        for new in known:
            label = f"1 − {text(new)}"
            edit = _edit("factor missing", label, node, _times_rest(new))
            yield 1.8, edit, f"the factor {label} is missing"
    label = text(node)
    if node.args and isinstance(node.args[0], tuple | list):
        items = node.args[0]
        for i, j in combinations(range(len(items)), 2):
            both = f"{text(items[i])} and {text(items[j])}"
            edit = _edit("operands swapped", both, node, _with_items(node, i, j))
            yield 1.8, edit, f"{both} stand in each other's place"
    factors = _factors(node)
    for pair in combinations(range(len(factors)), 2):
        rest = [each for i, each in enumerate(factors) if i not in pair]
        if rest:
            both = " and ".join(text(factors[i]) for i in pair)
            edit = _edit("extra factor", both, node, _product_of(rest))
            yield 1.8, edit, f"the factors {both} are too many"
    if is_floats(node.value):
        for axis in range(np.ndim(node.value)):
            edit = _edit("not reduced", label, node, _summed(axis))
            yield 1.8, edit, f"{label} is not summed over axis {axis}"
            edit = _edit("factor missing", f"1/sum({label})", node, _share(axis))
            yield 1.9, edit, f"the factor 1/sum({label}) is missing"


def _edit(kind: str, part: str, node: Node, change: Change) -> Edit:
    return Edit(kind, part, node.line, {node: change})


def _renamings(program: Program) -> Iterator[tuple[float, Edit, str]]:
    """One variable for another in all operations of a line that read it."""
    lines: dict[int, list[Node]] = {}
    for node in program.nodes:
        lines.setdefault(node.line, []).append(node)
    for line, nodes in lines.items():
        known = program.named_before(nodes[0]).values()
        read = dict.fromkeys(each for node in nodes for each in node.operands if each.name)
        for old in read:
            for new in dict.fromkeys(known):
                alike = is_floats(new.value) and np.shape(new.value) == np.shape(old.value)
                if alike and new is not old:
                    label = f"{text(new)} for {text(old)}"
                    changes = {n: with_operand(n, old, new) for n in nodes if old in n.operands}
                    edit = Edit("stale variable", label, line, changes)
                    yield 1.8, edit, f"another variable belongs there: {label}"


def _times_rest(other: Node) -> Change:
    return lambda own, of: own * (1.0 - of(other))


def _with_items(node: Node, i: int, j: int) -> Change:
    def change(own: Any, of: Callable[[Any], Any]) -> Any:
        items = [of(each) for each in node.args[0]]
        items[i], items[j] = items[j], items[i]
        assert node.function is not None
        return node.function(items, *of(node.args[1:]), **of(dict(node.kwargs)))

    return change


def _factors(node: Any) -> list[Any]:
    """The factors of a product that is written as one: `a * b * c`."""
    if not isinstance(node, Node) or node.op != "multiply":
        return [node]
    left, right = node.args
    inner = _factors(left) if isinstance(left, Node) and not left.name else [left]
    return [*inner, right]


def _product_of(factors: list[Any]) -> Change:
    def change(own: Any, of: Callable[[Any], Any]) -> Any:
        product = of(factors[0])
        for each in factors[1:]:
            product = product * of(each)
        return product

    return change


def _summed(axis: int) -> Change:
    return lambda own, of: total(own, axis)


def _share(axis: int) -> Change:
    return lambda own, of: own / total(own, axis)


def _factor(node: Node, draw: Draw, name: str) -> tuple[float, Edit] | None:
    """The number that a node must be multiplied by, where the gradient is affine in it."""
    right = draw.right[name]
    if not is_floats(node.value):
        return None

    def scaled(factor: float) -> Edit:
        return _edit("scaled", text(node), node, lambda own, of: factor * own)

    try:
        zero, one = (np.asarray(_results(scaled(each))(draw)) for each in (0.0, 1.0))
    except Inapplicable:  # a part that stands where a number cannot
        return None
    if zero.shape != right.shape or one.shape != right.shape:
        return None
    known = np.isfinite(right) & np.isfinite(zero) & np.isfinite(one)
    slope, goal = (one - zero)[known], (right - zero)[known]
    power = float(np.sum(slope**2))
    if power == 0.0:
        return None
    factor = float(np.sum(slope * goal)) / power
    if np.abs(factor * slope - goal).max(initial=0.0) > 1e-6 * np.abs(right[known]).max(initial=0):
        return None
    for plain in (*_PLAIN, float(round(factor))):
        if abs(factor - plain) < _NEAR:
            factor = plain
    return factor, scaled(factor)
