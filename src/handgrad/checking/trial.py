"""One run of forward and backward at one point: can the results be judged, and are they right?"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from handgrad.checking.given import entries_of
from handgrad.checking.report import Fault, GradientRow
from handgrad.checking.sizes import misfit
from handgrad.checking.tensors import as_values
from handgrad.differences.directional import (
    KINK,
    NOT_FINITE,
    complex_step,
    directional,
    elementwise,
)
from handgrad.forward_backward import ForwardBackward
from handgrad.seeding import seeded

Arrays = Mapping[str, np.ndarray]

#: Central differences have to be this good, relative to the terms, to vouch for an imaginary step.
_SHARP: Final = 1e-3

#: Of the largest element: one that differences know less well is not compared with.
_WELL_KNOWN: Final = 1e-4


class TargetExit(Exception):  # noqa: N818  (it stands for what was raised)
    """Stands for a raised object that is no Exception, such as SystemExit; its cause."""


class TrialFault(Exception):  # noqa: N818  (a finding, not an error)
    """The run cannot be judged further; `fault` says why.

    Its sentence is made when it is asked for: of a thousand changes that raise nobody reads any.
    """

    def __init__(self, fault: Callable[[], Fault]) -> None:
        super().__init__()
        self._made = fault

    @cached_property
    def fault(self) -> Fault:
        return self._made()

    def __str__(self) -> str:
        return self.fault.message


@dataclass(frozen=True)
class TrialRun:
    """Forward and backward at one point, with what came back, by name of the input."""

    arrays: Arrays
    y: Any
    cache: Any
    dy: Any
    gradients: dict[str, Any]


def leaves(nested: Any) -> Iterator[np.ndarray]:
    """The arrays in nested tuples, or the one array."""
    if isinstance(nested, tuple | list):
        for part in nested:
            yield from leaves(part)
    elif nested is not None:
        yield np.asarray(nested)


def like_nested(nested: Any, change: Callable[[np.ndarray], Any]) -> Any:
    """The same nesting with every array changed."""
    if isinstance(nested, tuple | list):
        return tuple(like_nested(part, change) for part in nested)
    return None if nested is None else change(np.asarray(nested))


def same_outputs(one: Any, other: Any, *, rtol: float, atol: float) -> bool:
    """Return whether two outputs, arrays or nested tuples of them, are equal but for rounding."""
    found, expected = list(leaves(one)), list(leaves(other))
    return [a.shape for a in found] == [b.shape for b in expected] and all(
        np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
        for a, b in zip(found, expected, strict=True)
    )


def run(
    functions: ForwardBackward,
    arrays: Arrays,
    rng: np.random.Generator,
    *,
    dy: Any = None,
) -> TrialRun:
    """Forward, a random cotangent unless `dy` is given, backward.

    Raises TrialFault where one of them raises or returns something of the wrong form.
    """
    y, cache = forward(functions, arrays)
    dy = random_like(y, rng) if dy is None else dy
    kept = like_nested(dy, np.array)  # should backward write into it
    return TrialRun(arrays, y, cache, kept, backward(functions, dy, cache))


def random_like(y: Any, rng: np.random.Generator) -> Any:
    """A cotangent that no two elements of y share; 0 for outputs that are no floats."""

    def draw(array: np.ndarray) -> np.ndarray:
        values = np.asarray(rng.standard_normal(array.shape))
        return values.astype(array.dtype) if array.dtype.kind == "f" else np.zeros_like(values)

    return like_nested(y, draw)


def forward(functions: ForwardBackward, arrays: Arrays) -> tuple[Any, Any]:
    """Forward on copies of the arrays, in case the target writes into them."""
    return forward_on(functions, {name: np.array(arrays[name]) for name in functions.inputs})


def forward_on(functions: ForwardBackward, arrays: Arrays) -> tuple[Any, Any]:
    """Forward on these very arrays."""
    try:
        result: Any = functions.forward(*(arrays[name] for name in functions.inputs))
    except Exception as error:
        raise TrialFault(partial(raised, "forward", error)) from error
    if not isinstance(result, tuple) or len(result) != 2:
        message = f"forward returns {_form(result)}; allowed: (y, cache)"
        raise TrialFault(partial(Fault, "", "wrong count", "", message, 1.0, judged=False))
    try:
        kinds = {each.dtype.kind for each in leaves(result[0])}
    except ValueError:  # a list of rows of different lengths
        kinds = {"O"}
    if not kinds or not kinds <= set("fiub"):
        message = f"forward returns y as {_form(result[0])}; allowed: arrays of numbers"
        raise TrialFault(partial(Fault, "", "wrong type", "", message, 1.0, judged=False))
    return result


def backward(functions: ForwardBackward, dy: Any, cache: Any) -> dict[str, Any]:
    try:
        found = functions.backward(dy, cache)
    except Exception as error:
        raise TrialFault(partial(raised, "backward", error)) from error
    names = functions.gradients
    several = found if isinstance(found, tuple | list) else (found,)
    if len(several) != len(names):
        listed = ", ".join(names)
        message = (
            f"backward returns {len(several)} gradient{'s' * (len(several) != 1)}; "
            f"allowed: {len(names)}, for {listed}, in this order"
        )
        raise TrialFault(partial(Fault, "", "wrong count", "", message, 1.0))
    return dict(zip(names, several, strict=True))


def in_order(
    functions: ForwardBackward, shapes: Mapping[str, tuple[int, ...]], found: Any
) -> Sequence[Any]:
    """The gradients in the order of `functions.gradients`.

    They may come back by name, for every input instead of those of floats alone, for those but
    single numbers, which are constants then, or as a list of the rows of one.
    """
    names, inputs = (
        functions.gradients,
        [key for key in functions.inputs if key not in functions.parameters],
    )
    if isinstance(found, Mapping):
        keys = entries_of(found, {name: shapes[name] for name in names if name in shapes})
        return [found[keys[name]] for name in names if name in keys]
    if isinstance(found, list) and len(names) == 1:
        whole = _as_array(found)
        if np.shape(whole) == shapes[names[0]] and isinstance(whole, np.ndarray):
            return [whole]
    several = list(found) if isinstance(found, tuple | list) else [found]
    arrays = [name for name in names if shapes[name]]
    if len(several) == len(names) or functions.parameters:
        pass
    elif len(several) == len(inputs):
        several = [each for key, each in zip(inputs, several, strict=True) if key in names]
    elif len(several) == len(arrays):
        given = dict(zip(arrays, several, strict=True))
        several = [given.get(name) for name in names]
    return [_as_array(each) if isinstance(each, list) else each for each in several]


def _as_array(values: list[Any]) -> Any:
    """Lists of numbers as an array; other lists stay."""
    try:
        array = np.asarray(values)
    except ValueError:
        return values
    return array if array.dtype.kind in "fiub" else values


def guarded(
    functions: ForwardBackward, arrays: Arrays, rows: Collection[str] = ()
) -> ForwardBackward:
    """The same, each exception of its own an Exception, and its gradients in order.

    An interrupt by the user remains one. What forward draws, as dropout does, is the same in every
    call, unless it has a generator of its own that nothing puts back. Where its first call draws
    nothing, the generators are left alone from then on. Leading axes of one that the gradient
    of one of `rows` lacks are put back, and its notes say so.
    """

    def kept(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            try:
                return function(*args)
            except (Exception, KeyboardInterrupt):
                raise
            except BaseException as error:
                raise TargetExit from error

        return call

    shapes = {name: np.shape(array) for name, array in arrays.items()}
    notes = list(functions.notes)

    def backward(dy: Any, cache: Any) -> tuple[Any, ...]:
        # The cotangent of a sum is a number, which `dout *= 2` leaves alone.
        dy = dy[()] if is_number and isinstance(dy, np.ndarray) else dy
        found = [*map(as_values, in_order(functions, shapes, functions.backward(dy, cache)))]
        if len(found) != len(functions.gradients):
            return tuple(found)
        return tuple(
            _whole(each, name, shapes[name], notes) if name in rows else each
            for name, each in zip(functions.gradients, found, strict=True)
        )

    draws, is_number, sums = True, False, any(shapes.values())

    def forward(*given: Any) -> Any:
        nonlocal draws, is_number
        if draws:
            with seeded(0) as has_drawn:
                found = functions.forward(*given)
                draws = has_drawn()
        else:
            found = functions.forward(*given)
        is_number = sums and isinstance(found, tuple) and isinstance(found[0], float)
        return found

    return replace(functions, forward=kept(forward), backward=kept(backward), notes=notes)


def _whole(found: Any, name: str, shape: tuple[int, ...], notes: list[str]) -> Any:
    """A gradient with the leading axes of one that it lacks, which an update broadcasts."""
    given = getattr(found, "shape", () if isinstance(found, float) else shape)
    lacking = len(shape) - len(given)
    if lacking <= 0 or shape != (1,) * lacking + given:
        return found
    note = f"d{name} is of shape {given} for {name} of {shape}, which broadcasting makes the same"
    if note not in notes:
        notes.append(note)
    return np.reshape(found, shape)


def raised(what: str, error: BaseException) -> Fault:
    """The sentence for an exception of the target's own."""
    if isinstance(error, TargetExit) and error.__cause__ is not None:
        error = error.__cause__
    first = misfit(error) or (str(error).splitlines() or ["no message"])[0] or "no message"
    message = f"{what} raises {type(error).__name__}: {first}{_line_of(error)}"
    return Fault("", "raises", "", message, 1.0, judged=False)


