"""Random calls of ops that should go through: from the samples that the checker has of every op.

Sizes are changed on top, as the letters of the annotations tie them: to 0, to 1, to those around
the tiles of kernels; then values and layouts.
"""

from __future__ import annotations

import functools
import inspect
import re
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any, Final

import numpy as np

from fuzz._operands import Operand, random_layout, sprinkle
from handgrad.ops import OPS, samples
from handgrad.ops.samples import Seed

_SIZES: Final = (0, 0, 0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 65)
_ANNOTATION: Final = re.compile(r"\[\s*Array,\s*['\"]([^'\"]*)['\"]\s*\]")

NAMES: Final = tuple(OPS)


@dataclass
class Call:
    """An op's forward with its arguments: operands by name, and everything else."""

    op: str
    operands: dict[str, Operand]
    options: dict[str, Any]
    dtype: Any
    #: True if values are such that the largest of an array says how far rounding goes.
    ordinary: bool = True
    notes: list[str] = field(default_factory=list)

    @property
    def module(self) -> ModuleType:
        return import_module(f"handgrad.ops.{self.op}")

    def arrays(self) -> dict[str, np.ndarray]:
        return {name: operand.array() for name, operand in self.operands.items()}

    def settings(self) -> dict[str, Any]:
        """The other arguments, every seed a new generator."""
        return {
            name: np.random.default_rng(value.number) if isinstance(value, Seed) else value
            for name, value in self.options.items()
        }

    def settings_code(self) -> list[str]:
        return [
            f"{name}=np.random.default_rng({value.number})"
            if isinstance(value, Seed)
            else f"{name}={repr(value).replace('nan', 'np.nan').replace('inf', 'np.inf')}"
            for name, value in self.options.items()
        ]


@functools.cache
def parameters(op: str) -> dict[str, inspect.Parameter]:
    """The arguments of an op's forward."""
    reference = import_module(f"handgrad.ops.{op}").forward.reference
    return dict(inspect.signature(reference).parameters)


@functools.cache
def _letters(op: str, name: str, ndim: int, first_ndim: int) -> tuple[str, ...]:
    """A name for each axis of an argument of so many axes, from its annotation."""
    for shape in _ANNOTATION.findall(str(parameters(op)[name].annotation)):
        tokens = shape.split()
        if tokens == ["..."]:  # whatever broadcasts to the first argument
            first = next(iter(parameters(op)))
            return _letters(op, first, first_ndim, first_ndim)[first_ndim - ndim :]
        if tokens and all(token[0] == "#" for token in tokens) and ndim < len(tokens):
            tokens = tokens[len(tokens) - ndim :]
        several = [i for i, token in enumerate(tokens) if token[0] in "*."]
        if not several and len(tokens) == ndim:
            return tuple(token.lstrip("#") for token in tokens)
        if several and len(tokens) - 1 <= ndim:
            (i,) = several
            extra = [f"{tokens[i]}{n}" for n in range(ndim - len(tokens) + 1)]
            return tuple(token.lstrip("#") for token in (*tokens[:i], *extra, *tokens[i + 1 :]))
    return tuple(f"{name}{n}" for n in range(ndim))


def _axes(call: Call, name: str) -> tuple[str, ...]:
    """A name for each axis of one of the call's arrays; of the same name, of the same length."""
    first = next(iter(call.operands.values())).values.ndim
    return _letters(call.op, name, call.operands[name].values.ndim, first)


def sizes_of(call: Call) -> dict[str, int]:
    """The length of every axis by its letter."""
    found: dict[str, int] = {}
    for name, operand in call.operands.items():
        for letter, size in zip(_axes(call, name), operand.values.shape, strict=True):
            found[letter] = max(size, found.get(letter, 0))
    return found


