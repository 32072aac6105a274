"""The network of rnn, lstm, gru and their variants: scores at every step of a sequence.

Normal inputs (N, T, 64), 256 hidden units, 64 random classes at every step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.workloads import IGNORED, Inputs, Workload, product


def tagger(
    cell: str,
    step: Callable[[list[Any], Any, Any], tuple[Any, Any]],
    *,
    gates: int,
    arrays: int,
    layers: int = 1,
    projection: int = 0,
    ragged: bool = False,
    batch: int = 64,
    steps: int = 100,
    features: int = 64,
    hidden: int = 256,
    classes: int = 64,
) -> Workload:
    """The workload of this cell; `step(weights, state, a)` in JAX gives (state, output).

    weights are those of a layer, so many `arrays`; `a` is what the input brings to the gates, made
    for the whole sequence at once, both biases in it. state is `h`, of LSTM (h, c).
    ragged: lengths are uniform in 1 … steps.
    """
    output = projection or hidden

    def examples() -> tuple[Inputs, np.ndarray]:
        rng = np.random.default_rng(1)
        x = rng.standard_normal((batch, steps, features), dtype=np.float32)
        target = rng.integers(0, classes, (batch, steps))
        if not ragged:
            return (x,), target
        lengths = rng.integers(1, steps + 1, batch)
        target[np.arange(steps) >= lengths[:, None]] = IGNORED
        return (x, lengths), target

    def handgrad(rng: np.random.Generator) -> Any:
        import handgrad as hg

        settings = {"proj_size": projection} if projection else {}
        return hg.SequenceTagger(
            features, hidden, classes, cell=cell, num_layers=layers, rng=rng, **settings
        )

    def torch() -> Any:
        from torch import nn
        from torch.nn.utils.rnn import pack_padded_sequence

        kinds = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
        settings = {"proj_size": projection} if projection else {}

        class Tagger(nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.recurrent = kinds[cell](features, hidden, layers, batch_first=True, **settings)
                self.head = nn.Linear(output, classes)

            def forward(self, x: Any, lengths: Any = None) -> Any:
                """The head works on the real steps of a ragged batch alone."""
                if lengths is None:
                    y, _ = self.recurrent(x)
                    return self.head(y)
                packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
                y, _ = self.recurrent(packed)
                return self.head(y.data)

        return Tagger()

    def torch_target(inputs: Inputs, target: Any) -> Any:
        if not ragged:
            return target.flatten()
        from torch.nn.utils.rnn import pack_padded_sequence

        packed = pack_padded_sequence(target, inputs[1], batch_first=True, enforce_sorted=False)
        return packed.data

    def jax(parameters: list[Any], x: Any, lengths: Any = None) -> tuple[Any, list[Any]]:
        """Lengths are in the loss alone: what stands behind an end changes nothing before it."""
        from jax import lax
        from jax import numpy as jnp

        h0, c0 = jnp.zeros((len(x), output)), jnp.zeros((len(x), hidden))
        x = x.transpose(1, 0, 2)
        for layer in range(layers):
            weights = parameters[layer * arrays : (layer + 1) * arrays]
            weight_ih, _, bias_ih, bias_hh = weights[:4]
            bias = bias_ih if cell == "gru" else bias_ih + bias_hh
            a = x @ weight_ih.T + bias
            first = (h0, c0) if cell == "lstm" else h0
            _, x = lax.scan(lambda state, a, w=weights: step(w, state, a), first, a)
        weight, bias = parameters[-2:]
        return (x @ weight.T + bias).transpose(1, 0, 2), []

    def flops(model: Any) -> int:
        """Only the steps that are real are needed."""
        _, target = examples()
        real = int(np.sum(target != IGNORED))
        count = product(output * classes, real)
        for layer in range(layers):
            inputs = output if layer else features
            count += product(gates * hidden * inputs, real, first=layer == 0)
            count += product(gates * hidden * output + hidden * projection, real)
        return count

    return Workload(examples, handgrad, torch, jax, flops, torch_target=torch_target)
