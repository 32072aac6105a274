"""Symbols of the nodes of a pair: names, primes, and the step that each belongs to.

A node that a loop over steps has made has the index of its step, t. What a round reads of the round
before it has the index before: h_t comes from h_t−1, and against time from h_t+1. The gradient of a
state that is carried from step to step belongs to the step that it is handed on to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from handgrad.documents.formulas.formula import Formula, Number, Sign, row
from handgrad.equations.dimensions import Dimensions
from handgrad.equations.glossary import Glossary
from handgrad.equations.pairing import Statement
from handgrad.equations.places import moved
from handgrad.equations.shaping import whole_number
from handgrad.equations.tracing import Runs
from handgrad.program import Node, Round, Site
from handgrad.program.sizes import Size


@dataclass(frozen=True)
class Named:
    """A node is written by the symbol of `name`; in the code it is called `code`."""

    name: str
    code: str
    primes: int = 0
    #: An index that it always has: of an element of a list, or of the step that it stands at.
    index: Formula | None = None


@dataclass(frozen=True)
class StepLoop:
    """A loop over the steps of sequences: `for t in range(count)`, or its reverse."""

    site: Site
    counter: str
    is_reversed: bool
    count: int
    of_backward: bool
    #: The count in letters.
    size: Size

    def step(self, each: Round) -> int:
        """The number that the loop counts in a round."""
        return self.count - 1 - each.number if self.is_reversed else each.number


@dataclass(frozen=True)
class LoopPosition:
    """The place of an equation: in a round of a loop, whose step is called `step`."""

    steps: StepLoop
    counted: int
    step: Formula
    #: Indices of axes in front of that of the steps.
    front: Formula | None = None


@dataclass
class Scope:
    """All that is known of the nodes of both passes."""

    runs: Runs
    glossary: Glossary
    dimensions: Dimensions
    #: "if" and "otherwise"
    words: tuple[str, str]
    symbols: dict[Node, Named] = field(default_factory=dict)
    #: The index of every element of a list that a loop made, as the loop's variables say it.
    elements: dict[Node, Formula] = field(default_factory=dict)
    #: The same as numbers.
    numbers: dict[Node, Formula] = field(default_factory=dict)
    #: Nodes whose factor is 1 and not written.
    ones: set[Node] = field(default_factory=set)
    #: Settings that are 0: what has one as a factor is not written.
    zeros: set[Node] = field(default_factory=set)
    #: The name of every symbol that was written, in order, and the first node of it.
    used: dict[str, Node] = field(default_factory=dict)
    #: Every function that was written by name, with the words that explain it.
    helpers: dict[str, tuple[Formula, str]] = field(default_factory=dict)
    #: The number of parts of the equation in hand that are written.
    length: int = 0
    #: The loops over steps, by what they go through.
    loops: dict[Site, StepLoop] = field(default_factory=dict)
    #: Names that forward carries from step to step, and whether against time.
    states: dict[str, bool] = field(default_factory=dict)
    #: Names that loops carry over, by the loop, and the lines that make what they hand on.
    carried: set[tuple[Site, str]] = field(default_factory=set)
    handed_on: dict[Site, set[Any]] = field(default_factory=dict)
    #: The axis of the steps, counted from the last.
    step_axes: dict[Node, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.users: defaultdict[Node, list[Node]] = defaultdict(list)
        for program in self.programs:
            for node in program.nodes:
                for operand in dict.fromkeys(node.operands):
                    self.users[operand].append(node)

    @property
    def programs(self) -> Iterator[Any]:
        yield self.runs.forward
        if self.runs.backward is not self.runs.forward:
            yield self.runs.backward

    @property
    def counters(self) -> set[str]:
        """The names that count steps."""
        return {each.counter for each in self.loops.values()}

    # Steps

    def steps_of(self, statement: Statement) -> StepLoop | None:
        """The loop over steps that a statement stands in."""
        loops = (self.loops.get(each.loop) for each in statement.rounds)
        return next((each for each in loops if each is not None), None)

    def place_of(self, statement: Statement) -> LoopPosition | None:
        """The round of such a loop that a statement ran in, its step by the counter's letter."""
        steps = self.steps_of(statement)
        if steps is None:
            return None
        (one,) = (each for each in statement.rounds if each.loop == steps.site)
        return LoopPosition(steps, steps.step(one), self.counter(steps))

    def round_of(self, node: Node) -> tuple[StepLoop, int] | None:
        """The loop over steps that made a node, and what it counted then."""
        for each in node.rounds:
            steps = self.loops.get(each.loop)
            if steps is not None:
                return steps, steps.step(each)
        return None

    def is_carried(self, node: Node) -> bool:
        """True where another round of its loop reads a node."""
        found = self.round_of(node)
        if found is None:
            return False
        steps, counted = found
        for user in self.users[node]:
            other = self.round_of(user)
            if other is not None and other[0] is steps and other[1] != counted:
                return True
        return False

    def shift(self, node: Node, name: str) -> int | None:
        """The distance of a node's index from the step that made it, counted from 0; None for what
        is of no single step, such as a sum over all of them."""
        found = self.round_of(node)
        if found is None or (found[0].site, name) not in self.carried:
            return 1
        gradient_of = self.glossary.gradients.get(name)
        if gradient_of is None:
            return 1
        if gradient_of not in self.states:
            return None
        if not self.is_handed_on(node, found[0]):
            return 1
        return 0 if found[0].is_reversed else 2

    def carried_shift(self, steps: StepLoop, name: str) -> int | None:
        """The same for what a loop is handed under a name before it begins."""
        gradient_of = self.glossary.gradients.get(name)
        if gradient_of is None:
            return 1
        if gradient_of not in self.states:
            return None
        return 0 if steps.is_reversed else 2

    def is_handed_on(self, node: Node, steps: StepLoop) -> bool:
        """True where a node's line makes what a round of the loop hands on to the next."""
        return (node.site, node.op) in self.handed_on.get(steps.site, ())

    def moment(self, node: Node, place: LoopPosition | None) -> Formula | None:
        """The index of the step that a node belongs to, where an equation stands at `place`."""
        named = self.symbols.get(node)
        found = self.round_of(node)
        if named is None or found is None or node in self.step_axes:
            return None
        steps, counted = found
        shift = self.shift(node, named.name)
        if shift is None:
            return None
        if place is not None and place.steps is steps:
            return moved(place.step, counted - place.counted + shift - 1)
        if place is not None and place.steps.count == steps.count:
            # Another loop over the same steps, which takes what this one has made step by step.
            offset = counted + shift - 1 - place.counted
            if abs(offset) <= 1:
                return moved(place.step, offset)
        return self.absolute(steps, counted + shift)

    def absolute(self, steps: StepLoop, index: int) -> Formula:
        """The index of a step seen from outside of the loop: 0, 1, or T."""
        if index <= 1:
            return Number(str(index))
        return moved(self.dimensions.size(steps.size), index - steps.count)

    # Symbols

    def symbol(
        self, node: Node, place: LoopPosition | None, index: Formula | None = None
    ) -> Formula:
        """The symbol of a node, with an index behind that of its step."""
        named = self.symbols[node]
        moment = self.moment(node, place)
        front = place.front if place is not None and moment is not None else None
        below: Formula | None = None
        for each in (self.elements.get(node, named.index), front, moment, index):
            if each is not None:
                below = each if below is None else row(below, Sign(","), each)
        return self.glossary.symbol(named.name, named.primes, below)

    def use(self, node: Node) -> None:
        """Keep a node for the list of symbols."""
        named = self.symbols[node]
        self.used.setdefault(named.code, node)

    def counter(self, steps: StepLoop) -> Formula:
        """The counter of the steps of a loop: t."""
        return self.glossary.symbol(steps.counter)


