"""What can be wrong with one line of a backward, where no edit of it that the whole is tried with
explains it.

Of a single line more can be asked. From the forward: is it right but for what comes back through
one of the later places, or but for the derivative of one operation? From the line itself: is it
right with one part of it multiplied by a number, with one name for another wherever it stands, with
a part summed, with two arrays of a list exchanged, without two factors?
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any, Final

import numpy as np

from handgrad import trees
from handgrad.checking.hypotheses import Draw, Explanation
from handgrad.checking.straight import Straight, is_floats
from handgrad.trees import nodes
from handgrad.trees.nodes import Constant, Factor, Keyword, Name, Node

#: Of a place: the gradient there of a contraction with these settings, for a draw.
Gradient = Callable[..., Any]
#: Whether a gradient like that may be what was found, along one direction.
Screen = Callable[..., bool]
#: Numbers that a part may have to be multiplied by; others are told too, but cost more.
_PLAIN: Final = (-1.0, 0.0, 0.5, 2.0, 3.0, 1 / 3)
_NEAR: Final = 1e-7


def of_paths(
    run: Straight, place: str, words: Mapping[str, str], gradient: Gradient, screen: Screen
) -> Iterator[Explanation]:
    """The gradient without what comes back through one place, or with one derivative left out.

    `words` says what a place is.
    """
    for reader in run.readers(place):
        if screen(unread=reader):
            via = "y itself" if reader == "y" else words.get(reader, "it")
            phrase = f"what comes back through {via} is missing"
            yield Explanation("term missing", via, phrase, 1.5, _predict(gradient, unread=reader))
    behind = [each for each in run.behind(place) if is_floats(run.values[each])]
    for other in behind:
        if screen(held={other}):
            via = words.get(other, "it")
            phrase = f"what comes back through {via} is missing: it is taken as a constant"
            yield Explanation("term missing", via, phrase, 1.6, _predict(gradient, held={other}))
    named = {name: places[-1] for name, places in run.versions.items() if places[-1] in behind}
    for first, second in combinations(named, 2):
        held = {named[first], named[second]}
        if screen(held=held):
            via = f"{words[named[first]]} and {words[named[second]]}"
            phrase = f"what comes back through {via} is missing: they are taken as constants"
            yield Explanation("term missing", via, phrase, 1.9, _predict(gradient, held=held))
    for one, other in combinations([place, *behind], 2):
        alike = np.shape(run.values[one]) == np.shape(run.values[other])
        if alike and other in run.behind(one) and screen(passed=(one, other)):
            which = words.get(other, "it")
            phrase = f"the derivative of {which} with respect to {words.get(one)} is forgotten"
            kind = "activation derivative forgotten"
            yield Explanation(kind, which, phrase, 1.7, _predict(gradient, passed=(one, other)))


def _predict(gradient: Gradient, **settings: Any) -> Callable[[Draw], Any]:
    def predict(draw: Draw) -> Any:
        return gradient(draw, **settings)

    return predict


def of_lines(function: trees.Function, draws: tuple[Draw, ...], name: str) -> Iterator[Explanation]:
    """Changes of the lines that make a gradient, each of which may put it right."""
    run = draws[0].own_trace
    for statement in (*(step.statement for step in run.steps[1:]), run.returned):
        for cost, kind, term, phrase, value in _changes(statement.value, run):
            changed = _with(function, statement, value)
            yield Explanation(kind, term, phrase, cost, _run(changed), True, statement.line)
        for position, part in _parts(statement.value):
            found = _factor(function, statement, position, part, draws[0], name)
            if found is None:
                continue
            factor, changed = found
            cost = 1.9 if any(abs(factor - each) < _NEAR for each in _PLAIN) else 2.6
            words = trees.text(part)
            if factor == 0.0:
                kind, phrase = "extra term", f"{words} is too many"
            elif factor == -1.0:
                kind, phrase = "wrong sign", f"{words} has the wrong sign"
            else:
                kind, phrase = "scaled", f"{words} should be multiplied by {factor:.6g}"
            yield Explanation(kind, words, phrase, cost, _run(changed), True, statement.line)


def _run(function: trees.Function) -> Callable[[Draw], Any]:
    def predict(draw: Draw) -> Any:
        (given,) = (each.name for each in function.parameters)
        return trees.run(function, draw.own_trace.environment[given])

    return predict


Change = tuple[float, str, str, str, Node]


def _changes(value: Node, run: trees.Trace) -> Iterator[Change]:
    environment: Any = run.environment
    mentioned = nodes.names(value)
    arrays = {each: environment.get(each) for each in _known(run)}
    for old in sorted(mentioned & arrays.keys()):
        for new, array in arrays.items():
            if new != old and is_floats(array) and np.shape(array) == np.shape(arrays[old]):
                words = f"{trees.symbol(new)} for {trees.symbol(old)}"
                phrase = f"another variable belongs there: {words}"
                yield 1.8, "stale variable", words, phrase, _renamed(value, old, new)
    for new, array in arrays.items():
        if is_floats(array):
            words = f"1 − {trees.symbol(new)}"
            rest = nodes.Sum((nodes.Term(1, Constant(1.0)), nodes.Term(-1, Name(new))))
            product = nodes.Product((Factor(False, value), Factor(False, rest)))
            yield 1.8, "factor missing", words, f"the factor {words} is missing", product
    for position, part in _parts(value):
        here = _value(part, environment)
        words = trees.text(part)
        if isinstance(part, nodes.Sequence):
            for i, j in combinations(range(len(part.items)), 2):
                items = list(part.items)
                items[i], items[j] = items[j], items[i]
                both = f"{trees.text(part.items[i])} and {trees.text(part.items[j])}"
                swapped = _at(value, position, nodes.Sequence(part.form, tuple(items)))
                phrase = f"{both} stand in each other's place"
                yield 1.8, "operands swapped", both, phrase, swapped
        if isinstance(part, nodes.Product):
            for pair in combinations(range(1, len(part.factors)), 2):
                others = tuple(each for i, each in enumerate(part.factors) if i not in pair)
                both = " and ".join(trees.text(part.factors[i].value) for i in pair)
                phrase = f"the factors {both} are too many"
                yield 1.8, "extra factor", both, phrase, _at(value, position, nodes.Product(others))
        if is_floats(here):
            for axis in range(np.ndim(here)):
                keywords = (Keyword("axis", Constant(axis)), Keyword("keepdims", Constant(True)))
                total = nodes.Reduce("sum", part, (), keywords, None)
                phrase = f"{words} is not summed over axis {axis}"
                yield 1.8, "not reduced", words, phrase, _at(value, position, total)
                share = nodes.Product((Factor(False, part), Factor(True, total)))
                phrase = f"the factor 1/sum({words}) is missing"
                yield 1.9, "factor missing", f"1/sum({words})", phrase, _at(value, position, share)


def _known(run: trees.Trace) -> list[str]:
    return sorted({name for step in run.steps for name in step.values})


def _value(part: Node, environment: Any) -> Any:
    try:
        return trees.evaluate(part, environment)
    except Exception:  # a part that has no value of its own
        return None


def _parts(value: Node, position: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Node]]:
    """Every part of an expression with the way to it."""
    yield position, value
    for i, child in enumerate(nodes.children(value)):
        yield from _parts(child, (*position, i))


def _at(value: Node, position: tuple[int, ...], new: Node) -> Node:
    """The expression with one part of it replaced."""
    if not position:
        return new
    counted = iter(range(len(nodes.children(value))))
    return nodes.rebuilt(
        value,
        lambda child: _at(child, position[1:], new) if next(counted) == position[0] else child,
    )


def _renamed(value: Node, old: str, new: str) -> Node:
    if isinstance(value, Name):
        return Name(new) if value.id == old else value
    return nodes.rebuilt(value, lambda child: _renamed(child, old, new))


def _with(function: trees.Function, statement: Any, value: Node) -> trees.Function:
    new = replace(statement, value=value)
    body = tuple(new if each is statement else each for each in function.body)
    return replace(function, body=body)


def _factor(
    function: trees.Function,
    statement: Any,
    position: tuple[int, ...],
    part: Node,
    draw: Draw,
    name: str,
) -> tuple[float, trees.Function] | None:
    """The number that a part must be multiplied by, where the gradient is affine in the part."""
    right = draw.right[name]
    if not is_floats(_value(part, draw.own_trace.environment)):
        return None

    def scaled(factor: float) -> trees.Function:
        product = nodes.Product((Factor(False, Constant(factor)), Factor(False, part)))
        return _with(function, statement, _at(statement.value, position, product))

    try:
        zero, one = (np.asarray(_run(scaled(each))(draw)) for each in (0.0, 1.0))
    except Exception:  # a part that stands where a number cannot
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
