"""A forward with one loop, taken apart: what is before it, one step of it, and what is behind it.

Each part is a function of its own, whose backward is derived as that of any other; the adjoints of
what is carried from step to step go through the steps in reverse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from handgrad.deriving.arrays import Array
from handgrad.deriving.evaluation import functions_of
from handgrad.deriving.sizes import Sizes
from handgrad.deriving.source import Source
from handgrad.program.functions import getitem
from handgrad.program.nodes import Node, Program, Site, reachable

_NAME: Final = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
#: Rounds that a loop has at least: the second stands for all.
_ROUNDS: Final = 3


class NoLoopError(Exception):
    """The program is not of the form that is taken apart here."""


@dataclass(frozen=True)
class Part:
    """A function of arrays, by its source: names and axes of what it takes and returns."""

    name: str
    inputs: Mapping[str, tuple[str | None, ...]]
    active: frozenset[str]
    outputs: tuple[str, ...]
    settings: tuple[str, ...]
    function: Callable[..., Any]


@dataclass(frozen=True)
class Carried:
    """What a step hands to the next: its name, and that of what the first step starts from."""

    name: str
    start: str


@dataclass(frozen=True)
class Slice:
    """A step's part of an array: `x[:, t]`."""

    name: str
    array: str
    index: str


@dataclass(frozen=True)
class Stack:
    """The results of all steps as one array, along an axis; `before` stand in front of them."""

    name: str
    of: str
    axis: int
    before: tuple[str, ...]


@dataclass(frozen=True)
class Loop:
    """The parts, and how they hang together. `range` is the range of the variable as Python."""

    variable: str
    range: str
    before: Part | None
    step: Part
    after: Part | None
    carried: tuple[Carried, ...]
    slices: tuple[Slice, ...]
    stacks: tuple[Stack, ...]
    finals: Mapping[str, str]
    results: tuple[str, ...]
    axes: Mapping[str, tuple[str | None, ...]]


def taken_apart(
    programs: tuple[Program, Program],
    outputs: tuple[Sequence[Node], Sequence[Node]],
    wanted: Iterable[Node],
    sizes: Sizes,
    settings: Mapping[str, Any],
) -> Loop:
    """The loop of a program that was run at two sets of sizes.

    Raises NoLoopError where there is none, several, or one whose steps are not alike.
    """
    return _Taking(programs, outputs, set(wanted), sizes, settings).loop()


