"""The kernel behind batch normalisation, as an integral: no draws, for functions like ReLU.

For a batch z ~ N(0, Σ) of B examples with G = 1 − 1/B, which takes the mean away, the normalised
values are y = Gz/√(‖Gz‖²/B + ε). A function f with f(a u) = a f(u) for a > 0 lets the root out, and

    1/q = ∫ exp(−s q) ds,    E[h(u) exp(−s ‖u‖²)] = det(1 + 2 s K)^(−½) E[h(v)]

for u ~ N(0, K), v ~ N(0, K (1 + 2 s K)⁻¹) make of E[f(y) f(y)ᵀ] an integral over V-transforms. Of
two batches each root has an integral of its own, of 1/√q = ∫ exp(−s q)/√(π s) ds. In ln s both fall
off on either side like exponentials, so that the trapezoidal rule is exact to about 1e-8.

Source: Yang et al., A mean field theory of batch normalization (2019), for the integral; Yang,
Tensor programs I: wide feedforward or recurrent neural networks of any architecture are Gaussian
processes (2019), its appendix on batch normalisation, for two batches.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.limits.asking import Expectations
from handgrad.limits.variables import Batched, Nonlin, Variable, is_gaussian
from handgrad.ops.activation import v_transform

#: Functions with f(a u) = a f(u) for a > 0.
HOMOGENEOUS: Final = ("identity", "relu", "leaky_relu")
#: Distance of the nodes in ln s, and the exponent at which an integrand counts as 0.
_STEP: Final = 0.25
_END: Final = 21.0
#: Eigenvalues below this part of the largest are those of the mean, which is taken away.
_RANK: Final = 1e-12


def batch_second(moments: Expectations, u: Variable, v: Variable) -> Array | None:
    """E[u v] for all pairs of examples where both are the same function of a normalised batch.

    None where there is no such integral.
    """
    if u is not v:
        return None
    normalised, activation, options = u, "identity", {}
    if isinstance(u, Nonlin):
        normalised, activation, options = u.operand, u.activation, dict(u.options)
    if not isinstance(normalised, Batched) or activation not in HOMOGENEOUS:
        return None
    z = normalised.operands[0]
    if not is_gaussian(z):
        return None
    count = moments.sides[0].count
    sigma = np.array(np.broadcast_to(moments.second(z, z), (count, count)))

    def transform(k: Array, k11: Array, k22: Array) -> Array:
        return v_transform(activation, k, k11[..., :, None], k22[..., None, :], **options)

    found = np.empty((count, count))
    for i, one in enumerate(normalised.batches):
        found[one, one] = _within(sigma[one, one], normalised.eps, transform)
        for other in normalised.batches[i + 1 :]:
            blocks = sigma[one, one], sigma[one, other], sigma[other, other]
            found[one, other] = _across(*blocks, normalised.eps, transform)
            found[other, one] = found[one, other].T
    return found


def _centred(sigma: Array) -> tuple[Array, Array]:
    """The eigenvalues above 0 of G Σ G, and their vectors."""
    size = len(sigma)
    g = np.eye(size) - 1.0 / max(size, 1)
    values, vectors = np.linalg.eigh(g @ sigma @ g)
    kept = values > _RANK * max(float(np.max(values, initial=0.0)), 1e-300)
    return values[kept], vectors[:, kept]


def _nodes(values: Array, size: int, eps: float, *, root: bool) -> Array:
    """s at equal distances in ln s, around where 2 s λ is 1, or s B ε where that comes first."""
    middle = float(-np.log(2.0 * np.mean(values)))
    end = _END + math.log(size)
    start = min(middle, -math.log(size * eps)) if eps > 0.0 else middle
    below = end * (2.0 if root else 1.0)
    above = 2.0 * end / len(values)
    # Small eigenvalues count up to where 2 s λ is 1 for them too.
    spread = float(np.log(np.max(values) / np.min(values)))
    return np.asarray(np.exp(np.arange(start - below, middle + above + spread, _STEP)))


def _within(sigma: Array, eps: float, transform: Any) -> Array:
    size = len(sigma)
    values, vectors = _centred(sigma)
    if not len(values):
        return np.zeros((size, size))
    total = np.zeros((size, size))
    for s in _nodes(values, size, eps, root=False):
        shrunk = 1.0 + 2.0 * s * values
        k = (vectors * (values / shrunk)) @ vectors.T
        diagonal = np.diag(k)
        weight = s * np.exp(-s * size * eps - 0.5 * np.sum(np.log(shrunk)))
        total += weight * transform(k, diagonal, diagonal)
    return size * _STEP * total


def _across(s11: Array, s12: Array, s22: Array, eps: float, transform: Any) -> Array:
    sizes = len(s11), len(s22)
    (one, left), (other, right) = _centred(s11), _centred(s22)
    if not len(one) or not len(other):
        return np.zeros(sizes)
    middle = left.T @ s12 @ right
    omega = np.block([[np.diag(one), middle], [middle.T, np.diag(other)]])
    split = len(one)
    t = _nodes(other, sizes[1], eps, root=True)
    total = np.zeros(sizes)
    for s in _nodes(one, sizes[0], eps, root=True):
        roots = np.concatenate(
            [np.full((len(t), split), np.sqrt(s)), np.repeat(np.sqrt(t)[:, None], len(other), 1)],
            axis=1,
        )
        # By eigenvalues, since 1 is lost beside large s λ: M (1 + 2 M)⁻¹ of M = √D Ω √D.
        scaled = roots[:, :, None] * omega * roots[:, None, :]
        m, vectors = np.linalg.eigh(scaled)
        m = np.maximum(m, 0.0)
        turned = vectors / roots[:, :, None]
        pi = (turned * (m / (1.0 + 2.0 * m))[:, None, :]) @ np.swapaxes(turned, 1, 2)
        k11 = np.einsum("ia,nab,ib->ni", left, pi[:, :split, :split], left)
        k22 = np.einsum("ia,nab,ib->ni", right, pi[:, split:, split:], right)
        k12 = left @ pi[:, :split, split:] @ right.T
        logarithm = np.sum(np.log1p(2.0 * m), axis=1)
        weight = np.sqrt(s * t) * np.exp(-(s * sizes[0] + t * sizes[1]) * eps - 0.5 * logarithm)
        total += np.einsum("n,nij->ij", weight, transform(k12, k11, k22))
    return np.asarray(np.sqrt(sizes[0] * sizes[1]) / np.pi * _STEP**2 * total)
