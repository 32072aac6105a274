"""Arrays for calls of ops: their values, and how they lie in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.lib.stride_tricks import as_strided

Arrange = Callable[[np.ndarray], np.ndarray]


def _misaligned(a: np.ndarray) -> np.ndarray:
    memory = np.empty(a.nbytes + 1, np.uint8)
    array = memory[1:].view(a.dtype).reshape(a.shape)
    array[...] = a
    return array


def _read_only(a: np.ndarray) -> np.ndarray:
    array = a.copy()
    array.flags.writeable = False
    return array


def _sliding(a: np.ndarray) -> np.ndarray:
    """Rows one value apart in memory, so that they overlap."""
    rows = a.reshape(len(a), -1)
    memory = np.concatenate((rows[0], rows[1:, -1]))
    strides = (a.itemsize, *np.empty(a.shape[1:], a.dtype).strides)
    return as_strided(memory, a.shape, strides)


def _slid(a: np.ndarray) -> np.ndarray:
    """The same shape, with values as `_sliding` can have them."""
    rows = a.reshape(len(a), -1)
    memory = np.resize(rows[0], rows.shape[1] + len(rows) - 1)
    return as_strided(memory, rows.shape, (a.itemsize, a.itemsize)).reshape(a.shape).copy()


def _repeated(a: np.ndarray) -> np.ndarray:
    return np.broadcast_to(a[..., :1].copy(), a.shape)


def _repeated_rows(a: np.ndarray) -> np.ndarray:
    return np.broadcast_to(a[:1].copy(), a.shape)


#: An array of the same values that lies in memory in its own way, and the code that makes it.
LAYOUTS: Final[dict[str, tuple[Arrange, str]]] = {
    "C": (lambda a: a.copy(), "{}"),
    "Fortran": (np.asfortranarray, "np.asfortranarray({})"),
    "reversed": (lambda a: a[::-1].copy()[::-1], "{}[::-1].copy()[::-1]"),
    "reversed last": (lambda a: a[..., ::-1].copy()[..., ::-1], "{}[..., ::-1].copy()[..., ::-1]"),
    "gaps": (lambda a: a.repeat(2, -1)[..., ::2], "{}.repeat(2, -1)[..., ::2]"),
    "gaps between rows": (lambda a: a.repeat(2, 0)[::2], "{}.repeat(2, 0)[::2]"),
    "columns of more": (
        lambda a: np.concatenate((a, a), -1)[..., : a.shape[-1]],
        "(lambda a: np.concatenate((a, a), -1)[..., :a.shape[-1]])({})",
    ),
    "swapped": (
        lambda a: a.swapaxes(0, -1).copy().swapaxes(0, -1),
        "{}.swapaxes(0, -1).copy().swapaxes(0, -1)",
    ),
    "swapped before last": (
        lambda a: a.swapaxes(0, max(a.ndim - 2, 0)).copy().swapaxes(0, max(a.ndim - 2, 0)),
        "(lambda a, n: a.swapaxes(0, n).copy().swapaxes(0, n))(*(lambda a: (a, max(a.ndim - 2, 0)))"
        "({}))",
    ),
    "zero stride": (_repeated, "(lambda a: np.broadcast_to(a[..., :1].copy(), a.shape))({})"),
    "zero stride of rows": (
        _repeated_rows,
        "(lambda a: np.broadcast_to(a[:1].copy(), a.shape))({})",
    ),
    "overlapping": (_sliding, "fuzz._operands._sliding({})"),
    "misaligned": (_misaligned, "fuzz._operands._misaligned({})"),
    "big-endian": (
        lambda a: a.astype(a.dtype.newbyteorder(">")),
        "(lambda a: a.astype(a.dtype.newbyteorder('>')))({})",
    ),
    "read-only": (_read_only, "fuzz._operands._read_only({})"),
}
_NAMES: Final = tuple(LAYOUTS)
#: Layouts that only some values can have, and what makes such values.
_FITTED: Final[dict[str, Arrange]] = {
    "zero stride": lambda a: _repeated(a).copy(),
    "zero stride of rows": lambda a: _repeated_rows(a).copy(),
    "overlapping": _slid,
}


@dataclass
class Operand:
    """Values, and how they are to lie in memory."""

    values: np.ndarray
    layout: str = "C"

    def array(self) -> np.ndarray:
        """A new array."""
        return LAYOUTS[self.layout][0](self.values)

    def lay(self, layout: str) -> None:
        """Choose a layout where there is one for such an array; it may change the values."""
        if self.values.ndim == 0 or self.values.size == 0:
            layout = layout if layout in ("C", "big-endian") else "C"
        if layout == "big-endian" and self.values.dtype.kind not in "fi":
            layout = "C"
        if layout in _FITTED:
            self.values = _FITTED[layout](self.values)
        self.layout = layout

    def code(self) -> str:
        return LAYOUTS[self.layout][1].format(literal(self.values))


def literal(array: np.ndarray) -> str:
    """The array as Python; a large one by its bytes."""
    if array.size <= 64:
        text = repr(array.tolist()).replace("nan", "np.nan").replace("inf", "np.inf")
        made = f"np.array({text}, np.{array.dtype.name})"
    else:
        packed = array.astype(array.dtype.newbyteorder("=")).tobytes().hex()
        made = f"np.frombuffer(bytes.fromhex('{packed}'), np.{array.dtype.name})"
        return f"{made}.reshape({array.shape})" if array.size <= 4096 else f"np.ones({array.shape})"
    return f"{made}.reshape({array.shape})" if array.size == 0 else made


def random_layout(rng: np.random.Generator) -> str:
    return _NAMES[int(rng.integers(len(_NAMES)))]


_SPECIAL: Final = (
    np.nan,
    np.inf,
    -np.inf,
    0.0,
    -0.0,
    1e-40,
    -3e-45,
    1e-38,
    1e-30,
    1e15,
    1e30,
    -3e38,
    1.0,
)


def sprinkle(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The values with some, or all, replaced: NaN, infinities, zeros, very small, very large."""
    if values.size == 0:
        return values
    way = int(rng.integers(8))
    with np.errstate(all="ignore"):
        if way == 0:
            return np.full_like(values, _SPECIAL[int(rng.integers(len(_SPECIAL)))])
        if way == 1:
            return np.asarray(np.rint(values))
        if way == 2:
            factor = 10.0 ** float(rng.integers(-42, 39))
            return np.asarray(values * factor).astype(values.dtype)
        if way == 3:
            scaled = values * 10.0 ** rng.uniform(-4, 4, values.shape)
            return np.asarray(scaled).astype(values.dtype)
        found = values.copy()
        flat = found.reshape(-1)
        count = 1 if way < 6 else max(1, values.size // 3)
        indices = rng.integers(0, values.size, count)
        special = _SPECIAL[int(rng.integers(len(_SPECIAL)))]
        if way == 7:
            flat[indices] = rng.choice(_SPECIAL, count).astype(values.dtype)
        else:
            flat[indices] = values.dtype.type(special)
        return found


_JUNK: Final[tuple[str, ...]] = (
    "None",
    "True",
    "False",
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "2**28",
    "2**31 - 1",
    "2**31",
    "2**32",
    "2**40",
    "2**62",
    "2**63 - 1",
    "2**63",
    "-(2**63)",
    "2**64",
    "2**70",
    "10**30",
    "-(10**400)",
    "0.5",
    "1.5",
    "-0.5",
    "1e300",
    "-1e-300",
    "float('nan')",
    "float('inf')",
    "-float('inf')",
    "1j",
    "''",
    "'same'",
    "'mean'",
    "'relu'",
    "'\\n\\x00'",
    "'x' * 1000",
    "b'x'",
    "()",
    "(1,)",
    "(1, 2)",
    "(2, 2)",
    "(0, 1)",
    "(1, -1)",
    "(2**63, 1)",
    "(1, 2**63)",
    "(2**31, 2**31)",
    "(None, 1)",
    "(1.0, 1.5)",
    "(True, True)",
    "(float('nan'), 1)",
    "('a', 1)",
    "(1, 2, 3)",
    "((1, 2), 1)",
    "[]",
    "[1, 1]",
    "[[1.0]]",
    "[[1], [2, 3]]",
    "[None]",
    "{}",
    "{'a': 1}",
    "set()",
    "object()",
    "object",
    "len",
    "...",
    "slice(None)",
    "range(3)",
    "np.int64(1)",
    "np.int64(-1)",
    "np.int8(2)",
    "np.uint64(2**64 - 1)",
    "np.float32('nan')",
    "np.float64(0.5)",
    "np.bool_(True)",
    "np.str_('mean')",
    "np.datetime64('2020-01-01')",
    "np.array(2)",
    "np.array(0.5)",
    "np.array([1, 2])",
    "np.array([0.5])",
    "np.array([])",
    "np.array(None)",
    "np.array('x')",
    "np.zeros((2, 2), object)",
    "np.zeros(3, 'S2')",
    "np.zeros(2, [('a', 'f4')])",
    "np.zeros((0, 3), 'f4')",
    "np.broadcast_to(np.float32(1), (2**40, 2**20))",
    "np.broadcast_to(np.float32(1), (2**31, 2**29))",
    "np.ma.masked_array([1.0, 2.0], [0, 1])",
    "np.random.default_rng(0)",
    "np.random.RandomState(0)",
    "__import__('fractions').Fraction(1, 3)",
    "__import__('decimal').Decimal('0.1')",
    "memoryview(b'abcd')",
    "iter(())",
    "hg.SKIP",
    "hg.ops",
)
#: Ways to make an array a invalid: of the right shape and another type, or the other way round.
_SPOILT: Final[tuple[str, ...]] = (
    "a.astype('f2')",
    "a.astype('i4')",
    "a.astype('i8')",
    "a.astype('u8')",
    "a.astype('u1')",
    "a.astype(bool)",
    "a.astype('c8')",
    "a.astype(object)",
    "a.astype('S4')",
    "a.astype('f4' if a.dtype == 'f8' else 'f8')",
    "a.astype('g')",
    "a.astype('>f4')",
    "a.astype('m8[s]')",
    "a.tolist()",
    "tuple(a.tolist()) if a.ndim else (1,)",
    "memoryview(a.copy(order='C'))",
    "a[None]",
    "a[..., None]",
    "a[0] if a.ndim and len(a) else a[None, None]",
    "a[..., 0] if a.ndim and a.shape[-1] else a[None, None]",
    "a.T",
    "a.reshape(-1)",
    "a[:0] if a.ndim else a",
    "a[1:] if a.ndim else a",
    "a[..., 1:] if a.ndim else a",
    "a[..., :0] if a.ndim else a",
    "np.concatenate((a, a)) if a.ndim else a",
    "np.concatenate((a, a), -1) if a.ndim else a",
    "a.sum()",
    "float(a.sum())",
    "np.ma.masked_array(a, a > 0)",
    "np.asmatrix(a) if a.ndim == 2 else a.view(np.recarray)",
    "np.broadcast_to(a, (2**40, *a.shape)) if 0 < a.nbytes < 2**20 else a",
    "-a if a.dtype.kind != 'b' else ~a",
    "a + 1 if a.dtype.kind == 'i' else a",
    "a + 2**40 if a.dtype == 'i8' else a",
    "np.full_like(a, -(2**63)) if a.dtype == 'i8' else a",
    "a.astype('u8') - np.uint64(100) if a.dtype.kind == 'i' else a",
    "a.astype('f4') * np.float32('nan')",
)


def junk(rng: np.random.Generator, array: np.ndarray | None) -> str:
    """A value that is mostly wrong, as Python; `a` in it stands for the right array."""
    if array is not None and rng.random() < 0.6:
        return _SPOILT[int(rng.integers(len(_SPOILT)))]
    return _JUNK[int(rng.integers(len(_JUNK)))]


def evaluated(code: str, array: Any = None) -> Any:
    """The value of such a piece of Python."""
    import handgrad

    with np.errstate(all="ignore"):
        return eval(code, {"np": np, "hg": handgrad, "a": array})