def _line_of(error: BaseException) -> str:
    """The line of the user's code that was reached last; none of ours, which says nothing."""
    ours = str(Path(__file__).parents[1])
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        # A cell of a notebook has lines, but no file.
        if "site-packages" not in frame.filename and frame.line
    ]
    own = [frame for frame in frames if not frame.filename.startswith(ours)]
    below = frames[frames.index(own[-1]) :] if own else frames
    # The user's own function is below ours, and the script or test that called us above.
    is_theirs = bool(own) and any(each.filename.startswith(ours) for each in frames[: -len(below)])
    frame = own[-1] if is_theirs else frames[-1] if frames else None
    if frame is None or frame.filename.startswith(ours):
        return ""
    file = Path(frame.filename)
    return f" (line {frame.lineno} of {file.name})" if file.is_file() else f" (line {frame.lineno})"


def _form(value: Any) -> str:
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    name = type(value).__name__
    return f"a{'n' * (name[:1].lower() in set('aeiou'))} {name}"


def not_finite(done: TrialRun) -> list[Fault]:
    """A forward that gives NaN or infinity on finite inputs: its gradient means nothing."""
    finite_inputs = all(np.isfinite(array).all() for array in done.arrays.values())
    for y in leaves(done.y):
        bad = int(y.size - np.isfinite(y).sum()) if y.dtype.kind == "f" else 0
        if bad and finite_inputs:
            message = f"forward gives NaN or infinity at {bad} of {y.size} elements of y"
            return [Fault("", "not finite", "", message, 1.0, judged=False)]
    return []