class _Taking:
    def __init__(
        self,
        programs: tuple[Program, Program],
        outputs: tuple[Sequence[Node], Sequence[Node]],
        wanted: set[Node],
        sizes: Sizes,
        settings: Mapping[str, Any],
    ) -> None:
        self.sizes, self.outputs = sizes, outputs
        site = _site(programs)
        runs = [_Run(program, site) for program in programs]
        self.first, self.second = runs
        self.twins: dict[Node, Node] = {}
        for one, two in (
            (self.first.before, self.second.before),
            (self.first.rounds[1], self.second.rounds[1]),
            (self.first.behind, self.second.behind),
            *zip(self.first.rounds[:_ROUNDS], self.second.rounds[:_ROUNDS], strict=True),
            (self.first.rounds[-1], self.second.rounds[-1]),
        ):
            if [(n.op, n.site) for n in one] != [(n.op, n.site) for n in two]:
                raise NoLoopError
            self.twins.update(zip(one, two, strict=True))
        self.source = Source(sizes, self.twins, settings)
        self.settings = settings
        self.active = set(wanted)
        for node in programs[0].nodes:
            if not self.active.isdisjoint(node.operands) and _is_float(node):
                self.active.add(node)
        self.names: dict[Node, str] = {}
        self.taken = {*sizes.lengths, *settings, self.first.variable, "np"}

    def axes(self, node: Node) -> tuple[str | None, ...]:
        pairs = zip(np.shape(node.value), np.shape(self.twins[node].value), strict=True)
        found = tuple(self.sizes.letter(*pair) for pair in pairs)
        if "" in found:
            raise NoLoopError
        return found

    def named(self, node: Node, name: str = "") -> str:
        """A name for a node that stands in more than one part."""
        if node not in self.names:
            name = name or node.name
            name = name if name.isidentifier() else "a"
            count = 2
            free = name
            while free in self.taken:
                free, count = f"{name}_{count}", count + 1
            self.taken.add(free)
            self.names[node] = free
        return self.names[node]

    def loop(self) -> Loop:
        run = self.first
        place = {node: (r, p) for r, nodes in enumerate(run.rounds) for p, node in enumerate(nodes)}
        for node in run.before:
            if node.op == "input":
                self.named(node)
        template = run.rounds[1]
        needed = reachable(tuple(self.outputs[0]))
        behind = [node for node in run.behind if node in needed]
        stacked, finals = self._used_behind(run, place, behind)
        carried, slices, fixed = self._boundary(run, place, finals)
        new = {template[p]: self.named(template[p]) for p in carried}
        for q, _, _ in stacked.values():
            new.setdefault(template[q], self.named(template[q], "out"))
        # Inputs of a step: what the one before made, parts of arrays, and what all steps share.
        inputs: dict[Node, str] = {}
        for p, start in carried.items():
            inputs[run.rounds[0][p]] = new[template[p]]
            self.named(start, f"{new[template[p]]}0")
        for node, (array, _) in slices.items():
            inputs[node] = self.named(node, f"{self.named(array)}_{run.variable}")
        for node in fixed:
            inputs[node] = self.named(node)
        outputs = list(dict.fromkeys([*(template[p] for p in carried), *new]))
        made = tuple(new[n] for n in outputs)
        step = self._part("step", template, inputs, outputs, made, suffix="_new")
        shared = [*fixed, *(array for array, _ in slices.values()), *carried.values()]
        before, after = self._around(run, behind, stacked, finals, shared)
        results = tuple(self.named(node, "y") for node in self.outputs[0])
        return Loop(
            run.variable,
            self._range(),
            before,
            step,
            after,
            tuple(Carried(new[template[p]], self.names[start]) for p, start in carried.items()),
            tuple(
                Slice(inputs[node], self.names[array], index)
                for node, (array, index) in slices.items()
            ),
            tuple(
                Stack(self.names[node], new[template[p]], axis, tuple(self.names[b] for b in front))
                for node, (p, axis, front) in stacked.items()
            ),
            {new[template[p]]: self.names[node] for node, p in finals.items()},
            results,
            {name: self.axes(node) for node, name in self.names.items()},
        )

    # What is behind the loop

    def _used_behind(
        self, run: _Run, place: Mapping[Node, tuple[int, int]], behind: Sequence[Node]
    ) -> tuple[dict[Node, tuple[int, int, list[Node]]], dict[Node, int]]:
        """Stacks of all steps' results, and results of the last step."""
        stacked: dict[Node, tuple[int, int, list[Node]]] = {}
        finals: dict[Node, int] = {}
        for node in behind:
            if node.op in ("stack", "asarray") and any(o in place for o in node.operands):
                stacked[node] = self._stack(node, run, place)
        for node in [*behind, *self.outputs[0]]:
            used = node.operands if node in behind else (node,)
            for operand in () if node in stacked else used:
                if operand in place:
                    r, p = place[operand]
                    if r != len(run.rounds) - 1:
                        raise NoLoopError
                    finals[operand] = p
        for node in (*stacked, *finals):
            self.named(node, f"{node.name or 'y'}s" if node in stacked else f"{node.name}_last")
        return stacked, finals

    def _stack(
        self, node: Node, run: _Run, place: Mapping[Node, tuple[int, int]]
    ) -> tuple[int, int, list[Node]]:
        items = node.args[0]
        axis = node.kwargs.get("axis", node.args[1] if len(node.args) > 1 else 0)
        if not isinstance(items, tuple | list) or type(axis) is not int:
            raise NoLoopError
        front = [each for each in items if each not in place]
        found = [place[each] for each in items[len(front) :] if each in place]
        places = {p for _, p in found}
        if len(places) != 1 or [r for r, _ in found] != list(range(len(run.rounds))):
            raise NoLoopError
        if len(front) + len(found) != len(items):
            raise NoLoopError
        return places.pop(), axis % np.ndim(node.value), front

    # What a step takes

    def _boundary(
        self, run: _Run, place: Mapping[Node, tuple[int, int]], finals: Mapping[Node, int]
    ) -> tuple[dict[int, Node], dict[Node, tuple[Node, str]], list[Node]]:
        """What is carried with its start, the step's parts of arrays, and what all steps share."""
        carried: dict[int, Node] = {}
        slices: dict[Node, tuple[Node, str]] = {}
        fixed: dict[Node, None] = {}
        rounds = run.rounds
        for p, node in enumerate(rounds[1]):
            alike = [nodes[p] for nodes in rounds]
            if node.op == "store":
                raise NoLoopError
            if self._is_slice(alike, place):
                array = node.args[0]
                slices[node] = (array, self._index(alike))
                continue
            self._same_settings(alike)
            for k, operand in enumerate(node.operands):
                r, q = place.get(operand, (-1, -1))
                all_ = [each.operands[k] for each in alike]
                if r == 1:
                    if any(place.get(o) != (i, q) for i, o in enumerate(all_)):
                        raise NoLoopError
                elif r == 0:
                    if any(place.get(o) != (i, q) for i, o in enumerate(all_[1:])):
                        raise NoLoopError
                    start = all_[0]
                    if start in place or carried.setdefault(q, start) is not start:
                        raise NoLoopError
                elif r == -1 and all(o is operand for o in all_):
                    fixed[operand] = None
                else:
                    raise NoLoopError
        if any(p not in carried for p in finals.values()):  # it would have no start
            raise NoLoopError
        return carried, slices, list(fixed)

    def _is_slice(self, alike: Sequence[Node], place: Mapping[Node, tuple[int, int]]) -> bool:
        node = alike[1]
        if node.function is not getitem or any(o in place for o in node.operands):
            return False
        if any(
            each.args[0] is not node.args[0] or each.operands != node.operands for each in alike
        ):
            return False
        return any(_flat(each.args[1]) != _flat(node.args[1]) for each in alike)

    def _index(self, alike: Sequence[Node]) -> str:
        """The index in terms of the loop's variable."""
        values = self.first.values
        columns = list(zip(*(_flat(each.args[1]) for each in alike), strict=True))
        parts = []
        for column in columns:
            if all(each == column[0] for each in column):
                if not (isinstance(column[0], slice) and column[0] == slice(None)):
                    if column[0] is Ellipsis:
                        parts.append("...")
                        continue
                    raise NoLoopError
                parts.append(":")
                continue
            if not all(type(each) is int for each in column):
                raise NoLoopError
            offsets = {i - t for i, t in zip(column, values, strict=True)}
            if len(offsets) != 1:
                raise NoLoopError
            offset = offsets.pop()
            sign = "+" if offset > 0 else "-"
            more = "" if not offset else f" {sign} {abs(offset)}"
            parts.append(f"{self.first.variable}{more}")
        return ", ".join(parts)

    def _same_settings(self, alike: Sequence[Node]) -> None:
        """Raise where numbers among the arguments change from step to step."""
        said = {repr(_settings((each.args, dict(each.kwargs)))) for each in alike}
        if len(said) > 1:
            raise NoLoopError

    # Parts

    def _around(
        self,
        run: _Run,
        behind: Sequence[Node],
        stacked: Mapping[Node, tuple[int, int, list[Node]]],
        finals: Mapping[Node, int],
        shared: Sequence[Node],
    ) -> tuple[Part | None, Part | None]:
        """What is computed before the loop for it, and behind it of its results."""
        rest = [node for node in behind if node not in stacked]
        known = set(run.before)
        taken = [
            o for node in rest for o in node.operands if o in known or o in stacked or o in finals
        ]
        front = [b for _, _, before in stacked.values() for b in before]
        made = [n for n in dict.fromkeys([*shared, *taken, *front]) if n in known]
        made = [n for n in made if n.op != "input"]
        before = None
        for node in made:
            self.named(node)
        if made:
            inputs = [n for n in run.before if n.op == "input" and n in reachable(tuple(made))]
            names = {n: self.names[n] for n in inputs}
            before = self._part("before", run.before, names, made, [self.names[n] for n in made])
        after = None
        if rest:
            passed = [n for n in self.outputs[0] if n not in rest]
            inputs = list(dict.fromkeys([*taken, *passed]))
            names = {n: self.named(n) for n in inputs}
            out = [self.named(n, "y") for n in self.outputs[0]]
            after = self._part("after", rest, names, list(self.outputs[0]), out)
        return before, after

    def _part(
        self,
        name: str,
        nodes: Sequence[Node],
        inputs: Mapping[Node, str],
        outputs: Sequence[Node],
        returned: Sequence[str],
        suffix: str = "",
    ) -> Part:
        """A function of these inputs, from the nodes that its outputs are made of.

        `returned` are the names of its outputs outside of it; inside, the suffix tells them from
        inputs of the same name.
        """
        needed = reachable(tuple(outputs), lambda node: () if node in inputs else node.operands)
        local = [n for n in nodes if n in needed and n not in inputs]
        users: dict[Node, int] = {}
        for node in local:
            for operand in set(node.operands):
                users[operand] = users.get(operand, 0) + 1
        names = dict(inputs)
        taken = {*inputs.values(), *self.sizes.lengths, *self.settings}
        for node in local:
            if node in outputs or node.name or users.get(node, 0) > 1:
                label = node.name
                if node in outputs:
                    label = returned[list(outputs).index(node)] + suffix
                label = label if label.isidentifier() else "t"
                free, count = label, 2
                while free in taken:
                    free, count = f"{label}_{count}", count + 1
                taken.add(free)
                names[node] = free
        self.source.names = names
        lines = [
            f"{names[node]} = {self.source.definition(node)[0]}" for node in local if node in names
        ]
        results = ", ".join(names[node] for node in outputs)
        text = "\n".join([*lines, results])
        used = set(_NAME.findall(text))
        axes = {label: self.axes(node) for node, label in inputs.items()}
        sizes = sizes_of(used & self.sizes.lengths.keys(), axes)
        settings = tuple(each for each in self.settings if each in used)
        given = ", ".join([*inputs.values(), *(f"{s}={self.settings[s]!r}" for s in settings)])
        body = "".join(f"    {line}\n" for line in [*sizes, *lines, f"return {results}"])
        active = frozenset(label for node, label in inputs.items() if node in self.active)
        function = functions_of(f"def {name}({given}):\n{body}")[name]
        return Part(name, axes, active, tuple(returned), settings, function)

    def _range(self) -> str:
        """The range of the variable, which is the same expression in both runs."""
        ends = []
        for run in (self.first, self.second):
            steps = {b - a for a, b in zip(run.values, run.values[1:], strict=False)}
            if len(steps) != 1 or abs(next(iter(steps))) != 1:
                raise NoLoopError
            step = steps.pop()
            ends.append((run.values[0], run.values[-1] + step, step))
        (a, b, step), (c, d, other) = ends
        if step != other:
            raise NoLoopError
        start, stop = self.sizes.text(a, c), self.sizes.text(b, d)
        if not start or not stop:
            raise NoLoopError
        if step == 1:
            return f"range({stop})" if start == "0" else f"range({start}, {stop})"
        if stop == "-1":
            size = self.sizes.text(a + 1, c + 1)
            return f"reversed(range({size}))" if size else f"range({start}, -1, -1)"
        return f"range({start}, {stop}, -1)"


