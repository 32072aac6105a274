"""`x.at[i].set(v)`: arrays that nothing changes, with some elements replaced in a new one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from handgrad.program.tensors.table import xp
from handgrad.program.tracer import Tracer


class At:
    """The attribute `at` of a traced array."""

    def __init__(self, array: Tracer) -> None:
        self._array = array

    def __getitem__(self, key: Any) -> Elements:
        return Elements(self._array, key)


class Elements:
    """Some elements of an array; each method gives a new array, or reads them."""

    def __init__(self, array: Tracer, key: Any) -> None:
        self._array, self._key = array, key

    def get(self, **_: Any) -> Any:
        return self._array[self._key]

    def set(self, values: Any, **_: Any) -> Any:
        return self._made("store", values)

    def add(self, values: Any, **_: Any) -> Any:
        return self._made("add_at", values)

    def subtract(self, values: Any, **_: Any) -> Any:
        return self._made("add_at", -values)

    def max(self, values: Any, **_: Any) -> Any:
        return self._made("maximum_at", values)

    def min(self, values: Any, **_: Any) -> Any:
        return self._made("minimum_at", values)

    def multiply(self, values: Any, **_: Any) -> Any:
        return self.set(self.get() * values)

    mul = multiply

    def divide(self, values: Any, **_: Any) -> Any:
        return self.set(self.get() / values)

    def power(self, values: Any, **_: Any) -> Any:
        return self.set(self.get() ** values)

    def apply(self, function: Callable[[Any], Any], **_: Any) -> Any:
        return self.set(function(self.get()))

    def _made(self, how: str, values: Any) -> Any:
        made = self._array.copy()
        made.assign_at(how, self._key, values)
        return made


def _same(x: Any) -> Callable[..., Any]:
    return lambda *_, **__: x


#: Attributes that arrays of JAX have otherwise than NumPy's.
ATTRIBUTES: Final[dict[str, Callable[[Any], Any]]] = {
    "at": At,
    "block_until_ready": _same,
    "clip": lambda x: lambda min=None, max=None: xp.clip(x, min, max),
}
