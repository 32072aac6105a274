"""One record a primitive, one file a family, each with NumPy's signatures of its functions."""

from contextlib import suppress

from handgrad.program.primitives import accumulate as accumulate
from handgrad.program.primitives import analytic as analytic
from handgrad.program.primitives import arrays as arrays
from handgrad.program.primitives import contract as contract
from handgrad.program.primitives import elementwise as elementwise
from handgrad.program.primitives import functions as functions
from handgrad.program.primitives import order as order
from handgrad.program.primitives import reduce as reduce
from handgrad.program.primitives import special as special
from handgrad.program.primitives import statistics as statistics

with suppress(ImportError):  # users without SciPy don't call its functions
    from handgrad.program.primitives import scipy_special as scipy_special
