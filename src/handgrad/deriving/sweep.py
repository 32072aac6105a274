"""The reverse sweep: from the adjoint of a result to those of the inputs, array by array."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from handgrad.deriving.arrays import Array, Graph
from handgrad.deriving.derivatives import LOCAL, TRANSPOSED, Context
from handgrad.deriving.simplify import Simplifier
from handgrad.deriving.source import refuse
from handgrad.deriving.terms import (
    Factor,
    Index,
    Sum,
    Term,
    add,
    fresh,
    fresh_index,
    multiply,
    of,
    renamed,
    term,
)
from handgrad.program.nodes import Node

#: A sum of more terms than this is not written again for every term that it meets.
_MOST_TERMS: Final = 6


@dataclass
class Sweep:
    """Adjoints by the name of the array they belong to, each over that array's indices.

    With `simplifier` None nothing is simplified: the plain reverse sweep.
    """

    graph: Graph
    context: Context
    simplifier: Simplifier | None
    adjoints: dict[str, Sum] = field(default_factory=dict)
    #: Every adjoint as the chain rule gives it, in the order of the sweep.
    chain: list[tuple[str, Sum]] = field(default_factory=list)

    def run(self, cotangents: dict[str, str], wanted: Sequence[str]) -> dict[str, Sum]:
        """The gradients of the wanted inputs, from cotangents and the results they belong to."""
        for dy, name in cotangents.items():
            self._give(name, self.graph.factor(dy))
        for array in reversed(list(self.graph.arrays.values())):
            if array.name in self.adjoints and not array.is_backward and array.is_active:
                self._pass_on(array, is_input=array.name in wanted)
        return {name: self.adjoints.get(name, {}) for name in wanted}

    def _give(self, name: str, part: Sum) -> None:
        self.adjoints[name] = add(self.adjoints.get(name, {}), part)

    def _pass_on(self, array: Array, *, is_input: bool) -> None:
        adjoint = self.adjoints[array.name]
        self.chain.append((array.name, adjoint))
        if self.simplifier is not None:
            adjoint = self.simplifier.simplify(f"d{array.name}", adjoint, array.axes)
            self.adjoints[array.name] = adjoint
        if is_input or not adjoint:
            return
        if array.definition is not None:
            if self._is_worth_a_name(array, adjoint):
                adjoint = self.graph.factor(self._named(array, adjoint))
            self._through_sum(array, adjoint)
            return
        node = array.node
        assert node is not None
        if node.op in LOCAL:
            if len(adjoint) > 2 or any(each.bound for each in adjoint):
                adjoint = self.graph.factor(self._named(array, adjoint))
            for operand, derivative in LOCAL[node.op](self.context, node):
                self._through_local(array, operand, multiply(adjoint, derivative))
        elif node.op in TRANSPOSED:
            name = self._named(array, adjoint)
            for operand, code in TRANSPOSED[node.op](self.context, node, name):
                self._through_code(operand, code, (name, array.name))
        else:
            raise refuse(node, f"no derivative of {node.op} is known")

    def _is_worth_a_name(self, array: Array, adjoint: Sum) -> bool:
        """Return whether a product or a contraction would write a long adjoint several times.

        What only adds or reduces passes its adjoint on, which keeps closed forms in sight.
        """
        assert array.definition is not None
        ((factors, _), _), *others = adjoint.items()
        if not others and len([f for f in factors if not f.is_size]) < 2:
            return False
        terms = [[f for f in each.factors if not f.is_size] for each in array.definition]
        if len(adjoint) * len(terms) > _MOST_TERMS:
            return True
        adds = all(len(each) <= 1 and all(f.power == 1 for f in each) for each in terms)
        reduces = (
            len(terms) == 1
            and all(set(f.indices) <= set(terms[0][0].indices) for f in terms[0][1:])
            and len(terms[0][0].indices) > len(array.indices)
        )
        return not adds and not reduces

    def _named(self, array: Array, adjoint: Sum) -> str:
        """The adjoint as an array with a name."""
        known = self._known(array, adjoint)
        if known:
            return known
        name = self.graph.unique(f"d{array.name}")
        self.graph.add(Array(name, array.axes, adjoint, is_backward=True))
        return name

    def _known(self, array: Array, adjoint: Sum) -> str:
        """The array that the adjoint is, if it is one with the same axes; otherwise ""."""
        ((factors, bound), coefficient), *others = adjoint.items()
        if others or coefficient != 1 or bound or len(factors) != 1:
            return ""
        (factor,) = factors
        found = self.graph.arrays.get(factor.name)
        if found is None or factor.power != 1 or factor.indices != array.indices:
            return ""
        return found.name if found.axes == array.axes else ""

    def _through_sum(self, array: Array, adjoint: Sum) -> None:
        """The product rule: every factor in turn, with the others beside the adjoint."""
        assert array.definition is not None
        for one, coefficient in array.definition.items():
            factors, bound = fresh(one)
            for at, factor in enumerate(factors):
                operand = self.graph.arrays.get(factor.name)
                if operand is None or not operand.is_active or factor.is_mask:
                    continue
                rest = [f for i, f in enumerate(factors) if i != at]
                if factor.power != 1:
                    rest.append(factor._replace(power=factor.power - 1))
                part = self._contracted(array, adjoint, rest, bound, factor, operand)
                self._give(
                    operand.name, {k: c * coefficient * factor.power for k, c in part.items()}
                )

    def _contracted(
        self,
        array: Array,
        adjoint: Sum,
        rest: Sequence[Factor],
        bound: tuple[Index, ...],
        factor: Factor,
        operand: Array,
    ) -> Sum:
        """Adjoint times rest, summed over all indices that the factor has not, over its own."""
        if len(set(factor.indices)) < len(factor.indices):
            assert array.node is not None
            raise refuse(array.node, "a diagonal is not understood")
        own = dict(zip(factor.indices, operand.indices, strict=True))
        names = {i: own.get(i) or fresh_index(i.dimension) for i in (*array.indices, *bound)}
        inner = [names[i] for i in (*array.indices, *bound) if i not in own]
        found: dict[Term, Fraction] = {}
        changed = [f._replace(indices=tuple(names[i] for i in f.indices)) for f in rest]
        for one, coefficient in renamed(adjoint, names).items():
            factors, its = fresh(one)
            key = term((*factors, *changed), (*its, *inner))
            found[key] = found.get(key, Fraction(0)) + coefficient
        return {key: c for key, c in found.items() if c}

    def _through_local(self, array: Array, operand: Node, found: Sum) -> None:
        """An element-wise function: summed over the axes that the operand broadcasts along."""
        if operand not in self.context.reader.active:
            return
        name = self.context.name(operand)
        own = self.graph[name].layout
        layout = array.layout[len(array.layout) - len(own) :]
        factor = Factor(name, tuple(j for i, j in zip(own, layout, strict=True) if i and j))
        self._give(name, self._contracted(array, found, [], (), factor, self.graph[name]))

    def _through_code(self, operand: Node, code: str, reads: tuple[str, ...]) -> None:
        """A function that moves elements: its transpose is an array of its own."""
        if operand not in self.context.reader.active:
            return
        name = self.context.name(operand)
        part = self.graph.unique(f"d{name}")
        used = tuple(each for each in self.graph.arrays if _occurs(each, code))
        self.graph.add(Array(part, self.graph[name].axes, None, code, used, is_backward=True))
        self._give(name, of(part, self.graph[part].indices))


def _occurs(name: str, code: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}\b", code) is not None