class _Run:
    """The nodes of a program before its loop, round by round, and behind it."""

    def __init__(self, program: Program, site: Site) -> None:
        self.site = site
        looped = [n for n in program.nodes if n.rounds and n.rounds[0].loop == site]
        count = max(node.rounds[0].number for node in looped) + 1
        if count < _ROUNDS:
            raise NoLoopError
        self.rounds: list[list[Node]] = [[] for _ in range(count)]
        for node in looped:
            self.rounds[node.rounds[0].number].append(node)
        end = looped[-1].number
        inside = set(looped)
        others = [node for node in program.nodes if node not in inside]
        self.before = [n for n in others if n.number < looped[0].number or n.op == "input"]
        self.behind = [n for n in others if n.number > end and n.op != "input"]
        form, *forms = [[(n.op, n.site, n.rounds[1:]) for n in nodes] for nodes in self.rounds]
        if any(each != form for each in forms):
            raise NoLoopError
        values = {
            (each.name, each.rounds[0].number): each.value
            for each in program.assignments
            if len(each.rounds) == 1
            and each.rounds[0].loop == self.site
            and type(each.value) is int
        }
        names = {name for name, _ in values}
        moving = [
            name for name in names if len({values.get((name, r)) for r in range(count)}) == count
        ]
        if len(moving) != 1:
            raise NoLoopError
        self.variable = moving[0]
        self.values = [values[self.variable, r] for r in range(count)]