def _tied(call: Call, letter: str, size: int, sizes: dict[str, int]) -> dict[str, int]:
    """All letters that change with one, and their sizes."""
    op, groups = call.op, call.options.get("groups", 1)
    if op in ("conv1d", "conv2d"):
        if letter in "CI":
            return {"C": size * groups, "I": size}
        return {letter: size * groups if letter == "O" else size}
    if op in ("conv_transpose1d", "conv_transpose2d"):
        if letter in "OI":
            return {"O": size * groups, "I": size}
        return {letter: size * groups if letter == "C" else size}
    if op == "attention" and letter in "HG":
        return {"G": size, "H": size * (sizes["H"] // max(sizes["G"], 1))}
    if op in ("gru", "lstm") and letter in "GHP":
        gates = 3 if op == "gru" else 4
        if "weight_hr" in call.operands:
            return {"P": size} if letter == "P" else {"H": size, "G": gates * size}
        return {"H": size, "P": size, "G": gates * size}
    halved = ("positional_encoding", "swiglu", "geglu")
    if call.options.get("frequencies") is not None and letter == "d":
        return {}  # one for each pair of features
    if (op == "rotary" and letter == "d") or (op in halved and letter == "D"):
        return {letter: size + size % 2}
    if op == "group_norm" and letter == "C":
        return {letter: size * call.options["num_groups"]}
    return {letter: size}


def _resize(call: Call, rng: np.random.Generator) -> None:
    """Change the size of one letter, and of what hangs on it."""
    sizes = sizes_of(call)
    if not sizes:
        return
    letters = sorted(sizes)
    letter = letters[int(rng.integers(len(letters)))]
    total = max(sum(operand.values.size for operand in call.operands.values()), 1)
    size = _SIZES[int(rng.integers(len(_SIZES)))]
    if size > 5 and total / max(sizes[letter], 1) * size > 2500:
        size = int(rng.integers(0, 4))
    resize(call, letter, size, rng)


def resize(call: Call, letter: str, size: int, rng: np.random.Generator) -> None:
    """Make the axes of this letter so long, and change what hangs on it."""
    sizes = sizes_of(call)
    changed = _tied(call, letter, size, sizes)
    for name, operand in call.operands.items():
        values = operand.values
        for axis, at in enumerate(_axes(call, name)):
            new, old = changed.get(at), values.shape[axis]
            if new is None or new == old or (old == 1 and sizes[at] != 1):
                continue
            if old == 0:
                shape = (*values.shape[:axis], new, *values.shape[axis + 1 :])
                values = np.zeros(shape, values.dtype)
                if values.dtype.kind == "f":
                    values = rng.standard_normal(shape).astype(values.dtype)
            else:
                values = values.take(np.arange(new) % old, axis)
        operand.values = values
    _keep_indices_in_range(call)


def _keep_indices_in_range(call: Call) -> None:
    sizes = sizes_of(call)
    steps = sizes.get("S", sizes.get("T", 0)) if call.op == "attention" else sizes.get("T", 0)
    limits = {"lengths": steps, "input_lengths": steps, "target_lengths": sizes.get("L", 0)}
    for name in limits.keys() & call.operands.keys():
        lengths = call.operands[name]
        lengths.values = np.minimum(lengths.values, limits[name])
    for name, letter in (("tokens", "V"), ("target", "C"), ("targets", "C")):
        operand = call.operands.get(name)
        if operand is not None and operand.values.dtype.kind == "i" and sizes.get(letter):
            values = operand.values
            operand.values = np.where(values >= 0, values % sizes[letter], values)


def draw_call(rng: np.random.Generator, op: str | None = None) -> Call:
    """A call with random sizes, settings, values and layouts."""
    op = NAMES[int(rng.integers(len(NAMES)))] if op is None else op
    table = samples.op_samples(op)
    if rng.random() < 0.25:
        row = table.rows[int(rng.integers(len(table.rows)))]
    else:
        row = table.random(rng)
    sample = row.draw(rng)
    dtype = np.dtype(np.float32 if rng.random() < 0.7 else np.float64)
    operands = {
        name: Operand(np.array(a, dtype) if a.dtype.kind == "f" else np.array(a))
        for name, a in sample.arrays.items()
    }
    call = Call(op, operands, dict(sample.options), dtype, sample.situation != "extreme values")
    if rng.random() < 0.4:
        _resize(call, rng)
        if rng.random() < 0.3:
            _resize(call, rng)
    if rng.random() < 0.25:
        change_values(call, rng)
    if rng.random() < 0.4:
        for operand in operands.values():
            if rng.random() < 0.5:
                operand.lay(random_layout(rng))
    return call


def change_values(call: Call, rng: np.random.Generator) -> None:
    """Put special values into some of the arrays of floats."""
    for operand in call.operands.values():
        if operand.values.dtype.kind == "f" and rng.random() < 0.6:
            operand.values = sprinkle(operand.values, rng)
            call.ordinary = False
