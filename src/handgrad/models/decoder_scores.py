"""Scores of an attention decoder: how well its state fits each of the encoder's states.

The maths is that of `hg.ops.additive_attention`, `cosine_attention` and `attention`, divided into
what is done once for all steps and what every step does. Within a step arrays are (N, ...); all
steps together are (T, N, ...), time first.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import DTypeLike

from handgrad import initializers
from handgrad.arrays import Array
from handgrad.errors import ArgumentError
from handgrad.layers.base import Layer, Shape
from handgrad.ops import linear
from handgrad.ops.arguments import check_choice

if TYPE_CHECKING:
    from jaxtyping import Float

SCORES: Final = ("additive", "cosine", "dot")

#: Keeps the cosine with a state of zeros defined, as in `hg.ops.cosine_attention`.
_EPS: Final = 1e-8


class Score(Layer):
    """Scores of a decoder's state s against each of the encoder's states h_i: memory, then steps.

    `memory` prepares h once: the keys that s is compared with, and the values h Wᵀ of a weight that
    it is given. `memory_backward` takes both gradients side by side and gives dh, dW and the
    gradients of the parameters used.
    `step` gives the scores of a step and what its backward needs, kept. `step_backward` gives ds
    and dquery, the gradient of what is compared with the keys, and dkeys, which begins at 0, with
    what a score can only sum up while the steps run. `finish` makes of all steps dkeys and the
    gradients of the other parameters.
    """

    kind: str

    def memory(
        self, h: Float[Array, "N S C"], weight: Float[Array, "G C"]
    ) -> tuple[Float[Array, "N S A"], Float[Array, "N S G"], Any]:
        raise NotImplementedError

    def memory_backward(
        self, dmemory: Float[Array, "N S A+G"], kept: Any
    ) -> tuple[Float[Array, "N S C"], Float[Array, "G C"], dict[str, Array]]:
        raise NotImplementedError

    def step(self, s: Float[Array, "N H"], keys: Array) -> tuple[Float[Array, "N S"], Any]:
        raise NotImplementedError

    def step_backward(
        self, dscore: Float[Array, "N S"], kept: Any, keys: Array, dkeys: Array
    ) -> tuple[Float[Array, "N H"], Float[Array, "N A"], Float[Array, "N S A"]]:
        raise NotImplementedError

    def finish(
        self,
        dscores: Float[Array, "T N S"],
        dqueries: Float[Array, "T N A"],
        dkeys: Float[Array, "N S A"],
        kept: tuple[Any, ...],
        s: Float[Array, "T N H"],
    ) -> tuple[Float[Array, "N S A"], dict[str, Array]]:
        raise NotImplementedError


class AdditiveScore(Score):
    """score_i = v·tanh(W_s s + W_h h_i), with the keys W_h h_i.

    Parameters: weight_s (A, H) and weight_h (A, C), the two blocks of Yamanishi's W, and v (A,),
    with A = H.
    """

    kind = "additive"
    parameter_names = ("weight_s", "weight_h", "v")

    def __init__(
        self, hidden: int, memory: int, *, rng: np.random.Generator, dtype: DTypeLike
    ) -> None:
        self.sizes = (hidden, memory)
        weight = initializers.xavier_uniform((hidden, hidden + memory), rng, dtype=dtype)
        self.weight_s = np.ascontiguousarray(weight[:, :hidden])
        self.weight_h = np.ascontiguousarray(weight[:, hidden:])
        self.v = initializers.uniform((hidden,), rng, bound=1 / math.sqrt(hidden), dtype=dtype)

    def memory(self, h: Array, weight: Array) -> tuple[Array, Array, Any]:
        """Keys and values are one product, with one weight below the other."""
        xp = array_namespace(h)
        both, kept = linear.forward(h, xp.concat((self.weight_h, weight), axis=0))
        size = self.weight_h.shape[0]
        return both[:, :, :size], both[:, :, size:], kept

    def memory_backward(self, dmemory: Array, kept: Any) -> tuple[Array, Array, dict[str, Array]]:
        """dh = W_hᵀ dkeys + Wᵀ dvalues,  dW_h = Σ dkey hᵀ,  dW = Σ dvalue hᵀ."""
        dh, dweight, _ = linear.backward(dmemory, kept)
        size = self.weight_h.shape[0]
        return dh, dweight[size:], {"weight_h": dweight[:size]}

    def step(self, s: Array, keys: Array) -> tuple[Array, Array]:
        u = array_namespace(s).tanh(keys + (s @ self.weight_s.T)[:, None, :])
        score = u @ self.v
        return score, u

    def step_backward(
        self, dscore: Array, kept: Array, keys: Array, dkeys: Array
    ) -> tuple[Array, Array, Array]:
        """da_i = dscore_i v (1 − u_i²),  dkeys + da,  dquery = Σ_i da_i,  ds = W_sᵀ dquery.

        da and dkeys are without their factor v here: it is the same for all pairs and comes last.
        """
        u = kept
        da = (1.0 - u * u) * dscore[:, :, None]
        dquery = self.v * array_namespace(da).sum(da, axis=1)
        ds = dquery @ self.weight_s
        return ds, dquery, dkeys + da

    def finish(
        self, dscores: Array, dqueries: Array, dkeys: Array, kept: tuple[Array, ...], s: Array
    ) -> tuple[Array, dict[str, Array]]:
        """dW_s = Σ dquery sᵀ,  dv = Σ dscore u."""
        dkeys = self.v * dkeys
        dweight_s = rows(dqueries).T @ rows(s)
        dv = array_namespace(self.v).zeros_like(self.v)
        for dscore, u in zip(dscores, kept, strict=True):
            dv = dv + dscore.reshape(-1) @ rows(u)
        return dkeys, {"weight_s": dweight_s, "v": dv}

    def flops(self, input_shape: Shape) -> int:
        """The operations of T steps beside S keys, (T, S)."""
        steps, keys = input_shape
        hidden, memory = self.sizes
        return hidden * (2 * keys * memory + steps * (2 * hidden + 4 * keys))


class CosineScore(Score):
    """score_i = ŝ·ĥ_i with ŝ = s/√(|s|² + eps) and the keys ĥ_i, made of h_i in the same way."""

    kind = "cosine"

    def __init__(self, size: int) -> None:
        self.size = size

    def memory(self, h: Array, weight: Array) -> tuple[Array, Array, Any]:
        inv_h = _inverse_length(h)
        h_hat = h * inv_h
        values, kept = linear.forward(h, weight)
        return h_hat, values, (h_hat, inv_h, kept)

    def memory_backward(self, dmemory: Array, kept: Any) -> tuple[Array, Array, dict[str, Array]]:
        """dh = (dĥ − ĥ Σ dĥ ĥ)/|h| + Wᵀ dvalues."""
        h_hat, inv_h, of_values = kept
        dh_hat = dmemory[:, :, : self.size]
        along = array_namespace(h_hat).sum(dh_hat * h_hat, axis=-1, keepdims=True)
        dh, dweight, _ = linear.backward(dmemory[:, :, self.size :], of_values)
        return dh + (dh_hat - h_hat * along) * inv_h, dweight, {}

    def step(self, s: Array, keys: Array) -> tuple[Array, tuple[Array, Array]]:
        inv_s = _inverse_length(s)
        s_hat = s * inv_s
        score = products(keys, s_hat)
        return score, (s_hat, inv_s)

    def step_backward(
        self, dscore: Array, kept: tuple[Array, Array], keys: Array, dkeys: Array
    ) -> tuple[Array, Array, Array]:
        """dŝ = Σ_i dscore_i ĥ_i,  ds = (dŝ − ŝ Σ dŝ ŝ)/|s|."""
        s_hat, inv_s = kept
        ds_hat = weighted_sum(dscore, keys)
        along = array_namespace(s_hat).sum(ds_hat * s_hat, axis=-1, keepdims=True)
        ds = (ds_hat - s_hat * along) * inv_s
        return ds, ds_hat, dkeys

    def finish(
        self, dscores: Array, dqueries: Array, dkeys: Array, kept: tuple[Any, ...], s: Array
    ) -> tuple[Array, dict[str, Array]]:
        """dĥ_i = Σ_t dscore_ti ŝ_t."""
        return sum_over_time(dscores, s * _inverse_length(s)), {}

    def flops(self, input_shape: Shape) -> int:
        """The operations of T steps beside S keys, (T, S)."""
        steps, keys = input_shape
        return self.size * (3 * (steps + keys) + 2 * steps * keys)


class DotScore(Score):
    """score_i = s·h_i/√d, where d is the length of both, with the keys h_i/√d."""

    kind = "dot"

    def __init__(self, size: int) -> None:
        self.size = size

    def memory(self, h: Array, weight: Array) -> tuple[Array, Array, Any]:
        values, kept = linear.forward(h, weight)
        return h * (1.0 / math.sqrt(self.size)), values, kept

    def memory_backward(self, dmemory: Array, kept: Any) -> tuple[Array, Array, dict[str, Array]]:
        """dh = dkeys/√d + Wᵀ dvalues."""
        dh, dweight, _ = linear.backward(dmemory[:, :, self.size :], kept)
        return dh + dmemory[:, :, : self.size] * (1.0 / math.sqrt(self.size)), dweight, {}

    def step(self, s: Array, keys: Array) -> tuple[Array, None]:
        score = products(keys, s)
        return score, None

    def step_backward(
        self, dscore: Array, kept: None, keys: Array, dkeys: Array
    ) -> tuple[Array, Array, Array]:
        """ds = Σ_i dscore_i h_i/√d."""
        ds = weighted_sum(dscore, keys)
        return ds, ds, dkeys

    def finish(
        self, dscores: Array, dqueries: Array, dkeys: Array, kept: tuple[None, ...], s: Array
    ) -> tuple[Array, dict[str, Array]]:
        """dkey_i = Σ_t dscore_ti s_t."""
        return sum_over_time(dscores, s), {}

    def flops(self, input_shape: Shape) -> int:
        """The operations of T steps beside S keys, (T, S)."""
        steps, keys = input_shape
        return self.size * (keys + 2 * steps * keys)


def make_score(
    kind: str, hidden: int, memory: int, *, rng: np.random.Generator, dtype: DTypeLike
) -> Score:
    """The score `kind`, of `SCORES`, between a state of size `hidden` and ones of size `memory`.

    Raises ArgumentError for another kind, and for "cosine" and "dot" where the sizes differ.
    """
    check_choice("AttentionDecoder", "score", kind, SCORES)
    if kind == "additive":
        return AdditiveScore(hidden, memory, rng=rng, dtype=dtype)
    if hidden != memory:
        raise ArgumentError(
            f"AttentionDecoder: hidden is {hidden}; allowed with score {kind!r}: {memory}, "
            "the size of the states it is compared with"
        )
    return CosineScore(hidden) if kind == "cosine" else DotScore(hidden)


def products(x: Float[Array, "N S D"], q: Float[Array, "N D"]) -> Float[Array, "N S"]:
    """x_i·q for every i."""
    return (x @ q[:, :, None])[:, :, 0]


def weighted_sum(a: Float[Array, "N S"], x: Float[Array, "N S D"]) -> Float[Array, "N D"]:
    """Σ_i a_i x_i."""
    return (a[:, None, :] @ x)[:, 0, :]


def sum_over_time(a: Float[Array, "T N S"], x: Float[Array, "T N D"]) -> Float[Array, "N S D"]:
    """Σ_t a_ti x_t for every i."""
    return a.transpose(1, 2, 0) @ x.transpose(1, 0, 2)


def rows(x: Float[Array, "N T D"]) -> Float[Array, "rows D"]:
    """All vectors one below the other."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _inverse_length(x: Float[Array, "*batch D"]) -> Float[Array, "*batch 1"]:
    xp = array_namespace(x)
    return 1.0 / xp.sqrt(xp.sum(x * x, axis=-1, keepdims=True) + _EPS)
