"""Settings of the calls that follow: the engine, and the precision of products.

Kernels also have a precision: of the products of float32 arrays in dense, linear, matmul, the
convolutions, the recurrent ops and attention. With `bf16` their operands are rounded to bfloat16 on
the way in and summed in float32, in forward and in backward, each as the precision is when it is
called. Everything kept or returned is float32, all other arithmetic too, and float64 stays float64.
References compute in the type of their arrays.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from handgrad import kernels
from handgrad.errors import ArgumentError, EngineError

ENGINES: Final = ("auto", "kernels", "reference")
PRECISIONS: Final = ("float32", "bf16")


def _named_engine(name: str, origin: str) -> str:
    if name not in ENGINES:
        raise ArgumentError(f"{origin} is {name!r}; allowed: {', '.join(ENGINES)}")
    return name


_engine = _named_engine(os.environ.get("HANDGRAD_ENGINE", "auto"), "HANDGRAD_ENGINE")


def get_engine() -> str:
    """The engine asked for: `auto`, `kernels` or `reference`."""
    return _engine


def set_engine(name: str) -> None:
    """Choose the engine for the calls that follow. Raises ArgumentError for an unknown name."""
    global _engine
    if _named_engine(name, "engine") == "kernels" and kernels.native is None:
        raise EngineError(f"engine 'kernels' is not available: {kernels.reason}")
    _engine = name


@contextmanager
def engine(name: str) -> Iterator[None]:
    """`with hg.engine("reference"): ...` runs the block on that engine."""
    previous = get_engine()
    set_engine(name)
    try:
        yield
    finally:
        set_engine(previous)


def check_precision(name: str, origin: str = "precision") -> None:
    """Raise ArgumentError for an unknown precision, EngineError for one that cannot be had."""
    if name not in PRECISIONS:
        raise ArgumentError(f"{origin} is {name!r}; allowed: {', '.join(PRECISIONS)}")
    if name == "float32":
        return
    if _engine == "reference":
        raise EngineError(
            f"{origin} is {name!r}, which only kernels have; engine 'reference' computes in the "
            f"type of its arrays"
        )
    if kernels.native is None or kernels.native.bf16_unit == "none":
        found = f"those of {kernels.instruction_set}" if kernels.native else "no kernels"
        raise EngineError(
            f"{origin} is {name!r}, which needs a CPU with avx512_bf16 or AMX and the x86-64-v4 "
            f"kernels; in use here: {found}, bf16 unit none"
        )


_precision = "float32"


def get_precision() -> str:
    """The precision of the kernels' float32 products: `float32` or `bf16`."""
    return _precision


def set_precision(name: str) -> None:
    """Choose the precision for the calls that follow.

    Raises ArgumentError for an unknown name, EngineError where there is no unit or no kernel.
    """
    global _precision
    check_precision(name)
    if kernels.native is not None:
        kernels.native.set_precision_bf16(name == "bf16")
    _precision = name


@contextmanager
def precision(name: str) -> Iterator[None]:
    """`with hg.precision("bf16"): ...` runs the block with products of that precision."""
    previous = get_precision()
    set_precision(name)
    try:
        yield
    finally:
        set_precision(previous)


_asked = os.environ.get("HANDGRAD_PRECISION")
if _asked is not None:
    check_precision(_asked, "HANDGRAD_PRECISION")
    set_precision(_asked)
