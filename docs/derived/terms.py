"""The terms of a gradient: what is left to add when its products are multiplied out.

A backward is linear in dy, and so is each of its functions that dy flows through. A gradient is
therefore a sum of terms, each a product of dy with what the forward knows, or a sum over axes of
such products. Terms are compared by their values on random numbers, so that neither the order of
factors nor the names of arrays matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Final

import numpy as np

from handgrad.deriving.reverse import depends
from handgrad.program.node import FIXED, Loop, Node, Program, concrete
from handgrad.program.run import evaluated

Array = np.ndarray[Any, Any]
Terms = list[Array]
#: Values of terms by the number of their kind.
Kinds = dict[int, list[Any]]

#: Two terms are one where they differ by no more than this share of the largest value.
_SAME: Final = 1e-9
#: Functions that leave a term as it is, but for its sign.
_SUMS: Final = frozenset(("add", "subtract", "negative"))
#: Those that leave a sum a sum.
_LINEAR: Final = _SUMS | {"sum", "mean", "reshape", "transpose", "broadcast_to", "getitem"}
_PRODUCTS: Final = frozenset(("multiply", "contract"))
#: Functions whose operands are alike but for their places.
_JOINS: Final = frozenset(("pile", "concatenate", "add_at"))
#: A factor of more terms is one.
_MOST: Final = 64


class TermsOf:
    """The terms of the outputs of a program; `lengths` are those of its letters.

    opens: factors that dy does not flow through, such as 1 − y, are multiplied out as well.
    """

    def __init__(
        self,
        program: Program,
        cotangents: Sequence[Node],
        lengths: Mapping[str, int],
        *,
        opens: bool,
        values: Mapping[int, Any] | None = None,
    ) -> None:
        self.lengths, self.opens = lengths, opens
        self._values = None if values is None else dict(values)
        #: Each value that a round of a loop hands on, with the terms that the round has for it.
        self.rounds: list[tuple[Any, Kinds]] = []
        body = program.body
        self._flows = depends(body, cotangents)
        self._kinds: dict[int, int] = {}
        self._numbers: dict[Any, int] = {}
        self._terms: dict[int, Kinds] = {}
        for node in (*program.inputs, *body):
            self._kinds[id(node)] = self._kind(node)
        for node in cotangents:
            self._terms[id(node)] = self._alone(node)
        for node in body:
            if id(node) not in self._terms:
                self._find(node)
            if node.op == "loop" and id(node) in self._flows:
                self._look_into(node)
        self.outputs = [self._terms.get(id(each), {}) for each in program.outputs]

    def _alone(self, node: Node) -> Kinds:
        return {self._kinds.get(id(node), -1): [self._known(node)]}

    def _known(self, node: Node) -> Any:
        """The value of an array: on the example, or in a round of a loop."""
        if node.op == "size":
            return concrete(node.attrs["size"], self.lengths)
        if self._values is None or node.op in FIXED:
            return node.value
        if id(node) not in self._values:
            self._values[id(node)] = self._value(node, [self._known(each) for each in node.args])
        return self._values[id(node)]

    def _look_into(self, node: Node) -> None:
        """The terms of what each round of a loop hands on, of what was handed to it."""
        loop: Loop = node.attrs["loop"]
        inputs, handed = loop.body.inputs, loop.body.outputs[: loop.carried]
        live = [n for n, each in zip(inputs, node.args, strict=True) if id(each) in self._flows]
        for _ in handed:  # what is 0 at first has parts of dy in it after a round
            reached = depends(loop.body.body, live)
            pairs = zip(inputs[loop.constants :], handed, strict=True)
            live += [n for n, each in pairs if id(each) in reached and n not in live]
        given = [self._known(each) for each in node.args]
        count = loop.count.number(self.lengths)
        for k in range(count - 1, -1, -1) if loop.reverse else range(count):
            lengths = {**self.lengths, loop.counter: k}
            values = dict(zip(map(id, inputs), given, strict=True))
            inner = TermsOf(loop.body, live, lengths, opens=self.opens, values=values)
            results = [inner._known(each) for each in handed]
            pairs = zip(inputs[loop.constants :], results, inner.outputs, strict=False)
            self.rounds += [
                (value, kinds)
                for carried, value, kinds in pairs
                if kinds and not inner._only_adds(carried, kinds)
            ]
            given[loop.constants :] = results

    def _only_adds(self, carried: Node, kinds: Kinds) -> bool:
        """Return whether a round adds to what is handed on, which is a sum over the rounds."""
        return self._kinds[id(carried)] in kinds

    def _find(self, node: Node) -> None:
        """The terms of an array that dy flows into, or of a factor that is a sum."""
        known = [k for k, each in enumerate(node.args) if id(each) in self._terms]
        if node.op in _PRODUCTS and known:
            found = self._multiplied(node)
        elif id(node) in self._flows:
            live = [k for k, each in enumerate(node.args) if id(each) in self._flows]
            found = self._added(node, live)
        elif self.opens and node.op in ("add", "subtract"):
            found = self._added(node, [0, 1])
        elif node.op in _LINEAR and known:
            found = self._added(node, known)
        else:
            return
        if id(node) in self._flows or sum(map(len, found.values())) <= _MOST:
            self._terms[id(node)] = found

    def _added(self, node: Node, live: Sequence[int]) -> Kinds:
        """The terms of each of some operands, where the others of them are 0."""
        found: Kinds = {}
        for k in live:
            for kind, terms in self._of(node.args[k]).items():
                made = found.setdefault(self._number_of(node, {k: kind}), [])
                for term in terms:
                    values = [
                        term
                        if at == k
                        else _zero(self._known(each))
                        if at in live
                        else self._known(each)
                        for at, each in enumerate(node.args)
                    ]
                    made.append(self._value(node, values))
        return found

    def _multiplied(self, node: Node) -> Kinds:
        """Each term of one operand with each of the other."""
        first, second = (self._of(each) for each in node.args)
        found: Kinds = {}
        for (kind, terms), (other, factors) in product(first.items(), second.items()):
            made = found.setdefault(self._number_of(node, {0: kind, 1: other}), [])
            made += [self._value(node, pair) for pair in product(terms, factors)]
        return found

    def _of(self, node: Node) -> Kinds:
        return self._terms.get(id(node)) or self._alone(node)

    def _number_of(self, node: Node, kinds: Mapping[int, int]) -> int:
        """The number of a term's kind: the functions on its way, and what they have beside it."""
        if node.op in _SUMS or (node.op == "add_at" and 0 in kinds):
            return next(iter(kinds.values()))
        own = {k: self._kinds.get(id(each), -1) for k, each in enumerate(node.args)}
        if node.op in _JOINS:
            return self._numbered((node.op, *kinds.values()))
        return self._numbered((node.op, *(own | kinds).values()))

    def _kind(self, node: Node) -> int:
        """The number of a computation, the same for those that differ by their indices alone."""
        told = (self._kinds.get(id(each), -1) for each in node.args)
        return self._numbered(id(node) if node.op == "input" else (node.op, *told))

    def _numbered(self, told: Any) -> int:
        return self._numbers.setdefault(told, len(self._numbers))

    def _value(self, node: Node, values: Sequence[Any]) -> Any:
        with np.errstate(all="ignore"):
            return evaluated(node, values, self.lengths)


