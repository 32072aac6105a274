"""The plan of a model's drawing: boxes, forks and frames, and what stands beside its lines.

A model of layers in a row is drawn by its layers. A layer that is written part by part is drawn by
its parts: a box for each that has a name, a frame around a block, and where a sum takes up what
stood before a part again, a line past that part. The symbols are those of the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NamedTuple

from handgrad.documents.formulas.formula import (
    Formula,
    FormulaRow,
    Fraction,
    Sign,
    Symbol,
    gradient_of,
    parts_in,
    row,
)
from handgrad.documents.labels import label, part_name
from handgrad.equations.derived import DerivedEquation
from handgrad.equations.models.drawing import Label
from handgrad.equations.models.flow import Flow, Fork, Group, Node, Parts
from handgrad.equations.models.roles import inner_path
from handgrad.equations.models.rounds import Alike, folded, with_number
from handgrad.equations.models.steps import OpCall, WrittenNode
from handgrad.equations.models.symbols import (
    inline,
    is_gradient,
    uncopied,
    value_gradient,
    value_symbol,
)
from handgrad.layers import Layer


@dataclass(frozen=True)
class DrawnValue:
    """A value on a line: its symbol, its shape, and ∂L/∂ it, if training computes that.

    `copies` are the gradients of what of it goes into single boxes, by their numbers.
    """

    symbol: Formula
    shape: Label
    gradient: Formula | None
    copies: Mapping[int, Formula] = field(default_factory=dict)


@dataclass(frozen=True)
class DataFlow:
    """Parts by the numbers of their values; `texts` are the lines in the box of each node."""

    parts: Parts
    values: Mapping[int, DrawnValue]
    texts: Mapping[int, tuple[Label, ...]]


def plan_of_flow(flow: Flow, texts: Mapping[int, tuple[Label, ...]]) -> DataFlow:
    """The layers of a model, with the texts in their boxes."""
    values = {}
    for value in range(flow.output + 1):
        shapes = (flow.shape(value),) if value else flow.input_shapes
        uses = flow.uses(value)
        copies = {node.number: inline(value_gradient(value, node.number)) for node in uses}
        values[value] = DrawnValue(
            value_symbol(value),
            ", ".join("×".join(map(str, each)) or "1" for each in shapes),
            inline(value_gradient(value)) if value in flow.needed else None,
            copies if len(uses) > 1 else {},
        )
    return DataFlow(flow.parts, values, texts)


def plan_of_parts(
    flow: Flow, step: WrittenNode, parameters: Mapping[str, Formula], lang: str
) -> DataFlow | None:
    """The parts of the only layer of a model; None where they are not in one line from its input
    to its output, but for sums that take up what stood before."""
    planner = _Planner(flow, step, set(parameters.values()), lang)
    try:
        parts = planner.plan()
    except _TangledError:
        return None
    return DataFlow(parts, planner.values, planner.texts)


class _TangledError(Exception):
    """Parts take more than what stands right before them."""


class _Scope(NamedTuple):
    """Symbols by the numbers of their values, and how a parameter is found among symbols."""

    known: dict[Formula, int]
    counter: Formula | None
    number: int


class _Planner:
    def __init__(self, flow: Flow, step: WrittenNode, parameters: set[Formula], lang: str) -> None:
        self.flow, self.parameters, self.lang = flow, parameters, lang
        self.layer: Layer = flow.nodes[0].layer
        self.forward = list(folded(step.forward))
        backward = [
            part
            for told in folded(step.backward)
            for part in (told.parts if isinstance(told, Alike) else (told,))
        ]
        self.gradients = {
            each
            for part in (*backward, *step.backward)
            for equation in part.equations
            for side in (equation.left, equation.right)
            for each in parts_in(side)
            if is_gradient(each)
        }
        self.values: dict[int, DrawnValue] = {}
        self.texts: dict[int, tuple[Label, ...]] = {}

    def plan(self) -> Parts:
        shape = ", ".join("×".join(map(str, each)) or "1" for each in self.flow.input_shapes)
        start = value_symbol(0)
        self.values[0] = DrawnValue(start, shape, None)
        scope = _Scope({start: 0}, None, 0)
        first = self.forward[0]
        if isinstance(first, OpCall) and [e.right for e in first.equations] == [start]:
            start = first.equations[0].left  # the same by another name
            scope.known[start] = 0
            self.values[0] = replace(self.values[0], symbol=start)
            self.forward = self.forward[1:]
        parts, last = self._line(self.forward, scope, 0)
        if self.values[last].symbol != value_symbol(self.flow.output) or len(self.texts) < 2:
            raise _TangledError
        return parts

    def _line(self, told: Sequence[OpCall | Alike], scope: _Scope, value: int) -> tuple[Parts, int]:
        """Boxes and frames one after the other, and what comes out at their end."""
        line: list[tuple[int, Node | Fork | Group]] = []
        units = [
            (key, list(group))
            for key, group in groupby(self._keyed(told), key=lambda each: each[0])
        ]
        held: list[tuple[OpCall, DerivedEquation]] = []
        for i, (key, group) in enumerate(units):
            later = [part for _, others in units[i + 1 :] for _, part in others]
            for _, part in group[:1]:
                if isinstance(part, Alike):
                    value = self._frame(part, scope, value, line)
            parts = [part for _, part in group if isinstance(part, OpCall)]
            equations = held + [(part, each) for part in parts for each in part.equations]
            held = []
            if len(self._fixed(equations, scope)) == len(equations):
                held = equations  # goes with what takes it
                continue
            before: list[tuple[OpCall, DerivedEquation]] = []
            for part, equation in equations:
                past = self._taken_up(part, equation, scope, value, before)
                if past is None:
                    before.append((part, equation))
                    continue
                value = self._box(key, before, scope, value, line, [equation])
                before = []
                value = self._sum(equation, scope, past, value, line)
            if before:
                value = self._box(key, before, scope, value, line, later)
        return tuple(part for _, part in line), value

    def _keyed(self, told: Sequence[OpCall | Alike]) -> Iterator[tuple[str, OpCall | Alike]]:
        """Each part with the name of its box; one without a name goes with that before it."""
        key = ""
        stacks = {each.parts[0].block.stack for each in told if isinstance(each, Alike)}  # type: ignore[union-attr]
        for i, part in enumerate(told):
            if isinstance(part, Alike):
                yield f"{i}", part
                continue
            path = part.path if part.block is None else inner_path(part.path)
            for stack in stacks:
                path = path.removeprefix(f"{stack}.")
            names = path.split(".")
            found = "norm" if names[-1] == "norm" else names[0] or part.name
            key = f"{names[0]}/{found}" if found else key
            yield key, part

    # Single parts

    def _box(
        self,
        key: str,
        equations: Sequence[tuple[OpCall, DerivedEquation]],
        scope: _Scope,
        value: int,
        line: list[tuple[int, Node | Fork | Group]],
        later: Sequence[OpCall | Alike | DerivedEquation],
    ) -> int:
        """A box for these equations, which take the value and no other."""
        if not equations:
            return value
        lefts = [each.left for _, each in equations]
        taken = [each for _, equation in equations for each in _taken(equation)]
        if any(scope.known[each] != value for each in taken if each in scope.known):
            raise _TangledError
        fixed = self._fixed(equations, scope)
        output = self._output([each for each in lefts if each not in fixed], later)
        shape = next(each.shape for _, each in equations if each.left == output)
        number = self._value(output, shape, scope)
        self._copy(value, number)
        own = [each for each in dict.fromkeys(taken) if self._is_parameter(each, scope)]
        title = part_name(key.rpartition("/")[2], self.lang)
        self.texts[number] = (title, *own)
        line.append((value, Node(number, title, self.layer, (value,), ())))
        return number

    def _fixed(
        self, equations: Sequence[tuple[OpCall, DerivedEquation]], scope: _Scope
    ) -> set[Formula]:
        """The lines of a box that are the same for every input."""
        moving: set[Formula] = set()
        fixed: set[Formula] = set()
        for _, each in equations:
            taken = set(_taken(each))
            (moving if taken & (moving | scope.known.keys()) else fixed).add(each.left)
        return fixed

    def _output(
        self, lefts: list[Formula], later: Sequence[OpCall | Alike | DerivedEquation]
    ) -> Formula:
        """The values of a box that are taken later."""
        taken: set[Formula] = set()
        for each in later:
            if isinstance(each, DerivedEquation):
                taken.update(_taken(each))
            elif isinstance(each, Alike):
                _, number = each.counter, each.numbers[0]
                taken.update(
                    with_number(symbol, each.counter, number)
                    for part in each.parts
                    for equation in part.equations
                    for symbol in _taken(equation)
                )
            else:
                taken.update(symbol for equation in each.equations for symbol in _taken(equation))
        found = list(dict.fromkeys(each for each in lefts if each in taken))
        if len(found) > 1 or not lefts:
            raise _TangledError
        return found[0] if found else lefts[-1]

    def _taken_up(
        self,
        part: OpCall,
        equation: DerivedEquation,
        scope: _Scope,
        value: int,
        before: Sequence[tuple[OpCall, DerivedEquation]],
    ) -> int | None:
        """The value from before the part that a sum takes up again, if the equation is such."""
        is_sum = not part.name and bool(equation.nodes) and equation.nodes[0].op == "add"
        if not any(each in scope.known for _, other in before for each in _taken(other)):
            return None  # what is added comes from nowhere before, as positions do
        match equation.right:
            case FormulaRow((one, Sign("+"), other)) if is_sum and before:
                last = before[-1][1].left
                if other == last and one in scope.known:
                    return scope.known[one]
                if one == last and other in scope.known:
                    return scope.known[other]
        return None

    def _sum(
        self,
        equation: DerivedEquation,
        scope: _Scope,
        past: int,
        value: int,
        line: list[tuple[int, Node | Fork | Group]],
    ) -> int:
        """⊕ at the end of what stands between the value that is taken up and here."""
        starts = [start for start, _ in line]
        if past not in starts:
            raise _TangledError
        at = starts.index(past)
        inner = tuple(part for _, part in line[at:])
        number = self._value(equation.left, equation.shape, scope)
        join = Node(number, "", self.layer, (past, value), ())
        line[at:] = [(past, Fork(past, inner, (), join))]
        return number

    def _frame(
        self,
        alike: Alike,
        scope: _Scope,
        value: int,
        line: list[tuple[int, Node | Fork | Group]],
    ) -> int:
        """A frame around a block, in which symbols have its counter."""
        first, last = alike.numbers[0], alike.numbers[-1]
        several = len(alike.numbers) > 1
        counter = alike.counter if several else None
        equations = [each for part in alike.parts for each in part.equations]
        own = {each.left for each in equations}
        symbol = self.values[value].symbol
        inputs = set()
        for each in (taken for equation in equations for taken in _taken(equation)):
            whole = with_number(each, counter, first) if counter is not None else each
            if each not in own and whole in scope.known:
                if whole != symbol:
                    raise _TangledError
                inputs.add(each)
        if len(inputs) != 1:
            raise _TangledError
        inside = _Scope({}, counter, first)
        start = self._value(inputs.pop(), self.values[value].shape, inside)
        parts, end = self._line(alike.parts, inside, start)
        inner = self.values[end]
        out = inner.symbol if counter is None else with_number(inner.symbol, counter, last)
        number = self._value(out, inner.shape, scope)
        block = alike.parts[0].block
        assert block is not None
        kind = "model_step" if block.counter == Symbol("t") else "model_block"
        name = label(self.lang, kind)
        title = f"{name} {first}" if counter is None else f"{name} l"
        group = Group(title, len(alike.numbers), value, number, start, end, parts)
        line.append((value, group))
        return number

    # Values

    def _value(self, symbol: Formula, shape: Label | None, scope: _Scope) -> int:
        number = len(self.values)
        gradient = gradient_of(symbol)
        known = inline(gradient) if gradient in self.gradients else None
        self.values[number] = DrawnValue(symbol, shape or "", known)
        scope.known[symbol] = number
        return number

    def _copy(self, value: int, node: int) -> None:
        """The gradient of what of a value goes into a box, where another part takes it too."""
        found = [
            each
            for each in self.gradients
            if (of := _denominator(each)) != self.values[value].symbol
            and uncopied(of) == self.values[value].symbol
        ]
        if len(found) == 1:
            before = self.values[value]
            copies = {**before.copies, node: inline(found[0])}
            self.values[value] = DrawnValue(before.symbol, before.shape, before.gradient, copies)

    def _is_parameter(self, symbol: Formula, scope: _Scope) -> bool:
        if scope.counter is not None:
            symbol = with_number(symbol, scope.counter, scope.number)
        return symbol in self.parameters


def _taken(equation: DerivedEquation) -> Iterator[Formula]:
    return (each.symbol for each in equation.arrived)


def _denominator(gradient: Formula) -> Formula:
    """x of ∂L/∂x."""
    match gradient:
        case Fraction(_, FormulaRow((Symbol("partial"), *of))):
            return row(*of)
    return gradient
