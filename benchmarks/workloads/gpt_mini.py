"""gpt_mini: 6 blocks of width 384 with 6 heads, 256 steps, vocabulary 256; batches of 8.

GPT-2's form: learned positions, pre-norm blocks, GELU by tanh, biases, the head tied to the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.workloads import Inputs, Workload, product


def workload(
    batch: int = 8,
    steps: int = 256,
    vocabulary: int = 256,
    blocks: int = 6,
    width: int = 384,
    heads: int = 6,
    context: int | None = None,
) -> Workload:
    """context: how many positions there are, `steps` unless given."""
    positions = steps if context is None else context

    def examples() -> tuple[Inputs, np.ndarray]:
        rng = np.random.default_rng(1)
        text = rng.integers(0, vocabulary, (batch, steps + 1))
        return (np.ascontiguousarray(text[:, :-1]),), np.ascontiguousarray(text[:, 1:])

    def handgrad(rng: np.random.Generator) -> Any:
        import handgrad as hg

        return hg.GPT(
            vocabulary,
            context=positions,
            width=width,
            heads=heads,
            blocks=blocks,
            approximate="tanh",
            rng=rng,
        )

    def torch() -> Any:
        from torch import nn
        from torch.nn import functional

        class Block(nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.norm1 = nn.LayerNorm(width)
                self.qkv = nn.Linear(width, 3 * width)
                self.o = nn.Linear(width, width)
                self.norm2 = nn.LayerNorm(width)
                self.linear1 = nn.Linear(width, 4 * width)
                self.linear2 = nn.Linear(4 * width, width)

            def forward(self, x: Any) -> Any:
                n, t, _ = x.shape
                q, k, v = (
                    each.view(n, t, heads, width // heads).transpose(1, 2)
                    for each in self.qkv(self.norm1(x)).split(width, dim=2)
                )
                y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
                x = x + self.o(y.transpose(1, 2).reshape(n, t, width))
                gelu = functional.gelu(self.linear1(self.norm2(x)), approximate="tanh")
                return x + self.linear2(gelu)

        class GPT(nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.tokens = nn.Embedding(vocabulary, width)
                self.positions = nn.Embedding(positions, width)
                self.blocks = nn.ModuleList(Block() for _ in range(blocks))
                self.norm = nn.LayerNorm(width)

            def forward(self, tokens: Any) -> Any:
                x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
                for block in self.blocks:
                    x = block(x)
                return functional.linear(self.norm(x), self.tokens.weight)

        return GPT()

    def jax(parameters: list[Any], tokens: Any) -> tuple[Any, list[Any]]:
        from jax import lax, nn

        def norm(x: Any, gamma: Any, beta: Any) -> Any:
            mean = x.mean(-1, keepdims=True)
            # E x² − (E x)², as Flax computes it: one pass.
            variance = (x * x).mean(-1, keepdims=True) - mean * mean
            return (x - mean) * (lax.rsqrt(variance + 1e-5) * gamma) + beta

        table, positions, *rest = parameters
        n, t = tokens.shape
        x = table[tokens] + positions[:t]
        for i in range(blocks):
            g1, b1, w_qkv, b_qkv, w_o, b_o, g2, b2, w1, bias1, w2, bias2 = rest[
                12 * i : 12 * i + 12
            ]
            qkv = (norm(x, g1, b1) @ w_qkv.T + b_qkv).reshape(n, t, 3, heads, width // heads)
            q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
            y = nn.dot_product_attention(q, k, v, is_causal=True).reshape(n, t, width)
            x = x + (y @ w_o.T + b_o)
            hidden = nn.gelu(norm(x, g2, b2) @ w1.T + bias1, approximate=True)
            x = x + (hidden @ w2.T + bias2)
        return norm(x, *rest[-2:]) @ table.T, []

    def for_peers(first: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Queries, keys and values in one matrix and one bias."""
        found = []
        for name, values in first.items():
            if ".q_proj." in name:
                others = [first[name.replace("q_proj", part)] for part in ("k_proj", "v_proj")]
                found.append(np.concatenate([values, *others]))
            elif ".k_proj." not in name and ".v_proj." not in name:
                found.append(values)
        return found

    def flops(model: Any) -> int:
        """In attention, only the pairs of a step with itself and with those before it."""
        pairs = steps * (steps + 1) // 2
        linear = product(blocks * 12 * width * width + vocabulary * width, batch * steps)
        return linear + batch * blocks * product(2 * width, pairs)

    return Workload(examples, handgrad, torch, jax, flops, for_peers=for_peers)
