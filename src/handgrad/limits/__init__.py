"""Infinitely wide networks: their Gaussian process, their tangent kernel, their program."""

from handgrad.limits.kernel import diagonal, kernel, program
from handgrad.limits.process import GaussianProcess

__all__ = ["GaussianProcess", "diagonal", "kernel", "program"]