def find_loops(runs: Runs, statements: Mapping[bool, list[Statement]]) -> dict[Site, StepLoop]:
    """Every loop over a range from 0 that is in no other loop and has none inside."""
    found: dict[Site, StepLoop] = {}
    nested: set[Site] = set()
    for of_backward, several in statements.items():
        rounds: dict[Site, set[int]] = {}
        for each in several:
            if len(each.rounds) > 1:
                nested |= {one.loop for one in each.rounds}
            for one in each.rounds:
                rounds.setdefault(one.loop, set()).add(one.number)
        for site, numbers in rounds.items():
            ends = runs.ranges.get(site)
            counter = _counter(several, site)
            if ends is None or counter is None:
                continue
            start, stop = (getattr(end, "value", end) for end in ends)
            if min(start, stop) == 0 and max(start, stop) == len(numbers):
                size = max(ends, key=lambda end: getattr(end, "value", end))
                size = whole_number(size)
                found[site] = StepLoop(site, counter, start > stop, len(numbers), of_backward, size)
    return {site: steps for site, steps in found.items() if site not in nested}


def _counter(statements: list[Statement], site: Site) -> str | None:
    for each in statements:
        if each.site == site and each.rounds and each.rounds[-1].loop == site:
            return each.names[0].strip("_") or "t" if len(each.names) == 1 else None
    return None


def find_carried(scope: Scope, statements: Mapping[bool, list[Statement]]) -> None:
    """Find the names that loops carry from round to round: those of forward are the states."""
    by_node: defaultdict[Node, list[str]] = defaultdict(list)
    #: The names that are set before each loop.
    before: dict[Site, set[str]] = {}
    for several in statements.values():
        seen: set[str] = set()
        for each in several:
            if each.rounds:
                before.setdefault(each.rounds[0].loop, set(seen))
            else:
                seen |= set(each.names)
            for name, value in zip(each.names, each.values, strict=True):
                if isinstance(value, Node):
                    by_node[value].append(name)
    for node, names in by_node.items():
        found = scope.round_of(node)
        if found is None or node.op == "store" or not scope.is_carried(node):
            continue
        steps = found[0]
        name = next((each for each in reversed(names) if each in before[steps.site]), names[-1])
        scope.carried.add((steps.site, name))
        scope.handed_on.setdefault(steps.site, set()).add((node.site, node.op))
        if not steps.of_backward:
            scope.states[name] = steps.is_reversed
