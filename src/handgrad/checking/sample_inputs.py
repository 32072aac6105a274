"""Sample inputs and cotangents of other forms, always tried because they bring bugs to light.

A wrong gradient that shows only for one row, for a strided cotangent or in float32 is found here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from types import ModuleType
from typing import Any, Final

import numpy as np

from handgrad.checking.trial import leaves, like_nested
from handgrad.forward_backward import ForwardBackward
from handgrad.ops.samples import sample_inputs

Arrays = Mapping[str, np.ndarray]

#: Rows that `keeps_rows` tries.
_ROWS: Final = 8
#: Inputs beside the first that are asked for their rows one by one.
_OTHERS: Final = 4


@dataclass(frozen=True)
class Setup:
    """Sample inputs, in the order of forward's arguments, and the checks that hold on them."""

    situation: str
    label: str
    arrays: Arrays
    options: Mapping[str, Any]
    #: Finite differences apply.
    smooth: bool
    #: The op is known here, so that its own gradient can be compared element by element.
    comparable: bool = True
    #: Made from the user's own inputs, with other rows of these of them.
    rows: tuple[str, ...] = ()
    #: Values of arrays that the target brings along, in place of its own.
    parameters: Arrays = field(default_factory=dict)
    #: Axes have other sizes than the usual: it applies where every gradient has its input's shape.
    resizes: bool = False

    @property
    def title(self) -> str:
        return self.situation if self.label in ("", self.situation) else self.label


def of_op(op: ModuleType, rng: np.random.Generator) -> list[Setup]:
    """The sample inputs of a known op; the usual ones first."""
    name = op.__name__.rpartition(".")[2]
    return [
        Setup(
            each.situation,
            _label(each.label),
            each.arrays,
            each.options,
            each.smooth,
        )
        for each in sample_inputs(name, rng)
    ]


def _label(label: str) -> str:
    """The label, by which the op's own usual inputs are not taken for the user's."""
    return "usual sizes" if label == "usual" else label


def of_arrays(
    functions: ForwardBackward, arrays: Arrays, usual: Setup, rng: np.random.Generator
) -> Iterator[Setup]:
    """Sample inputs made from the arrays of an unknown target, by changing its batch.

    Rows are taken along the first axis of the first input and of the others, except parameters,
    that have as many rows; where forward refuses, or `keeps_rows` says that these are no rows,
    these inputs do not apply.
    """
    options = usual.options

    def filled(changed: Arrays) -> dict[str, Any]:
        """The changed arrays among the other arguments."""
        rest = iter(changed.values())
        return {
            key: next(rest) if isinstance(value, np.ndarray) else value
            for key, value in usual.arrays.items()
        }

    names = [name for name in functions.inputs if name not in functions.parameters]
    first = next((name for name in names if np.ndim(arrays[name]) > 0), None)
    if first is None:
        return
    rows = np.shape(arrays[first])[0]
    batched = _batched(functions, arrays, names, first, rng)
    for situation, count in (("one row", 1), ("empty", 0), ("prime sizes", 7)):
        if rows == 0 or (rows == count and situation != "prime sizes"):
            continue
        changed = {name: arrays[name] for name in names}
        changed |= {name: _rows(arrays[name], count, rng) for name in batched}
        yield Setup(situation, "", filled(changed), options, True, False, tuple(batched))
    floats = [name for name in names if np.asarray(arrays[name]).dtype.kind == "f"]
    for factor in (1e4, 1e-4):
        changed = {name: arrays[name] for name in names}
        changed |= {name: factor * arrays[name] for name in floats}
        label = f"inputs times {factor:g}"
        yield Setup("extreme values", label, filled(changed), options, False, False)


def _batched(
    functions: ForwardBackward,
    arrays: Arrays,
    names: Sequence[str],
    first: str,
    rng: np.random.Generator,
) -> list[str]:
    """The inputs that have a row for each row of the first, of those with as many rows.

    A square weight beside a batch of as many rows is none of them, which forward shows.
    """
    rows = np.shape(arrays[first])[0]
    others = [
        name
        for name in names
        if name != first and np.ndim(arrays[name]) > 0 and np.shape(arrays[name])[0] == rows
    ]
    if rows > 1 and len(others) <= _OTHERS:
        for count in range(len(others), -1, -1):
            for chosen in combinations(others, count):
                tried = [name for name in names if name in (first, *chosen)]
                if keeps_rows(functions, arrays, tried, rng):
                    return tried
    return [name for name in names if name in (first, *others)]


