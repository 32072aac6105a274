"""Kernel of `ops.relu`."""

from typing import Final

from handgrad.kernels.elementwise import element_wise

SPEC: Final = element_wise("relu", keeps_output=True)
