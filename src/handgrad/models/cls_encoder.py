"""ClsEncoder: Careddu's one-layer transformer encoder, its gradients composed and in closed form.

Equation numbers in comments are those of section 1, of its forward or its backward part.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import DTypeLike

from handgrad import initializers
from handgrad.arrays import Array
from handgrad.dispatch import SKIP
from handgrad.errors import ArgumentError, ShapeError
from handgrad.initializers import Initializer
from handgrad.layers.base import Layer, Shape
from handgrad.layers.construction import FROM_SEED, InputSize
from handgrad.layers.inputs import in_own_type
from handgrad.ops import matmul, softmax
from handgrad.ops import standardize as standardize_op


class Cache(NamedTuple):
    """Values that the closed form and backward read, and the caches of the ops.

    x_hat (N, n, m), Careddu's h_pre1; class_query (1, d2), the class's query, one for all
    samples; s (N, 1, n+1), the attention weights of the class, to be looked at; h2 (N, 1, d2), the
    class's row; u (d1,), its query times W_K over √d₂. `standardize` is None where x is used as it
    comes; `products` are those with each weight, `comparing` and `weighing` those with x_hat.
    """

    x_hat: Array
    class_query: Array
    s: Array
    h2: Array
    u: Array
    weight1: Array
    cls_token: Array
    weight_k: Array
    weight_v: Array
    standardize: Any
    comparing: Any
    softmax: Any
    weighing: Any
    products: Mapping[str, Any]

    @property
    def q(self) -> Array:
        """The class's query, (N, 1, d2)."""
        return np.broadcast_to(self.class_query, (len(self.s), *self.class_query.shape))

    @property
    def h_pre2(self) -> Array:
        """The features (N, n+1, d1), the class's last, which scores do without: computed now."""
        h1 = self.x_hat @ self.weight1
        cls = np.broadcast_to(self.cls_token, (len(h1), 1, len(self.cls_token)))
        return np.concatenate([h1, cls], axis=1)

    @property
    def k(self) -> Array:
        """The keys (N, n+1, d2), as the features."""
        return self.h_pre2 @ self.weight_k

    @property
    def v(self) -> Array:
        """The values (N, n+1, d2), as the features."""
        return self.h_pre2 @ self.weight_v


def fan_in_normal(
    shape: Shape, rng: np.random.Generator, *, dtype: DTypeLike = np.float32
) -> Array:
    """N(0, 1/fan_in), what lies beyond two standard deviations redrawn."""
    std = 1.0 / math.sqrt(initializers.fans(shape)[0])
    return initializers.truncated_normal(shape, rng, std=std, dtype=dtype)