def spelled_out(kinds: Kinds) -> Terms:
    """Every term, but for those that are zero everywhere."""
    return [each for terms in kinds.values() for each in terms if np.any(each)]


def together(kinds: Kinds) -> Terms:
    """Terms that differ by their indices alone as one: a sum that is spelled out."""
    return [each for terms in kinds.values() if np.any(each := sum(terms))]


def are_same(one: Kinds, other: Kinds) -> bool:
    """Return whether two gradients have the same terms, though either may spell out a sum."""
    return any(
        _match(first(one), second(other))
        for first in (spelled_out, together)
        for second in (spelled_out, together)
    )


def rounds_among(these: TermsOf, others: TermsOf) -> set[int]:
    """The places of what rounds hand on that others hand on too, with the same terms."""
    return {
        place
        for place, (value, kinds) in enumerate(these.rounds)
        if any(_is_same(value, v) and are_same(kinds, k) for v, k in others.rounds)
    }


def _match(ours: Terms, others: Terms) -> bool:
    left = list(others)
    for each in ours:
        at = next((k for k, other in enumerate(left) if _is_same(each, other)), None)
        if at is None:
            return False
        left.pop(at)
    return not left


def _zero(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_zero, value))
    return np.zeros_like(value)


def _is_same(one: Array, other: Array) -> bool:
    if np.shape(one) != np.shape(other):
        return False
    largest = max(np.max(np.abs(one), initial=0.0), np.max(np.abs(other), initial=0.0))
    return bool(np.max(np.abs(one - other), initial=0.0) <= _SAME * largest)
