"""encoder: the CLS encoder on 49 tokens of 16 numbers, 64 features, 10 classes; batches of 64.

A sample is standardised over all its numbers, and the scores read the class token alone, so that
all three compute the query and the last step for that row only. PyTorch and JAX make the keys and
values of all tokens, as one would write it; handgrad multiplies in another order and needs neither.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from benchmarks.workloads import CLASSES, Workload, product, vectors

EPS: Final = 1e-5


def workload(batch: int = 64, tokens: int = 49, features: int = 16, width: int = 64) -> Workload:
    def handgrad(rng: np.random.Generator) -> Any:
        import handgrad as hg

        return hg.ClsEncoder(features, width, width, CLASSES, rng=rng)

    def torch() -> Any:
        import torch as library
        from torch import nn
        from torch.nn import functional

        def weight(*shape: int) -> Any:
            return nn.Parameter(library.empty(*shape))

        class Encoder(nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.weight1 = weight(features, width)
                self.cls_token = weight(width)
                self.q, self.k, self.v, self.t = (weight(width, width) for _ in range(4))
                self.weight2 = weight(width, CLASSES)

            def forward(self, x: Any) -> Any:
                x = functional.layer_norm(x, x.shape[1:], eps=EPS)
                cls = self.cls_token.expand(len(x), 1, width)
                h = library.cat([x @ self.weight1, cls], dim=1)
                attended = functional.scaled_dot_product_attention(
                    cls @ self.q, h @ self.k, h @ self.v
                )
                return ((attended + cls @ self.t) @ self.weight2)[:, 0]

        return Encoder()

    def jax(parameters: list[Any], x: Any) -> tuple[Any, list[Any]]:
        from jax import nn
        from jax import numpy as jnp

        weight1, cls_token, weight_q, weight_k, weight_v, weight_t, weight2 = parameters
        mean = x.mean((1, 2), keepdims=True)
        x = (x - mean) / jnp.sqrt(x.var((1, 2), keepdims=True) + EPS)
        cls = jnp.broadcast_to(cls_token, (len(x), 1, width))
        h = jnp.concatenate([x @ weight1, cls], axis=1)
        q, k, v = cls_token @ weight_q, h @ weight_k, h @ weight_v
        alpha = nn.softmax(k @ q / math.sqrt(width))
        attended = jnp.einsum("ns,nsd->nd", alpha, v)
        return (attended + cls_token @ weight_t) @ weight2, []

    def flops(model: Any) -> int:
        """Only the class's row of the attention is needed: x̂ meets one vector before the softmax
        and one after it, no weight more than one row of a sample, and those before, of Q, T and of
        what the scores compare x̂ with, one row of the batch.
        """
        of_x = 2 * product(features, tokens, first=True)
        row = product(features * width + width * width + width * CLASSES, 1)
        return batch * (of_x + row) + product(3 * width * width + features * width, 1)

    return Workload(vectors(batch, (tokens, features)), handgrad, torch, jax, flops)
