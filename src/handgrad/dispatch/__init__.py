"""How an op runs: the settings, and the one place that decides between reference and kernel."""

from handgrad.dispatch.operation import (
    SKIP,
    KernelCache,
    addend,
    implementation,
    operation,
    part_of_backward,
    takes_plus,
)
from handgrad.dispatch.settings import (
    ENGINES,
    PRECISIONS,
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
    "ENGINES",
    "PRECISIONS",
    "SKIP",
    "KernelCache",
    "addend",
    "check_precision",
    "current_settings",
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
    "takes_plus",
    "threads",
]
