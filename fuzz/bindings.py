"""Native functions called as they are bound, with arguments that do not fit together.

A call that fits gives the same bits whatever stood in its outputs before, and changes nothing but
these. In other calls some arguments are altered: shapes, types, layouts, None, settings up to
beyond 2⁶³. Such a call returns or raises an exception of Python; it reads and writes no memory
that is not its own, which AddressSanitizer sees where it is there, and bytes around the outputs
elsewhere.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

import handgrad as hg
from fuzz._bindings import TABLE
from fuzz._letters import Letters
from fuzz.harness import Case, Fault
from fuzz.harness.worker import sanitized
from handgrad import kernels
from handgrad.dispatch.settings import block

PATIENCE = 10.0
MEMORY = 1024

#: What a refused call may raise.
_REFUSALS: Final = (TypeError, ValueError, IndexError, MemoryError, OverflowError)
_GUARD: Final = 64
_POISON: Final = (float("nan"), 7.0)
_HAS_BF16: Final = kernels.native is not None and kernels.native.bf16_unit != "none"
_EXTREMES: Final = (-(2**63), -1, 0, 1, 2, 3, 5, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1)
_JUNK: Final[tuple[Any, ...]] = (
    None,
    True,
    0,
    -1,
    1.5,
    float("nan"),
    2**64,
    "relu",
    (),
    (1, 2),
    [],
    object(),
    len,
)


class Argument(NamedTuple):
    """An argument as the table says it; `axes` is None for a setting, which is `value`."""

    name: str
    marks: str
    axes: str | None
    value: str


@cache
def arguments_of(form: str) -> tuple[Argument, ...]:
    found = []
    for text in TABLE[form][0].split():
        matched = re.fullmatch(r"(\w+)(?:=(.+)|((?:#[^#]*#|[^\w:])*):(.*))", text)
        assert matched is not None, text
        name, value, marks, axes = matched.groups()
        found.append(Argument(name, marks or "", axes, value or ""))
    return tuple(found)


class _Built:
    """The arguments of a call that fits; its outputs are filled with `poison`."""

    def __init__(self, form: str, seed: int, poison: float) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype = np.dtype(np.float32 if self.rng.random() < 0.6 else np.float64)
        self.letters: Letters = TABLE[form][1](self.rng)
        self.letters |= {
            "flag": bool(self.rng.integers(2)),
            "code": int(self.rng.integers(10)),
            "offset": int(self.rng.integers(-4, 5)),
        }
        self.poison = poison
        self.guards: list[np.ndarray] = []
        self.described = arguments_of(form)
        self.values: list[Any] = [self._made(argument) for argument in self.described]

    def outputs(self) -> list[tuple[str, Any]]:
        """The outputs that are written whole, and what is changed in place."""
        return [
            (argument.name, value)
            for argument, value in zip(self.described, self.values, strict=True)
            if {">", "&"} & set(argument.marks)
        ]

    def inputs(self) -> list[tuple[str, Any]]:
        return [
            (argument.name, value)
            for argument, value in zip(self.described, self.values, strict=True)
            if isinstance(value, np.ndarray) and not {">", "&", "~"} & set(argument.marks)
        ]

    def check_guards(self) -> None:
        for guard in self.guards:
            if (guard != 0xA5).any():
                raise Fault("memory", "bytes beside an output were written")

    def _made(self, argument: Argument) -> Any:
        if argument.axes is None:
            return eval(argument.value, dict(self.letters))
        marks = argument.marks
        absent = self.rng.random() < 0.3
        if "?" in marks and absent:
            return None
        shape = tuple(eval(f"({argument.axes},)", dict(self.letters))) if argument.axes else ()
        dtype = self._type(marks)
        array = self._memory(shape, dtype, marks)
        if ">" in marks or "~" in marks:
            array[...] = self.poison if dtype.kind == "f" else np.isnan(self.poison)
        elif dtype.kind == "f":
            array[...] = self.rng.standard_normal(shape)
        elif dtype.kind == "b":
            array[...] = self.rng.random(shape) < 0.7
        elif "%" in marks:
            array[...] = 0
        else:
            array[...] = self._integers(marks, shape)
        return array

    def _type(self, marks: str) -> np.dtype:
        if "#" in marks:
            return np.dtype(np.int64)
        if "%" in marks:
            return np.dtype(f"i{self.dtype.itemsize}")
        fixed = {"!": np.bool_, "^": np.float64, ".": np.float32}
        return np.dtype(next((fixed[mark] for mark in marks if mark in fixed), self.dtype))

    def _integers(self, marks: str, shape: tuple[int, ...]) -> np.ndarray:
        (bound,) = re.findall("#(.*)#", marks)
        if bound == "label":
            return self.rng.integers(1, self.letters["C"], shape)
        most = int(eval(bound, dict(self.letters)))
        return self.rng.integers(0, max(most, 1), shape)

    def _memory(self, shape: tuple[int, ...], dtype: np.dtype, marks: str) -> np.ndarray:
        """An array of this shape, with strides where the argument takes them."""
        order = list(range(len(shape)))
        if "*" in marks:
            end = len(order) if "**" in marks else len(order) - 1
            order[:end] = self.rng.permutation(order[:end]).tolist()
        memory = self._guarded(tuple(shape[axis] for axis in order), dtype)
        array = memory.transpose(np.argsort(order)) if order else memory
        if "*" in marks and shape and self.rng.random() < 0.2:
            array = array[::-1]
        return array

    def _guarded(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        if sanitized():
            return np.empty(shape, dtype)
        size = int(np.prod(shape)) * dtype.itemsize
        whole = np.full(size + 2 * _GUARD, 0xA5, np.uint8)
        self.guards += [whole[:_GUARD], whole[_GUARD + size :]]
        return whole[_GUARD : _GUARD + size].view(dtype).reshape(shape)


@contextlib.contextmanager
def _settings(rng: np.random.Generator) -> Iterator[None]:
    bf16 = _HAS_BF16 and rng.random() < 0.2
    threads = block(threads=int(rng.integers(1, 4)))
    with np.errstate(all="ignore"), threads, hg.precision("bf16" if bf16 else "float32"):
        yield


def _function(form: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(kernels.native, form.partition(" ")[0])
    return found


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(np.ascontiguousarray(value).tobytes())


def draw(rng: np.random.Generator) -> Case:
    form = str(rng.choice(sorted(TABLE)))
    seed, other = (int(n) for n in rng.integers(2**62, size=2))
    if kernels.native is None:
        return Case(form, lambda: None)
    if rng.random() < 0.3:
        return Case(form, lambda: _fitting(form, seed, other), _program(form, seed, None))
    return Case(form, lambda: _altered(form, seed, other), _program(form, seed, other))


def _program(form: str, seed: int, other: int | None) -> str:
    call = (
        f"_fitting({form!r}, {seed}, 0)"
        if other is None
        else f"_altered({form!r}, {seed}, {other})"
    )
    return f"from fuzz.bindings import _altered, _fitting\n\n{call}\n"


def _fitting(form: str, seed: int, other: int) -> None:
    """A call that fits, twice, on outputs full of other values."""
    found: list[list[bytes | None]] = []
    for poison in _POISON:
        built = _Built(form, seed, poison)
        before = [_bytes(value) for _, value in built.inputs()]
        with _settings(np.random.default_rng(other)):
            try:
                result = _function(form)(*built.values)
            except _REFUSALS as error:
                raise Fault("refused", f"{error}") from None
        built.check_guards()
        if [_bytes(value) for _, value in built.inputs()] != before:
            raise Fault("modified input", "an input was changed")
        found.append([_bytes(value) for _, value in built.outputs()] + [_bytes(result)])
    names = [name for name, _ in built.outputs()] + ["the result"]
    for name, one, two in zip(names, *found, strict=True):
        if one != two:
            raise Fault("memory", f"{name} holds what stood in memory before")


def _altered(form: str, seed: int, other: int) -> None:
    """A call some of whose arguments are others."""
    built, rng = _Built(form, seed, 7.0), np.random.default_rng(other)
    values = list(built.values)
    count = min(int(rng.choice((1, 1, 1, 2, 3))), len(values))
    for at in rng.choice(len(values), count, replace=False):
        values[at] = _other(values[at], rng)
    if rng.random() < 0.05:
        values = values[:-1] if rng.random() < 0.5 else [*values, None]
    with _settings(rng):
        try:
            _function(form)(*values)
        except ValueError as error:
            if "; allowed: " not in str(error):
                raise Fault("no sentence", f"{error}") from None
        except _REFUSALS:
            pass
    built.check_guards()


def _other(value: Any, rng: np.random.Generator) -> Any:
    """Something in the place of an argument."""
    if rng.random() < 0.08:
        return _JUNK[int(rng.integers(len(_JUNK)))]
    if isinstance(value, np.ndarray):
        way = (_reshaped, _reshaped, _reshaped, _retyped, _relaid, _revalued)
        return way[int(rng.integers(len(way)))](value, rng)
    if isinstance(value, bool) or value is None:
        return _JUNK[int(rng.integers(len(_JUNK)))]
    if isinstance(value, int):
        return _number(value, rng)
    if isinstance(value, float):
        return rng.choice((np.nan, np.inf, -np.inf, -1.0, 0.0, 1e300))
    if isinstance(value, tuple):
        several = list(value)
        for _ in range(int(rng.integers(1, 4))):
            at = int(rng.integers(len(several)))
            several[at] = _number(several[at], rng)
        return tuple(several) if rng.random() < 0.95 else tuple(several[:-1])
    return value


def _number(value: int, rng: np.random.Generator) -> int:
    near = (value - 1, value + 1, 2 * value, -value)
    choices = (*near, *near, *_EXTREMES)
    return choices[int(rng.integers(len(choices)))]


def _reshaped(array: np.ndarray, rng: np.random.Generator) -> Any:
    """An array of another shape, or a view of as much memory that says it is far larger."""
    shape = list(array.shape)
    way = int(rng.integers(8))
    axis = int(rng.integers(len(shape))) if shape else 0
    if way == 0 or not shape:
        shape.insert(axis, int(rng.choice((0, 1, 2))))
    elif way == 1:
        del shape[axis]
    elif way == 2:
        shape[axis] = 0
    elif way == 3:
        rng.shuffle(shape)
    elif way == 4:  # no values, and yet many rows
        shape[axis] = 0
        if len(shape) > 1:
            shape[(axis + 1) % len(shape)] = 2 ** int(rng.choice((33, 40, 50)))
    elif way == 5:
        shape[axis] = 2 ** int(rng.choice((20, 33)))
        size = int(np.prod(np.array(shape, object)))
        strides = [0 if n == axis else s for n, s in enumerate(array.strides)]
        if array.size == 0 or size >= 2**40:
            return array
        return np.lib.stride_tricks.as_strided(array, shape, strides)
    else:
        shape[axis] += int(rng.choice((-1, 1))) if shape[axis] else 1
    try:
        made = np.empty(shape, array.dtype)
    except (ValueError, MemoryError):
        return array
    made[...] = 0 if array.dtype.kind != "f" else 0.5
    return made


def _retyped(array: np.ndarray, rng: np.random.Generator) -> Any:
    kinds = ("f4", "f8", "f2", "i8", "i4", "u8", "?", "c8", "O", ">f4", ">f8", ">i8", "g", "S4")
    return array.astype(kinds[int(rng.integers(len(kinds)))])


def _relaid(array: np.ndarray, rng: np.random.Generator) -> Any:
    """The same values in other memory: reversed, with gaps, misaligned, read-only, overlapping."""
    way = int(rng.integers(7))
    if way == 0:
        readonly = array.copy()
        readonly.flags.writeable = False
        return readonly
    if way == 1:
        shifted = np.empty(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
        shifted[...] = array
        return shifted
    if way == 2:
        return np.asfortranarray(array)
    if way == 3 and array.ndim:
        return np.flip(np.flip(array, -1).copy(), -1)
    if way == 4 and array.ndim:
        return np.repeat(array, 2, axis=-1)[..., ::2]
    if way == 5 and array.ndim and array.size:
        return np.broadcast_to(array[:1], array.shape)
    if way == 6 and array.ndim > 1 and array.size:
        return np.lib.stride_tricks.as_strided(array, array.shape, (0, *array.strides[1:]))
    return array[..., ::-1] if array.ndim else array


def _revalued(array: np.ndarray, rng: np.random.Generator) -> Any:
    changed = array.copy()
    if changed.size == 0:
        return changed
    flat = changed.reshape(-1)
    at = rng.integers(flat.size, size=int(rng.integers(1, 4)))
    if changed.dtype.kind == "f":
        flat[at] = rng.choice((np.nan, np.inf, -np.inf, 1e30, -1e-40, 0.0))
    elif changed.dtype.kind == "i":
        bounds = np.iinfo(changed.dtype)
        flat[at] = np.clip(
            int(_EXTREMES[int(rng.integers(len(_EXTREMES)))]), bounds.min, bounds.max
        )
    return changed
