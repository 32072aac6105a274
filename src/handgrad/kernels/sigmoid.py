"""Kernel of `ops.sigmoid`."""

from typing import Final

from handgrad.kernels.elementwise import element_wise

SPEC: Final = element_wise("sigmoid", keeps_output=True)