def other_types(done: TrialRun) -> list[Fault]:
    """Gradients of floats that are not of the input's type, which NumPy would convert."""
    remarks = []
    for name, found in done.gradients.items():
        if found is None:
            continue
        dtype, wanted = np.asarray(found).dtype, np.asarray(done.arrays[name]).dtype
        if dtype != wanted and dtype.kind == "f":
            message = f"d{name} is of {dtype}, {name} of {wanted}"
            remarks.append(Fault(name, "wrong type", "", message, 1.0))
    return remarks


def changes_nothing(
    functions: ForwardBackward, done: TrialRun, name: str, rng: np.random.Generator
) -> bool:
    """Return whether the derivative along a random direction of an input is 0."""
    array = np.asarray(done.arrays[name], dtype=np.float64)
    direction = np.asarray(rng.standard_normal(array.shape))
    value = contraction(functions, done)
    found = directional(value, dict(done.arrays), {name: direction}, noise=noise(functions, done))
    return bool(abs(found.value) <= found.bound and found.bound <= 1e-6 * max(magnitude(done), 1.0))


def malformed(functions: ForwardBackward, done: TrialRun) -> list[Fault]:
    """Gradients that cannot be compared: no numbers, or NaN. Shapes are judged later."""
    faults = []
    finite = all(np.isfinite(each).all() for each in leaves(done.y))
    for name, found in done.gradients.items():
        if not isinstance(found, np.ndarray | np.generic | float):
            message = f"d{name} is {_form(found)}; allowed: an array of the shape of {name}"
            if found is None:
                message = f"d{name} is None; allowed: an array of the shape of {name}"
            faults.append(Fault(name, "wrong type", "", message, 1.0))
            continue
        gradient, array = np.asarray(found), np.asarray(done.arrays[name])
        if gradient.dtype.kind != "f":
            message = f"d{name} is of {gradient.dtype}; allowed: {array.dtype}, as {name}"
            faults.append(Fault(name, "wrong type", "", message, 1.0))
        elif not np.isfinite(gradient).all() and finite:
            bad = int(gradient.size - np.isfinite(gradient).sum())
            message = (
                f"d{name} is not finite at {bad} of {gradient.size} elements, "
                "though forward and the cotangent are finite"
            )
            faults.append(Fault(name, "not finite", "", message, 1.0))
    return faults


