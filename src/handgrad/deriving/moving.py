"""Arguments of a forward as trees of arrays: with other leaves, moved, copied, rounded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from handgrad.deriving.arguments import Path, at, mapped, parts_of, with_parts


def replaced(values: Any, path: Path, new: Any) -> Any:
    """A tree with another leaf at a path."""
    if not path:
        return new
    first, rest = path[0], path[1:]
    if isinstance(values, dict):
        return {k: replaced(v, rest, new) if k == first else v for k, v in values.items()}
    if (parts := parts_of(values)) is not None:
        return with_parts(values, {**parts, str(first): replaced(parts[str(first)], rest, new)})
    return type(values)(replaced(v, rest, new) if k == first else v for k, v in enumerate(values))


def moved(values: Any, ways: Mapping[Path, Any], step: float) -> Any:
    """A tree with some leaves moved along directions of theirs."""
    for path, way in ways.items():
        values = replaced(values, path, np.asarray(at(values, path), float) + step * way)
    return values


def copied(values: Any) -> Any:
    """A tree whose arrays may be changed."""
    return mapped_arrays(values, lambda x: x.copy())


def single(values: Any) -> Any:
    """A tree whose arrays of floats are of single precision."""
    return mapped_arrays(values, lambda x: x.astype(np.float32) if x.dtype.kind == "f" else x)


def double(values: Any) -> Any:
    """A tree whose arrays and numbers of single precision are of double precision."""
    return mapped(values, lambda x: x.astype(float) if _is_single(x) else x)


def _is_single(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic) and value.dtype == np.float32


def mapped_arrays(values: Any, function: Callable[[Any], Any]) -> Any:
    return mapped(values, lambda x: function(x) if isinstance(x, np.ndarray) else x)


def rounded(x: Any) -> Any:
    """The same floats but for rounding: every other one by the next that there is."""
    if x.dtype.kind != "f":
        return x
    ways = np.where(np.arange(x.size).reshape(x.shape) % 2, np.inf, x)
    return np.nextafter(x, ways)


def largest(x: Any) -> float:
    """The largest finite size of an element."""
    return float(np.max(np.abs(x), initial=0.0, where=np.isfinite(x)))
