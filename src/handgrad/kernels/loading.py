"""Loading a compiled module, or saying in one sentence what is wrong with its file."""

from __future__ import annotations

from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from handgrad.errors import EngineError


def compiled_module(name: str) -> ModuleType:
    """The compiled module `handgrad.kernels.<name>`.

    Raises EngineError where its file is damaged, was made for another system, or does not fit into
    the memory that this process may use; ModuleNotFoundError where there is none.
    """
    full = f"handgrad.kernels.{name}"
    spec = find_spec(full)
    if spec is None:
        raise ModuleNotFoundError(f"there is no {full}", name=full)
    file = Path(spec.origin or "")
    if not _is_whole(file):
        raise _unusable(file, "it is cut short")
    try:
        return import_module(full)
    except MemoryError as error:
        raise _unusable(file, "memory ran out") from error
    except ImportError as error:
        if error.path is None:  # the module itself had something to say
            raise EngineError(str(error)) from error
        raise _unusable(file, str(error).removeprefix(f"{file}: ")) from error


def foreign_modules() -> str:
    """The other Python that the modules here were compiled for, for a sentence; "" if none was."""
    suffixes = {
        "".join(file.suffixes)
        for pattern in ("_cpu.*.so", "_cpu.*.pyd")
        for file in Path(__file__).parent.glob(pattern)
    }
    others = sorted(suffix for suffix in suffixes if suffix not in EXTENSION_SUFFIXES)
    if not others:
        return ""
    return f"those here are for another Python ({', '.join(others)}, not {EXTENSION_SUFFIXES[0]})"


def _unusable(file: Path, why: str) -> EngineError:
    return EngineError(f"the compiled kernels cannot be loaded from {file}: {why}; reinstall")


def _is_whole(file: Path) -> bool:
    """Return whether an ELF file is as long as its header says; mapped, a shorter one crashes."""
    with file.open("rb") as opened:
        head = opened.read(64)
    if len(head) < 64 or head[:5] != b"\x7fELF\x02":
        return True
    order = "little" if head[5] == 1 else "big"

    def number(begin: int, end: int) -> int:
        return int.from_bytes(head[begin:end], order)  # type: ignore[arg-type]

    # The table of sections is the last part of the file.
    return file.stat().st_size >= number(40, 48) + number(58, 60) * number(60, 62)