class ClsEncoder(Layer):
    """Scores (N, k) for samples x (N, n, m) with any number n of steps.

    Forward:  x̂ = (x − μ)/√(σ² + eps),  μ and σ² over the whole n × m sample
              h_pre2 = [x̂W₁; cls],  the class token last;  Q, K, V, T = h_pre2 W_{Q,K,V,T}
              S = softmax(QKᵀ/√d₂),  h₂ = SV + T,  scores = row n+1 of h₂ times W₂
    Backward: composed from those of the ops, or in closed form (`backward_closed_form`)

    The scores read the class's row of h₂ alone, so of Q, T and S only that row is computed, and K,
    V and h_pre2 not at all: with q the class's query, and s its weights of the n steps and of the
    class itself, every weight meets one row instead of n + 1,
        q Kᵀ = u h_pre2ᵀ = [(u W₁ᵀ) x̂ᵀ, u·cls] with u = q W_Kᵀ
        s V = (s h_pre2) W_V,  s h_pre2 = (s₁..ₙ x̂) W₁ + sₙ₊₁ cls
    q, u and T are the same for all samples.
    Weights multiply from the right, as in Careddu: `weight1` (m, d1), `cls_token`
    (d1,), `weight_q`, `weight_k`, `weight_v` and `weight_t` (d1, d2), `weight2` (d2, k).
    `initializer` draws them, the token too, each as (out, in). `standardize` is "example" or None,
    for data that were standardised before.

    Raises ShapeError for x of another shape, ArgumentError for other settings.
    Source: Careddu, Custom Neural Networks (undated), section 1, with d_k = d₂, an eps under the
    root, the composite's X standardised, and s − y for z − y in the backward's (1) to (4), (13) and
    (14).
    """

    parameter_names = (
        "weight1",
        "cls_token",
        "weight_q",
        "weight_k",
        "weight_v",
        "weight_t",
        "weight2",
    )
    op: ModuleType = matmul

    def __init__(
        self,
        features: InputSize,
        d1: int,
        d2: int,
        classes: int,
        *,
        rng: np.random.Generator = FROM_SEED,
        standardize: str | None = "example",
        eps: float = 1e-5,
        initializer: Initializer = fan_in_normal,
        dtype: DTypeLike = np.float32,
    ) -> None:
        if min(features, d1, d2, classes) < 1:
            raise ArgumentError(
                f"ClsEncoder: features, d1, d2 and classes are {features}, {d1}, {d2} and "
                f"{classes}; allowed: from 1"
            )
        if standardize not in ("example", None):
            raise ArgumentError(
                f"ClsEncoder: standardize is {standardize!r}; allowed: 'example' or None"
            )

        def first(inputs: int, outputs: int) -> Array:
            return np.ascontiguousarray(initializer((outputs, inputs), rng, dtype=dtype).T)

        self.features: int = features
        self.d1 = d1
        self.d2 = d2
        self.classes = classes
        self.standardize = standardize
        self.eps = eps
        self.weight1 = first(features, d1)
        self.cls_token = first(d1, 1)[:, 0]
        self.weight_q, self.weight_k, self.weight_v, self.weight_t = (
            first(d1, d2) for _ in range(4)
        )
        self.weight2 = first(d2, classes)

    @in_own_type
    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Cache]:
        self.output_shape(tuple(x.shape[1:]))
        xp = array_namespace(x)
        samples, steps = x.shape[:2]
        products: dict[str, Any] = {}

        def times(h: Array, name: str) -> Array:
            """h W for every row of every sample, in one product."""
            weight = getattr(self, name)
            y, products[name] = self.op.forward(_rows(h), weight)
            return y.reshape(*h.shape[:-1], weight.shape[1])

        x_hat, standardized = x, None
        if self.standardize == "example":
            x_hat, standardized = standardize_op.forward(x, eps=self.eps)  # (1)
        cls = self.cls_token[None]
        q = times(cls, "weight_q")  # (4)
        t = times(cls, "weight_t")
        u, products["weight_k"] = self.op.forward(self.weight_k, q[0] * self._scale)
        key, products["key"] = self.op.forward(self.weight1, u)  # what x̂ is compared with
        qk_steps, comparing = self.op.forward(_rows(x_hat), key)
        qk_cls = xp.broadcast_to(self.cls_token @ u, (samples, 1, 1))
        qk = xp.concat((qk_steps.reshape(samples, 1, steps), qk_cls), axis=-1)
        s, softmaxed = softmax.forward(qk)  # (5)
        x_weighed, weighing = self.op.forward(s[..., :-1], x_hat)
        context = times(x_weighed, "weight1") + s[..., -1:] * cls  # (2), (3)
        h2 = times(context, "weight_v") + t  # (6)
        scores = times(h2, "weight2")[:, 0]  # (7)
        cache = Cache(
            *(x_hat, q, s, h2, u, self.weight1, self.cls_token, self.weight_k, self.weight_v),
            *(standardized, comparing, softmaxed, weighing, products),
        )
        return scores, cache

    def backward(
        self,
        dy: Array,
        cache: Cache,
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
    ) -> tuple[Array | None, Mapping[str, Array]]:
        found: dict[str, Array] = {}
        of_x = None if input_gradient else SKIP

        def buffer(name: str) -> Array | None:
            return None if gradients is None else gradients.get(name)

        def through(dh: Array, name: str) -> Array:
            """The gradient of h in h W; that of W is noted."""
            dx, found[name] = self.op.backward(
                _rows(dh), cache.products[name], out=(None, buffer(name))
            )
            return dx.reshape(*dh.shape[:-1], dx.shape[-1])

        xp = array_namespace(dy)
        s_cls = cache.s[:, 0, -1]
        cls = cache.cls_token
        dh2 = through(dy[:, None], "weight2")
        dt = xp.sum(dh2, axis=0)
        dcontext = through(dh2, "weight_v")
        dx_weighed = through(dcontext, "weight1")
        ds_steps, dx_of_context = self.op.backward(dx_weighed, cache.weighing, out=(None, of_x))
        ds = xp.concat((ds_steps, (dcontext @ cls)[..., None]), axis=-1)
        dqk = softmax.backward(ds, cache.softmax)
        dx_of_qk, dkey = self.op.backward(
            dqk[..., :-1].reshape(-1), cache.comparing, out=(of_x, None)
        )
        dqk_cls = xp.sum(dqk[..., -1])
        dweight1_of_key, du = self.op.backward(dkey, cache.products["key"])
        du += dqk_cls * cls
        found["weight1"] += dweight1_of_key
        found["weight_k"], dq = self.op.backward(
            du, cache.products["weight_k"], out=(buffer("weight_k"), None)
        )
        dcls = through(dq[None] * self._scale, "weight_q")[0] + through(dt, "weight_t")[0]
        dcls += s_cls @ dcontext[:, 0] + dqk_cls * cache.u
        found["cls_token"] = dcls
        if gradients is not None and "cls_token" not in self.frozen:
            gradients["cls_token"][...] = dcls
        dx = None
        if input_gradient:
            dx = dx_of_context + dx_of_qk.reshape(dx_of_context.shape)
            if cache.standardize is not None:
                dx = standardize_op.backward(dx, cache.standardize)
        if gradients is None:
            gradients = {name: found[name] for name in self.trained_names}
        return dx, gradients

    def backward_closed_form(self, dscores: Array, cache: Cache) -> dict[str, Array]:
        """The gradients of the parameters by Careddu's equations (1) to (16), summed over samples.

        `dscores` (N, k) is s − y for the cross-entropy of each sample, s the softmax of the scores
        (over N for their mean). Only the class's row of Q and T carries gradient.
        """
        x_hat, h_pre2, s, h2 = cache.x_hat, cache.h_pre2, cache.s, cache.h2
        q, k, v = cache.q, cache.k, cache.v
        h_cls = h_pre2[:, -1:]
        delta = dscores[:, None]  # s − y as a row, (N, 1, k)

        dt = delta @ self.weight2.T  # (14)
        ds = dt @ _transposed(v)  # (4)
        dqk = s * (ds - ds @ _transposed(s)) / math.sqrt(self.d2)  # (5) to (8), of q Kᵀ
        dq = dqk @ k  # (11)
        dk = _transposed(dqk) @ q  # (12)
        dv = _transposed(s) @ dt  # (13)
        dh1 = dk[:, :-1] @ self.weight_k.T + dv[:, :-1] @ self.weight_v.T
        dcls = (  # (15)
            dq @ self.weight_q.T
            + dk[:, -1:] @ self.weight_k.T
            + dv[:, -1:] @ self.weight_v.T
            + dt @ self.weight_t.T
        )
        of_each = {
            "weight1": _transposed(x_hat) @ dh1,  # (16)
            "cls_token": dcls[:, 0],
            "weight_q": _transposed(h_cls) @ dq,  # (10)
            "weight_k": _transposed(h_pre2) @ dk,  # (9)
            "weight_v": _transposed(h_pre2) @ dv,  # (3)
            "weight_t": _transposed(h_cls) @ dt,  # (2)
            "weight2": _transposed(h2) @ delta,  # (1)
        }
        return {name: np.sum(gradient, axis=0) for name, gradient in of_each.items()}

    def attention_maps(self, cache: Cache) -> list[tuple[str, Array]]:
        """The weights of the class's query, (N, 1, 1, n+1): one head, one row."""
        return [("attention", cache.s[:, None])]

    @property
    def _scale(self) -> float:
        return 1.0 / math.sqrt(self.d2)

    def output_shape(self, input_shape: Shape) -> Shape:
        if len(input_shape) != 2 or input_shape[0] == 0 or input_shape[1] != self.features:
            raise ShapeError(
                f"ClsEncoder: an example has shape {input_shape}; "
                f"allowed: (n, {self.features}) with n at least 1"
            )
        return (self.classes,)

    def flops(self, input_shape: Shape) -> int:
        """The operations that are computed; the softmax counts 5 for every weight."""
        self.output_shape(input_shape)
        standardized = 5 * math.prod(input_shape) if self.standardize == "example" else 0
        tokens = 4 * math.prod(input_shape) + 5 * (input_shape[0] + 1)
        class_row = 4 * self.d1 * (self.features + 2 * self.d2 + 1)
        return standardized + tokens + class_row + 2 * self.d2 * (1 + self.classes)

    def input_flops(self, input_shape: Shape) -> int:
        """Those of x̂, of its scores and of the sum that they weight."""
        standardized = 5 * math.prod(input_shape) if self.standardize == "example" else 0
        return standardized + 4 * math.prod(input_shape)


def _rows(x: Array) -> Array:
    """All vectors one below the other."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _transposed(x: Array) -> Array:
    """The matrix of each sample transposed."""
    return x.swapaxes(-1, -2)
