"""The search for what every intermediate gradient of a backward is the gradient of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal

import numpy as np

from handgrad.checking.attempts import attempt, attempted
from handgrad.checking.backward_trace import Assigned, BackwardTrace
from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.hypotheses import Draw, Explanation
from handgrad.checking.local_hypotheses import of_paths
from handgrad.checking.naming_heuristics import NamingHeuristics
from handgrad.differences.directional import directional, elementwise
from handgrad.program import Execution, Node
from handgrad.program.text import text

Verdict = Literal["right", "wrong", "undecided"]

#: Rounding that a line of a backward may add, relative to the terms of the contraction.
_SLACK: Final = 1e-9
#: A difference whose own bound is more than this fraction of its value decides nothing.
_VAGUE: Final = 1e-4
#: The name of the one array that the differences are taken in.
_AT: Final = "node"
#: Elements of one array that are differentiated one by one.
_ELEMENTS: Final = 400


@dataclass(frozen=True)
class IntermediateGradient:
    """One intermediate gradient, with what it should be given those that it was made from.

    `of` is the forward's name of what it is the gradient of, "" where it has none. `found`,
    `expected` and `bounds` (of the error of `expected`, absolute) hold one entry for every
    cotangent; they are empty for a step that is right. `certain` is False where only its name says
    what it stands for. `reaches` are the inputs whose gradients are made from it.
    """

    variable: str
    of: str
    line: int
    verdict: Verdict
    certain: bool
    reaches: tuple[str, ...]
    found: tuple[Any, ...] = ()
    expected: tuple[np.ndarray, ...] = ()
    bounds: tuple[float, ...] = ()
    #: Runs of the operations that make it, as a program of their own.
    runs: tuple[Execution, ...] = ()
    cotangents: tuple[Any, ...] = ()
    #: Explanations of it by a wrong path through the forward.
    paths: tuple[Explanation, ...] = ()


class Search:
    def __init__(
        self,
        run: ForwardTrace,
        lines: BackwardTrace,
        dys: Sequence[Any],
        gradients: Mapping[int, str],
        rng: np.random.Generator,
    ) -> None:
        self.run = run
        self.lines = lines
        self.dys = dys
        self.gradients = gradients
        self.rng = rng
        self.sample = np.random.default_rng(0)
        self.nodes = run.arrays()
        self.ahead = {node: frozenset(run.behind(node)) for node in self.nodes}
        self.heuristics = NamingHeuristics(run, self.lines)
        #: The node that a variable is taken for the gradient of.
        self.pinned: dict[Assigned, Node] = {}
        self.verdicts: dict[Assigned, tuple[Verdict, bool]] = {}

    def steps(self) -> Iterator[IntermediateGradient]:
        returned = {
            variable: self.run.versions[self.gradients[i]][0]
            for i, variable in enumerate(self.lines.returned)
            if variable is not None and self.gradients.get(i) in self.run.versions
        }
        for variable in self.lines.variables:
            attempt(partial(self.place, variable, returned), None)
        sure = {node for each, node in self.pinned.items() if self.verdicts[each][1]}
        for variable, node in self.pinned.items():
            if self.verdicts[variable][1] or node not in sure:
                step = attempt(partial(self.step, variable), None)
                if step is not None:
                    yield step

    def place(self, variable: Assigned, returned: Mapping[Assigned, Node]) -> None:
        """Judge a gradient that is returned, and find what another one belongs to."""
        if variable in returned:
            node = returned[variable]
            self.settle(variable, node, self.judged(variable, node), True)
        else:
            self.find(variable, returned)

    def settle(self, variable: Assigned, node: Node, verdict: Verdict, certain: bool) -> None:
        self.pinned[variable] = node
        self.verdicts[variable] = verdict, certain

    def find(self, variable: Assigned, returned: Mapping[Assigned, Node]) -> None:
        """Find the node that an intermediate gradient is, or should be, the gradient of."""
        meant = self.heuristics.of(variable)
        alike = [each for each in self.nodes if self.fits(variable, each)]
        own = [each for each in meant if each in alike]
        readings = dict.fromkeys([*own, *alike])
        matched = next((each for each in readings if self.is_right(variable, each)), None)
        renamed = matched is not None and matched not in own and self.lines.is_renaming(variable)
        if own and renamed and not self.serves(variable, matched, returned):
            return self.settle(variable, own[0], "wrong", False)
        if matched is not None and (matched in own or matched not in self.pinned.values()):
            return self.settle(variable, matched, "right", True)
        counts = {
            node: self.borne_out(variable, node, returned)
            for node in (own if matched else readings)
        }
        best = max(counts, key=lambda node: counts[node], default=None)
        if best is not None and counts[best]:
            return self.settle(variable, best, "wrong", True)
        if matched is not None:
            return self.settle(variable, matched, "right", True)
        if own and not self.is_part(variable, own[0]):
            self.settle(variable, own[0], "wrong", False)
        return None

    def fits(self, variable: Assigned, node: Node) -> bool:
        return bool(np.shape(variable.node.value) == np.shape(node.value))

    def borne_out(self, variable: Assigned, node: Node, returned: Mapping[Assigned, Node]) -> int:
        """The number of lines made from this one that are right if it is this node's gradient."""
        count = 0
        named = {each for each in self.lines.variables if self.heuristics.of(each)}
        for user in self.lines.users(variable, {*self.pinned, *named, variable}):
            wanted = [returned[user]] if user in returned else self.heuristics.of(user)
            for other in () if self.lines.is_renaming(user) else wanted:
                if node not in self.ahead.get(other, ()) or not self.fits(user, other):
                    continue
                if not self.is_right(user, other):
                    self.pinned[variable] = node
                    count += self.is_right(user, other)
                    del self.pinned[variable]
        return count

    def serves(
        self, variable: Assigned, node: Node | None, returned: Mapping[Assigned, Node]
    ) -> bool:
        """True where no result made from this one is wrong while it is this node's gradient."""
        pinned = {**self.pinned, **({variable: node} if node is not None else {})}
        users = [each for each in self.lines.users(variable, pinned) if each in returned]
        return all(self.is_right(user, returned[user]) for user in users)

    def is_part(self, variable: Assigned, node: Node) -> bool:
        """True where this is a summand of the gradient of the node."""
        users = self.lines.users(variable, {**self.pinned, variable: node})
        return any(self.fits(user, node) and self.is_right(user, node) for user in users)

    # Numbers

    def cuts(self, variable: Assigned, node: Node, number: int) -> dict[Node, Any]:
        """The gradients that this one is made from, by their nodes."""
        return {
            self.pinned[other]: self.lines.value(other, number)
            for other in self.lines.sources(variable, self.pinned)
            if self.pinned[other] is not node
        }

    def is_right(self, variable: Assigned, node: Node) -> bool:
        """Return whether the variable is the node's gradient; not where that cannot be judged."""
        return attempt(partial(self.judged, variable, node), "undecided") == "right"

    def judged(self, variable: Assigned, node: Node, **settings: Any) -> Verdict:
        """<gradient, v> against the derivative along a random direction v at the node."""
        found, value = np.asarray(self.lines.value(variable)), np.asarray(node.value)
        if found.shape != value.shape or found.size == 0:
            return "wrong"
        f, noise = self.contraction(variable, node, 0, settings)
        draw = self.rng.standard_normal(value.shape)
        direction = np.where(np.isfinite(value), draw, 0.0)
        derivative = directional(f, {_AT: value}, {_AT: direction}, noise=noise)
        ours = float(np.sum(found * direction))
        size = max(float(np.sqrt(np.sum((found * direction) ** 2))), abs(derivative.value))
        if not derivative.bound <= _VAGUE * size:
            return "undecided"
        within = abs(ours - derivative.value) <= derivative.bound + _SLACK * size
        return "right" if within else "wrong"

    def gradient(
        self, variable: Assigned, node: Node, number: int, **settings: Any
    ) -> tuple[np.ndarray, float]:
        """The right gradient in one of the runs, and the bound of its error.

        NaN but for some hundred elements.
        """
        value = np.asarray(node.value)
        positions = sorted(self.sample.permutation(value.size)[:_ELEMENTS])
        f, noise = self.contraction(variable, node, number, settings)
        right, bound = elementwise(f, {_AT: value}, _AT, positions=positions, noise=noise)
        return right, float(np.max(bound[np.isfinite(right)], initial=0.0))

    def contraction(
        self, variable: Assigned, node: Node, number: int, settings: Mapping[str, Any]
    ) -> tuple[Callable[[Mapping[str, Any]], float], float]:
        """The function that the variable should be the gradient of, and the rounding in it."""
        cuts, dy = self.cuts(variable, node, number), self.dys[number]
        total = self.run.contraction(node, cuts, dy, **settings)
        return lambda point: total({node: point[_AT]}), self.run.noise(cuts, dy)

    def step(self, variable: Assigned) -> IntermediateGradient:
        verdict, certain = self.verdicts[variable]
        node = self.pinned[variable]
        reached = self.lines.reached(variable)
        step = IntermediateGradient(
            self.label(variable),
            self.heuristics.name(node),
            variable.line,
            verdict,
            certain,
            tuple(self.gradients[i] for i in reached if i in self.gradients),
        )
        if verdict != "wrong":
            return step
        numbers = range(len(self.dys))
        gradients = [self.gradient(variable, node, number) for number in numbers]
        found = tuple(np.asarray(self.lines.value(variable, number)) for number in numbers)
        return replace(
            step,
            found=found,
            expected=tuple(right for right, _ in gradients),
            bounds=tuple(bound for _, bound in gradients),
            runs=tuple(self.lines.alone(variable, self.pinned)),
            cotangents=tuple(self.cotangent(variable, node, number) for number in numbers),
            paths=self.paths(variable, node, found) if certain else (),
        )

    def label(self, variable: Assigned) -> str:
        if variable.name.isdecimal():
            return f"d{self.gradients.get(int(variable.name), variable.name)}"
        return variable.name

    def cotangent(self, variable: Assigned, node: Node, number: int) -> Any:
        """The one gradient of the node's shape that the variable is made from; else dy."""
        cuts = self.cuts(variable, node, number).values()
        alike = [each for each in cuts if np.shape(each) == np.shape(node.value)]
        return alike[0] if len(alike) == 1 else self.dys[number]

    def paths(
        self, variable: Assigned, node: Node, found: tuple[Any, ...]
    ) -> tuple[Explanation, ...]:
        """The variable as a wrong path through the forward would have made it."""

        def gradient(draw: Draw, **settings: Any) -> Any:
            (name,) = draw.found
            number = next(i for i, each in enumerate(found) if each is draw.found[name])
            return self.gradient(variable, node, number, **settings)[0]

        def screen(**settings: Any) -> bool:
            judged = partial(self.judged, variable, node, **settings)
            return attempt(judged, "undecided") == "right"

        labels = {at: self.label(other) for other, at in self.pinned.items() if at is not node}

        def describe(each: Node) -> str:
            return f"{text(each)} ({labels[each]})" if each in labels else text(each)

        return tuple(attempted(of_paths(self.run, node, describe, gradient, screen)))