def _site(programs: tuple[Program, Program]) -> Site:
    """The loop whose number of rounds depends on the sizes; others are written out."""
    counts: list[dict[Site, int]] = [{}, {}]
    for found, program in zip(counts, programs, strict=True):
        for node in program.nodes:
            if node.rounds:
                loop, number = node.rounds[0]
                found[loop] = max(found.get(loop, 0), number + 1)
    first, second = counts
    differing = [loop for loop in first if first[loop] != second.get(loop)]
    if len(differing) != 1 or first.keys() != second.keys():
        raise NoLoopError
    return differing[0]


def sizes_of(letters: Iterable[str], axes: Mapping[str, tuple[str | None, ...]]) -> list[str]:
    """Statements that give sizes their letters, from the shapes of arrays."""
    from handgrad.deriving.emission import length

    found: list[str] = []
    known: set[str] = set()
    arrays = [Array(name, its) for name, its in axes.items()]
    for letter in sorted(letters):
        text = next((t for each in arrays if (t := length(letter, each, known))), None)
        if text is None:
            raise NoLoopError
        known.add(letter)
        found.append(f"{letter} = {text}")
    return found


def _flat(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _settings(nested: Any) -> Any:
    """A structure with a dot in the place of every array."""
    if isinstance(nested, Node):
        return "."
    if isinstance(nested, tuple | list):
        return [_settings(each) for each in nested]
    if isinstance(nested, dict):
        return {key: _settings(each) for key, each in nested.items()}
    if isinstance(nested, slice):
        return [_settings(each) for each in (nested.start, nested.stop, nested.step)]
    return nested


def _is_float(node: Node) -> bool:
    value = node.value
    return not isinstance(value, tuple | list) and np.asarray(value).dtype.kind == "f"
