"""The same ops, fused, in C++: `<op>.cpp` computes, `<op>.py` allocates and calls it.

One source is compiled once per instruction set, for those that `HANDGRAD_BUILD` named when handgrad
was installed; the best one that is there and that this CPU runs is chosen here, at import.
`HANDGRAD_ISA` forces another. Where no compiled module is found, `native` is None and `reason` says
why; every op then runs as its reference, and a RuntimeWarning says so unless HANDGRAD_ENGINE asks
for that.
"""

from __future__ import annotations

import os
import warnings
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from handgrad.errors import EngineError
from handgrad.kernels.loading import compiled_module, foreign_modules

#: Instruction sets from best to plainest, as `HANDGRAD_ISA` names them, with their modules.
INSTRUCTION_SETS: Final = {
    "x86-64-v4": "_native_x86_64_v4",
    "x86-64-v3": "_native_x86_64_v3",
    "x86-64": "_native_x86_64",
    "arm64": "_native_arm64",
    "generic": "_native_generic",
}

_NO_REASON: Final = "they were not compiled when handgrad was installed"


def _load() -> tuple[ModuleType | None, str, tuple[str, ...], str]:
    """The compiled module, its instruction set, all that could be taken, and why none if so."""
    compiled = [
        name for name, module in INSTRUCTION_SETS.items() if find_spec(f"{__name__}.{module}")
    ]
    if not compiled:
        return None, "", (), foreign_modules() or _why_not_compiled()
    runs: tuple[str, ...] = compiled_module("_cpu").runs()
    supported = tuple(name for name in compiled if name in runs)
    wanted = os.environ.get("HANDGRAD_ISA")
    if wanted is not None and wanted not in supported:
        missing = ", which needs HANDGRAD_BUILD=all at install" if wanted in runs else ""
        raise EngineError(
            f"HANDGRAD_ISA is {wanted!r}{missing}; allowed on this machine: {', '.join(supported)}"
        )
    if not supported:
        reason = f"none was compiled for this machine, only for {', '.join(compiled)}"
        return None, "", (), f"{reason}; install anew on it, or with HANDGRAD_BUILD=all"
    name = wanted or supported[0]
    return compiled_module(INSTRUCTION_SETS[name]), name, supported, ""


def _why_not_compiled() -> str:
    """The reason that the installation wrote down where the kernels did not compile."""
    try:
        return Path(__file__).with_name("failure.txt").read_text(encoding="utf-8") or _NO_REASON
    except OSError:
        return _NO_REASON


native, instruction_set, supported, reason = _load()

#: `invalidate_capture(reason)`: the capture that is active on this thread, if any, is not replayed.
invalidate_capture: Final[Any] = getattr(native, "invalidate_capture", lambda reason: None)


def has(op: str) -> bool:
    """True where there are kernels, and one of this name among them."""
    return native is not None and (has_calls(op) or hasattr(native, f"{op}_forward"))


def has_calls(op: str) -> bool:
    """True where a module of this name says how the kernel is called, as for all but one value
    in and one out, which `elementwise` calls.
    """
    return find_spec(f"{__name__}.{op}") is not None


if native is None and os.environ.get("HANDGRAD_ENGINE") != "reference":
    # No line of a user's is named: names of handgrad are loaded when they are first used.
    warnings.warn_explicit(
        f"no compiled kernels: {reason}; running the reference, which is far slower "
        "(HANDGRAD_ENGINE=reference asks for that and silences this)",
        RuntimeWarning,
        filename="handgrad",
        lineno=1,
    )
