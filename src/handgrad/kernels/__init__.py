"""The same ops, fused, in C++: `<stem>.cpp` computes, `<stem>.py` allocates and calls it.

One source is compiled once per instruction set; the best one this CPU runs is chosen here, at
import. `HANDGRAD_ISA` forces another.
Where no compiled module is found, `native` is None and `reason` says why; every op then runs as its
reference.
"""

from __future__ import annotations

import os
from types import ModuleType
from typing import Final

from handgrad.errors import EngineError
from handgrad.kernels.loading import foreign_modules, load_module

#: Ops whose kernel is still to come. Tests fail when an op is neither here nor has a kernel.
PENDING: Final[frozenset[str]] = frozenset()

#: Instruction sets from best to plainest, as `HANDGRAD_ISA` names them, with their modules.
INSTRUCTION_SETS: Final = {
    "x86-64-v4": "_native_x86_64_v4",
    "x86-64-v3": "_native_x86_64_v3",
    "x86-64": "_native_x86_64",
    "arm64": "_native_arm64",
    "generic": "_native_generic",
}

#: Native functions that a recording passes over: they compute nothing that it would have to repeat.
_SERVICES: Final = frozenset(
    {
        "empty",
        "empty_like",
        "fits",
        "get_threads",
        "has_whole_rows",
        "keep_threads_out",
        "kernel",
        "release_memory",
        "set_context_variable",
        "set_default_precision",
        "set_default_threads",
        "spoil_recording",
        "watch_signals",
    }
)


def _load() -> tuple[ModuleType | None, str, str]:
    """The compiled module, the name of its instruction set, and why there is none if so."""
    try:
        supported: tuple[str, ...] = load_module("_cpu").supported()
    except ModuleNotFoundError:
        why = foreign_modules() or "the kernels were not compiled when handgrad was installed"
        return None, "", why
    wanted = os.environ.get("HANDGRAD_ISA")
    if wanted is not None and wanted not in supported:
        raise EngineError(
            f"HANDGRAD_ISA is {wanted!r}; allowed on this machine: {', '.join(supported)}"
        )
    name = wanted or supported[0]
    module = load_module(INSTRUCTION_SETS[name])
    _make_recordable(module)
    return module, name, ""


def _make_recordable(module: ModuleType) -> None:
    """Reach every native function through a `Kernel`, so that a `Recording` can note its calls."""
    for name, value in list(vars(module).items()):
        if type(value).__name__ == "nb_func" and name not in _SERVICES:
            setattr(module, name, module.kernel(value))


native, instruction_set, reason = _load()
