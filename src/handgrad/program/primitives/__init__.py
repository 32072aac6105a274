"""One record a primitive, one file a family, each with NumPy's signatures of its functions."""

from contextlib import suppress

from handgrad.program.primitives import accumulate as accumulate
from handgrad.program.primitives import analytic as analytic
from handgrad.program.primitives import contract as contract
from handgrad.program.primitives import creation as creation
from handgrad.program.primitives import decompositions as decompositions
from handgrad.program.primitives import einsum as einsum
from handgrad.program.primitives import elementwise as elementwise
from handgrad.program.primitives import extreme_at as extreme_at
from handgrad.program.primitives import extremes as extremes
from handgrad.program.primitives import fft as fft
from handgrad.program.primitives import fixed as fixed
from handgrad.program.primitives import index as index
from handgrad.program.primitives import joining as joining
from handgrad.program.primitives import kinds as kinds
from handgrad.program.primitives import linalg as linalg
from handgrad.program.primitives import order as order
from handgrad.program.primitives import rearrange as rearrange
from handgrad.program.primitives import reduce as reduce
from handgrad.program.primitives import repeating as repeating
from handgrad.program.primitives import scipy_linalg as scipy_linalg
from handgrad.program.primitives import select as select
from handgrad.program.primitives import signals as signals
from handgrad.program.primitives import special as special
from handgrad.program.primitives import statistics as statistics
from handgrad.program.primitives import structured as structured
from handgrad.program.primitives import triangles as triangles

with suppress(ImportError):  # users without SciPy don't call its functions
    from handgrad.program.primitives import scipy_fft as scipy_fft
    from handgrad.program.primitives import scipy_special as scipy_special
