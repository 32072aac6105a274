"""The libraries that a program is written for: their names, and how they change an array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Library:
    """A library of arrays.

    column: that of the primitive records which spells a function, where it is not as NumPy's.
    alias: what `np` is in its sources. copies: a method that copies an array; none where arrays
    never change.
    """

    name: str
    imports: str
    alias: str
    column: str
    copies: str

    @property
    def changes(self) -> bool:
        """Whether arrays can be changed in place."""
        return bool(self.copies)


NUMPY: Final = Library("numpy", "import numpy as {}", "np", "text", ".copy()")
TORCH: Final = Library("torch", "import torch", "torch", "torch", ".clone()")
JAX: Final = Library("jax", "import jax.numpy as {}", "jnp", "jax", "")
LIBRARIES: Final = {each.name: each for each in (NUMPY, TORCH, JAX)}

#: Functions that sources define for themselves, by library; `np` is the library's module.
HELPERS: Final[dict[str, dict[str, str]]] = {
    "sigmoid": {
        "numpy": "def sigmoid(x):\n    return np.exp(-np.logaddexp(0, -x))\n",
        "jax": "def sigmoid(x):\n    return np.exp(-np.logaddexp(0, -x))\n",
        "torch": "def sigmoid(x):\n    return np.sigmoid(x)\n",
    },
    "others": {
        "numpy": '''def others(x, axis):
    """The product of all other elements along the axes."""
    rest = [i for i in range(x.ndim) if i not in axis]
    order = rest + list(axis)
    flat = x.transpose(order).reshape([x.shape[i] for i in rest] + [-1])
    one = np.ones_like(flat[..., :1])
    before = np.cumprod(np.concatenate([one, flat[..., :-1]], -1), -1)
    after = np.cumprod(np.concatenate([one, flat[..., :0:-1]], -1), -1)[..., ::-1]
    back = sorted(range(x.ndim), key=order.__getitem__)
    return (before * after).reshape([x.shape[i] for i in order]).transpose(back)
''',
        "torch": '''def others(x, axis):
    """The product of all other elements along the axes."""
    rest = [i for i in range(x.ndim) if i not in axis]
    order = rest + list(axis)
    flat = x.permute(order).reshape([x.shape[i] for i in rest] + [-1])
    one = np.ones_like(flat[..., :1])
    before = np.cumprod(np.cat([one, flat[..., :-1]], -1), -1)
    after = np.cumprod(np.cat([one, flat[..., 1:].flip(-1)], -1), -1).flip(-1)
    back = sorted(range(x.ndim), key=order.__getitem__)
    return (before * after).reshape([x.shape[i] for i in order]).permute(back)
''',
    },
    "add_at": {
        "torch": '''def add_at(x, index, value):
    """x[index] += value in place, where places may come more than once."""
    places = np.arange(x.numel(), device=x.device).reshape(x.shape)[index]
    value = np.as_tensor(value, dtype=x.dtype, device=x.device)
    x.view(-1).index_add_(0, places.reshape(-1), value.broadcast_to(places.shape).reshape(-1))
''',
    },
}


def helper(name: str, library: Library) -> str:
    """The source of a helper for a library."""
    column = HELPERS[name]
    return column.get(library.name) or column["numpy"]
