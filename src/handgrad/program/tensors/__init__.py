"""PyTorch's functions and methods of tensors, by those of NumPy: what a trace puts in their place.

A family a file; `table` has them all by PyTorch's names.
"""

from handgrad.program.tensors import algebra as algebra
from handgrad.program.tensors import attention as attention
from handgrad.program.tensors import choosing as choosing
from handgrad.program.tensors import creation as creation
from handgrad.program.tensors import elementwise as elementwise
from handgrad.program.tensors import functional as functional
from handgrad.program.tensors import losses as losses
from handgrad.program.tensors import methods as methods
from handgrad.program.tensors import pooling as pooling
from handgrad.program.tensors import recurrent as recurrent
from handgrad.program.tensors import reductions as reductions
from handgrad.program.tensors import sampling as sampling
from handgrad.program.tensors import shapes as shapes
from handgrad.program.tensors import windows as windows