def keeps_rows(
    functions: ForwardBackward, arrays: Arrays, rows: Sequence[str], rng: np.random.Generator
) -> bool:
    """Return whether forward takes every row of these inputs by itself, as a batch is.

    Its outputs are then those of the rows one by one, or, of a loss, their mean or sum. An input
    that only happens to be as long, such as a bias, does not pass. The values are shaken first, so
    that equal ones do not hide which they are.
    """

    def shaken(array: np.ndarray) -> np.ndarray:
        if array.dtype.kind != "f":
            return array
        return np.where(array == 0.0, 0.01, array) * rng.uniform(0.75, 1.25, array.shape)

    drawn = {name: shaken(np.asarray(array)) for name, array in arrays.items()}
    drawn |= {name: drawn[name][:_ROWS] for name in rows}
    count = len(drawn[rows[0]])

    def outputs(only: int | None) -> list[np.ndarray]:
        chosen = slice(None) if only is None else slice(only, only + 1)
        given = {name: x[chosen] if name in rows else x for name, x in drawn.items()}
        return list(
            leaves(functions.forward(*(np.array(given[name]) for name in functions.inputs))[0])
        )

    try:
        whole, single = outputs(None), [outputs(i) for i in range(count)]
    except Exception:  # such inputs are none that forward takes
        return False
    if any(len(each) != len(whole) for each in single):
        return False
    for i, y in enumerate(whole):
        parts = [each[i] for each in single]
        if y.ndim and all(each.shape == (1, *y.shape[1:]) for each in parts) and len(y) == count:
            together = [np.concatenate(parts)]
        elif all(each.shape == y.shape for each in parts) and y.size == 1:
            together = [np.mean(parts, axis=0), np.sum(parts, axis=0)]
        else:
            return False
        if not any(np.allclose(y, each, rtol=1e-5, atol=1e-7) for each in together):
            return False
    return True


def _rows(array: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """As many rows; where rows repeat, floats are drawn anew around them.

    Labels and probabilities remain such: zeros and ones, below 1, and of sum 1.
    """
    taken = np.asarray(array)[np.arange(count) % max(len(array), 1)]
    if taken.dtype.kind != "f" or count <= len(array) or np.isin(taken, (0.0, 1.0)).all():
        return taken
    is_part = bool(np.all((taken >= 0.0) & (taken <= 1.0)))
    drawn = taken * rng.uniform(0.5, 1.0 if is_part else 1.5, taken.shape)
    is_whole = is_part and taken.ndim > 1 and np.allclose(np.sum(taken, axis=-1), 1.0)
    return drawn / np.sum(drawn, axis=-1, keepdims=True) if is_whole else drawn


def cotangents(y: Any, dy: Any) -> Iterator[tuple[str, Any, bool]]:
    """Other forms of a cotangent: what it is called, the array, and whether its values changed."""

    def strided(array: np.ndarray) -> np.ndarray:
        """Every second value of a larger array along every axis, the rest NaN."""
        room = np.full(tuple(2 * size for size in array.shape), np.nan, dtype=array.dtype)
        every_second: tuple[Any, ...] = (slice(None, None, 2),) * array.ndim
        view = room[(*every_second, ...)]
        view[...] = array
        return view

    def zero_stride(array: np.ndarray) -> np.ndarray:
        """One value for all elements, as the gradient of a sum arrives: strides of 0."""
        value = array.ravel()[0] if array.size else array.dtype.type(1.25)
        return np.broadcast_to(value, array.shape)

    yield "non-contiguous cotangent", like_nested(dy, strided), False
    yield "transposed cotangent", like_nested(dy, lambda array: np.array(array, order="F")), False
    yield "broadcast cotangent", like_nested(dy, zero_stride), True
    if isinstance(dy, np.ndarray) and dy.ndim == 0:
        yield "0-d cotangent", np.asarray(dy), False


def written(before: Mapping[str, np.ndarray], after: Mapping[str, np.ndarray]) -> list[str]:
    """The names of arrays whose bytes changed."""
    return [name for name in before if before[name].tobytes() != after[name].tobytes()]


def kept_arrays(arrays: Arrays, dy: Any, cache: Any) -> dict[str, np.ndarray]:
    """Every array that the functions could write to: the inputs, the cotangent, the cache."""
    found = {name: np.asarray(array) for name, array in arrays.items()}
    found.update(_named("dy", dy))
    found.update(_named("cache", cache))
    return found


def _named(name: str, value: Any) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays in a value, by where they stand: cache.x_hat, cache[0], cache['x']."""
    if isinstance(value, np.ndarray):
        yield name, value
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        for field, part in zip(value._fields, value, strict=True):
            yield from _named(f"{name}.{field}", part)
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for i, part in enumerate(value):
            yield from _named(f"{name}[{i}]", part)
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _named(f"{name}[{key!r}]", part)
