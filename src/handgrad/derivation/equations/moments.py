"""Which index every name has on each line of a loop over steps.

A name that a round sets has the index of its step, t. One that a round reads before it sets it, as
a recurrent network reads its state, still has the index before: h_t comes from h_t−1. Against time
that is t + 1; but the gradient of such a state is that of h_t when a round begins, and when it ends
that of h_t−1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from handgrad.derivation.equations.execution import Line
from handgrad.derivation.equations.places import moved
from handgrad.derivation.equations.steps import Steps
from handgrad.derivation.formulas.formula import Formula, Number


@dataclass
class Moments:
    """The index of every name that loops over steps set, on each line of a run.

    `states` are the names that forward carries from step to step, and whether against time;
    `gradients` says which name of backward is the gradient of which. A gradient of anything else
    that is carried, such as one that a weight's gradient is added up in, is of no single step.
    """

    loops: list[Steps]
    lines: tuple[Line, ...]
    #: How many steps there are, for each of the loops.
    sizes: list[Formula]
    states: Mapping[str, bool] = field(default_factory=dict)
    gradients: Mapping[str, str] = field(default_factory=dict)
    #: Names of a round that are a carried one under another name, once that is set.
    same: Mapping[str, str] = field(default_factory=dict)
    #: The gradients that come in of the last states, and which step that is.
    arriving: Mapping[str, Formula] = field(default_factory=dict)

    def steps_at(self, position: int) -> Steps | None:
        """The loop in which a line stands."""
        if position >= len(self.lines):
            return None
        loop = self.lines[position].loop
        return next((each for each in self.loops if each.loop is loop), None)

    def shift_at(self, position: int, name: str) -> int | None:
        """How far the index of a name is from that of the step, before a line."""
        steps = self.steps_at(position)
        if steps is None or name not in steps.names:
            return None
        return self.shift(steps, name, is_set=name in self._set_in_round(steps, position, position))

    def at(self, position: int, step: Formula, *, after: bool = False) -> dict[str, Formula]:
        """The index of every name before a line, or after it, where it stands in step `step`."""
        done = position + 1 if after else position
        found = dict(self.arriving)
        for steps, size in zip(self.loops, self.sizes, strict=True):
            runs = [i for i, each in enumerate(self.lines) if each.loop is steps.loop]
            if steps is self.steps_at(position):
                known = self._set_in_round(steps, position, done)
                ends = {name: (step, name in known) for name in steps.names}
                found |= {
                    name: moved(step, shift)
                    for name, of in self.same.items()
                    if (shift := self.shift(steps, of, is_set=True)) is not None
                }
            elif done <= runs[0]:
                first = size if steps.is_reversed else Number("1")
                ends = dict.fromkeys(steps.carried, (first, False))
            else:
                last = Number("1") if steps.is_reversed else size
                later = set[str]().union(*(each.values for each in self.lines[runs[-1] + 1 : done]))
                ends = dict.fromkeys(steps.names - later, (last, True))
            for name, (place, is_set) in ends.items():
                shift = self.shift(steps, name, is_set=is_set)
                if name not in self.same:
                    found.pop(name, None)
                    if shift is not None:
                        found[name] = moved(place, shift)
        return found

    def shift(self, steps: Steps, name: str, *, is_set: bool = True) -> int | None:
        """How far the index of a name is from that of the step, before or once a round sets it;
        None for what is of no single step."""
        if name not in steps.carried:
            return 0
        if name in self.gradients:
            is_reversed = self.states.get(self.gradients[name])
            if is_reversed is not (not steps.is_reversed):
                return None
            return (1 if is_reversed else -1) if is_set else 0
        if is_set:
            return 0
        return 1 if steps.is_reversed else -1

    def _set_in_round(self, steps: Steps, position: int, done: int) -> set[str]:
        """The names that the round of a line has set when so many lines are done."""
        found: set[str] = set()
        count = self.lines[position].names[steps.counter]
        for line in reversed(self.lines[:done]):
            if line.loop is not steps.loop or line.names[steps.counter] != count:
                break
            found |= set(line.values)
        return found
