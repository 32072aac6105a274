"""Values as callers give them: arrays of any library, and how a message shows whatever it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import array_api_compat
import numpy as np

from handgrad import kernels
from handgrad.arrays import Array
from handgrad.errors import ArgumentError
from handgrad.escaping import cut, quoted

#: An array, and one that lies in a file.
_NUMPY_ARRAYS: Final = (np.ndarray, np.memmap)
#: Libraries whose functions take arrays of NumPy as their own.
_TAKE_NUMPY: Final = frozenset({"jax.numpy", "handgrad.checking.rounding.bounded"})


def shown(value: Any) -> str:
    """A value as a message shows it: short, and never by calling what a stranger wrote."""
    kind = type(value)
    if kind is tuple and len(value) <= 8:
        inner = ", ".join(shown(each) for each in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if kind is int and value.bit_length() > 128:
        return f"an integer of {value.bit_length()} bits"
    if kind is str:
        return quoted(value)
    if kind in (int, float, complex, bool, type(None), bytes):
        return cut(repr(value), 200)
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        return f"{value.dtype}({value.item()!r})"
    if (
        hasattr(kind, "shape")
        and hasattr(kind, "dtype")
        and array_api_compat.is_array_api_obj(value)
    ):
        return f"an array of {value.dtype} and shape {tuple(value.shape)}"
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    article = "an" if not module and kind.__name__[0] in "aeiou" else "a"
    return f"{article} {module}{kind.__name__}"


def remedy(name: str, value: Any, dtype: Any, write: str = "write") -> str:
    """The line that makes an array of `dtype` of a value, as the end of a sentence; "" if none.

    dtype: None where several types are allowed.
    """
    line, kind = "", value.dtype.kind if isinstance(value, np.ndarray) else "none"
    written = "bool" if dtype is bool else f"np.{np.dtype(dtype)}"
    if type(value) is np.ndarray and kind in "fiub":
        line = f"{name} = {name}.astype({written})" if dtype is not None else ""
        if value.dtype == np.uint8 and written == "np.float32":
            line += f", of images {name}.astype({written}) / 255"
    elif type(value) is tuple and len(value) == 2 and isinstance(value[0], np.ndarray):
        line = f"{name}, cache = layer.forward(...), because forward returns both"
    elif type(value) in (list, tuple) or (kind in ("none", "O") and hasattr(value, "__array__")):
        of = "" if dtype is None else f", dtype={written}"
        line = f"{name} = np.asarray({name}{of})"
    return f"; {write} {line}" if line else ""


def as_array(value: Any) -> Array | None:
    """The value if it is an array: of NumPy in this machine's byte order, or of another library.

    A number of NumPy is an array without axes. Subclasses of NumPy's array are none, because they
    compute otherwise (matrix) or hide values (masked arrays); None for these and all else.
    """
    if isinstance(value, np.ndarray | np.generic):
        if type(value) not in _NUMPY_ARRAYS and not isinstance(value, np.generic):
            return None
        array = np.asarray(value)
        if array.dtype.isnative:
            return array
        kernels.invalidate_capture("an array was converted to this machine's byte order")
        return array.astype(array.dtype.newbyteorder("="))
    return value if array_api_compat.is_array_api_obj(value) else None


def library(array: Array) -> str:
    """The name of the library that an array is of, such as numpy or torch."""
    if isinstance(array, np.ndarray | np.generic):
        return "numpy"
    return str(array_api_compat.array_namespace(array).__name__.removeprefix("array_api_compat."))


def check_one_library(op: str, arrays: Mapping[str, Array]) -> None:
    """Raise ArgumentError unless arrays are of one library.

    JAX takes those of NumPy as its own, and so do numbers with a bound of their rounding errors.
    """
    libraries = {name: library(array) for name, array in arrays.items()}
    several = set(libraries.values())
    if several & _TAKE_NUMPY:
        several.discard("numpy")
    if len(several) > 1:
        found = ", ".join(f"{name} of {where}" for name, where in libraries.items())
        raise ArgumentError(f"{op}: arrays are {found}; allowed: arrays of one library")
