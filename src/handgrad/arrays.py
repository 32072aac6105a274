"""The one name every signature uses for an array.

`Array` is any array of the Python array API: NumPy, and for the reference ops also CuPy, PyTorch
and JAX. Shapes are written beside it as `Float[Array, "N D"]` (jaxtyping); these annotations are
never evaluated when handgrad runs, and the tests execute them.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Array: TypeAlias = Any
