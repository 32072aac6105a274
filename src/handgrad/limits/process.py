"""Exact inference with the Gaussian process of an infinitely wide network."""

from __future__ import annotations

import math
from typing import Any, Final, Self

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import ArgumentError, ShapeError
from handgrad.layers.base import Layer
from handgrad.limits.kernel import KINDS, VarianceLike, blocks_of, kernel
from handgrad.limits.variances import check_variance
from handgrad.ops.arguments import check_choice

#: Added to the diagonal where the kernel matrix is not positive definite by rounding:
#: fractions of its mean, tried one after the other.
_JITTERS: Final = (0.0, 1e-12, 1e-10, 1e-8, 1e-6)


class GaussianProcess:
    """Regression with the kernel of `model`, in the manner of scikit-learn's regressors.

    With kind "nngp" the posterior of the network's outputs given the examples; with "ntk" the mean
    is what gradient descent on the squared error comes to. `alpha` is the variance of the noise of
    the targets. The other settings are those of `limits.kernel`. For classes, fit one column for
    each, such as 1 − 1/K for an example's own and −1/K for others, and take the largest mean.

    `jitter_` is what had to be added to the diagonal beside alpha, 0 as a rule. Where the kernel is
    a mean over draws, every prediction draws anew for the examples and x together; where the model
    has BatchNorm, x is a batch of its own, on which predictions then depend.

    Source: Rasmussen, Williams, Gaussian processes for machine learning (2006), algorithm 2.1;
    Lee et al., Deep neural networks as Gaussian processes (2018), for classes as targets.
    """

    def __init__(
        self,
        model: Layer,
        *,
        kind: str = "nngp",
        alpha: float = 1e-10,
        weight_variance: VarianceLike = None,
        bias_variance: VarianceLike = None,
        samples: int = 65536,
        seed: int = 0,
    ) -> None:
        _check_settings(kind, alpha)
        self.model = model
        self.kind = kind
        self.alpha = alpha
        self.weight_variance = weight_variance
        self.bias_variance = bias_variance
        self.samples = samples
        self.seed = seed

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """The settings by name; `deep` is there for scikit-learn and changes nothing."""
        names = ("model", "kind", "alpha", "weight_variance", "bias_variance", "samples", "seed")
        return {name: getattr(self, name) for name in names}

    def set_params(self, **settings: object) -> Self:
        """Change settings, for the next `fit`: what was fitted keeps its own.

        Raises ArgumentError for settings that there are not, or values as the constructor does.
        """
        allowed = self.get_params()
        for name, value in settings.items():
            if name not in allowed:
                raise ArgumentError(
                    f"GaussianProcess: {name!r} is no setting; allowed: {', '.join(allowed)}"
                )
            setattr(self, name, value)
        _check_settings(self.kind, self.alpha)
        return self

    def fit(self, x: Array, y: Array, *, lengths: Array | None = None) -> Self:
        """Condition on targets y (N,) or (N, K) of examples x.

        x and y are copied. Raises ShapeError for other targets, ArgumentError where the kernel
        matrix is not positive definite even with jitter.
        """
        try:
            targets = np.asarray(y, dtype=np.float64)
        except (TypeError, ValueError):
            raise ArgumentError("GaussianProcess: y is no array of numbers") from None
        if targets.ndim not in (1, 2) or len(targets) != len(x):
            raise ShapeError(
                f"GaussianProcess: y has shape {targets.shape}; allowed: ({len(x)},) or "
                f"({len(x)}, K)"
            )
        if not np.isfinite(targets).all():
            raise ArgumentError("GaussianProcess: y has NaN or infinity; allowed: finite values")
        self._x = np.array(x)
        self._lengths = None if lengths is None else np.array(lengths)
        self._targets = targets
        self._fitted: dict[str, Any] = self.get_params()
        matrix = kernel(self.model, x, lengths=lengths, **self._settings())
        if matrix.ndim != 2:
            raise ShapeError(
                "GaussianProcess: the model has a vector for every position; allowed: one output"
            )
        half = self._condition(matrix)
        count = targets[0].size if len(targets) else 1
        self.log_marginal_likelihood_ = -0.5 * float(np.sum(half * half)) - count * float(
            np.sum(np.log(np.diag(self._factor))) + 0.5 * len(x) * math.log(2.0 * math.pi)
        )
        return self

    def _condition(self, matrix: Array) -> Array:
        """Take this kernel matrix of the examples; returns L⁻¹ y."""
        self._factor, self.jitter_ = self._cholesky(matrix)
        half = np.linalg.solve(self._factor, self._targets)
        self._weights = np.linalg.solve(self._factor.T, half)
        return half

    def _settings(self) -> dict[str, Any]:
        kept = self._fitted
        return {name: kept[name] for name in kept if name not in ("model", "alpha")}

    def _cholesky(self, matrix: Array) -> tuple[Array, float]:
        """The factor of the matrix with the noise and the least jitter that it takes."""
        level = float(np.mean(np.diag(matrix))) if len(matrix) else 0.0
        for fraction in _JITTERS:
            jitter = fraction * level
            try:
                noisy = matrix + (self._fitted["alpha"] + jitter) * np.eye(len(matrix))
                return np.linalg.cholesky(noisy), jitter
            except np.linalg.LinAlgError:
                continue
        raise ArgumentError(
            f"GaussianProcess: the kernel matrix is not positive definite with {jitter:.1e} on its "
            "diagonal; allowed: examples that differ, or a larger alpha"
        )

    def predict(
        self, x: Array, *, lengths: Array | None = None, return_std: bool = False
    ) -> Array | tuple[Array, Array]:
        """The mean (M,) or (M, K) at examples x, and with `return_std` the deviations (M,).

        The deviation is that of the outputs, without the noise of targets; it is the same for every
        column. Raises ArgumentError before `fit`, and for deviations of kind "ntk", which has none.
        """
        if not hasattr(self, "_weights"):
            raise ArgumentError("GaussianProcess: predict before fit; allowed: after it")
        if return_std and self._fitted["kind"] != "nngp":
            raise ArgumentError(
                f"GaussianProcess: return_std with kind {self._fitted['kind']!r}; allowed: 'nngp'"
            )
        given = {"lengths": self._lengths, "lengths2": lengths, **self._settings()}
        own, cross, prior = blocks_of(self._fitted["model"], self._x, x, **given)
        if own is not None:
            # Kernels of draws belong together only within one set of them.
            self._condition(own)
        mean = cross.T @ self._weights
        if not return_std:
            return mean
        explained = np.linalg.solve(self._factor, cross)
        variance = prior - np.sum(explained * explained, axis=0)
        return mean, np.sqrt(np.maximum(variance, 0.0))

    def score(self, x: Array, y: Array) -> float:
        """The coefficient of determination R² of the mean, over all columns together."""
        y, mean = np.asarray(y, dtype=np.float64), np.asarray(self.predict(x))
        if y.shape != mean.shape:
            raise ShapeError(f"GaussianProcess: y has shape {y.shape}; allowed: {mean.shape}")
        spread = np.sum((y - y.mean(axis=0)) ** 2)
        return float(1.0 - np.sum((y - mean) ** 2) / spread)


def _check_settings(kind: str, alpha: float) -> None:
    check_choice("GaussianProcess", "kind", kind, KINDS)
    check_variance("alpha of GaussianProcess", alpha)
