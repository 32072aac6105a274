"""How an op runs: the settings, and the one place that decides between reference and kernel."""

from handgrad.dispatch.caches import KernelCache, takes_plus
from handgrad.dispatch.gradients import SKIP, addend, check_place
from handgrad.dispatch.operation import implementation, operation, part_of_backward
from handgrad.dispatch.settings import (
    ENGINES,
    PRECISIONS,
    check_precision,
    engine,
    get_engine,
    get_precision,
    get_threads,
    precision,
    set_engine,
    set_precision,
    set_threads,
    settings,
    threads,
)

__all__ = [
    "ENGINES",
    "PRECISIONS",
    "SKIP",
    "KernelCache",
    "addend",
    "check_place",
    "check_precision",
    "engine",
    "get_engine",
    "get_precision",
    "get_threads",
    "implementation",
    "operation",
    "part_of_backward",
    "precision",
    "set_engine",
    "set_precision",
    "set_threads",
    "settings",
    "takes_plus",
    "threads",
]