def contraction(
    functions: ForwardBackward, done: TrialRun
) -> Callable[[Mapping[str, np.ndarray]], Any]:
    """The number <y, dy> as a function of the inputs: what the gradients are gradients of."""

    def value(point: Mapping[str, np.ndarray]) -> Any:
        inputs = [np.array(point[name]) for name in functions.inputs]
        try:
            y, _ = functions.forward(*inputs)
        except Exception:
            if any(map(np.iscomplexobj, inputs)):
                raise
            return np.nan  # an edge of what forward takes lies beside the point
        total = _product(y, done.dy)
        return total if np.iscomplexobj(total) else float(total)

    return value


def contracted(done: TrialRun) -> float:
    """<y, dy>."""
    return float(_product(done.y, done.dy))


def _product(y: Any, dy: Any) -> Any:
    return sum(np.sum(a * b) for a, b in zip(leaves(y), leaves(dy), strict=True))


def magnitude(done: TrialRun) -> float:
    """The size of the contraction's terms: the root of the sum of their squares."""
    pairs = zip(leaves(done.y), leaves(done.dy), strict=True)
    total = sum(float(np.sqrt(np.sum((y * dy) ** 2, dtype=np.float64))) for y, dy in pairs)
    return total if np.isfinite(total) else 0.0


def noise(functions: ForwardBackward, done: TrialRun) -> float:
    """The error of the contraction by rounding in y alone, as its terms are large and cancel."""
    halves = (float(np.finfo(y.dtype).eps) for y in leaves(done.y) if y.dtype == np.float16)
    return 4.0 * max(unit_of(functions), *halves, 0.0) * magnitude(done)


def unit_of(functions: ForwardBackward) -> float:
    """The distance from 1 to the next number, in the type that backward computes in."""
    return float(np.finfo(np.float64 if functions.takes_float64 else np.float32).eps)


