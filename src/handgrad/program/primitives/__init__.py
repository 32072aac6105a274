"""One record a primitive, one file a family; `functions` is NumPy in terms of them."""

from handgrad.program.primitives import arrays as arrays
from handgrad.program.primitives import contract as contract
from handgrad.program.primitives import elementwise as elementwise
from handgrad.program.primitives import functions as functions
from handgrad.program.primitives import order as order
from handgrad.program.primitives import reduce as reduce
from handgrad.program.primitives import special as special
