"""encoder_block: PyTorch's encoder layer at its defaults but for dropout, 8 heads of 64, hidden
2,048, on 128 steps of 512 features, and 64 classes at every step; batches of 16.

Without dropout every contender takes the same steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from benchmarks.workloads import Workload, product

EPS: Final = 1e-5


def workload(
    batch: int = 16,
    steps: int = 128,
    width: int = 512,
    heads: int = 8,
    hidden: int = 2048,
    classes: int = 64,
) -> Workload:
    def examples() -> tuple[tuple[Any, ...], np.ndarray]:
        rng = np.random.default_rng(1)
        x = rng.standard_normal((batch, steps, width), dtype=np.float32)
        return (x,), rng.integers(0, classes, (batch, steps))

    def handgrad(rng: np.random.Generator) -> Any:
        import handgrad as hg

        block = hg.TransformerBlock(width, heads, hidden, norm="post", rng=rng)
        return hg.Sequential(block, hg.Dense(width, classes, rng=rng))

    def torch() -> Any:
        from torch import nn

        layer = nn.TransformerEncoderLayer(width, heads, hidden, 0.0, batch_first=True)
        return nn.Sequential(layer, nn.Linear(width, classes))

    def jax(parameters: list[Any], x: Any) -> tuple[Any, list[Any]]:
        from jax import nn

        in_proj, in_bias, out, out_bias, w1, b1, w2, b2, *norms, head, head_bias = parameters

        def norm(x: Any, gamma: Any, beta: Any) -> Any:
            centred = x - x.mean(-1, keepdims=True)
            return centred / (x.var(-1, keepdims=True) + EPS) ** 0.5 * gamma + beta

        qkv = (x @ in_proj.T + in_bias).reshape(batch, steps, 3, heads, width // heads)
        q, k, v = qkv.transpose(2, 0, 3, 1, 4)
        weights = nn.softmax(q @ k.swapaxes(-1, -2) / math.sqrt(width // heads))
        o = (weights @ v).swapaxes(1, 2).reshape(batch, steps, width)
        x = norm(x + (o @ out.T + out_bias), *norms[:2])
        x = norm(x + (nn.relu(x @ w1.T + b1) @ w2.T + b2), *norms[2:])
        return x @ head.T + head_bias, []

    def for_peers(first: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Queries, keys and values in one matrix and one bias, and the norms after the rest."""
        own = {name.removeprefix("0."): values for name, values in first.items()}
        packed = [
            np.concatenate([own[f"attention.inner.{part}_proj.{kind}"] for part in "qkv"])
            for kind in ("weight", "bias")
        ]
        layers = (
            "attention.inner.o_proj",
            "feed_forward.inner.linear1",
            "feed_forward.inner.linear2",
        )
        products = [own[f"{name}.{kind}"] for name in layers for kind in ("weight", "bias")]
        parts = ("attention", "feed_forward")
        norms = [own[f"{part}.norm.{kind}"] for part in parts for kind in ("gamma", "beta")]
        return [*packed, *products, *norms, first["1.weight"], first["1.bias"]]

    def flops(model: Any) -> int:
        weights = 4 * width * width + 2 * width * hidden
        linear = product(weights, batch * steps, first=True)
        head = product(width * classes, batch * steps)
        return linear + head + batch * product(2 * width, steps * steps)

    return Workload(examples, handgrad, torch, jax, flops, for_peers=for_peers)
