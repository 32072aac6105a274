"""Boxes, forks and frames for a layer that is written part by part.

Each part that has a name is a box, and a block a frame. Where a sum or a box takes up what stood
before a part again, a line goes past that part. An input begins a column, and so does a second
value of a box; what one column gives goes aside into the boxes of another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from handgrad.documents.formulas.formula import (
    Formula,
    FormulaRow,
    Number,
    Sign,
    Symbol,
    Text,
    gradient_of,
    parts_in,
    row,
)
from handgrad.documents.labels import label, part_name
from handgrad.equations.derived import DerivedEquation
from handgrad.equations.models.drawing import Label
from handgrad.equations.models.flow import Flow, Fork, Group, Node, nodes_of
from handgrad.equations.models.origins import inner_path
from handgrad.equations.models.plan import DataFlow, DrawnValue, SideColumn
from handgrad.equations.models.rounds import Alike, folded, with_number
from handgrad.equations.models.scopes import (
    NO_PART,
    DrawnScope,
    OpenColumn,
    Told,
    forms_of,
    taken_by,
    whole_of,
)
from handgrad.equations.models.steps import OpCall, WrittenNode
from handgrad.equations.models.symbols import (
    inline,
    is_gradient,
    of_gradient,
    uncopied,
    value_symbol,
)
from handgrad.equations.translations import named
from handgrad.layers import Layer


def plan_of_parts(
    flow: Flow,
    step: WrittenNode,
    parameters: Mapping[str, Formula],
    inputs: Mapping[Formula, Label],
    lang: str,
) -> DataFlow | None:
    """The parts of the only layer of a model, which takes `inputs`, given with their shapes.

    None where they are not in columns that lead to one output.
    """
    planner = _Planner(flow, step, set(parameters.values()), lang)
    try:
        return planner.plan(inputs)
    except _TangledError:
        return None


class _TangledError(Exception):
    """Parts are not in columns."""


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

    def plan(self, inputs: Mapping[Formula, Label]) -> DataFlow:
        scope = DrawnScope({}, None, 0)
        for symbol, shape in inputs.items():
            scope.known[symbol] = number = len(self.values)
            scope.fresh[number] = None
            self.values[number] = DrawnValue(symbol, shape, is_trained=False)
        self._line(self.forward, scope)
        output = scope.known.get(value_symbol(self.flow.output))
        ends = [each.end for each in scope.columns]
        if output not in ends or len(self.texts) < 2:
            raise _TangledError
        told = [
            SideColumn(each.start, tuple(part for _, part in each.line)) for each in scope.columns
        ]
        at = ends.index(output)
        before, main, behind = tuple(told[:at]), told[at], tuple(told[at + 1 :])
        beside = (*before, *behind)
        if any(node.aside for each in beside for node in nodes_of(each.parts)):
            raise _TangledError
        if len(before) > 1 or len(behind) > 1:
            raise _TangledError
        asides = {value for node in nodes_of(main.parts) for value in node.aside}
        if not asides <= {*ends, *self.texts, *scope.fresh}:
            raise _TangledError
        givers = {value: node for value, node in scope.fresh.items() if node is not None}
        values, texts = self.values, self.texts
        return DataFlow(main.parts, values, texts, main.start, before, behind, givers)

    def _line(self, told: Sequence[OpCall | Alike], scope: DrawnScope) -> None:
        """Put boxes and frames into the columns of a scope, one after the other."""
        units = [
            (key, list(group))
            for key, group in groupby(self._keyed(told), key=lambda each: each[0])
        ]
        held: list[Told] = []
        for i, (key, group) in enumerate(units):
            later = [part for _, others in units[i + 1 :] for _, part in others]
            for _, part in group[:1]:
                if isinstance(part, Alike):
                    self._frame(part, scope)
            parts = [part for _, part in group if isinstance(part, OpCall)]
            equations = held + [(part, each) for part in parts for each in part.equations]
            held = []
            equations = [each for each in equations if not self._is_name(each[1], scope)]
            fixed = self._fixed(equations, scope)
            while equations and equations[-1][1].left in fixed:
                held.insert(0, equations.pop())  # goes with what takes it
            before: list[Told] = []
            for part, equation in equations:
                past = self._taken_up(part, equation, scope, before)
                if past is None:
                    before.append((part, equation))
                    continue
                self._boxes(key, before, scope, [equation])
                before = []
                self._sum(equation, scope, past)
            if before:
                self._boxes(key, before, scope, later)

    def _is_name(self, equation: DerivedEquation, scope: DrawnScope) -> bool:
        """True for another name of a value, which stands for it from here on."""
        value = scope.known.get(equation.right)
        if value is None:
            return False
        scope.known[equation.left] = value
        if not scope.columns:  # the input by the name that it has in the blocks
            self.values[value] = replace(self.values[value], symbol=equation.left)
        return True

    def _keyed(self, told: Sequence[OpCall | Alike]) -> Iterator[tuple[str, OpCall | Alike]]:
        """Each part with the name of its box; one without a name goes with that before it."""
        key = ""
        stacks = {each.parts[0].block.stack for each in told if isinstance(each, Alike)}  # type: ignore[union-attr]
        calls = [each for each in told if isinstance(each, OpCall)]
        if all(each.block is not None and each.block.counter == Symbol("t") for each in calls):
            paths = {each.path.partition(".")[0] for each in calls}
            stacks |= paths if len(paths) == 1 else set()  # told by the layers of the only one
        for i, part in enumerate(told):
            if isinstance(part, Alike):
                yield f"{i}", part
                continue
            path = f"{inner_path(part.path)}."
            for stack in stacks:
                path = path.removeprefix(f"{stack}.")
            names = path.removesuffix(".").split(".")
            found = "norm" if names[-1] == "norm" else names[0] or part.name
            key = f"{names[0]}/{found}" if found else key
            yield key, part

    # Single parts

    def _boxes(
        self,
        key: str,
        equations: Sequence[Told],
        scope: DrawnScope,
        later: Sequence[OpCall | Alike | DerivedEquation],
    ) -> None:
        """A box for these equations, or one for each group of them that has to do with no other."""
        groups = self._apart(equations, scope)
        for each in groups:
            name = key.rpartition("/")[2]
            if len(groups) > 1 or not name:
                own = named(type(self.layer).__name__, self.lang)
                name = each[-1][0].path.rpartition(".")[2] or name or own
            self._box(name, each, scope, later)

    def _apart(self, equations: Sequence[Told], scope: DrawnScope) -> list[list[Told]]:
        """The equations in groups that share no value; what is fixed is with what takes it."""
        fixed = self._fixed(equations, scope)
        groups: list[tuple[set[Any], list[Told]]] = []
        for part, equation in equations:
            if equation.left in fixed:
                continue
            tokens: set[Any] = {equation.left, whole_of(equation.left)}
            tokens.update(scope.taken([(part, equation)]))
            tokens |= {
                said for each in taken_by(equation) for said in forms_of(each) if each not in fixed
            }
            tokens -= self.parameters
            if part.name:
                tokens.add(id(part))
            joined = [each for each in groups if each[0] & tokens]
            groups = [each for each in groups if not each[0] & tokens]
            tokens.update(*(each[0] for each in joined))
            groups.append(
                (tokens, [*(each for _, told in joined for each in told), (part, equation)])
            )
        if len(groups) < 2:
            return [list(equations)]
        found = [told for _, told in groups]
        for part, equation in reversed(equations):
            if equation.left in fixed:
                takers = (
                    each for each in found if any(equation.left in taken_by(one) for _, one in each)
                )
                next(takers, found[-1]).insert(0, (part, equation))
        return found

    def _box(
        self,
        name: str,
        equations: Sequence[Told],
        scope: DrawnScope,
        later: Sequence[OpCall | Alike | DerivedEquation],
    ) -> None:
        """A box at the end of the column that it goes on from."""
        fixed = self._fixed(equations, scope)
        column, past, aside = self._place(scope.taken(equations), scope)
        value = column.end
        lefts = [each.left for _, each in equations if each.left not in fixed]
        outputs = self._outputs(lefts, later)
        shapes = {each.left: each.shape for _, each in equations}
        taken = (each for _, equation in equations for each in taken_by(equation))
        own = [each for each in dict.fromkeys(taken) if self._is_parameter(each, scope)]
        given = (*(() if past is None else (past,)), value, *aside)
        is_trained = bool(own) or any(self.values[each].is_trained for each in given)
        number = self._value(outputs[0], shapes[outputs[0]], scope, is_trained=is_trained)
        for each in outputs[1:]:
            other = self._value(each, shapes[each], scope, is_trained=is_trained)
            scope.fresh[other] = number
        self._copy(value, number)
        title = part_name(name, self.lang)
        self.texts[number] = (title, *own)
        if past is None:
            box = Node(number, title, self.layer, (value,), (), aside)
            column.line.append((value, box))
        else:
            self._join(Node(number, title, self.layer, (past, value), (), aside), past, column)
        column.end = number

    def _place(
        self, taken: Sequence[int], scope: DrawnScope
    ) -> tuple[OpenColumn, int | None, tuple[int, ...]]:
        """The column that a box with these values goes on from, an earlier value of that which it
        takes up, and what comes from aside."""
        column = next((each for each in reversed(scope.columns) if each.end in taken), None)
        if column is None:
            start = next((each for each in taken if each in scope.fresh), None)
            if start is None or scope.counter is not None:
                raise _TangledError
            column = OpenColumn(start, start)
            scope.columns.append(column)
        begun = {each.start for each in scope.columns}
        starts = {start for start, _ in column.line}
        past = [each for each in taken if each in starts]
        along = {*past, column.end}
        aside = tuple(
            each
            for each in taken
            if each not in along and (each in begun or scope.fresh.get(each) not in along)
        )
        for each in aside:
            if each in scope.fresh and scope.fresh[each] is None and each not in begun:
                scope.columns.insert(scope.columns.index(column), OpenColumn(each, each))
        if len(past) > 1:
            raise _TangledError
        return column, past[0] if past else None, aside

    def _fixed(self, equations: Sequence[Told], scope: DrawnScope) -> set[Formula]:
        """The lines of a box that are the same for every input."""
        moving: set[Formula] = set()
        fixed: set[Formula] = set()
        for _, each in equations:
            if any(
                scope.value(one) is not None or moving.intersection(forms_of(one))
                for one in taken_by(each)
            ):
                moving |= {each.left, whole_of(each.left)}
            else:
                fixed.add(each.left)
        return fixed

    def _outputs(
        self, lefts: list[Formula], later: Sequence[OpCall | Alike | DerivedEquation]
    ) -> list[Formula]:
        """The values of a box that are taken later, or the last where none is."""
        taken: set[Formula] = set()
        for each in later:
            if isinstance(each, DerivedEquation):
                taken.update(taken_by(each))
            elif isinstance(each, Alike):
                taken.update(
                    with_number(symbol, each.counter, each.numbers[0])
                    for part in each.parts
                    for equation in part.equations
                    for symbol in taken_by(equation)
                )
            else:
                taken.update(symbol for equation in each.equations for symbol in taken_by(equation))
        if not lefts:
            raise _TangledError
        whole = {whole_of(each) for each in taken}
        found = [each for each in lefts if each in taken or whole_of(each) in taken | whole]
        return list(dict.fromkeys(found)) or [lefts[-1]]

    def _taken_up(
        self, part: OpCall, equation: DerivedEquation, scope: DrawnScope, before: Sequence[Told]
    ) -> int | None:
        """The value from before the part that a sum takes up again, if the equation is such."""
        is_sum = not part.name and bool(equation.nodes) and equation.nodes[0].op == "add"
        if not scope.taken(before):
            return None  # what is added comes from nowhere before, as positions do
        match equation.right:
            case FormulaRow((one, Sign("+"), other)) if is_sum and before:
                last = before[-1][1].left
                if other == last and one in scope.known:
                    return scope.known[one]
                if one == last and other in scope.known:
                    return scope.known[other]
        return None

    def _sum(self, equation: DerivedEquation, scope: DrawnScope, past: int) -> None:
        """⊕ at the end of what stands between the value that is taken up and here."""
        value = scope.taken([(NO_PART, equation)])[-1]
        column = next((each for each in scope.columns if each.end == value), None)
        if column is None:
            raise _TangledError
        is_trained = any(self.values[each].is_trained for each in (past, value))
        number = self._value(equation.left, equation.shape, scope, is_trained=is_trained)
        self._join(Node(number, "", self.layer, (past, value), ()), past, column)
        column.end = number

    def _join(self, join: Node, past: int, column: OpenColumn) -> None:
        """A line past the parts since an earlier value, to where it meets what they give."""
        starts = [start for start, _ in column.line]
        if past not in starts:
            raise _TangledError
        at = starts.index(past)
        inner = tuple(part for _, part in column.line[at:])
        column.line[at:] = [(past, Fork(past, inner, (), join))]

    def _frame(self, alike: Alike, scope: DrawnScope) -> None:
        """A frame around a block, in which symbols have its counter."""
        first, last = alike.numbers[0], alike.numbers[-1]
        counter = alike.counter if len(alike.numbers) > 1 else None
        equations = [each for part in alike.parts for each in part.equations]
        own = {each.left for each in equations}
        found: dict[Formula, int] = {}
        for each in (taken for equation in equations for taken in taken_by(equation)):
            whole = with_number(each, counter, first) if counter is not None else each
            value = None if each in own else scope.value(whole)
            if value is not None:
                found[each] = value
        carried = [
            value
            for each, value in found.items()
            if counter is not None and counter in parts_in(each)
        ]
        column, past, _ = self._place(carried or list(found.values()), scope)
        value = column.end
        inputs = {each for each, number in found.items() if number == value}
        if past is not None or len(inputs) != 1:
            raise _TangledError
        outside = {each: number for each, number in found.items() if number != value}
        inside = DrawnScope(outside, counter, first)
        before = self.values[value]
        is_trained = before.is_trained or counter is not None
        start = self._value(inputs.pop(), before.shape, inside, is_trained=is_trained)
        inside.columns.append(OpenColumn(start, start))
        self._line(alike.parts, inside)
        end = inside.columns[0].end
        inner = self.values[end]
        out = inner.symbol if counter is None else with_number(inner.symbol, counter, last)
        number = self._value(out, inner.shape, scope, is_trained=inner.is_trained)
        if counter is not None:
            rounds = {
                with_number(inner.symbol, counter, each) for each in (first - 1, *alike.numbers)
            }
            scope.rounds[number] = rounds
        block = alike.parts[0].block
        assert block is not None
        kind = "model_step" if block.counter == Symbol("t") else "model_block"
        title = row(Text(f"{label(self.lang, kind)} "), counter or Number(str(first)))
        parts = tuple(part for _, part in inside.columns[0].line)
        group = Group(title, len(alike.numbers), value, number, start, end, parts)
        column.line.append((value, group))
        column.end = number

    # Values

    def _value(
        self, symbol: Formula, shape: Label | None, scope: DrawnScope, *, is_trained: bool
    ) -> int:
        number = len(self.values)
        symbol = whole_of(symbol)
        gradient = gradient_of(symbol)
        of_first = gradient
        if scope.counter is not None:
            of_first = with_number(gradient, scope.counter, scope.number)
        is_known = is_trained and not self.gradients.isdisjoint((gradient, of_first))
        known = inline(gradient) if is_known else None
        self.values[number] = DrawnValue(symbol, shape or "", is_trained, known)
        scope.known[symbol] = number
        return number

    def _copy(self, value: int, node: int) -> None:
        """The gradient of what of a value goes into a box, where another part takes it too."""
        found = [
            each
            for each in self.gradients
            if (of := of_gradient(each)) != self.values[value].symbol
            and uncopied(of) == self.values[value].symbol
        ]
        if len(found) == 1:
            copies = {**self.values[value].copies, node: inline(found[0])}
            self.values[value] = replace(self.values[value], copies=copies)

    def _is_parameter(self, symbol: Formula, scope: DrawnScope) -> bool:
        if scope.counter is not None:
            symbol = with_number(symbol, scope.counter, scope.number)
        return symbol in self.parameters
