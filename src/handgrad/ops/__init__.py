"""The mathematics: one module per op, `forward` directly above `backward`.

Every module of this package that has a `forward` is an op; the others are what ops share.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Final

from handgrad.suggestions import suggesting

_MODULES: Final = {
    found.name: import_module(f"{__name__}.{found.name}")
    for found in iter_modules(__path__)
    if not found.ispkg
}

#: The name of every op, each a module of this package and of `handgrad.kernels`.
OPS: Final = tuple(name for name, module in _MODULES.items() if hasattr(module, "forward"))
__all__ = ["OPS", *OPS]

if not TYPE_CHECKING:
    __getattr__ = suggesting(__name__)
