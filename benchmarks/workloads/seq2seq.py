"""seq2seq: a bidirectional tanh RNN, additive attention and a sigmoid decoder, 256 units each.

From 30 vectors of 64 numbers to 30 of 64 classes, in batches of 64. As in the notes the decoder
gets nothing but what it looks at; all three compute the keys W_h h_i once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workloads import Inputs, Workload, product


def workload(
    batch: int = 64, steps: int = 30, features: int = 64, hidden: int = 256, classes: int = 64
) -> Workload:
    """Sources and targets have so many steps."""

    def examples() -> tuple[Inputs, np.ndarray]:
        """The inputs of the decoder are not looked at, they only say how many steps there are."""
        rng = np.random.default_rng(1)
        x = rng.standard_normal((batch, steps, features), dtype=np.float32)
        target = rng.integers(0, classes, (batch, steps))
        return (x, None, np.zeros((batch, steps), np.int64)), target

    def handgrad(rng: np.random.Generator) -> Any:
        import handgrad as hg

        return hg.Seq2Seq(
            None,
            classes,
            embedding=features,
            hidden=hidden,
            encoder="rnn",
            score="additive",
            cell="sigmoid",
            feed=False,
            rng=rng,
        )

    def torch() -> Any:
        import torch as library
        from torch import nn
        from torch.nn.functional import linear

        def weight(*shape: int) -> Any:
            return nn.Parameter(library.empty(*shape))

        class Decoder(nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.weight_s = weight(hidden, hidden)
                self.weight_h = weight(hidden, 2 * hidden)
                self.v = weight(hidden)
                self.weight_ih = weight(hidden, 2 * hidden)
                self.weight_hh = weight(hidden, hidden)
                self.bias_ih = weight(hidden)
                self.bias_hh = weight(hidden)

            def forward(self, s: Any, h: Any, steps: int) -> Any:
                keys = linear(h, self.weight_h)
                bias = self.bias_ih + self.bias_hh
                states = []
                for _ in range(steps):
                    query = linear(s, self.weight_s)
                    scores = library.tanh(keys + query[:, None]) @ self.v
                    alpha = library.softmax(scores, dim=1)
                    c = library.bmm(alpha[:, None], h)[:, 0]
                    s = library.sigmoid(linear(c, self.weight_ih, bias) + linear(s, self.weight_hh))
                    states.append(s)
                return library.stack(states, dim=1)

        class Seq2Seq(nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.encoder = nn.RNN(features, hidden, batch_first=True, bidirectional=True)
                self.first = nn.Linear(hidden, hidden)
                self.decoder = Decoder()
                self.head = nn.Linear(hidden, classes)

            def forward(self, x: Any, lengths: Any, tokens: Any) -> Any:
                h, state = self.encoder(x)
                s = library.tanh(self.first(state[1]))
                return self.head(self.decoder(s, h, tokens.shape[1]))

        return Seq2Seq()

    def jax(parameters: list[Any], x: Any, lengths: Any, tokens: Any) -> tuple[Any, list[Any]]:
        from jax import lax, nn
        from jax import numpy as jnp

        ahead, back = parameters[:4], parameters[4:8]
        first, first_bias, weight_s, weight_h, v = parameters[8:13]
        weight_ih, weight_hh, bias_ih, bias_hh, head, head_bias = parameters[13:]

        def direction(weights: list[Any], *, reverse: bool) -> tuple[Any, Any]:
            w_ih, w_hh, b_ih, b_hh = weights

            def step(h: Any, a: Any) -> tuple[Any, Any]:
                h = jnp.tanh(a + h @ w_hh.T)
                return h, h

            a = x.transpose(1, 0, 2) @ w_ih.T + (b_ih + b_hh)
            return lax.scan(step, jnp.zeros((len(x), hidden)), a, reverse=reverse)

        _, h_ahead = direction(ahead, reverse=False)
        last, h_back = direction(back, reverse=True)
        h = jnp.concatenate([h_ahead, h_back], axis=-1).transpose(1, 0, 2)
        keys = h @ weight_h.T

        def step(s: Any, _: Any) -> tuple[Any, Any]:
            query = s @ weight_s.T
            alpha = nn.softmax(jnp.tanh(keys + query[:, None]) @ v)
            c = jnp.einsum("ns,nsc->nc", alpha, h)
            s = nn.sigmoid(c @ weight_ih.T + s @ weight_hh.T + (bias_ih + bias_hh))
            return s, s

        s0 = jnp.tanh(last @ first.T + first_bias)
        _, states = lax.scan(step, s0, None, length=tokens.shape[1])
        return states.transpose(1, 0, 2) @ head.T + head_bias, []

    def flops(model: Any) -> int:
        square, rows = hidden * hidden, batch * steps
        encoder = 2 * (product(hidden * features, rows, first=True) + product(square, rows))
        keys = product(2 * square, rows)
        # A step has the query, v · tanh(…) and Σ α h over all keys, the cell and the head.
        looking = product(square + steps * 3 * hidden, rows)
        cell = product(3 * square + hidden * classes, rows)
        return encoder + keys + product(square, batch) + looking + cell

    return Workload(examples, handgrad, torch, jax, flops)
