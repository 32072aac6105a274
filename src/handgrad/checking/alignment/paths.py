"""Words for a wrong value that is in the derivation: a part of what comes back, or another's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any, Final

import numpy as np

from handgrad.checking.alignment.pool import Right, SweptForward
from handgrad.checking.work import EXPRESSION, SWEPT, Work
from handgrad.program.node import Node

#: Uses of a value of which some may be left out, and values between that may be constants.
_MOST_USES: Final = 6
_MOST_BETWEEN: Final = 24
_RELATIVE: Final = 1e-7
#: A kind of fault, the part concerned, and the sentence.
Words = tuple[str, str, str]


def same(one: Any, other: Any) -> bool:
    """Return whether two arrays hold the same numbers in their order, but for rounding."""
    a, b = np.asarray(one), np.asarray(other)
    if a.size != b.size or not a.size:
        return False
    size = np.max(np.abs(b))
    # Most values differ from their first element on, which is the first in any order.
    if not np.isfinite(size) or not abs(a.flat[0] - b.flat[0]) <= _RELATIVE * size:
        return False
    a, turned = a.ravel(), [b.ravel(), *([b.T.ravel()] if b.ndim > 1 else [])]
    return any(bool(np.max(np.abs(a - each)) <= _RELATIVE * size) for each in turned)


def words(
    derivations: Sequence[SweptForward], right: Right, values: Sequence[Any], work: Work
) -> Words | None:
    """The sentence for values, one of each derivation, that stand where a right one belongs."""
    first = derivations[0]
    if same(values[0], first.value(right)):
        return None
    for kind, nodes, phrase, value in _readings(first, right):
        work.take(SWEPT * len(first.body) if value in (_without, _not_through) else EXPRESSION)
        if work.over():
            return None
        with np.errstate(all="ignore"):
            fits = same(values[0], value(first, right, nodes)) and all(
                same(
                    own,
                    value(each, each.rights[right.number], [each.like(n, first) for n in nodes]),
                )
                for own, each in zip(values[1:], derivations[1:], strict=True)
            )
        if fits:
            part = " and ".join(dict.fromkeys(map(first.said, nodes)))
            return kind, part, phrase.replace("{of}", first.said(right.node))
    return None


Value = Callable[[SweptForward, Right, list[Node]], Any]


def _readings(derived: SweptForward, right: Right) -> Iterator[tuple[str, list[Node], str, Value]]:
    if not right.is_gradient or right.use is not None:
        return
    node = right.node
    uses = list(dict.fromkeys(use for use, _ in derived.shares(node)))
    missing = "what comes back through {} is missing"
    between = derived.behind(node)
    named = [each for each in between if each.name]
    unnamed = [each for each in between if not each.name]
    held = f"{missing}: it is taken as a constant"
    for known, behind in ((True, named), (False, unnamed)):
        for use in uses if len(uses) > 1 else ():
            if bool(use.name) == known:
                yield "term missing", [use], missing, _without_uses
        for each in behind[:_MOST_BETWEEN]:
            yield "term missing", [each], held, _without
    for pair in combinations(named[:_MOST_BETWEEN], 2):
        yield "term missing", [*pair], f"{missing}: they are taken as constants", _without
    for number in range(2, len(uses) if len(uses) <= _MOST_USES else 0):
        for cut in combinations(uses, number):
            yield "term missing", [*cut], missing, _without_uses
    phrase = "the derivative of {} with respect to {of} is forgotten"
    for each in between:
        yield "activation derivative forgotten", [each], phrase, _gradient
    phrase = "the derivative of {} with respect to {of}, a factor of one term, is forgotten"
    for each in [*named, *unnamed][:_MOST_BETWEEN]:
        if np.shape(derived.gradients[id(each)].value) == np.shape(derived.value(right)):
            yield "factor missing", [each], phrase, _not_through


def _without_uses(derived: SweptForward, right: Right, cut: list[Node]) -> Any:
    return sum(share for use, share in derived.shares(right.node) if use not in cut)


def _without(derived: SweptForward, right: Right, cut: list[Node]) -> Any:
    return derived.without(right.node, cut)


def _not_through(derived: SweptForward, right: Right, cut: list[Node]) -> Any:
    """A gradient in which what comes back to a value is taken for what comes back through it."""
    rest = _without(derived, right, cut)
    own = _gradient(derived, right, cut)
    return own if rest is None else rest + own


def _gradient(derived: SweptForward, right: Right, nodes: list[Node]) -> Any:
    return derived.gradients[id(nodes[0])].value
