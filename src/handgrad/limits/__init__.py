"""Infinitely wide networks: their Gaussian process, their tangent kernel, their program."""

from handgrad.limits.convergence import Convergence, convergence
from handgrad.limits.depth import (
    FixedPoint,
    Signals,
    critical_weight_variance,
    fixed_point,
    signals,
)
from handgrad.limits.kernel import diagonal, kernel, program
from handgrad.limits.process import GaussianProcess

__all__ = [
    "Convergence",
    "FixedPoint",
    "GaussianProcess",
    "Signals",
    "convergence",
    "critical_weight_variance",
    "diagonal",
    "fixed_point",
    "kernel",
    "program",
    "signals",
]
