"""Inputs made for what a forward contains: one table, from the source to the situations.

A repeated index, a row whose mask is off, a weight that is not one bring bugs to light that the
inputs at hand hide. Each situation changes as little of them as it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np

from handgrad.checking.contents import contents
from handgrad.checking.sample_inputs import Setup
from handgrad.forward_backward import ForwardBackward

Arrays = Mapping[str, np.ndarray]

#: The size of inputs beyond the thresholds of activations, such as the 6 of ReLU6.
_WIDE: Final = 8.0
_INDEXED: Final = frozenset(
    {"index", "take", "take_along_axis", "at", "bincount", "eye", "gather", "embedding"}
    | {"put", "put_along_axis", "index_select", "index_add", "index_add_", "scatter", "scatter_add"}
)
_ORDERED: Final = frozenset(
    {"max", "min", "amax", "amin", "argmax", "argmin", "sort", "argsort", "median", "topk"}
    | {"partition", "argpartition", "quantile", "percentile", "cummax", "max_pool2d"}
)
_BRANCHES: Final = frozenset(
    {"where", "maximum", "minimum", "abs", "absolute", "fabs", "relu", "clip", "compare", "select"}
)
_THRESHOLDS: Final = frozenset({"where", "clip", "compare", "select", "piecewise", "minimum"})
#: Functions that are steep, or not defined, for large numbers.
_BOUNDED: Final = frozenset(
    {"log", "log2", "log10", "log1p", "sqrt", "power", "arccosh", "arcsin", "arccos", "lgamma"}
    | {"gammaln", "exp", "softmax", "cosh", "sinh", "tan", "linalg"}
)
#: Functions of numbers of one sign, or of symmetric matrices: changes of these are not meant.
_ONE_SIGN: Final = frozenset(
    {"log", "log2", "log10", "log1p", "sqrt", "power", "clip", "arccosh", "lgamma", "gammaln"}
)
_SYMMETRIC: Final = frozenset({"cholesky", "eigh", "eigvalsh", "eig", "inv", "solve", "slogdet"})
_PRODUCTS: Final = frozenset({"matmul", "dot", "einsum", "tensordot", "mm", "bmm", "linear"})


@dataclass(frozen=True)
class Situation:
    """Inputs made for one thing that a forward contains.

    `asked_by` are the constructs of which one asks for it, all forwards where it is None;
    `unless` those with which it is not meant. `made` returns the arrays that are changed, none
    where there is nothing to change. Gradients at inputs that are `free` are a choice: they are
    remarked on, not blamed.
    """

    title: str
    asked_by: frozenset[str] | None
    made: Callable[[Arrays, np.random.Generator], Arrays]
    unless: frozenset[str] = frozenset()
    #: Axes have other sizes: it counts only where every gradient has the form of its input.
    resizes: bool = False


def of_source(
    target: Any,
    functions: ForwardBackward,
    arrays: Arrays,
    usual: Setup,
    rng: np.random.Generator,
) -> Iterator[Setup]:
    """The situations that the source of a target asks for, with inputs made from the usual ones."""
    found = contents(target)
    varied = {
        name: x
        for name, x in arrays.items()
        if name in functions.gradients or x.dtype.kind != "f" or _is_mask(name, x)
    }
    for situation in SITUATIONS:
        if situation.asked_by is not None and not situation.asked_by & found:
            continue
        if situation.unless & found:
            continue
        changed = situation.made(varied, rng)
        if not changed:
            continue
        own = iter(name for name in functions.inputs if name not in functions.parameters)
        given = {
            key: changed.get(name := next(own), arrays[name])
            if isinstance(value, np.ndarray)
            else value
            for key, value in usual.arrays.items()
        }
        brought = {name: x for name, x in changed.items() if name in functions.parameters}
        made = replace(
            usual,
            situation=situation.title,
            label="",
            arrays=given,
            comparable=False,
            parameters=brought,
            resizes=situation.resizes,
        )
        yield made


# -- the arrays of each ----------------------------------------------------------------------------


def _floats(arrays: Arrays) -> dict[str, np.ndarray]:
    return {name: x for name, x in arrays.items() if x.dtype.kind == "f" and x.size > 1}


def _is_mask(name: str, x: np.ndarray) -> bool:
    """Booleans, and zeros and ones under the name of a mask."""
    is_binary = bool(np.isin(x, (0, 1)).all()) and "mask" in name.lower()
    return x.dtype.kind == "b" or (is_binary and x.size > 1)


def _repeated(arrays: Arrays, rng: np.random.Generator) -> Arrays:
    """Integers of which every second is that before it; a permutation stays one."""
    changed = {}
    for name, x in arrays.items():
        flat = np.array(x).reshape(-1)
        if x.dtype.kind not in "iu" or flat.size < 2 or _is_mask(name, x):
            continue
        if x.ndim == 1 and np.array_equal(np.sort(flat), np.arange(flat.size)):
            continue
        flat[1::2] = flat[: 2 * (flat.size // 2) : 2]
        changed[name] = flat.reshape(x.shape)
    return {} if all(np.array_equal(arrays[name], x) for name, x in changed.items()) else changed


def _tied(arrays: Arrays, rng: np.random.Generator) -> Arrays:
    """The first floats on a grid so coarse that many of them are equal."""
    for name, x in _floats(arrays).items():
        step = 0.7 * float(np.std(x))
        if step > 0.0 and not _is_mask(name, x):
            return {name: np.round(x / step) * step}
    return {}


def _untied(arrays: Arrays, rng: np.random.Generator) -> Arrays:
    """Floats of which some are equal, each moved a little, in the order that they have."""
    changed = {}
    for name, x in _floats(arrays).items():
        values, counts = np.unique(x, return_counts=True)
        if counts.max() == 1 or len(values) < 3 or _is_mask(name, x):
            continue
        room = 0.4 * float(np.min(np.diff(values)))
        changed[name] = x + room * rng.uniform(-1.0, 1.0, x.shape)
    return changed


def _masked(arrays: Arrays, rng: np.random.Generator) -> Arrays:
    """Masks whose first row is off, and whose second is on."""
    changed = {}
    for name, x in arrays.items():
        if x.ndim >= 2 and len(x) > 1 and _is_mask(name, x):
            rows = np.array(x)
            rows[0], rows[1] = 0, 1
            changed[name] = rows
    return changed


def _uneven(arrays: Arrays, rng: np.random.Generator) -> Arrays:
    """Arrays of one value all over, such as weights of one or a state of zeros, with others."""
    changed = {}
    for name, x in _floats(arrays).items():
        value = float(x.flat[0])
        sums_to_one = x.ndim > 0 and x.shape[-1] > 1 and np.isclose(value * x.shape[-1], 1.0)
        if np.any(x != value) or sums_to_one or _is_mask(name, x):
            continue
        drawn = rng.uniform(0.5, 1.5, x.shape) if value else 0.5 * rng.standard_normal(x.shape)
        changed[name] = drawn * (value or 1.0)
    return changed


def _differing(arrays: Arrays, rng: np.random.Generator) -> Arrays:
    """Arrays that equal one before them, and symmetric matrices, with other values."""
    changed = {}
    floats = {n: x for n, x in _floats(arrays).items() if np.any(x != x.flat[0])}
    for i, (name, x) in enumerate(floats.items()):
        same = any(np.array_equal(x, each) for each in list(floats.values())[:i])
        is_square = x.ndim >= 2 and x.shape[-1] == x.shape[-2]
        if same or (is_square and np.array_equal(x, np.swapaxes(x, -1, -2))):
            changed[name] = x * rng.uniform(0.5, 1.5, x.shape) + 0.1 * (
                x == 0
            ) * rng.standard_normal(x.shape)
    return changed


def _other_signs(arrays: Arrays, rng: np.random.Generator) -> Arrays:
    """The first floats, all of one sign, with both."""
    for name, x in _floats(arrays).items():
        if np.all(x >= 0.0) or np.all(x <= 0.0):
            is_binary = np.isin(x, (0.0, 1.0)).all()
            return {} if is_binary else {name: x * rng.choice((-1.0, 1.0), x.shape)}
        return {}
    return {}


def _wide(arrays: Arrays, rng: np.random.Generator) -> Arrays:
    """The first floats so large that they lie on both sides of what they are compared with."""
    for name, x in _floats(arrays).items():
        most = float(np.max(np.abs(x)))
        is_wide = most >= _WIDE or not most or _is_mask(name, x)
        return {} if is_wide else {name: x * (_WIDE / most)}
    return {}


def _longer(arrays: Arrays, rng: np.random.Generator) -> Arrays:
    """The first floats with four steps along an axis that has one, behind the first axis."""
    for name, x in arrays.items():
        if x.dtype.kind == "f" and x.ndim >= 2:
            axes = [axis for axis in range(1, x.ndim) if x.shape[axis] == 1]
            return {} if len(axes) != 1 else {name: _grown(x, axes[0], rng)}
    return {}


def _inner(arrays: Arrays, rng: np.random.Generator) -> Arrays:
    """Two factors whose inner axis is one, with an inner axis of four."""
    floats = [(name, x) for name, x in arrays.items() if x.dtype.kind == "f" and x.ndim >= 2]
    for (one, x), (other, w) in pairwise(floats):
        if x.shape[-1] == w.shape[-2] == 1:
            return {one: _grown(x, x.ndim - 1, rng), other: _grown(w, w.ndim - 2, rng)}
    return {}


def _grown(x: np.ndarray, axis: int, rng: np.random.Generator) -> np.ndarray:
    """Four values for each along an axis of one."""
    several = np.repeat(x, 4, axis)
    return several * rng.uniform(0.5, 1.5, several.shape)


#: The table: what forward contains, and the inputs that are made for it.
SITUATIONS: Final = (
    Situation("repeated indices", _INDEXED, _repeated),
    Situation("no ties", _ORDERED, _untied),
    Situation("ties", _ORDERED, _tied),
    Situation("a masked row", None, _masked),
    Situation("weights that are not one", None, _uneven, _SYMMETRIC),
    Situation("factors that differ", None, _differing, _SYMMETRIC),
    Situation("both signs", _BRANCHES, _other_signs, _ONE_SIGN | _SYMMETRIC),
    Situation("both sides of a threshold", _THRESHOLDS, _wide, _BOUNDED | _SYMMETRIC),
    Situation("four steps", frozenset({"loop"}), _longer, resizes=True),
    Situation("an inner axis of four", _PRODUCTS, _inner, resizes=True),
)
