"""The work that is timed: one file per network, with handgrad, PyTorch and JAX side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import numpy as np

NAMES: Final = ("mlp_tiny", "mlp", "cnn", "convnet")
CLASSES: Final = 10


@dataclass(frozen=True)
class Work:
    """One network in three libraries; each file of this package ends with its `WORK`.

    - `handgrad(rng)`: the layer. Its parameters are the first weights of every contender.
    - `torch()`: the module, its parameters in the same order and shapes.
    - `jax(parameters, x)`: the scores, and the mean and variance of every batch norm.
    """

    batch: int
    input_shape: tuple[int, ...]
    handgrad: Callable[[np.random.Generator], Any]
    torch: Callable[[], Any]
    jax: Callable[[list[Any], Any], tuple[Any, list[Any]]]

    def examples(self) -> tuple[np.ndarray, np.ndarray]:
        """The one batch that every step learns: normal inputs and random classes."""
        rng = np.random.default_rng(1)
        x = rng.standard_normal((self.batch, *self.input_shape), dtype=np.float32)
        return x, rng.integers(0, CLASSES, self.batch)


def load(name: str) -> Work:
    work: Work = import_module(f"benchmarks.works.{name}").WORK
    return work


def products(model: Any, input_shape: tuple[int, ...]) -> int:
    """FLOPs of one example's products in a step; a multiply-add is 2, all else is left out.

    A dense or convolution layer multiplies each weight once for every place of its output: going
    forward, for the weight's gradient and, except in the first such layer, for the input's.
    """
    flops, shape, first = 0, input_shape, True
    for layer in model.layers.values():
        given = layer.output_shape(shape)
        weight = layer.parameters.get("weight")
        if weight is not None:
            places = int(np.prod(given)) // weight.shape[0]
            flops += (2 if first else 3) * 2 * weight.size * places
            first = False
        shape = given
    return flops
