"""Arrays whose elements remember what they are computed from.

A function of NumPy runs on them as on numbers: its indexing, its sums and its broadcasting are
NumPy's own, so that nothing here knows a product from a convolution. An element is a leaf, a
number, or an operation on elements; sums of sums and products of products are one.

Source of the idea: Karpathy, micrograd (2020), where every number of a network is such an element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np

#: An element with more parts than this is not opened.
MOST_PARTS: Final = 2_000

#: Every operation by its name: what it does to numbers.
OPERATIONS: Final[Mapping[str, Callable[..., float]]] = {
    "+": lambda *parts: sum(parts),
    "*": lambda *parts: math.prod(parts),
    "/": lambda a, b: a / b if b else float(np.divide(a, b)),
    "^": lambda a, b: float(np.power(a, b)),
    "max": lambda *parts: max(parts),
    "min": lambda *parts: min(parts),
    ">": lambda a, b: float(a > b),
    "<": lambda a, b: float(a < b),
    "≥": lambda a, b: float(a >= b),
    "≤": lambda a, b: float(a <= b),
    "=": lambda a, b: float(a == b),
    "≠": lambda a, b: float(a != b),
    "if": lambda test, yes, no: yes if test else no,
    "and": lambda a, b: float(bool(a) and bool(b)),
    "or": lambda a, b: float(bool(a) or bool(b)),
    "not": lambda a: float(not a),
    "abs": abs,
    "sign": lambda a: float(np.sign(a)),
    "exp": lambda a: float(np.exp(a)),
    "expm1": lambda a: float(np.expm1(a)),
    "log": lambda a: float(np.log(a)),
    "log1p": lambda a: float(np.log1p(a)),
    "sqrt": lambda a: float(np.sqrt(a)),
    "tanh": math.tanh,
    "sin": math.sin,
    "cos": math.cos,
    "erf": math.erf,
}


class Closed(Exception):  # noqa: N818 (no error: the page then shows the number as it is)
    """An element cannot be opened: Python decides by it, or it has more parts than are shown."""


class TracedNumber:
    """One element: an operation on others, or a leaf of which `args` are an array and an index."""

    __slots__ = ("args", "op", "size", "value")

    def __init__(self, op: str, args: tuple[Any, ...], value: float, size: int = 1) -> None:
        self.op, self.args, self.value, self.size = op, args, value, size

    def __bool__(self) -> bool:
        """What Python decides by an element would be lost to those who change a number."""
        raise Closed

    def __lt__(self, other: Any) -> Element:
        return made("<", self, other)

    def __gt__(self, other: Any) -> Element:
        return made(">", self, other)

    def __le__(self, other: Any) -> Element:
        return made("≤", self, other)

    def __ge__(self, other: Any) -> Element:
        return made("≥", self, other)

    def __add__(self, other: Any) -> Element:
        return add(self, other)

    def __radd__(self, other: Any) -> Element:
        return add(other, self)

    def __sub__(self, other: Any) -> Element:
        return add(self, multiply(-1.0, other))

    def __rsub__(self, other: Any) -> Element:
        return add(other, multiply(-1.0, self))

    def __mul__(self, other: Any) -> Element:
        return multiply(self, other)

    def __rmul__(self, other: Any) -> Element:
        return multiply(other, self)

    def __truediv__(self, other: Any) -> Element:
        return divide(self, other)

    def __rtruediv__(self, other: Any) -> Element:
        return divide(other, self)

    def __pow__(self, other: Any) -> Element:
        return power(self, other)

    def __neg__(self) -> Element:
        return multiply(-1.0, self)


Element: TypeAlias = TracedNumber | float


def value_of(element: Any) -> float:
    return element.value if isinstance(element, TracedNumber) else float(element)


def leaf(array: int, index: int, value: float) -> TracedNumber:
    return TracedNumber("", (array, index), value)


def made(op: str, *args: Any) -> Element:
    """The operation on elements; on numbers alone it is done at once."""
    numbers = [value_of(each) for each in args]
    found = OPERATIONS[op](*numbers)
    if not any(isinstance(each, TracedNumber) for each in args):
        return found
    size = 1 + sum(each.size if isinstance(each, TracedNumber) else 1 for each in args)
    if size > MOST_PARTS:
        raise Closed
    parts = tuple(
        each if isinstance(each, TracedNumber) else n for each, n in zip(args, numbers, strict=True)
    )
    return TracedNumber(op, parts, found, size)


def _is(element: Any, number: float) -> bool:
    return not isinstance(element, TracedNumber) and float(element) == number


def _parts(op: str, *elements: Any) -> list[Any]:
    found: list[Any] = []
    for each in elements:
        found += each.args if isinstance(each, TracedNumber) and each.op == op else (each,)
    return found


def add(left: Any, right: Any) -> Element:
    if _is(left, 0):
        return right if isinstance(right, TracedNumber) else float(right)
    if _is(right, 0):
        return left if isinstance(left, TracedNumber) else float(left)
    return made("+", *_parts("+", left, right))


def multiply(left: Any, right: Any) -> Element:
    """The product; numbers come first, as one."""
    if _is(left, 0) or _is(right, 0):
        return 0.0
    parts = _parts("*", left, right)
    number = math.prod(float(each) for each in parts if not isinstance(each, TracedNumber))
    factors: list[Element] = [each for each in parts if isinstance(each, TracedNumber)]
    if not factors:
        return number
    if number != 1:
        factors = [number, *factors]
    return factors[0] if len(factors) == 1 else made("*", *factors)


def divide(left: Any, right: Any) -> Element:
    if _is(left, 0) and isinstance(right, TracedNumber):
        return 0.0
    if _is(right, 1):
        return left if isinstance(left, TracedNumber) else float(left)
    return made("/", left, right)


def power(base: Any, exponent: Any) -> Element:
    if _is(exponent, 1):
        return base if isinstance(base, TracedNumber) else float(base)
    if _is(exponent, 0.5):
        return made("sqrt", base)
    return made("^", base, exponent)


def choose(test: Any, yes: Any, no: Any) -> Element:
    if not isinstance(test, TracedNumber):
        chosen = yes if test else no
        return chosen if isinstance(chosen, TracedNumber) else float(chosen)
    return made("if", test, yes, no)


def _both(left: Any, right: Any) -> Element:
    return 0.0 if _is(left, 0) or _is(right, 0) else made("and", left, right)


def _either(left: Any, right: Any) -> Element:
    certain = any(not isinstance(each, TracedNumber) and bool(each) for each in (left, right))
    return 1.0 if certain else made("or", left, right)


def _sigmoid(x: Any) -> Element:
    return divide(1.0, add(1.0, made("exp", multiply(-1.0, x))))


#: What NumPy asks of an object where it has no number: TracedNumber.exp and so on.
_UNARY: Final = ("sign", "exp", "expm1", "log", "log1p", "sqrt", "tanh", "sin", "cos", "erf")


def _decided(function: Callable[[float], Any]) -> Callable[[Any], float]:
    return lambda element: float(function(value_of(element)))


def _of(op: str) -> Callable[..., Element]:
    def apply(*args: Any) -> Element:
        return made(op, *args)

    return apply


def _extreme(op: str) -> Callable[[Any, Any], Element]:
    never = -math.inf if op == "max" else math.inf

    def apply(left: Any, right: Any) -> Element:
        for one, other in ((left, right), (right, left)):
            if _is(one, never):
                return other if isinstance(other, TracedNumber) else float(other)
        return made(op, *_parts(op, left, right))

    return apply


#: The functions of NumPy and SciPy that are not what Python's operators do to elements.
_FUNCTIONS: Final[Mapping[str, tuple[Callable[..., Any], int]]] = {
    "greater": (_of(">"), 2),
    "less": (_of("<"), 2),
    "greater_equal": (_of("≥"), 2),
    "less_equal": (_of("≤"), 2),
    "equal": (_of("="), 2),
    "not_equal": (_of("≠"), 2),
    "logical_and": (_both, 2),
    "logical_or": (_either, 2),
    "bitwise_and": (_both, 2),
    "bitwise_or": (_either, 2),
    "logical_not": (_of("not"), 1),
    "invert": (_of("not"), 1),
    "maximum": (_extreme("max"), 2),
    "minimum": (_extreme("min"), 2),
    "fmax": (_extreme("max"), 2),
    "fmin": (_extreme("min"), 2),
    "power": (power, 2),
    "float_power": (power, 2),
    "square": (lambda x: power(x, 2.0), 1),
    "reciprocal": (lambda x: divide(1.0, x), 1),
    "absolute": (_of("abs"), 1),
    "fabs": (_of("abs"), 1),
    "expit": (_sigmoid, 1),
    "logistic": (_sigmoid, 1),
    "logaddexp": (lambda a, b: made("log", add(made("exp", a), made("exp", b))), 2),
    "isnan": (_decided(math.isnan), 1),
    "isinf": (_decided(math.isinf), 1),
    "isfinite": (_decided(math.isfinite), 1),
    **{name: (_of(name), 1) for name in _UNARY},
}
REPLACED: Final[Mapping[str, np.ufunc]] = {
    name: np.frompyfunc(function, count, 1) for name, (function, count) in _FUNCTIONS.items()
}
_WHERE: Final = np.frompyfunc(choose, 3, 1)
for _name in _UNARY:
    setattr(TracedNumber, _name, _of(_name))


class Entries(np.ndarray[Any, Any]):
    """An array of elements."""

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **kwargs: Any
    ) -> Any:
        plain = [each.view(np.ndarray) if isinstance(each, Entries) else each for each in inputs]
        kwargs.pop("dtype", None)
        if out is not None:
            kwargs["out"] = tuple(
                each.view(np.ndarray) if isinstance(each, Entries) else each for each in out
            )
        replaced = REPLACED.get(ufunc.__name__, ufunc)
        if method == "reduce" and replaced is not ufunc:
            kwargs.pop("initial", None)
            found = _reduced(replaced, plain[0], **kwargs)
        else:
            found = getattr(replaced, method)(*plain, **kwargs)
        return entries(found)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.where and len(args) == 3:
            return entries(_WHERE(*map(_plain, args)))
        return entries(super().__array_function__(function, types, args, kwargs))

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """Elements stay elements in every precision."""
        return self.copy()


def entries(found: Any) -> Any:
    """The same with arrays of objects as arrays of elements."""
    if isinstance(found, list | tuple) and not hasattr(found, "_fields"):
        return type(found)(map(entries, found))
    if isinstance(found, np.ndarray) and found.dtype == object:
        return found.view(Entries)
    return (
        np.asarray(found, dtype=object).view(Entries) if isinstance(found, TracedNumber) else found
    )


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Entries) else value


def _reduced(ufunc: np.ufunc, array: Any, axis: Any = 0, keepdims: bool = False, **_: Any) -> Any:
    """One axis after the other, as a function without an identity allows."""
    axes = range(array.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    for each in sorted((a % array.ndim for a in axes), reverse=True):
        array = ufunc.reduce(array, axis=each, keepdims=keepdims)
    return array
