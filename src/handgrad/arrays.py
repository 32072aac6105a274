"""The names that signatures use for arrays.

`Array` is any array of the Python array API: NumPy, and for the reference ops also CuPy, PyTorch
and JAX. Shapes are written beside it as `Float[Array, "N D"]` (jaxtyping); these annotations are
never evaluated when handgrad runs, and the tests execute them. For type checkers and editors it is
NumPy's array, because that is what layers, losses and models take and return: whoever gives an op
the tensor of another library writes `# type: ignore` beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[Any]]
    #: The element type of an array.
    DType: TypeAlias = np.dtype[Any]
else:
    Array = Any
    DType = np.dtype

#: A choice of examples: one, a slice, their numbers, or a mask.
Index: TypeAlias = int | slice | ArrayLike | tuple[int | slice | ArrayLike, ...]
#: The lengths of the sequences of a batch.
Lengths: TypeAlias = Array | list[int] | tuple[int, ...]


def is_numpy(array: object) -> TypeGuard[Array]:
    """Return whether an array or number is NumPy's, and not that of another library."""
    return isinstance(array, np.ndarray | np.generic)
