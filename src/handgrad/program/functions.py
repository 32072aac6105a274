"""Functions on arrays in programs: their names in the array API, and pure versions.

A program is run again on other values, so each of its functions must leave its arguments alone:
one that writes into an array gets a copy of it, and returns the copy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import BuiltinFunctionType, ModuleType
from typing import Any, Final

import numpy as np
from array_api_compat import array_namespace

from handgrad.program.nodes import mapped

#: Packages whose functions are operations and are not followed into their source.
LIBRARIES: Final = frozenset(
    {
        *("numpy", "array_api_compat", "scipy", "torch", "jax", "jaxlib", "cupy"),
        *("math", "builtins", "collections"),
    }
)
#: Names in the array API of what NumPy and others call otherwise.
_STANDARD: Final = {
    "absolute": "abs",
    "amax": "max",
    "amin": "min",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "array": "asarray",
    "ascontiguousarray": "asarray",
    "cat": "concat",
    "concatenate": "concat",
    "conjugate": "conj",
    "cumsum": "cumulative_sum",
    "float_power": "pow",
    "fmax": "maximum",
    "fmin": "minimum",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "mul": "multiply",
    "neg": "negative",
    "permute": "permute_dims",
    "power": "pow",
    "right_shift": "bitwise_right_shift",
    "sub": "subtract",
    "transpose": "permute_dims",
    "true_divide": "divide",
    "truediv": "divide",
}
#: Functions, and methods of a ufunc or a generator, that write into their first argument.
_WRITES_FIRST: Final = frozenset(
    {
        *("add.at", "subtract.at", "multiply.at", "divide.at", "maximum.at", "minimum.at"),
        *("copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis", "shuffle"),
    }
)
#: Methods that write into the array they belong to.
_WRITES_ITSELF: Final = frozenset({"fill", "sort", "partition", "put", "itemset"})


@dataclass(frozen=True)
class Method:
    """A method as a function of the object that has it."""

    name: str

    def __call__(self, owner: Any, /, *args: Any, **kwargs: Any) -> Any:
        return getattr(owner, self.name)(*args, **kwargs)


@dataclass(frozen=True)
class Attribute:
    """An attribute, such as T, as a function of the object that has it."""

    name: str

    def __call__(self, owner: Any) -> Any:
        return getattr(owner, self.name)


@dataclass(frozen=True)
class OnCopy:
    """A function that writes into one of its arguments: it gets a copy, which is the result.

    `written` is a position or the name of an argument.
    """

    function: Callable[..., Any]
    written: int | str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self.written, str):
            copy = kwargs[self.written] = copied(kwargs[self.written])
        else:
            copy = copied(args[self.written])
            args = (*args[: self.written], copy, *args[self.written + 1 :])
        self.function(*args, **kwargs)
        return copy


def copied(array: Any) -> Any:
    return array.clone() if hasattr(array, "clone") else np.array(array, copy=True, order="K")


def size(array: Any) -> int:
    """The number of values of an array of any library; torch has a method where NumPy has it."""
    return math.prod(np.shape(array))


# A change of a program runs on the arrays of the target's own library, so it computes by the array
# API; a function of NumPy takes a tensor only by accident.


def total(array: Any, axis: int) -> Any:
    """The sum over an axis, which stays with size 1."""
    return array_namespace(array).sum(array, axis=axis, keepdims=True)


def average(array: Any, axis: int) -> Any:
    """The mean over an axis, which stays with size 1."""
    return array_namespace(array).mean(array, axis=axis, keepdims=True)


def flipped(array: Any, axes: tuple[int, ...]) -> Any:
    return array_namespace(array).flip(array, axis=axes)


def chosen(condition: Any, one: Any, other: Any) -> Any:
    """`one` where the condition is true, else `other`; one of them may be a number."""
    xp = array_namespace(condition)
    one, other = (x if is_array(x) else xp.asarray(x) for x in (one, other))
    return xp.where(condition, one, other)


def added_at(array: Any, index: Any, value: Any) -> Any:
    """The array with the values added at an index, as often as that names an element.

    The array API has no such function, so NumPy adds, and the array's library takes the result.
    """
    found = copied(np.asarray(array))
    at = mapped(lambda each: np.asarray(each) if is_array(each) else each, index)
    np.add.at(found, at, np.asarray(value))
    return array_namespace(array).asarray(found)


def getitem(array: Any, index: Any) -> Any:
    return array[index]


def store(array: Any, index: Any, value: Any) -> Any:
    """The array with the elements at `index` replaced."""
    changed = copied(array)
    changed[index] = value
    return changed


def replaced(array: Any, other: Any, at: Any, by: Any) -> Any:
    """The array with its elements at flat positions `at` replaced by those of `other` at `by`.

    This is what becomes of a view whose memory was written through another one.
    """
    changed = copied(array)
    changed.flat[at] = other.reshape(-1)[by]
    return changed


def element(values: Any, number: int) -> Any:
    """One of several results."""
    return values[number]


def is_library(function: Any) -> bool:
    """True for an operation of an array library, or of Python."""
    if isinstance(function, np.ufunc | BuiltinFunctionType | type):
        return True
    return comes_from_library(function)


def comes_from_library(definition: Any) -> bool:
    """True for a function or class that a library defines."""
    module = getattr(definition, "__module__", None) or ""
    return module.partition(".")[0] in LIBRARIES


def standard_name(name: str) -> str:
    """The name in the array API, where it has one for this operation."""
    return _STANDARD.get(name, name)


def written_argument(
    name: str, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> int | str | None:
    """The argument that a call writes into, by position (a method's owner is 0) or by name."""
    if kwargs.get("out") is not None and is_array(kwargs["out"]):
        return "out"
    if isinstance(owner, np.ufunc):
        return 1 if f"{owner.__name__}.{name}" in _WRITES_FIRST else None
    if is_array(owner):
        in_place = name.endswith("_") and not name.endswith("__")
        return 0 if name in _WRITES_ITSELF or (in_place and hasattr(owner, "grad_fn")) else None
    if name in _WRITES_FIRST:
        return 1 if isinstance(owner, np.random.Generator) else 0
    return None


def is_array(value: Any) -> bool:
    """True for an array of any library, and for a scalar of NumPy that is no bool."""
    if isinstance(value, np.ndarray):
        return True
    if isinstance(value, np.generic):
        return not isinstance(value, np.bool_)
    has_both = hasattr(value, "shape") and hasattr(value, "dtype")
    return has_both and not isinstance(value, type | ModuleType)


def library_function(function: Any) -> str:
    """The name of a function as programs have it."""
    name = getattr(function, "__name__", type(function).__name__)
    return standard_name(name)