def directional_row(
    functions: ForwardBackward,
    done: TrialRun,
    name: str,
    rng: np.random.Generator,
    counted: tuple[np.ndarray, np.ndarray] | None = None,
    listen: Callable[[ForwardBackward, TrialRun, str, np.ndarray], tuple[float, float]]
    | None = None,
) -> GradientRow:
    """<gradient, v> against the derivative along a random direction v of this input alone.

    `counted` is a bound of the rounding within backward, where it has been counted; `listen` gives
    the noise of <y, dy> and of <gradient, v>, where that is to be heard from the target itself.
    """
    array = np.asarray(done.arrays[name], dtype=np.float64)
    found = np.asarray(done.gradients[name], dtype=np.float64)
    if found.shape != array.shape:
        message = f"shape {found.shape}, not {array.shape}"
        return GradientRow(name, float("inf"), 0.0, "wrong", message)
    if array.size == 0:
        return GradientRow(name, 0.0, 0.0, "right", "nothing in it")
    direction = np.asarray(rng.standard_normal(array.shape))
    value, point = contraction(functions, done), dict(done.arrays)
    of_y, of_gradient = (0.0, 0.0) if listen is None else listen(functions, done, name, direction)
    expected = directional(value, point, {name: direction}, noise=max(of_y, noise(functions, done)))
    ours = float(np.sum(found * direction))
    size = max(float(np.sqrt(np.sum((found * direction) ** 2))), abs(expected.value))
    # If forward takes complex numbers, their step has no truncation and hardly any rounding. At
    # a kink it is one-sided, and whatever drops the imaginary part there would pass unseen.
    if expected.method != KINK and expected.bound <= _SHARP * max(size, 1e-6 * magnitude(done)):
        expected = complex_step(value, point, {name: direction}, central=expected) or expected
    rounding = 4.0 * unit_of(functions) * float(np.sqrt(np.sum((found * direction) ** 2)))
    if counted is not None and np.shape(counted[1]) == array.shape:
        rounding += float(np.sum(counted[1] * np.abs(direction)))
    bound = expected.bound + rounding + of_gradient
    scale = max(size, 1e-6 * magnitude(done), 1e-300)  # a gradient of 0 has no size of its own
    error = abs(ours - expected.value)
    if expected.method == NOT_FINITE:
        return GradientRow(name, 0.0, 0.0, "undecided", "forward is not finite beside the point")
    verdict = "right" if error <= bound else "wrong"
    if verdict == "right" and (expected.method == KINK or bound > max(1e-2 * scale, 1e-7)):
        verdict = "undecided"
    return GradientRow(name, error / scale, bound / scale, verdict, expected.method)


def numeric_gradient(
    functions: ForwardBackward, done: TrialRun, name: str, limit: int, rng: np.random.Generator
) -> tuple[np.ndarray, float]:
    """The gradient by central differences, and its error bound.

    At most `limit` elements, drawn at random, are computed; the others are NaN. So are those at a
    kink, of which differences know less than of the rest, unless backward is right on that.
    """
    size = np.asarray(done.arrays[name]).size
    positions = range(size) if size <= limit else sorted(rng.choice(size, limit, replace=False))
    gradient, bounds = elementwise(
        contraction(functions, done),
        dict(done.arrays),
        name,
        positions=positions,
        noise=noise(functions, done),
    )
    known = np.isfinite(gradient)
    largest = float(np.max(np.abs(gradient[known]), initial=0.0))
    sharp = known & (bounds <= _WELL_KNOWN * largest)
    if np.any(gradient[sharp]) and not _agrees(done.gradients[name], gradient, bounds, sharp):
        gradient, known = np.where(sharp, gradient, np.nan), sharp
    return gradient, float(np.max(bounds[known], initial=0.0))


def _agrees(found: Any, gradient: np.ndarray, bounds: np.ndarray, where: np.ndarray) -> bool:
    """Return whether a gradient that was found is the right one on some of the elements."""
    if np.shape(found) != gradient.shape:
        return False
    error = np.abs(np.asarray(found)[where] - gradient[where])
    return bool(np.all(error <= 4.0 * bounds[where] + 1e-9 * size_of(gradient[where])))


def size_of(gradient: Any) -> float:
    return float(np.max(np.abs(np.asarray(gradient)), initial=0.0))


def size_known(right: Any) -> float:
    """The size of what is known: differences at a kink are NaN."""
    right = np.asarray(right)
    return size_of(right[~np.isnan(right)])


def close(found: Any, right: Any, dy: Any, part: float = 1e-9) -> bool:
    """Equal but for the order of sums: this part of the gradient or, where it cancels, of dy."""
    found, right = np.asarray(found), np.asarray(right)
    if found.shape != right.shape:
        return False
    scale = max(size_of(right), 1e-3 * max((size_of(each) for each in leaves(dy)), default=0.0))
    if not np.isfinite(scale):
        return bool(np.allclose(found, right, rtol=part, equal_nan=True))
    return bool(np.all(np.abs(found - right) <= part * scale))
