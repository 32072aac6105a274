"""Dispatch: the settings, and the one decision between reference and kernel."""

from handgrad.dispatch.caches import KernelCache, reference_of
from handgrad.dispatch.gradients import SKIP, as_residual, check_buffer
from handgrad.dispatch.operation import loop_backward, loop_forward, operation, part_of_backward
from handgrad.dispatch.settings import (
    check_precision,
    current_settings,
    engine,
    get_engine,
    get_precision,
    get_threads,
    precision,
    set_engine,
    set_precision,
    set_threads,
    threads,
)

__all__ = [
    "SKIP",
    "KernelCache",
    "as_residual",
    "check_buffer",
    "check_precision",
    "current_settings",
    "engine",
    "get_engine",
    "get_precision",
    "get_threads",
    "loop_backward",
    "loop_forward",
    "operation",
    "part_of_backward",
    "precision",
    "reference_of",
    "set_engine",
    "set_precision",
    "set_threads",
    "threads",
]
