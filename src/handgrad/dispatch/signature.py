"""The kinds of values that an op's parameters take, and the sentence for what is of none of them.

The annotations of `forward` say it: `Float[Array, "N D"]` is an array of floats, `int` an integer,
`int | tuple[int, int]` one integer or two. Native code looks at every call; what is not plain, such
as numbers of NumPy or arrays of another library, comes here and is settled: put into Python's own
types, or refused.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import array_api_compat
import numpy as np

from handgrad import kernels
from handgrad.arrays import Array, is_numpy
from handgrad.dispatch.values import as_array, check_one_library, remedy, shown
from handgrad.errors import ArgumentError

_takes_complex: Final[ContextVar[bool]] = ContextVar("handgrad.takes_complex", default=False)

# As core/binding/array.cpp numbers them.
FLOATS: Final = 1
INTEGERS: Final = 2
BOOLEANS: Final = 4
INTEGER: Final = 8
NUMBER: Final = 16
FLAG: Final = 32
TEXT: Final = 64
NONE: Final = 128
SEVERAL: Final = 256
GENERATOR: Final = 512
#: Not among those of native code, because few calls have one: it is always settled here.
NUMBERS: Final = 1024

_ARRAYS: Final = FLOATS | INTEGERS | BOOLEANS
_KINDS: Final = {
    "Float": FLOATS,
    "Int": INTEGERS,
    "Bool": BOOLEANS,
    "int": INTEGER,
    "float": NUMBER,
    "bool": FLAG,
    "str": TEXT,
    "None": NONE,
    "tuple": SEVERAL,
    "tuple[float, ...]": NUMBERS,
    "np.random.Generator": GENERATOR,
}
_WORDS: Final = {
    FLOATS: "an array of floats",
    INTEGERS: "an array of integers",
    BOOLEANS: "an array of booleans",
    INTEGER: "an integer of at most 64 bits",
    NUMBER: "a finite number",
    FLAG: "True or False",
    TEXT: "a string",
    SEVERAL: "a tuple of integers",
    NUMBERS: "a tuple of finite numbers",
    GENERATOR: "a numpy.random.Generator",
    NONE: "None",
}
_DATA_TYPES: Final = {FLOATS: "real floating", INTEGERS: "integral", BOOLEANS: "bool"}
#: The type that a message suggests; none where there are several.
_DTYPES: Final = {FLOATS: np.float32, INTEGERS: np.int64, BOOLEANS: bool}
_MOST_INTEGER: Final = 2**63


class Signature:
    """The parameters of one op's forward."""

    def __init__(self, op: str, forward: Callable[..., Any]) -> None:
        self._op = op
        self._signature = inspect.signature(forward)
        given = self._signature.parameters.values()
        self._kinds = {each.name: kinds_of(each.annotation) for each in given}
        #: `fits(args, kwargs, layout)`: whether every argument is plain, and where it belongs.
        self.fits: Callable[[tuple[Any, ...], dict[str, Any], int], bool]
        if kernels.native is None:
            self.fits = lambda args, kwargs, layout: False
            return
        positional = sum(each.kind is each.POSITIONAL_OR_KEYWORD for each in given)
        required = sum(1 << i for i, each in enumerate(given) if each.default is each.empty)
        self.fits = kernels.native.Signature(
            tuple(self._kinds),
            list(self._kinds.values()),
            positional,
            required,
            np.random.Generator,
        ).fits

    def settle(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments as the op takes them: arrays, and settings of Python's own types.

        Raises ArgumentError for one that is missing, unknown or of another kind, and where arrays
        are of several libraries.
        """
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(f"{self._op}: {error}; allowed: {', '.join(self._kinds)}") from None
        arrays: dict[str, Array] = {}
        for name, kinds in self._kinds.items():
            if name in bound.arguments:
                value = settled(self._op, name, bound.arguments[name], kinds)
                bound.arguments[name] = value
                if kinds & _ARRAYS and hasattr(value, "shape"):
                    arrays[name] = value
        check_one_library(self._op, arrays)
        return bound.args, bound.kwargs


def kinds_of(annotation: str) -> int:
    """The kinds that an annotation names, as the source has it: a union of those in `_KINDS`."""
    kinds = 0
    for alternative in _alternatives(ast.parse(annotation.strip(), mode="eval").body):
        whole = ast.unparse(alternative)
        named = alternative.value if isinstance(alternative, ast.Subscript) else alternative
        kinds |= _KINDS[whole if whole in _KINDS else ast.unparse(named)]
    return kinds


def _alternatives(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp):
        yield from _alternatives(node.left)
        yield from _alternatives(node.right)
    else:
        yield node


def allowed(kinds: int) -> str:
    """The words for several kinds: "an array of floats, or None"."""
    return ", or ".join(words for kind, words in _WORDS.items() if kinds & kind)


def settled(op: str, name: str, value: Any, kinds: int) -> Any:
    """The value as the op takes it; ArgumentError unless it is of one of these kinds."""
    if value is None and kinds & NONE:
        return None
    if kinds & _ARRAYS:
        array = as_array(value)
        for kind in (FLOATS, INTEGERS, BOOLEANS):
            if array is not None and kinds & kind and _holds(array, kind):
                return _as_int64(op, name, array) if kind == INTEGERS else array
    found = _setting(value, kinds)
    # Strings are chosen from a few, which the op's own check names.
    if found is None and kinds != TEXT:
        line = ""
        if kinds & _ARRAYS:
            line = remedy(name, value, _DTYPES.get(kinds & _ARRAYS))
        raise ArgumentError(f"{op}: {name} is {shown(value)}; allowed: {allowed(kinds)}{line}")
    return value if found is None else found


@contextmanager
def taking_complex() -> Iterator[None]:
    """Let references compute with complex arrays, as for a derivative by an imaginary step."""
    token = _takes_complex.set(True)
    try:
        yield
    finally:
        _takes_complex.reset(token)


def _holds(array: Array, kind: int) -> bool:
    if is_numpy(array):
        floats = "fc" if _takes_complex.get() else "f"
        return array.dtype.kind in {FLOATS: floats, INTEGERS: "iu", BOOLEANS: "b"}[kind]
    xp = array_api_compat.array_namespace(array)
    return bool(xp.isdtype(array.dtype, _DATA_TYPES[kind]))


def _as_int64(op: str, name: str, array: Array) -> Array:
    """Integers of NumPy as int64, so that nothing is compared in a type too small for it."""
    if not isinstance(array, np.ndarray) or array.dtype == np.int64:
        return array
    if array.dtype.kind == "u" and array.size > 0 and int(array.max()) >= _MOST_INTEGER:
        raise ArgumentError(f"{op}: {name} holds {int(array.max())}; allowed: integers below 2**63")
    kernels.invalidate_capture("indices were converted for a kernel")
    return array.astype(np.int64)


def _setting(value: Any, kinds: int) -> Any:
    """A setting in Python's own type; None where it is of none of these kinds."""
    if isinstance(value, np.bool_ | bool):
        return bool(value) if kinds & FLAG else None
    if isinstance(value, int | np.integer) and kinds & (INTEGER | NUMBER):
        return _number(int(value), kinds)
    if isinstance(value, float | np.floating) and kinds & NUMBER:
        return float(value) if math.isfinite(value) else None
    if isinstance(value, str) and kinds & TEXT:
        return str(value)
    if isinstance(value, tuple | list) and kinds & (SEVERAL | NUMBERS):
        kind = INTEGER if kinds & SEVERAL else NUMBER
        several = tuple(_setting(each, kind) for each in value)
        return None if None in several else several
    if isinstance(value, np.random.Generator) and kinds & GENERATOR:
        return value
    return None


def _number(value: int, kinds: int) -> int | float | None:
    if kinds & INTEGER:
        return value if -_MOST_INTEGER <= value < _MOST_INTEGER else None
    try:
        return float(value)
    except OverflowError:
        return None
