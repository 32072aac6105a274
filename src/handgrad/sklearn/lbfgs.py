"""The solver lbfgs: SciPy's minimisation on the loss of all examples at once."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning

from handgrad.arrays import Array
from handgrad.sklearn.objective import Objective


def minimize(estimator: Any, objective: Objective, data: Any) -> None:
    """Lower the objective over `data`; sets `n_iter_` and `loss_` of the estimator."""
    inputs, targets, weight = data.batch(np.arange(len(data)))
    buffer = objective.parameters.buffer

    def evaluate(parameters: Array) -> tuple[float, Array]:
        buffer[...] = parameters
        value = objective(inputs, targets, weight)
        return value, objective.gradients.buffer.astype(np.float64)

    found = optimize.minimize(
        evaluate,
        buffer.astype(np.float64),
        method="L-BFGS-B",
        jac=True,
        options={
            "maxfun": estimator.max_fun,
            "maxiter": estimator.max_iter,
            "gtol": estimator.tol,
        },
    )
    buffer[...] = found.x
    estimator.loss_ = float(found.fun)
    estimator.n_iter_ = min(int(found.nit), estimator.max_iter)
    if found.status != 0:
        warnings.warn(
            f"{type(estimator).__name__}: lbfgs has not converged after {found.nit} iterations: "
            f"{found.message}; more of them (max_iter) or scaled data may help",
            ConvergenceWarning,
            stacklevel=2,
        )
    estimator._check_weights(objective)
