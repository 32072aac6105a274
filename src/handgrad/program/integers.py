"""Integers that remember their expression."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from handgrad.program.arithmetic import COMPARISONS, FUNCTIONS, ComparableOperand
from handgrad.program.counted import CountedRun, after_loops
from handgrad.program.node import world
from handgrad.program.rounds import fixed, guard, settled
from handgrad.program.sizes import Size

_COMPARISONS: Final = frozenset(each.name for each in COMPARISONS)


def _on_bits(name: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """The methods of an operator on bits, which knows no letters; arrays have their own."""

    def method(self: Any, other: Any) -> Any:
        whole = is_whole(other) or type(other) is bool
        return FUNCTIONS[name](int(self), int(other)) if whole else NotImplemented

    return method, method


class WholeNumber(ComparableOperand, ABC):
    """An integer with its size. No subclass of int: 0.5 * n would never ask it."""

    __slots__ = ("_born", "_size", "runs", "value")

    def __init__(
        self, value: int, size: Size | int | str, runs: tuple[CountedRun, ...] = ()
    ) -> None:
        self.value, self._size, self.runs = int(value), Size.of(size), runs
        w = world()
        counts = self._size.letters & w.counters.keys()
        self._born = tuple(w.open) if counts else ()

    @abstractmethod
    def scalar(self) -> Any:
        """The integer as a traced array without axes."""

    @property
    def size(self) -> Size:
        """The expression, in the rounds that the trace is in now.

        A counter that outlives its round is that many rounds behind in a later one, and after
        the loop the last of all, or the number of its round, which then holds the count.
        """
        after = after_loops(self.value, self.runs)
        return settled(self._size, self._born) if after is None else after

    @property
    def __class__(self) -> type:
        return int

    @__class__.setter
    def __class__(self, value: type) -> None:
        raise TypeError("a traced integer stays one")

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        return self.scalar().__array_ufunc__(ufunc, method, *map(plain, args), **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return self.scalar().__array_function__(function, types, args, kwargs)

    def __index__(self) -> int:
        return fixed(self.size)

    __int__ = __trunc__ = __index__

    def __float__(self) -> float:
        return float(fixed(self.size))

    def __repr__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec)

    def __hash__(self) -> int:
        return hash(self.value)

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __neg__(self) -> Any:
        return self._made(-self.value, -self.size)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __round__(self, digits: int | None = None) -> Any:
        return self

    __floor__ = __ceil__ = __pos__

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            return pow(int(self), int(other), int(modulus))
        if is_whole(other) and number_of(other) >= 0:
            size = Size.of(1)
            for _ in range(int(other)):
                size = size * self.size
            return self._made(self.value ** number_of(other), size)
        return self.scalar() ** other

    def __rpow__(self, other: Any) -> Any:
        return other ** self.scalar()

    def __lshift__(self, other: int) -> Any:
        return self * 2 ** int(other)

    def __rshift__(self, other: int) -> Any:
        return self // 2 ** int(other)

    def __rlshift__(self, other: int) -> Any:
        return other << int(self)

    def __rrshift__(self, other: int) -> Any:
        return other >> int(self)

    __and__, __rand__ = _on_bits("bitwise_and")
    __or__, __ror__ = _on_bits("bitwise_or")
    __xor__, __rxor__ = _on_bits("bitwise_xor")

    @property
    def real(self) -> Any:
        return self

    numerator = real

    def bit_length(self) -> int:
        return int(self).bit_length()

    def item(self) -> Any:
        return self

    def _made(self, value: int, size: Size) -> Any:
        return type(self)(value, size)

    def _copies(self, sequence: Any) -> Any:
        """A sequence repeated. One of None will be filled, and what fills it tells the count."""
        empty = isinstance(sequence, list) and all(x is None for x in sequence)
        return sequence * (self.value if empty else int(self))

    def operate(self, name: str, left: Any, right: Any) -> Any:
        sign = FUNCTIONS[name]
        other = right if left is self else left
        if name == "multiply" and isinstance(other, list | tuple | str):
            return self._copies(other)
        if name == "divide":
            return plain(left) / plain(right)
        if not is_whole(other):
            if name in _COMPARISONS:
                return self._compared_with_float(sign, other)
            if not isinstance(other, float | np.ndarray | np.generic | bool):
                return NotImplemented
            return sign(plain(left), plain(right))
        value, sizes = sign(number_of(left), number_of(right)), (size_of(left), size_of(right))
        if name not in _COMPARISONS:
            return self._made(value, sign(*sizes))
        if (sizes[0] - sizes[1]).constant is None:
            guard(f"__{sign.__name__}__", *sizes, bool(value))
        return bool(value)

    def _compared_with_float(self, sign: Callable[[Any, Any], Any], other: Any) -> Any:
        if type(other) is not float:
            return NotImplemented
        if other.is_integer():
            return sign(self, int(other))
        outcome = bool(sign(self.value, other))
        guard("true", sign(self.scalar(), other).node, None, outcome)
        return outcome


def is_whole(x: Any) -> bool:
    """True for a traced integer and for a plain one, a bool left out."""
    kind = type(x)
    return issubclass(kind, WholeNumber | np.integer) or (
        issubclass(kind, int) and kind is not bool
    )


def number_of(x: Any) -> int:
    return x.value if issubclass(type(x), WholeNumber) else int(x)


def size_of(x: Any) -> Size:
    return x.size if issubclass(type(x), WholeNumber) else Size.of(int(x))


def plain(x: Any) -> Any:
    """A traced integer as a traced array, all else as it is."""
    return x.scalar() if issubclass(type(x), WholeNumber) else x
