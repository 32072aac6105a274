"""Kernel of `ops.tanh`."""

from typing import Final

from handgrad.kernels.elementwise import element_wise

SPEC: Final = element_wise("tanh", keeps_output=True)
