"""A forward as a straight line of small steps, each of which can be run again on other values.

Every array that an expression makes on its way gets a place of its own: in `tanh(x @ W + b)` the
product, the sum and the tanh. So a backward can be asked of each of its arrays what it is the
gradient of, even where the forward has no name for that.
"""

from __future__ import annotations

import builtins
from collections import ChainMap
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from handgrad.checking.trial import leaves
from handgrad.trees import Function, TreeError, evaluate, nodes, symbol, text
from handgrad.trees.nodes import Name, Node

#: Parts of expressions that have no value of their own.
_NO_VALUE: Final = (nodes.Keyword, nodes.Term, nodes.Factor, nodes.Clause, nodes.Starred)
_EPSILON: Final = float(np.finfo(np.float64).eps)


class Straight:
    """One run of a forward that returns (y, cache).

    A place is a number as text; `values` holds what stands there, `versions` the places of a name
    in the order of assignment, and `inside` all places that its assignments made on their way.
    Raises TreeError where the forward does not return a pair written out, or loops over arrays.
    """

    def __init__(
        self, function: Function, arrays: Sequence[Any], options: Mapping[str, Any]
    ) -> None:
        self.function = function
        self.values: dict[str, Any] = {}
        self.versions: dict[str, list[str]] = {}
        self.inside: dict[str, list[str]] = {}
        #: What a place holds, in the forward's own words.
        self.words: dict[str, str] = {}
        self.steps: list[tuple[str, Node, frozenset[str]]] = []
        self._globals = ChainMap(dict(function.names), vars(builtins))
        self._current: dict[str, str] = {}
        bound = function.signature.bind(*arrays, **options)
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            self._name(name, self._place(value))
        returned = self._block(function.body)
        match returned:
            case nodes.Return(nodes.Sequence(_, (y, cache))):
                self.y = self._lifted(y)
                self.cache = self._value(self._lifted(cache))
            case _:
                raise TreeError(f"{function.name} returns no pair; allowed: return y, cache")
        self.output = self._value(self.y)
        self._ends = _ids(self.y)

    # Running it again

    def contraction(
        self,
        place: str,
        cuts: Mapping[str, Any],
        dy: Any,
        *,
        held: Container[str] = (),
        unread: str | None = None,
        passed: tuple[str, str] | None = None,
    ) -> Callable[[Mapping[str, Any]], float]:
        """What the gradient of a place is the gradient of, as a function of the value there.

        The sum of <value, cotangent> over the places of `cuts`, behind which nothing moves, and
        over y with `dy`, counted from the values of the run. What a wrong backward may have taken
        it for: the places in `held` do not move; `unread`, a later place or "y", does not read this
        one; the second of `passed` moves as the first does, as if it were the same.
        """
        behind = [step for step in self.steps if int(step[0]) > int(place)]
        first, second = passed or ("", "")

        def total(point: Mapping[str, Any]) -> float:
            moved: dict[str, Any] = {place: point[place]}
            names = ChainMap(moved, self.values, self._globals)
            still = ChainMap({place: self.values[place]}, names)
            sum_ = 0.0
            for other, node, reads in behind:
                if other in held or reads.isdisjoint(moved):
                    continue
                value = evaluate(node, still if other == unread else names)
                if other == second and first in moved:
                    value = self.values[other] + (moved[first] - self.values[first])
                if other in cuts:
                    sum_ += _moved(value, self.values[other], cuts[other])
                else:
                    moved[other] = value
            if not self._ends.isdisjoint(moved):
                y = evaluate(self.y, still if unread == "y" else names)
                ends = zip(leaves(y), leaves(self.output), leaves(dy), strict=True)
                sum_ += sum(_moved(*each) for each in ends)
            return float(sum_)

        return total

    def readers(self, place: str) -> list[str]:
        """The places made directly from this one, and "y" if y is."""
        found = [other for other, _, reads in self.steps if place in reads]
        return [*found, "y"] if place in self._ends else found

    def behind(self, place: str) -> list[str]:
        """All places that this one moves."""
        moved = {place}
        for other, _, reads in self.steps:
            if not reads.isdisjoint(moved):
                moved.add(other)
        return sorted(moved - {place}, key=int)

    def noise(self, cuts: Mapping[str, Any], dy: Any) -> float:
        """How far rounding in the values alone moves a contraction."""
        ends = [(self.values[place], cut) for place, cut in cuts.items()]
        ends += zip(leaves(self.output), leaves(dy), strict=True)
        squares = sum(_size(value, cotangent) ** 2 for value, cotangent in ends)
        return 4.0 * _EPSILON * float(np.sqrt(squares))

    def arrays(self) -> list[str]:
        """The places of arrays of floats that the inputs move, in order."""
        moving = {
            places[0]
            for name in self.function.parameters
            if is_floats(self.values[(places := self.versions[name.name])[0]])
        }
        for place, _, reads in self.steps:
            if not reads.isdisjoint(moving):
                moving.add(place)
        return sorted((each for each in moving if is_floats(self.values[each])), key=int)

    # Reading it

    def _place(self, value: Any) -> str:
        place = str(len(self.values))
        self.values[place] = value
        return place

    def _name(self, name: str, place: str) -> None:
        self.words[place] = symbol(name)
        self._current[name] = place
        self.versions.setdefault(name, []).append(place)

    def _value(self, node: Node) -> Any:
        return evaluate(node, ChainMap(self.values, self._globals))

    def _step(self, node: Node) -> Name:
        """The node, in terms of places, evaluated into a new one."""
        if isinstance(node, Name) and node.id in self.values:
            return node
        place = self._place(self._value(node))
        self.steps.append((place, node, _ids(node)))
        return Name(place)

    def _block(self, body: tuple[Node, ...]) -> nodes.Return | None:
        for statement in body:
            returned = None
            match statement:
                case nodes.Assign(target, value):
                    self._assign(target, value)
                case nodes.Branch(test, yes, no):
                    returned = self._block(yes if self._value(self._lifted(test)) else no)
                case nodes.For(target, iterable, inner):
                    for item in self._value(self._lifted(iterable)):
                        if not isinstance(target, Name) or any(map(is_floats, leaves(item))):
                            raise TreeError(f"{self.function.name} loops over arrays")
                        self._name(target.id, self._place(item))
                        if (returned := self._block(inner)) is not None:
                            return returned
                case nodes.Return():
                    return statement
            if returned is not None:
                return returned
        return None

    def _assign(self, target: Node, value: Node) -> None:
        match target, value:
            case Name(name), _:
                self._name(name, self._made(name, value).id)
            case nodes.Sequence(_, targets), nodes.Sequence(_, items) if len(targets) == len(items):
                pairs = list(zip(targets, items, strict=True))
                places = [self._made(getattr(each, "id", ""), item) for each, item in pairs]
                for each, place in zip(targets, places, strict=True):
                    self._assign_place(each, place)
            case nodes.Sequence(_, targets), _:
                whole = self._step(self._lifted(value))
                for i, each in enumerate(targets):
                    self._assign_place(each, self._step(nodes.Index(whole, nodes.Constant(i))))

    def _made(self, name: str, value: Node) -> Name:
        """The place of a value that is assigned to a name."""
        before = len(self.values)
        place = self._step(self._lifted(value))
        made = [str(i) for i in range(before, len(self.values))]
        self.inside.setdefault(name, []).extend(made)
        return place

    def _assign_place(self, target: Node, place: Name) -> None:
        if not isinstance(target, Name):
            raise TreeError(f"{self.function.name} assigns to nested or starred names")
        self._name(target.id, place.id)

    def _lifted(self, node: Node) -> Node:
        """The node in terms of places, every array and every call below it with a place."""
        match node:
            case Name(name):
                return Name(self._current.get(name, name))
            case nodes.Choice(test, yes, no):
                return self._lifted(yes if self._value(self._lifted(test)) else no)
            case nodes.Loop() | nodes.Logic(("and" | "or"), _):
                return self._renamed(node, frozenset())
        changed = nodes.rebuilt(node, self._lifted)
        if isinstance(changed, _NO_VALUE):
            return changed
        value = self._value(changed)
        if _is_setting(value):
            return nodes.Constant(value)  # a shape: it does not change with what it is the shape of
        if isinstance(changed, nodes.Call) or is_floats(value):
            place = self._step(changed)
            self.words.setdefault(place.id, text(node))
            return place
        return changed

    def _renamed(self, node: Node, bound: frozenset[str]) -> Node:
        """The node in terms of places; `bound` are the names of comprehensions around it."""
        if isinstance(node, Name):
            return node if node.id in bound else Name(self._current.get(node.id, node.id))
        if isinstance(node, nodes.Loop):
            bound |= {name for clause in node.clauses for name in nodes.names(clause.target)}
            clauses = tuple(
                replace(
                    each,
                    iterable=self._renamed(each.iterable, bound),
                    conditions=tuple(self._renamed(one, bound) for one in each.conditions),
                )
                for each in node.clauses
            )
            return nodes.Loop(node.form, self._renamed(node.element, bound), clauses)
        return nodes.rebuilt(node, lambda child: self._renamed(child, bound))


def is_floats(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic) and value.dtype.kind == "f"


def _is_setting(value: Any) -> bool:
    several = value if isinstance(value, tuple) else (value,)
    return all(isinstance(each, int | str | bool | np.dtype) for each in several)


def _ids(node: Node) -> frozenset[str]:
    return frozenset(nodes.names(node))


def _moved(value: Any, start: Any, cotangent: Any) -> float:
    """<value − start, cotangent>; an infinity stays where it is."""
    known = np.isfinite(start)
    with np.errstate(invalid="ignore"):
        return float(np.sum(np.where(known, value - start, 0.0) * cotangent))


def _size(value: Any, cotangent: Any) -> float:
    product = np.asarray(value * cotangent)
    return float(np.sqrt(np.sum(product[np.isfinite(product)] ** 2)))
