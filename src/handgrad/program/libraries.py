"""The libraries that a program is written for: their names, and how they change an array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from handgrad.program.primitives.table import HELPERS


@dataclass(frozen=True)
class Library:
    """A library of arrays.

    column: that of the primitive records which spells a function, where it is not as NumPy's.
    alias: what `np` is in its sources. copies: a method that copies an array; none where arrays
    never change. C has no arrays of its own: `emit_c` writes loops over their elements.
    """

    name: str
    imports: str
    alias: str
    column: str
    copies: str

    @property
    def changes(self) -> bool:
        """Return whether arrays can be changed in place."""
        return bool(self.copies)


NUMPY: Final = Library("numpy", "import numpy as {}", "np", "text", ".copy()")
TORCH: Final = Library("torch", "import torch", "torch", "torch", ".clone()")
JAX: Final = Library("jax", "import jax.numpy as {}", "jnp", "jax", "")
C: Final = Library("c", "#include <{}.h>", "", "", "")
LIBRARIES: Final = {each.name: each for each in (NUMPY, TORCH, JAX, C)}

#: A helper that the emitter itself calls; those of primitives stand beside their records.
HELPERS.setdefault("add_at", {})["torch"] = '''def add_at(x, index, value):
    """x[index] += value in place, where places may come more than once."""
    places = torch.arange(x.numel(), device=x.device).reshape(x.shape)[index]
    value = torch.as_tensor(value, dtype=x.dtype, device=x.device)
    flat = x.contiguous().view(-1)
    flat.index_add_(0, places.reshape(-1), value.broadcast_to(places.shape).reshape(-1))
    if not x.is_contiguous():
        x.copy_(flat.view(x.shape))
'''


def helper(name: str, library: Library) -> str:
    """The source of a helper for a library."""
    column = HELPERS[name]
    return column.get(library.name) or column["numpy"]
