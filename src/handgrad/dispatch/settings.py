"""Settings of the calls that follow: the engine, the precision of products, the number of threads.

They belong to the context of whoever calls (PEP 567), as NumPy's errstate does. A block such as
`with hg.engine("reference"): ...` holds in its thread and its asyncio task alone, whatever others
do meanwhile. `set_engine` and the like, called in a block, hold until the block ends. Called
outside of any block in the main thread, as at the top of a program, they are for the whole process:
for every thread and task that has set nothing itself, running or still to come. Called outside of
any block in another thread or in a task of asyncio, they hold in that thread or task. A thread that
is started in a block begins as all do, unless it is given a copy of the context.

Kernels have a precision of the products of float32 arrays in dense, linear, matmul, the
convolutions, the recurrent ops and attention. With `bf16` their operands are rounded to bfloat16 on
the way in and summed in float32, in forward and in backward, each as the precision is when it is
called. Everything kept or returned is float32, all other arithmetic too, and float64 stays float64.
References compute in the type of their arrays.

Results never differ by the number of threads.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from handgrad import kernels
from handgrad.dispatch.cores import ALLOWED, MOST_THREADS, default_threads
from handgrad.dispatch.cpu_caches import LINE, known_caches
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError, EngineError

ENGINES: Final = ("auto", "kernels", "reference")
PRECISIONS: Final = ("float32", "bf16")
#: Values of HANDGRAD_WINOGRAD, and the rows of outputs of a tile as native code has them: 0 for
#: none, -1 for what is predicted to be faster.
WINOGRAD: Final = {"auto": -1, "0": 0, "2": 2, "4": 4}


class Settings(NamedTuple):
    """Native code reads the second and the third field by their index."""

    engine: str
    precision: str
    threads: int  # 0: the default


_process = Settings("auto", "float32", 0)
_context: Final[ContextVar[Settings]] = ContextVar("handgrad.settings")


def current_settings() -> Settings:
    """The settings in force."""
    return _context.get(_process)


def _is_program() -> bool:
    """Return whether a setting is for the process: in no block, in the main thread and no task."""
    if _context.get(None) is not None or threading.current_thread() is not threading.main_thread():
        return False
    asyncio = sys.modules.get("asyncio")
    return asyncio is None or asyncio._get_running_loop() is None


def _set(new: Settings) -> None:
    global _process
    if not _is_program():
        _context.set(new)
        return
    _process = new
    if kernels.native is not None:
        kernels.native.set_default_precision(new.precision == "bf16")
        kernels.native.set_default_threads(
            *((new.threads, False) if new.threads else default_threads())
        )


@contextmanager
def block(**changes: Any) -> Iterator[None]:
    """Run the block with these fields of the settings, which nobody checks, changed."""
    token = _context.set(current_settings()._replace(**changes))
    try:
        yield
    finally:
        _context.reset(token)


def _check_engine(name: str, origin: str = "engine") -> None:
    if not isinstance(name, str) or name not in ENGINES:
        raise ArgumentError(f"{origin} is {shown(name)}; allowed: {', '.join(ENGINES)}")
    if name == "kernels" and kernels.native is None:
        raise EngineError(f"engine 'kernels' is not available: {kernels.reason}")


def get_engine() -> str:
    """The engine asked for: `auto`, `kernels` or `reference`."""
    return _context.get(_process).engine


def set_engine(name: str) -> None:
    """Choose the engine for the calls that follow; see the module for whose these are.

    Raises ArgumentError for an unknown name, EngineError where there are no kernels.
    """
    _check_engine(name)
    _set(current_settings()._replace(engine=name))


def engine(name: str) -> AbstractContextManager[None]:
    """`with hg.engine("reference"): ...` runs the block on that engine. Raises as set_engine."""
    _check_engine(name)
    return block(engine=name)


def check_precision(name: str, origin: str = "precision") -> None:
    """Raise ArgumentError for an unknown precision, EngineError for one that cannot be had."""
    if not isinstance(name, str) or name not in PRECISIONS:
        raise ArgumentError(f"{origin} is {shown(name)}; allowed: {', '.join(PRECISIONS)}")
    if name == "float32":
        return
    if get_engine() == "reference":
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


def get_precision() -> str:
    """The precision of the kernels' float32 products: `float32` or `bf16`."""
    return _context.get(_process).precision


def set_precision(name: str) -> None:
    """Choose the precision for the calls that follow; see the module for whose these are.

    Raises ArgumentError for an unknown name, EngineError where there is no unit or no kernel.
    """
    check_precision(name)
    _set(current_settings()._replace(precision=name))


def precision(name: str) -> AbstractContextManager[None]:
    """`with hg.precision("bf16"): ...` runs the block with products of that precision.

    Raises as set_precision.
    """
    check_precision(name)
    return block(precision=name)


def _check_threads(count: int) -> None:
    if type(count) is not int or not 1 <= count <= MOST_THREADS:
        raise ArgumentError(f"threads is {shown(count)}; {ALLOWED}")


def get_threads() -> int:
    """The number of threads of the kernels, the calling one included; 1 without kernels."""
    return 1 if kernels.native is None else int(kernels.native.get_threads())


def set_threads(count: int) -> None:
    """Use this many threads for the calls that follow; see the module for whose these are.

    Raises ArgumentError unless count is a whole number from 1 to 1024. Without kernels the
    reference runs as NumPy does and this changes nothing. A program that sets none uses as many as
    it may use cores: `HANDGRAD_THREADS`, `OMP_NUM_THREADS`, affinity and control groups decide.
    """
    _check_threads(count)
    _set(current_settings()._replace(threads=count))


def threads(count: int) -> AbstractContextManager[None]:
    """`with hg.threads(2): ...` runs the block with that many threads. Raises as set_threads."""
    _check_threads(count)
    return block(threads=count)


def _begin() -> None:
    """The setting of the environment, which holds for the process until another is made."""
    global _process
    count = default_threads()
    if kernels.native is not None:
        atexit.register(kernels.native.keep_threads_out)
        kernels.native.watch_signals(threading.main_thread().ident)
        kernels.native.set_context_variable(_context)
        caches = known_caches()
        l1, l2 = caches["l1"], caches["l2"]
        kernels.native.set_caches(l1.bytes // l1.shared, l1.ways, l2.bytes // l2.shared, LINE)
        kernels.native.set_default_threads(*count)
    name = os.environ.get("HANDGRAD_ENGINE", "auto")
    _check_engine(name, "HANDGRAD_ENGINE")
    _process = _process._replace(engine=name)
    name = os.environ.get("HANDGRAD_PRECISION", "float32")
    check_precision(name, "HANDGRAD_PRECISION")
    _process = _process._replace(precision=name)
    if kernels.native is not None:
        kernels.native.set_default_precision(name == "bf16")
    name = os.environ.get("HANDGRAD_WINOGRAD", "auto")
    if name not in WINOGRAD:
        raise EngineError(f"HANDGRAD_WINOGRAD is {name!r}; allowed: {', '.join(WINOGRAD)}")
    if kernels.native is not None:
        kernels.native.set_winograd(WINOGRAD[name])


_begin()
