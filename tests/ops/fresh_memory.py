"""Fresh memory of kernels filled with a value, so that what they leave unwritten shows."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import sys
from typing import Any

import numpy as np
import pytest

from handgrad import kernels


def _filled(array: Any, value: float) -> Any:
    array.fill(value if array.dtype.kind == "f" else np.isnan(value))
    return array


@functools.cache
def _import_adapters() -> None:
    for found in pkgutil.iter_modules(kernels.__path__):
        if not found.name.startswith("_"):
            importlib.import_module(f"handgrad.kernels.{found.name}")


def fill_fresh_memory(monkeypatch: pytest.MonkeyPatch, value: float) -> None:
    """Every array that a kernel's adapter makes from here on is full of `value`, and so is memory
    that native code may find for a workspace.
    """
    native: Any = kernels.native
    _import_adapters()
    adapters = [
        module
        for name, module in sys.modules.items()
        if name.startswith(("handgrad.kernels.", "handgrad.torch.")) and module is not native
    ]
    for make in (native.empty, native.empty_like):
        for module in adapters:
            if getattr(module, make.__name__, None) is make:
                monkeypatch.setattr(
                    module,
                    make.__name__,
                    lambda *arguments, make=make: _filled(make(*arguments), value),
                )
    for power in range(15, 21):
        blocks = [native.empty(2**power, np.float32) for _ in range(2)]
        for block in blocks:
            block.fill(value)
