"""JAX's functions and its arrays' methods, by those of NumPy: what a trace puts in their place.

A family a file; `table` has them all by JAX's names.
"""

from handgrad.program.jax_arrays import at as at
from handgrad.program.jax_arrays import lax as lax
from handgrad.program.jax_arrays import loops as loops
from handgrad.program.jax_arrays import mapping as mapping
from handgrad.program.jax_arrays import nn as nn
