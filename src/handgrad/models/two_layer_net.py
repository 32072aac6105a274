"""TwoLayerNet: Careddu's network, with its gradients vectorised and as a chain of Jacobians.

Equation numbers in comments are those of section 2, of its forward or its backward part.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from handgrad import initializers
from handgrad.arrays import Array
from handgrad.dispatch import SKIP
from handgrad.errors import ArgumentError, ShapeError
from handgrad.initializers import Initializer
from handgrad.layers.base import Layer, Shape
from handgrad.layers.construction import FROM_SEED, InputSize
from handgrad.layers.inputs import in_own_type
from handgrad.ops import dense, relu, softmax
from handgrad.ops import standardize as standardize_op


class Cache(NamedTuple):
    """The values that the chain of Jacobians reads, named as by Careddu, and the caches of the ops.

    x_hat: (N, n, m), Careddu's pre_a1; a1: (N, d, n); pre_a2: (N, dn); scores: (N, k).
    `standardize` is None where x is used as it comes.
    """

    x_hat: Array
    a1: Array
    pre_a2: Array
    scores: Array
    standardize: Any
    product: Any
    relu: Any
    linear2: Any


class TwoLayerNet(Layer):
    """Scores (N, k) for samples x (N, n, m), which are matrices.

    Forward:  x̂ = (x − μ)/√(σ² + eps),  μ and σ² over the whole n × m sample
              a₁ = W₁x̂ᵀ + B₁,  h₁ = ReLU(a₁),  pre_a₂ = h₁ row by row,  scores = W₂pre_a₂ + B₂
    Backward: with δ = dscores, s − y for the softmax and the cross-entropy of one sample:
              dW₂ = δᵀpre_a₂,  dB₂ = δ,  dB₁ = (δW₂ as d × n) ⊙ ReLU′(a₁),  dW₁ = dB₁x̂

    Parameters: `weight1` W₁ (d, m), `bias1` B₁ (d, n), a matrix, `weight2` W₂ (k, dn), `bias2` B₂
    (k,). `initializer` draws both weights; without it W₁ is He uniform and W₂ Xavier uniform, as in
    Dense. The biases start at 0. `standardize` is "example" or None, for data that were
    standardised before.

    Raises ShapeError for x of another shape, ArgumentError for other settings.
    Source: Careddu, Custom Neural Networks (undated), section 2, with an eps under the root, the
    composite's X standardised and transposed, and brackets in the backward's (3), (5) and (7).
    """

    parameter_names = ("weight1", "bias1", "weight2", "bias2")
    op: ModuleType = dense

    def __init__(
        self,
        steps: int,
        features: InputSize,
        hidden: int,
        classes: int,
        *,
        rng: np.random.Generator = FROM_SEED,
        standardize: str | None = "example",
        eps: float = 1e-5,
        initializer: Initializer | None = None,
        dtype: DTypeLike = np.float32,
    ) -> None:
        if min(steps, features, hidden, classes) < 1:
            raise ArgumentError(
                f"TwoLayerNet: steps, features, hidden and classes are {steps}, {features}, "
                f"{hidden} and {classes}; allowed: from 1"
            )
        if standardize not in ("example", None):
            raise ArgumentError(
                f"TwoLayerNet: standardize is {standardize!r}; allowed: 'example' or None"
            )
        self.steps = steps
        self.features: int = features
        self.hidden = hidden
        self.classes = classes
        self.standardize = standardize
        self.eps = eps
        first = initializer or initializers.for_activation("relu")
        second = initializer or initializers.for_activation("identity")
        self.weight1 = first((hidden, features), rng, dtype=dtype)
        self.bias1 = np.zeros((hidden, steps), dtype=dtype)
        self.weight2 = second((classes, hidden * steps), rng, dtype=dtype)
        self.bias2 = np.zeros(classes, dtype=dtype)

    @in_own_type
    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Cache]:
        self.output_shape(tuple(x.shape[1:]))
        x_hat, standardized = x, None
        if self.standardize == "example":
            x_hat, standardized = standardize_op.forward(x, eps=self.eps)  # (1)
        # (2): the op multiplies rows, so that it gives (W₁x̂ᵀ)ᵀ = x̂W₁ᵀ.
        product, product_cache = self.op.forward(x_hat, self.weight1)
        a1 = product.swapaxes(1, 2) + self.bias1
        h1, relu_cache = relu.forward(a1)  # (3)
        pre_a2 = h1.reshape(len(x), self.hidden * self.steps)  # (4)
        # (5); (6) is the identity, and (7) and (8) are the loss's.
        scores, linear2 = self.op.forward(pre_a2, self.weight2, self.bias2)
        cache = Cache(x_hat, a1, pre_a2, scores, standardized, product_cache, relu_cache, linear2)
        return scores, cache

    def backward(
        self,
        dy: Array,
        cache: Cache,
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
    ) -> tuple[Array | None, Mapping[str, Array]]:
        names = self.parameter_names
        out = {name: None if gradients is None else gradients.get(name) for name in names}
        dpre_a2, dweight2, dbias2 = self.op.backward(  # (3) and (6): δᵀpre_a₂, δ
            dy, cache.linear2, out=(None, out["weight2"], out["bias2"])
        )
        # (7) with its bracket: (δW₂ as d × n) ⊙ ReLU′(a₁), as one term.
        da1 = relu.backward(dpre_a2.reshape(cache.a1.shape), cache.relu)
        dbias1 = np.sum(da1, axis=0, out=out["bias1"])
        # (5) with its bracket: that term times x̂; without it, ⊙ has a d × n and a d × m operand.
        dx, dweight1, _ = self.op.backward(
            da1.swapaxes(1, 2),
            cache.product,
            out=(None if input_gradient else SKIP, out["weight1"], SKIP),
        )
        if input_gradient and cache.standardize is not None:
            dx = standardize_op.backward(dx, cache.standardize)
        if gradients is None:
            found = dict(zip(names, (dweight1, dbias1, dweight2, dbias2), strict=True))
            gradients = {name: found[name] for name in self.trained_names}
        return dx, gradients

    def backward_jacobian_chain(self, target: Array, cache: Cache) -> dict[str, Array]:
        """The gradients of the parameters for one sample, by the Jacobians of (1), (2) and (4).

        For reading, and for checking `backward` at small sizes: the largest Jacobian takes (dn)²
        values or dndm. The loss is the cross-entropy −Σ y ln s of softmax(scores), with `target` y
        (k,), probabilities; `backward` gives the same for dscores = s − y.

        Raises ShapeError unless forward was given one sample and y is (k,).
        """
        if cache.scores.shape[0] != 1 or tuple(target.shape) != (self.classes,):
            raise ShapeError(
                f"TwoLayerNet: {cache.scores.shape[0]} samples and a target of shape "
                f"{tuple(target.shape)}; allowed: one sample and ({self.classes},)"
            )
        d, n, k = self.hidden, self.steps, self.classes
        x_hat, a1, pre_a2 = cache.x_hat[0], cache.a1[0], cache.pre_a2[0]
        s, _ = softmax.forward(cache.scores[0])

        dloss_ds = -target / s  # k
        ds_dh2 = softmax.jacobian(s)  # k × k
        dh2_da2 = np.eye(k)  # k × k
        da2_dweight2 = np.einsum("ij,l->ijl", np.eye(k), pre_a2)  # k × k × dn
        da2_dpre_a2 = self.weight2  # k × dn
        dpre_a2_dh1 = np.eye(d * n).reshape(d * n, d, n)  # dn × d × n
        dh1_da1 = np.diag((a1 > 0).reshape(-1)).reshape(d, n, d, n)  # d × n × d × n
        da1_dweight1 = np.einsum("ir,jc->ijrc", np.eye(d), x_hat)  # d × n × d × m

        dloss_dh2 = dloss_ds @ ds_dh2  # (1) to (2): s − y
        dloss_da2 = dloss_dh2 @ dh2_da2
        dloss_dh1 = np.tensordot(dloss_da2 @ da2_dpre_a2, dpre_a2_dh1, axes=1)
        dloss_da1 = np.tensordot(dloss_dh1, dh1_da1, axes=2)
        return {
            "weight1": np.tensordot(dloss_da1, da1_dweight1, axes=2),  # (4)
            "bias1": dloss_da1,
            "weight2": np.tensordot(dloss_da2, da2_dweight2, axes=1),  # (1)
            "bias2": dloss_da2,
        }

    def output_shape(self, input_shape: Shape) -> Shape:
        if input_shape != (self.steps, self.features):
            raise ShapeError(
                f"TwoLayerNet: an example has shape {input_shape}; "
                f"allowed: {(self.steps, self.features)}"
            )
        return (self.classes,)

    def flops(self, input_shape: Shape) -> int:
        self.output_shape(input_shape)
        units = self.hidden * self.steps
        standardized = 5 * math.prod(input_shape) if self.standardize == "example" else 0
        return standardized + units * (2 * self.features + 2) + self.classes * (2 * units + 1)

    def input_flops(self, input_shape: Shape) -> int:
        """Those of x̂ and of its product with W₁."""
        standardized = 5 * math.prod(input_shape) if self.standardize == "example" else 0
        return standardized + 2 * self.hidden * self.steps * self.features
