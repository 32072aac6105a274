"""The mathematics: one module per op, `forward` directly above `backward`.

Every module of this package that has a `forward` is an op; the others are what ops share.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NoReturn

from handgrad.errors import ArgumentError
from handgrad.suggestions import suggesting

_MODULES: Final = {
    found.name: import_module(f"{__name__}.{found.name}")
    for found in iter_modules(__path__)
    if not found.ispkg
}

#: The name of every op, each a module of this package and of `handgrad.kernels`.
OPS: Final = tuple(name for name, module in _MODULES.items() if hasattr(module, "forward"))
__all__ = ["OPS", *OPS]


class _Op(ModuleType):
    """An op's module: calling it, as a function of PyTorch, ends in a sentence."""

    def __call__(self, *args: Any, **settings: Any) -> NoReturn:
        raise ArgumentError(
            f"{self.__name__.rpartition('.')[2]}: the op itself is called; allowed: its two "
            f"functions; write y, cache = {self.__name__.replace('handgrad', 'hg')}.forward(x, ...)"
        )


for _name in OPS:
    _MODULES[_name].__class__ = _Op

if not TYPE_CHECKING:
    __getattr__ = suggesting(__name__)
