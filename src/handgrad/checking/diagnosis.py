"""Explanations of a wrong gradient, tried until one reproduces its numbers: the wrong term.

Where the op is known, its additive terms are fitted to what was returned, and every single edit of
its backward is tried, beside the general hypotheses. An explanation must hold on every draw; of
those that do, the simplest is reported. One by which a gradient would be wrong that is right comes
after those by which none would.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache, cached_property, partial
from itertools import chain, takewhile
from typing import Any, Final

import numpy as np

from handgrad.checking.attempts import Inapplicable, attempt, attempted
from handgrad.checking.element_hypotheses import of_elements
from handgrad.checking.hypotheses import Draw, Explanation, explains, general
from handgrad.checking.kinds import EDITS
from handgrad.checking.report import NO_CAUSE, RIVAL, Fault
from handgrad.checking.trial import close
from handgrad.checking.work import HYPOTHESIS, Work
from handgrad.program import Execution, Node, edits, reachable
from handgrad.program.edits import Edit
from handgrad.program.terms import Term, additive_terms

#: A fitted coefficient this close to a whole number or a half is meant to be it.
_NEAR: Final = 1e-6
#: Of the size of a gradient: what an explanation may leave unexplained.
_ROUNDING: Final = 1e-3
#: The same as a part of what is wrong.
_LEFT: Final = 0.1
#: An explanation that would spoil a gradient that is right costs so much more: as much as lies
#: between the usual ones and the contrived.
_SPOILS: Final = 1.0


def diagnose(
    wrong: tuple[str, ...],
    draws: tuple[Draw, ...],
    gradients: tuple[str, ...],
    situation: str,
    work: Work,
) -> list[Fault]:
    """One fault for every wrong gradient, as far as the work goes."""
    op = None if draws[0].op_run is None else EditedBackward(draws, wrong, gradients)
    faults = []
    for name in wrong:
        sources = chain(
            attempted(general(name, draws)),
            attempted(of_elements(name, draws)),
            [] if op is None else chain(op.fits(name), [op.edited(name)]),
        )
        faults.append(best_fault(name, sources, draws, situation, work))
    return faults


def explained_exception(error: BaseException | None, run: Execution) -> tuple[Edit, str] | None:
    """The one edit of the right backward that raises just this, and its description."""
    for edit in sorted(edits.edits(run.program), key=lambda each: EDITS[each.kind].cost):
        try:
            edit.results(run)
        except Exception as other:
            if type(other) is type(error) and str(other) == str(error):
                return edit, EDITS[edit.kind].phrase.format(edit.part)
    return None


def best_fault(
    name: str,
    sources: Iterable[Iterable[Explanation]],
    draws: tuple[Draw, ...],
    situation: str,
    work: Work,
) -> Fault:
    """The simplest explanation that holds, and how sure it is.

    Here alone explanations are tried: one that raises, or a source of them that does, is left out.
    """
    every = (each for source in attempted(sources) for each in attempted(source))
    elements = sum(map(np.size, draws[0].arrays.values()))
    candidates = takewhile(lambda _: not work.over(), every)
    holding: list[Explanation] = []
    for candidate in sorted(candidates, key=lambda each: each.cost):
        if (holding and candidate.cost > holding[0].cost + 0.5) or work.over():
            break
        work.take(HYPOTHESIS, elements=elements)
        held = attempt(partial(_held, candidate, name, draws), None)
        if held is not None:
            holding = sorted([*holding, held], key=lambda each: each.cost)
    if not holding and np.shape(draws[0].found[name]) != draws[0].right[name].shape:
        shapes = np.shape(draws[0].found[name]), draws[0].right[name].shape
        message = f"d{name} has shape {shapes[0]}; allowed: {shapes[1]}, the shape of {name}"
        return Fault(name, "wrong shape", "", message, 1.0, situation)
    if not holding:
        error = _relative_error(draws[0], name)
        message = f"d{name}: wrong by {error:.2g} of its size; {NO_CAUSE}"
        return Fault(name, "unknown", "", message, 0.0, situation)
    best = holding[0]
    residual = max(_residual(draw, name, best.predict(draw)) for draw in draws)
    rivals = [
        each
        for each in holding[1:]
        if (each.kind, each.term.lstrip("−")) != (best.kind, best.term.lstrip("−"))
        and each.cost < best.cost + 0.3
    ]
    message = f"d{name}: {best.phrase}; residual {residual:.0e}"
    if rivals:
        message += f"{RIVAL}{rivals[0].phrase})"
    alternatives = tuple((each.kind, each.term) for each in rivals[:1])
    sure = 1.0 / (1 + len(rivals))
    return Fault(name, best.kind, best.term, message, sure, situation, alternatives)


def _held(candidate: Explanation, name: str, draws: tuple[Draw, ...]) -> Explanation | None:
    """The explanation at its cost if it holds, else None.

    What is left by it has to be rounding, however little is known of what is right.
    """
    if not explains(candidate, name, draws):
        return None
    for draw in draws:
        left = _residual(draw, name, candidate.predict(draw))
        if not left <= min(_ROUNDING, _LEFT * _relative_error(draw, name)):
            return None
    spoils = candidate.spoils()
    return replace(candidate, cost=candidate.cost + _SPOILS) if spoils else candidate


def _relative_error(draw: Draw, name: str) -> float:
    found, right = np.asarray(draw.found[name]), draw.right[name]
    if found.shape != right.shape:
        return float("inf")
    size = np.nanmax(np.abs(right), initial=1e-300)
    return float(np.nanmax(np.abs(found - right), initial=0.0) / size)


def _residual(draw: Draw, name: str, predicted: Any) -> float:
    expected = np.asarray(draw.found[name])
    size = max(np.nanmax(np.abs(expected), initial=0.0), 1e-300)
    return float(np.nanmax(np.abs(predicted - expected), initial=0.0) / size)


class EditedBackward:
    """The op's own backward with its edits."""

    def __init__(
        self, draws: tuple[Draw, ...], wrong: tuple[str, ...], gradients: tuple[str, ...]
    ) -> None:
        self.draws = draws
        self.gradients = gradients
        self.rights = [name for name in gradients if name not in wrong]
        self.run = draws[0].op_run
        self._results = cache(self._changed)

    def position(self, name: str) -> int:
        """The position of a gradient in the result, which has None for inputs left out."""
        assert self.run is not None
        returned = self.run.program.results
        given = [i for i, each in enumerate(returned) if each is not None]
        position = self.gradients.index(name)
        return given[position] if len(given) == len(self.gradients) else position

    def edited(self, name: str) -> Iterator[Explanation]:
        """The explanations of a gradient by one edit."""
        assert self.run is not None
        if self.position(name) < len(self.run.program.results):
            yield from (self._by_edit(name, number) for number in range(len(self.edits)))

    def _by_edit(self, name: str, number: int) -> Explanation:
        """The explanation of a gradient by one edit."""
        edit, position = self.edits[number], self.position(name)
        fault = EDITS[edit.kind]

        def predict(draw: Draw) -> Any:
            return self._results(number, _index(self.draws, draw))[position]

        phrase, spoils = fault.phrase.format(edit.part), partial(self._spoils, number)
        return Explanation(edit.kind, edit.part, phrase, fault.cost, predict, spoils=spoils)

    def _spoils(self, number: int) -> bool:
        """Return whether an edit changes a gradient that is right."""
        draw = self.draws[0]
        places = {name: self.position(name) for name in self.rights}
        results = self._results(number, 0)
        return not all(
            close(results[i], draw.found[name], draw.dy)
            for name, i in places.items()
            if i < len(results)
        )

    @cached_property
    def edits(self) -> list[Edit]:
        assert self.run is not None
        parts = edits.sources(self.run.program)
        return [edit for part in attempted(parts) for edit in attempted(part)]

    def _changed(self, number: int, draw_number: int) -> tuple[Any, ...]:
        """All results of a draw with an edit made.

        Raises Inapplicable where the program does not run with them.
        """
        run = self.draws[draw_number].op_run
        assert run is not None
        try:
            return self.edits[number].results(run)
        except Exception as error:  # operands that one of its operations does not take
            raise Inapplicable from error

    def fits(self, name: str) -> Iterator[Iterator[Explanation]]:
        """The additive terms of a gradient, fitted by least squares, for each depth of terms."""
        return (self._fitted(name, depth) for depth in (1, 2, 3))

    def _fitted(self, name: str, depth: int) -> Iterator[Explanation]:
        """The terms of one depth, of which the coefficients say what became of each."""
        assert self.run is not None
        results, position = self.run.program.results, self.position(name)
        if position >= len(results):
            return
        goal = np.asarray(self.draws[0].found[name])
        terms = additive_terms(results[position], depth=depth)
        values = [self._value(term, self.draws[0], goal.shape) for term in terms]
        if any(value is None for value in values):
            return
        coefficients = _least_squares(values, goal)
        if coefficients is not None:
            yield from self._of_fit(terms, coefficients, goal.shape, depth)

    def _value(self, term: Term, draw: Draw, shape: tuple[int, ...]) -> np.ndarray | None:
        run = draw.op_run
        assert run is not None
        try:
            value = np.asarray(term.value(run), dtype=np.float64)
            return np.broadcast_to(value, shape)
        except Exception:  # a term that does not run without the others
            return None

    def _of_fit(
        self,
        terms: list[Term],
        coefficients: np.ndarray,
        shape: tuple[int, ...],
        depth: int,
    ) -> Iterator[Explanation]:
        rounded = np.where(
            np.abs(2 * coefficients - np.round(2 * coefficients)) < _NEAR,
            np.round(2 * coefficients) / 2,
            coefficients,
        )
        changed = [i for i, value in enumerate(rounded) if abs(value - 1.0) > _NEAR]
        if not changed or len(changed) == len(terms):
            return  # nothing, or everything: the whole is scaled
        fit = ", ".join(f"{value + 0.0:.2f}".replace("-", "−") for value in rounded)
        became = [_became(terms[i].label, float(rounded[i])) for i in changed]
        kinds = {kind for kind, _ in became}
        kind = kinds.pop() if len(kinds) == 1 else "term scaled"
        nice = all(value in (-1.0, 0.0, 0.5, 2.0) for value in rounded[changed])
        cost = (1.0 if nice else 1.8) + 0.8 * (len(changed) - 1) + 0.01 * depth

        def spoils() -> bool:
            return any(not terms[i].opened.isdisjoint(self._behind_rights) for i in changed)

        def predict(draw: Draw) -> Any:
            values = [self._value(term, draw, shape) for term in terms]
            pairs = zip(rounded, values, strict=True)
            return sum(c * value for c, value in pairs if value is not None)

        yield Explanation(
            kind,
            ", ".join(terms[i].label for i in changed),
            f"{' and '.join(phrase for _, phrase in became)} (fit {fit})",
            cost,
            predict,
            spoils=spoils,
        )

    @cached_property
    def _behind_rights(self) -> set[Node]:
        """The nodes that the gradients that are right are made of."""
        assert self.run is not None
        results = self.run.program.results
        places = [self.position(name) for name in self.rights]
        return reachable(tuple(results[i] for i in places if i < len(results)))


def _index(draws: tuple[Draw, ...], draw: Draw) -> int:
    return next(i for i, each in enumerate(draws) if each is draw)


def _least_squares(values: list[Any], goal: np.ndarray) -> np.ndarray | None:
    """The coefficients of the terms, if they are determined."""
    known = np.isfinite(goal)
    columns = np.stack([value[known] for value in values], axis=-1)
    sizes = np.sqrt(np.sum(columns**2, axis=0))
    if not len(columns) or not np.isfinite(columns).all() or (sizes == 0).any():
        return None
    solution, _, rank, _ = np.linalg.lstsq(columns / sizes, goal[known], rcond=1e-8)
    if rank < columns.shape[1]:
        return None
    return np.asarray(solution / sizes)


def _became(label: str, coefficient: float) -> tuple[str, str]:
    """The kind and the phrase of the fault that gives a term this coefficient."""
    match coefficient:
        case -1.0:
            return "wrong sign", f"term {label} has the wrong sign"
        case 0.0:
            return "term missing", f"term {label} is missing"
        case 2.0:
            return "term doubled", f"term {label} counts twice"
    return "term scaled", f"term {label} is multiplied by {coefficient:.6g}"
