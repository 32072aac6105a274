"""SciPy's linear algebra where it is installed: matrix exponentials and triangular systems."""

from typing import Any

import numpy as np

from handgrad.program.node import Node, as_node, build
from handgrad.program.primitives.decompositions import cholesky, eigh, pinv
from handgrad.program.primitives.index import section
from handgrad.program.primitives.joining import concatenate
from handgrad.program.primitives.linalg import det, inv, mT, of_squares, solve
from handgrad.program.primitives.record import Gradients, Sample, record
from handgrad.program.primitives.table import FUNCTIONS, known, module_of_scipy, refuse

scipy_linalg = module_of_scipy("linalg")


def expm_value(x: Any) -> Any:
    return scipy_linalg.expm(x)


def expm_vjp(g: Node, y: Node, x: Node) -> Gradients:
    """The upper right block of the exponential of [[Xᵀ, dY], [0, Xᵀ]] (Najfeld and Havel 1995)."""
    a, n = mT(x), x.shape[-1]
    rank = x.ndim
    above = concatenate([a, g], rank - 1)
    below = concatenate([build("zeros", shape=a.shape), a], rank - 1)
    whole = build("expm", concatenate([above, below], rank - 2))
    return (section(section(whole, rank - 2, 0, n), rank - 1, n, n + n),)


record(
    "expm",
    expm_value,
    of_squares,
    expm_vjp,
    text="scipy.linalg.expm",
    torch="torch.linalg.matrix_exp",
    jax="jax.scipy.linalg.expm",
    samples=(Sample(("M M",)), Sample(("2 M M",))),
)


def solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Node:
    x = as_node(a)
    if trans in (1, "T", 2, "C"):
        x, lower = mT(x), not lower
    return build("solve_triangular", x, b, lower=bool(lower), unit=bool(unit_diagonal))


def cho_solve(
    c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> Node:
    factor, lower = c_and_lower
    first = solve_triangular(factor, b, 0 if lower else 1, lower)
    return solve_triangular(factor, first, 1 if lower else 0, lower)


def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    return scipy_cholesky(a, lower), lower


def scipy_cholesky(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Node:
    """The factor of one triangle; SciPy's default is the upper one."""
    return cholesky(a) if lower else cholesky(a, upper=True)


def _logm(*_: Any, **__: Any) -> Node:
    refuse(
        "roots and logarithms of matrices are not known",
        "np.linalg.eigh and the root or the log of its values",
    )


known(scipy_linalg.expm)(lambda A: build("expm", A))
known(scipy_linalg.solve_triangular)(solve_triangular)
known(scipy_linalg.cho_solve)(cho_solve)
known(scipy_linalg.cho_factor)(cho_factor)
known(scipy_linalg.cholesky)(scipy_cholesky)
known(scipy_linalg.inv)(lambda a, **_: inv(a))
known(scipy_linalg.det)(lambda a, **_: det(a))
known(scipy_linalg.solve)(lambda a, b, **_: solve(a, b))
known(scipy_linalg.pinv)(lambda a, **_: pinv(a))
known(scipy_linalg.eigh)(lambda a, lower=True, **_: eigh(a, "L" if lower else "U"))
known(scipy_linalg.logm, scipy_linalg.sqrtm)(_logm)
known(scipy_linalg.norm)(
    lambda a, ord=None, axis=None, **_: FUNCTIONS[np.linalg.norm](a, ord, axis)
)
