"""The chain rule through a model: what every node writes, and where gradients meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from handgrad.documents.formulas.formula import (
    Fenced,
    Formula,
    Fraction,
    Symbol,
    gradient_of,
    row,
    separated,
    transpose,
)
from handgrad.equations.equations import DerivedEquation, derive
from handgrad.equations.exact import shaped
from handgrad.equations.models.composition import Composer, Ends, input_symbols
from handgrad.equations.models.flow import Flow, Node
from handgrad.equations.models.joined import added, joined
from handgrad.equations.models.names import (
    Sizes,
    full_name,
    loss_names,
    parameters_of,
)
from handgrad.equations.models.passes import Forward
from handgrad.equations.models.recording import LayerRecorder
from handgrad.equations.models.steps import OpCall, WrittenNode, step_of
from handgrad.equations.models.symbols import numbered, value_gradient, value_symbol
from handgrad.equations.shaping import shape as shape_of
from handgrad.equations.subject import Subject
from handgrad.equations.tracing import in_order
from handgrad.errors import ArgumentError
from handgrad.program import ProgramError
from handgrad.program.functions import is_array


@dataclass
class Gradients:
    """∂L/∂h_i by i, of the parts of those that fork by (i, node), and of the parameters by name."""

    values: dict[int, Any] = field(default_factory=dict)
    copies: dict[tuple[int, int], Any] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)


class Chain:
    """Goes from the last node to the first, as their gradients come to be known."""

    def __init__(
        self, flow: Flow, forward: Forward, sizes: Sizes, lang: str, *, exact: bool = True
    ) -> None:
        self.flow = flow
        self.run = forward
        self.sizes = sizes
        self.lang = lang
        #: True where equations have the values of every call; see `Composer`.
        self.exact = exact
        self.needed = flow.needed
        self.found = Gradients()
        #: The names of the symbols of layers that are written part by part.
        self.names: set[Formula] = set()
        #: The symbols of the loss.
        self.taken: set[Formula] = set()
        #: The symbols of the parameters of nodes that are several ops.
        self.parameters: dict[int, Mapping[str, Formula]] = {}
        #: Other arrays that these have, with their symbols.
        self.given: list[tuple[Formula, Any]] = []
        #: What the loss compares the output with, as a symbol and its value.
        self.target: tuple[Formula, Any] | None = None

    def loss(self, subject: Subject) -> WrittenNode:
        """L, and ∂L/∂h of the output."""
        derivation = derive(subject, self.lang, dimensions=self.sizes)
        self.taken = {each.symbol for each in derivation.symbols}
        (first,) = subject.gradients or ()
        output = self.flow.output
        y, gradient = self.run.values[output], derivation.gradients[first]
        self.found.values[output] = gradient.reshape(y.shape)
        _, second, *_ = subject.arrays
        self.target = derivation.glossary.symbol(second), subject.arrays[second]
        if gradient.shape == y.shape:
            return step_of(None, derivation, loss_names(derivation, first, output), subject)
        step = step_of(None, derivation, {}, subject)
        rows = derivation.glossary.symbol(first)
        flat = self._reshaped(rows, (value_symbol(output), y), subject.arrays[first])
        shaped = gradient.reshape(y.shape)
        back = self._reshaped(value_gradient(output), (gradient_of(rows), gradient), shaped)
        return replace(
            step,
            forward=(OpCall((flat,)), *step.forward),
            backward=(*step.backward, OpCall((back,))),
        )

    def _reshaped(self, left: Formula, of: tuple[Formula, Any], value: Any) -> DerivedEquation:
        right = shaped(of[0], self.sizes.shape(shape_of(value)))
        equation = self._equation(left, right, value)
        return joined(equation, lambda x: np.reshape(x, value.shape), (of,))

    def node(self, node: Node) -> WrittenNode:
        """The equations of a node whose output's gradient is known."""
        dy = self.found.values.get(node.number)
        if dy is None:  # no parameter went into it, so training does not ask for it
            dy = np.zeros_like(self._value(node))
        if node.is_sum:
            return self._sum(node)
        try:
            return self._composed(node, self.run.recorders[node.number], dy)
        except (ArgumentError, ProgramError):
            return self._opaque(node, dy)

    # Where a value forks or is passed on

    def gathered(self, value: int) -> DerivedEquation | None:
        """∂L/∂h as the sum of what comes back from every node that takes h.

        None where one layer alone takes it, whose backward has given it.
        """
        if value not in self.needed or value in self.found.values:
            return None
        parts, terms = [], []
        for node in sorted(self.flow.uses(value), key=lambda each: not each.is_sum):
            if node.is_sum:
                terms.append(value_gradient(node.number))
                parts.append(self.found.values[node.number])
            else:
                terms.append(value_gradient(value, node.number))
                parts.append(self.found.copies[value, node.number])
        total = added(*parts)
        self.found.values[value] = total
        whole = self._equation(value_gradient(value), separated(tuple(terms), "+"), total)
        return joined(whole, added, list(zip(terms, parts, strict=True)))

    def _keep(self, node: Node, gradient: Any) -> None:
        """The gradient of the node's input: all of it, or one part of a fork's."""
        (value,) = node.inputs
        if value not in self.needed:
            return
        if self._forks(value):
            self.found.copies[value, node.number] = gradient
        else:
            self.found.values[value] = gradient

    def _forks(self, value: int) -> bool:
        return len(self.flow.uses(value)) > 1

    def _input(self, node: Node) -> Formula:
        """The symbol that goes into a node: the value, or the copy of it for this node."""
        (value,) = node.inputs
        return value_symbol(value, node.number if self._forks(value) else None)

    def _input_gradient(self, node: Node) -> Formula:
        return gradient_of(self._input(node))

    # Kinds of nodes

    def _sum(self, node: Node) -> WrittenNode:
        terms = tuple(map(value_symbol, node.inputs))
        y = self._equation(value_symbol(node.number), separated(terms, "+"), self._value(node))
        y = joined(y, added, [(value_symbol(each), self.run.values[each]) for each in node.inputs])
        return WrittenNode(node, (OpCall((y,)),), ())

    def _composed(self, node: Node, recorder: LayerRecorder, dy: Any) -> WrittenNode:
        """A layer by its ops, with what stands between them."""
        (value,) = node.inputs
        is_needed = value in self.needed
        y = self._value(node)
        recording = recorder.recording(dy.astype(y.dtype), input_gradient=is_needed)
        ends = Ends(
            input_symbols(recorder.layer, recorder.inputs, value),
            value_symbol(node.number),
            (self._input(node),) if is_needed else (),
        )
        composed = Composer(
            recorder.layer,
            node.number,
            recording,
            ends,
            self.sizes,
            self.lang,
            exact=self.exact,
            is_alone=len(self.flow.nodes) == 1,
            taken=self.taken,
        ).composed()
        self.parameters[node.number] = composed.parameters
        self.names.update(composed.names)
        self.given += composed.given
        if is_needed:
            self._keep(node, composed.dx)
        trained = composed.gradients if node.number in self.needed else {}
        for name, gradient in trained.items():
            self.found.parameters[full_name(node, name)] = gradient
        backward = composed.backward if node.number in self.needed else ()
        return WrittenNode(node, composed.forward, backward, others=composed.others)

    def _opaque(self, node: Node, dy: Any) -> WrittenNode:
        """A layer known by its behaviour alone: y = f(x), dx by its Jacobian."""
        (value,) = node.inputs
        dx, gradients = node.layer.backward_y(dy, self.run.caches[node.number])
        if node.number not in self.needed:
            gradients = {}
        y, x = value_symbol(node.number), value_symbol(value)
        symbols = parameters_of(node)
        function = numbered(Symbol("f"), node.number)
        arguments = Fenced(separated((x, *symbols.values())))
        forward = self._equation(y, row(function, arguments), self._value(node))
        backward = []
        for name, gradient in gradients.items():
            self.found.parameters[full_name(node, name)] = gradient
            slope = _chained(y, symbols[name])
            backward.append(self._equation(gradient_of(symbols[name]), slope, gradient))
        if value in self.needed and dx is not None:
            self._keep(node, dx)
            backward.append(self._equation(self._input_gradient(node), _chained(y, x), dx))
        return WrittenNode(node, (OpCall((forward,)),), (OpCall(tuple(backward)),), is_opaque=True)

    @property
    def is_plain(self) -> bool:
        """True where no layer is written part by part."""
        return not self.names

    def symbols_of(self, node: Node) -> Mapping[str, Formula]:
        """The symbol of every parameter of a node."""
        return self.parameters.get(node.number) or parameters_of(node)

    def inputs_of(self, node: Node) -> Mapping[Formula, Formula | str]:
        """The symbols of a node's inputs with their shapes, but for lengths and the like."""
        recorder = self.run.recorders[node.number]
        (value,) = node.inputs
        symbols = input_symbols(recorder.layer, recorder.inputs, value)
        arrays = [each for each in in_order(recorder.inputs) if is_array(each)]
        return {
            symbol: self.sizes.shape(shape_of(array))
            for symbol, array in zip(symbols, arrays, strict=True)
            if len(array.shape) > 1
        }

    def _value(self, node: Node) -> Any:
        return self.run.values[node.number]

    def _equation(self, left: Formula, right: Formula, value: Any) -> DerivedEquation:
        shape = self.sizes.shape(shape_of(value))
        return DerivedEquation("", left, right, shape, value, None, ((left, value),))


def _chained(y: Formula, x: Formula) -> Formula:
    """(∂y/∂x)ᵀ ∂L/∂y"""
    partial = Symbol("partial")
    jacobian = Fraction(row(partial, y), row(partial, x))
    return row(transpose(Fenced(jacobian)), gradient_of(y))
