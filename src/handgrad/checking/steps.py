"""The search for what every intermediate gradient of a backward is the gradient of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from handgrad import trees
from handgrad.checking.backward_lines import Lines, Variable
from handgrad.checking.claims import Claims
from handgrad.checking.differences import directional, elementwise
from handgrad.checking.hypotheses import Draw, Explanation
from handgrad.checking.local_hypotheses import of_paths
from handgrad.checking.straight import Straight

Verdict = Literal["right", "wrong", "undecided"]

#: Rounding that a line of a backward may add, relative to the terms of the contraction.
_SLACK: Final = 1e-9
#: A difference whose own bound is more than this fraction of its value decides nothing.
_VAGUE: Final = 1e-4
#: Elements of one place that are differentiated one by one.
_ELEMENTS: Final = 400


@dataclass(frozen=True)
class Step:
    """One intermediate gradient, with what it should be given those that it was made from.

    `place` is the forward's name of what it is the gradient of, "" where it has none. `found`,
    `expected` and `bounds` (of the error of `expected`, absolute) hold one entry for every
    cotangent; they are empty for a step that is right. `certain` is False where only its name says
    what it stands for. `reaches` are the inputs whose gradients are made from it.
    """

    variable: str
    place: str
    line: int
    verdict: Verdict
    certain: bool
    reaches: tuple[str, ...]
    found: tuple[Any, ...] = ()
    expected: tuple[np.ndarray, ...] = ()
    bounds: tuple[float, ...] = ()
    #: The lines that make it, as a function of everything else, and their runs.
    function: trees.Function | None = None
    runs: tuple[trees.Trace, ...] = ()
    cotangents: tuple[Any, ...] = ()
    #: What a wrong path through the forward would have made of it.
    paths: tuple[Explanation, ...] = ()


class Search:
    def __init__(
        self,
        run: Straight,
        lines: list[Lines],
        dys: Sequence[Any],
        gradients: Mapping[int, str],
        rng: np.random.Generator,
    ) -> None:
        self.run = run
        self.all_lines = lines
        self.lines = lines[0]
        self.dys = dys
        self.gradients = gradients
        self.rng = rng
        self.sample = np.random.default_rng(0)
        self.places = run.arrays()
        self.ahead = {place: frozenset(run.behind(place)) for place in run.values}
        self.claims = Claims(run, self.lines)
        #: Which place a variable is taken for the gradient of.
        self.pinned: dict[Variable, str] = {}
        self.verdicts: dict[Variable, tuple[Verdict, bool]] = {}

    def steps(self) -> Iterator[Step]:
        returned = {
            variable: self.run.versions[self.gradients[i]][0]
            for i, variable in enumerate(self.lines.returned)
            if i in self.gradients and variable is not None
        }
        for variable in self.lines.variables:
            if variable in returned:
                place = returned[variable]
                self.settle(variable, place, self.judged(variable, place), True)
            else:
                self.place(variable, returned)
        sure = {place for each, place in self.pinned.items() if self.verdicts[each][1]}
        for variable, place in self.pinned.items():
            if self.verdicts[variable][1] or place not in sure:
                yield self.step(variable)

    def settle(self, variable: Variable, place: str, verdict: Verdict, certain: bool) -> None:
        self.pinned[variable] = place
        self.verdicts[variable] = verdict, certain

    def place(self, variable: Variable, returned: Mapping[Variable, str]) -> None:
        """Find what an intermediate gradient is the gradient of, or should be."""
        claimed = self.claims.of(variable)
        alike = [each for each in self.places if self.fits(variable, each)]
        own = [each for each in claimed if each in alike]
        readings = dict.fromkeys([*own, *alike])
        matched = next((each for each in readings if self.is_right(variable, each)), None)
        renamed = matched is not None and matched not in own and self.lines.is_renaming(variable)
        if own and renamed and not self.serves(variable, matched, returned):
            return self.settle(variable, own[0], "wrong", False)
        if matched is not None and (matched in own or matched not in self.pinned.values()):
            return self.settle(variable, matched, "right", True)
        counts = {
            place: self.borne_out(variable, place, returned)
            for place in (own if matched else readings)
        }
        best = max(counts, key=lambda place: counts[place], default=None)
        if best is not None and counts[best]:
            return self.settle(variable, best, "wrong", True)
        if matched is not None:
            return self.settle(variable, matched, "right", True)
        if own and not self.is_part(variable, own[0]):
            self.settle(variable, own[0], "wrong", False)
        return None

    def fits(self, variable: Variable, place: str) -> bool:
        return bool(np.shape(self.lines.value(variable)) == np.shape(self.run.values[place]))

    def borne_out(self, variable: Variable, place: str, returned: Mapping[Variable, str]) -> int:
        """How many lines made from this one are right because it is a gradient of the place."""
        count = 0
        claiming = {each for each in self.lines.variables if self.claims.of(each)}
        for user in self.lines.users(variable, {*self.pinned, *claiming, variable}):
            wanted = [returned[user]] if user in returned else self.claims.of(user)
            for other in () if self.lines.is_renaming(user) else wanted:
                if place not in self.ahead[other] or not self.fits(user, other):
                    continue
                if not self.is_right(user, other):
                    self.pinned[variable] = place
                    count += self.judged(user, other) == "right"
                    del self.pinned[variable]
        return count

    def serves(
        self, variable: Variable, place: str | None, returned: Mapping[Variable, str]
    ) -> bool:
        """Whether no result made from this one is wrong while it is a gradient of the place."""
        pinned = {**self.pinned, **({variable: place} if place is not None else {})}
        users = [each for each in self.lines.users(variable, pinned) if each in returned]
        return all(self.is_right(user, returned[user]) for user in users)

    def is_part(self, variable: Variable, place: str) -> bool:
        """Whether this is a summand of what is the gradient of the place."""
        users = self.lines.users(variable, {**self.pinned, variable: place})
        return any(self.fits(user, place) and self.is_right(user, place) for user in users)

    # Numbers

    def cuts(self, variable: Variable, place: str, number: int) -> dict[str, Any]:
        """The gradients that this one is made from, by their places."""
        return {
            self.pinned[other]: self.all_lines[number].value(other)
            for other in self.lines.sources(variable, self.pinned)
            if other in self.pinned and self.pinned[other] != place
        }

    def is_right(self, variable: Variable, place: str) -> bool:
        return self.judged(variable, place) == "right"

    def judged(self, variable: Variable, place: str, **settings: Any) -> Verdict:
        """<gradient, v> against the derivative along a random direction v at the place."""
        found = np.asarray(self.lines.value(variable))
        value = np.asarray(self.run.values[place])
        if found.shape != value.shape or found.size == 0:
            return "wrong"
        f, noise = self.contraction(variable, place, 0, settings)
        draw = self.rng.standard_normal(value.shape)
        direction = np.where(np.isfinite(value), draw, 0.0)
        derivative = directional(f, {place: value}, {place: direction}, noise=noise)
        ours = float(np.sum(found * direction))
        size = max(float(np.sqrt(np.sum((found * direction) ** 2))), abs(derivative.value))
        if not derivative.bound <= _VAGUE * size:
            return "undecided"
        within = abs(ours - derivative.value) <= derivative.bound + _SLACK * size
        return "right" if within else "wrong"

    def gradient(
        self, variable: Variable, place: str, number: int, **settings: Any
    ) -> tuple[np.ndarray, float]:
        """What the variable should be in one of the runs, and the bound of its error.

        NaN but for some hundred elements.
        """
        value = np.asarray(self.run.values[place])
        positions = sorted(self.sample.permutation(value.size)[:_ELEMENTS])
        f, noise = self.contraction(variable, place, number, settings)
        right, bound = elementwise(f, {place: value}, place, positions=positions, noise=noise)
        return right, float(np.max(bound[np.isfinite(right)], initial=0.0))

    def contraction(
        self, variable: Variable, place: str, number: int, settings: Mapping[str, Any]
    ) -> tuple[Callable[[Mapping[str, Any]], float], float]:
        """What the variable should be the gradient of, and the rounding in that."""
        cuts, dy = self.cuts(variable, place, number), self.dys[number]
        return self.run.contraction(place, cuts, dy, **settings), self.run.noise(cuts, dy)

    def step(self, variable: Variable) -> Step:
        verdict, certain = self.verdicts[variable]
        place = self.pinned[variable]
        reached = self.lines.reached(variable)
        step = Step(
            self.label(variable),
            self.claims.name(place),
            self.lines.line(variable),
            verdict,
            certain,
            tuple(self.gradients[i] for i in reached if i in self.gradients),
        )
        if verdict != "wrong":
            return step
        gradients = [self.gradient(variable, place, number) for number in range(len(self.dys))]
        found = tuple(np.asarray(each.value(variable)) for each in self.all_lines)
        function, runs = self.lines.alone(variable, self.pinned, self.all_lines)
        return replace(
            step,
            found=found,
            expected=tuple(right for right, _ in gradients),
            bounds=tuple(bound for _, bound in gradients),
            function=function,
            runs=runs,
            cotangents=tuple(self.cotangent(variable, place, i) for i in range(len(self.dys))),
            paths=self.paths(variable, place, found) if certain else (),
        )

    def label(self, variable: Variable) -> str:
        if variable.name.isdecimal():
            return f"d{self.gradients.get(int(variable.name), variable.name)}"
        return variable.name

    def cotangent(self, variable: Variable, place: str, number: int) -> Any:
        """The one gradient of the place's shape that the variable is made from; else dy."""
        shape = np.shape(self.run.values[place])
        cuts = self.cuts(variable, place, number).values()
        alike = [each for each in cuts if np.shape(each) == shape]
        return alike[0] if len(alike) == 1 else self.dys[number]

    def paths(
        self, variable: Variable, place: str, found: tuple[Any, ...]
    ) -> tuple[Explanation, ...]:
        """What a wrong path through the forward would have made of the variable."""

        def gradient(draw: Draw, **settings: Any) -> Any:
            (name,) = draw.found
            number = next(i for i, each in enumerate(found) if each is draw.found[name])
            return self.gradient(variable, place, number, **settings)[0]

        def screen(**settings: Any) -> bool:
            return self.judged(variable, place, **settings) == "right"

        names = {at: self.label(other) for other, at in self.pinned.items()}
        words = {
            each: f"{said} ({names[each]})" if each in names and each != place else said
            for each, said in self.run.words.items()
        }
        return tuple(of_paths(self.run, place, words, gradient, screen))
