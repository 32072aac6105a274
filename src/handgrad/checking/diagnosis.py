"""Which term is wrong? Explanations of a wrong gradient, tried until one reproduces its numbers.

Where the op is known: its additive terms are fitted to what was returned, and every single edit of
its backward is tried. Where it is not, but the target's own backward can be read: the same, the
other way round, to find the change that makes it right. Then the general hypotheses. An explanation
must hold on every draw; of those that do, the simplest is told.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

import numpy as np

from handgrad import trees
from handgrad.checking.hypotheses import Draw, Explanation, explains, general
from handgrad.checking.report import Fault

#: How contrived each kind of edit is; less is told first.
_COSTS: Final = {
    "activation derivative forgotten": 1.0,
    "term missing": 1.05,
    "wrong sign": 1.05,
    "mean for sum": 1.1,
    "sum for mean": 1.1,
    "mask forgotten": 1.1,
    "transpose missing": 1.2,
    "factor missing": 1.2,
    "scale missing": 1.2,
    "not reduced": 1.25,
    "gradients swapped": 1.25,
    "operands swapped": 1.3,
    "wrong axis": 1.3,
    "wrong branch": 1.3,
    "function missing": 1.35,
    "scale inverted": 1.4,
    "transposed": 1.4,
    "stale variable": 1.9,
    "transpose inserted": 1.45,
    "factor inserted": 1.5,
    "derivative inserted": 1.55,
    "term inserted": 1.6,
}
_PHRASES: Final = {
    "term missing": "term {} is missing",
    "wrong sign": "term {} has the wrong sign",
    "mean for sum": "a mean stands where {} belongs",
    "sum for mean": "a sum stands where {} belongs",
    "mask forgotten": "the condition {} is forgotten",
    "transpose missing": "{} is not transposed",
    "factor missing": "the factor {} is missing",
    "scale missing": "the scale {} is missing",
    "not reduced": "{} is not taken: the values stay as they are",
    "gradients swapped": "{} come back in each other's place",
    "operands swapped": "the operands of {} are exchanged",
    "wrong axis": "{} is taken along another axis",
    "wrong branch": "the branches of {} are exchanged",
    "function missing": "{} is not applied",
    "scale inverted": "{} multiplies where it should divide, or the other way round",
    "transposed": "{} is transposed and should not be",
    "stale variable": "one variable stands where another belongs: {}",
    "activation derivative forgotten": "the derivative of the activation, in {}, is forgotten",
}
#: The fault of a backward that an edit of this kind puts right.
_OPPOSITES: Final = {
    "term missing": ("extra term", "term {} is too many"),
    "wrong sign": ("wrong sign", "term {} has the wrong sign"),
    "mean for sum": ("sum for mean", "{} should be a mean"),
    "sum for mean": ("mean for sum", "{} should be a sum"),
    "mask forgotten": ("extra factor", "the condition {} does not belong there"),
    "transpose missing": ("transposed", "{} should not be transposed"),
    "factor missing": ("extra factor", "the factor {} is too many"),
    "scale missing": ("extra factor", "the scale {} is too many"),
    "not reduced": ("extra factor", "{} does not belong there: the values are wanted as they are"),
    "gradients swapped": ("gradients swapped", "{} come back in each other's place"),
    "operands swapped": ("operands swapped", "the operands of {} are exchanged"),
    "wrong axis": ("wrong axis", "{} is taken along the wrong axis"),
    "wrong branch": ("wrong branch", "the branches of {} are exchanged"),
    "function missing": ("extra factor", "{} should not be applied"),
    "activation derivative forgotten": ("extra factor", "{} should not be applied"),
    "scale inverted": ("scale inverted", "{} multiplies where it should divide, or vice versa"),
    "transposed": ("transpose missing", "{} should be transposed"),
    "factor inserted": ("factor missing", "the factor {} is missing"),
    "term inserted": ("term missing", "the term {} is missing"),
    "derivative inserted": ("activation derivative forgotten", "the factor {} is forgotten"),
    "transpose inserted": ("transpose missing", "{} should be transposed"),
    "stale variable": ("stale variable", "another variable belongs there: {}"),
}
#: A fitted coefficient this close to a whole number or a half is meant to be it.
_NEAR: Final = 1e-6
#: Explanations tried of one gradient; the contrived ones come last.
_MOST: Final = 2000


def diagnose(
    wrong: tuple[str, ...],
    draws: tuple[Draw, ...],
    *,
    gradients: tuple[str, ...],
    op: trees.Function | None,
    own: trees.Function | None,
    situation: str = "usual",
) -> list[Fault]:
    """One fault for every wrong gradient; `op` and `own` are backwards that could be read."""
    op_edits = _edited(op, draws, "op_trace") if op is not None else None
    own_edits = _edited(own, draws, "own_trace") if own is not None else None
    faults = []
    for name in wrong:
        candidates = [*general(name, draws)]
        if op_edits is not None:
            position = _position(name, draws[0].op_trace, gradients)
            candidates += _fits(name, position, draws, "op_trace")
            candidates += op_edits(position)
        if own_edits is not None:
            position = _position(name, draws[0].own_trace, gradients)
            candidates += _fits(name, position, draws, "own_trace")
            candidates += own_edits(position)
        faults.append(told(name, candidates, draws, situation))
    return faults


def _position(name: str, run: trees.Trace, gradients: tuple[str, ...]) -> int:
    """Where a gradient stands in what a backward returns, with None for inputs left out."""
    returned = run.result if isinstance(run.result, tuple) else (run.result,)
    given = [i for i, each in enumerate(returned) if each is not None]
    position = gradients.index(name)
    return given[position] if len(given) == len(gradients) else position


def explained_exception(
    error: BaseException | None, function: trees.Function, run: trees.Trace
) -> tuple[trees.Edit, str] | None:
    """The one edit of the right backward that raises just this, and what it does in words."""
    arguments = [run.environment[each.name] for each in function.parameters]
    for edit in sorted(trees.edits(function, run), key=lambda each: _COSTS.get(each.kind, 2.0)):
        try:
            trees.run(edit.function, *arguments)
        except Exception as other:
            if type(other) is type(error) and str(other) == str(error):
                return edit, _PHRASES.get(edit.kind, "{}").format(edit.part)
    return None


def told(
    name: str, candidates: list[Explanation], draws: tuple[Draw, ...], situation: str
) -> Fault:
    """The simplest explanation that holds, and how sure it is."""
    holding: list[Explanation] = []
    for candidate in sorted(candidates, key=lambda each: each.cost)[:_MOST]:
        if holding and candidate.cost > holding[0].cost + 0.5:
            break
        if explains(candidate, name, draws):
            holding.append(candidate)
    if not holding and np.shape(draws[0].found[name]) != draws[0].right[name].shape:
        shapes = np.shape(draws[0].found[name]), draws[0].right[name].shape
        message = f"d{name} has shape {shapes[0]}; allowed: {shapes[1]}, the shape of {name}"
        return Fault(name, "wrong shape", "", message, 1.0, situation)
    if not holding:
        error = _relative_error(draws[0], name)
        message = f"d{name}: wrong by {error:.2g} of its size; no explanation that was tried fits"
        return Fault(name, "unknown", "", message, 0.0, situation)
    best = holding[0]
    residual = max(
        _residual(draw, name, best.predict(draw), repairs=best.repairs) for draw in draws
    )
    rivals = [
        each
        for each in holding[1:]
        if each.repairs == best.repairs
        and (each.kind, each.term.lstrip("−")) != (best.kind, best.term.lstrip("−"))
        and each.cost < best.cost + 0.3
    ]
    message = f"d{name}: {best.phrase}; residual {residual:.0e}"
    lines = [each.line for each in holding if each.kind == best.kind and each.line]
    if lines:
        message += f" (line {lines[0]})"
    if rivals:
        message += f" (or, with the same effect here: {rivals[0].phrase})"
    alternatives = tuple((each.kind, each.term) for each in rivals[:1])
    sure = 1.0 / (1 + len(rivals))
    return Fault(name, best.kind, best.term, message, sure, situation, alternatives)


def _relative_error(draw: Draw, name: str) -> float:
    found, right = np.asarray(draw.found[name]), draw.right[name]
    if found.shape != right.shape:
        return float("inf")
    size = np.nanmax(np.abs(right), initial=1e-300)
    return float(np.nanmax(np.abs(found - right), initial=0.0) / size)


def _residual(draw: Draw, name: str, predicted: Any, *, repairs: bool) -> float:
    expected = np.asarray(draw.right[name] if repairs else draw.found[name])
    size = max(np.nanmax(np.abs(expected), initial=0.0), 1e-300)
    return float(np.nanmax(np.abs(predicted - expected), initial=0.0) / size)


def _edited(
    function: trees.Function, draws: tuple[Draw, ...], which: str
) -> Callable[[int], Iterator[Explanation]]:
    """The explanations by one edit of this backward, for the gradient at a position."""
    repairs = which == "own_trace"
    stores = any(
        isinstance(part, trees.Store) for each in function.body for part in trees.walk(each)
    )
    first = getattr(draws[0], which)
    found = trees.edits(function, first)
    if repairs:
        found += trees.insertions(function, first)

    @cache
    def results(number: int, draw_number: int) -> tuple[Any, ...]:
        run = getattr(draws[draw_number], which)
        arguments = [run.environment[each.name] for each in function.parameters]
        if stores:
            arguments = copy.deepcopy(arguments)  # so that every edit starts from the same values
        result = trees.run(found[number].function, *arguments)
        return result if isinstance(result, tuple) else (result,)

    def explanations(position: int) -> Iterator[Explanation]:
        for number, edit in enumerate(found):

            def predict(draw: Draw, number: int = number) -> Any:
                return results(number, _index(draws, draw))[position]

            kind, phrase = edit.kind, _PHRASES.get(edit.kind, "{}")
            cost = _COSTS.get(edit.kind, 2.0)
            if repairs:
                kind, phrase = _OPPOSITES.get(edit.kind, (edit.kind, phrase))
                cost += 0.2
            line = edit.line if repairs else 0
            words = phrase.format(edit.part)
            yield Explanation(kind, edit.part, words, cost, predict, repairs, line)

    return explanations


def _index(draws: tuple[Draw, ...], draw: Draw) -> int:
    return next(i for i, each in enumerate(draws) if each is draw)


def _fits(name: str, position: int, draws: tuple[Draw, ...], which: str) -> Iterator[Explanation]:
    """The additive terms of a backward, fitted by least squares.

    For the op's backward the coefficients say what became of each term; for the target's own they
    say what each would have to be multiplied by.
    """
    repairs = which == "own_trace"
    run = getattr(draws[0], which)
    expressions = trees.gradient_expressions(run)
    if position >= len(expressions):
        return
    goal = np.asarray(draws[0].right[name] if repairs else draws[0].found[name])
    for depth in (1, 2, 3):
        terms = trees.additive_terms(run, expressions[position], depth=depth)
        values = [_value(term, draws[0], which, goal.shape) for term in terms]
        if any(value is None for value in values):
            continue
        coefficients = _least_squares(values, goal)
        if coefficients is None:
            continue
        yield from _fit_explanations(terms, coefficients, which, goal.shape, repairs, depth)


def _value(
    term: trees.AdditiveTerm, draw: Draw, which: str, shape: tuple[int, ...]
) -> np.ndarray | None:
    try:
        value = np.asarray(term.value(getattr(draw, which).environment), dtype=np.float64)
        return np.broadcast_to(value, shape)
    except Exception:  # a term inside a loop has no value of its own
        return None


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


def _fit_explanations(
    terms: list[trees.AdditiveTerm],
    coefficients: np.ndarray,
    which: str,
    shape: tuple[int, ...],
    repairs: bool,
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
    words = [_became(terms[i].label, float(rounded[i]), repairs) for i in changed]
    kinds = {kind for kind, _ in words}
    kind = kinds.pop() if len(kinds) == 1 else "term scaled"
    nice = all(value in (-1.0, 0.0, 0.5, 2.0) for value in rounded[changed])
    cost = (1.0 if nice else 1.8) + 0.8 * (len(changed) - 1) + 0.01 * depth

    def predict(draw: Draw) -> Any:
        values = [_value(term, draw, which, shape) for term in terms]
        return sum(c * value for c, value in zip(rounded, values, strict=True) if value is not None)

    yield Explanation(
        kind,
        ", ".join(terms[i].label for i in changed),
        f"{' and '.join(phrase for _, phrase in words)} (fit {fit})",
        cost + (0.2 if repairs else 0.0),
        predict,
        repairs,
    )


def _became(label: str, coefficient: float, repairs: bool) -> tuple[str, str]:
    """What happened to a term that stands with this coefficient, as a kind and in words."""
    if repairs:
        match coefficient:
            case -1.0:
                return "wrong sign", f"term {label} has the wrong sign"
            case 0.0:
                return "extra term", f"term {label} is too many"
            case 0.5:
                return "term doubled", f"term {label} counts twice"
        return "term scaled", f"term {label} should be multiplied by {coefficient:.6g}"
    match coefficient:
        case -1.0:
            return "wrong sign", f"term {label} has the wrong sign"
        case 0.0:
            return "term missing", f"term {label} is missing"
        case 2.0:
            return "term doubled", f"term {label} counts twice"
    return "term scaled", f"term {label} is multiplied by {coefficient:.6g}"
