"""The networks that are timed: one file each, with handgrad, PyTorch and JAX side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import numpy as np

NAMES: Final = (
    "mlp_tiny",
    "mlp",
    "cnn",
    "convnet",
    "rnn",
    "lstm",
    "gru",
    "lstm_projection",
    "lstm_ragged",
    "seq2seq",
    "encoder",
    "gpt_mini",
    "gpt2_124m",
)
CLASSES: Final = 10
#: The class of a step that does not count, such as the padding of a short sequence.
IGNORED: Final = -100

Inputs = tuple[Any, ...]


def _values(first: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    return list(first.values())


def _flat(inputs: Inputs, target: Any) -> Any:
    return target.flatten()


@dataclass(frozen=True)
class Workload:
    """One network in three libraries; each file of this package has a `workload(**sizes)`.

    - `examples()`: the one batch that every step learns, `(inputs, target)`: arrays as all three
      networks take them, or None, and the classes, for each example or each of its steps.
    - `handgrad(rng)`: the model. Its parameters are the first weights of every contender.
    - `torch()`: the module, its parameters in the same order and shapes.
    - `jax(parameters, *inputs)`: the scores, and the mean and variance of every batch norm.
    - `flops(model)`: of the products of one step, see `products`.
    - `for_peers(parameters)`: where PyTorch and JAX hold them otherwise, such as queries, keys and
      values in one.
    - `torch_target(inputs, target)`: the classes in the order of the module's scores.
    - `layers`: the sizes of a dense network with ReLU, which scikit-learn has as well.
    """

    examples: Callable[[], tuple[Inputs, np.ndarray]]
    handgrad: Callable[[np.random.Generator], Any]
    torch: Callable[[], Any]
    jax: Callable[..., tuple[Any, list[Any]]]
    flops: Callable[[Any], int]
    for_peers: Callable[[Mapping[str, np.ndarray]], list[np.ndarray]] = _values
    torch_target: Callable[[Inputs, Any], Any] = _flat
    layers: tuple[int, ...] | None = None


def load(name: str, **sizes: Any) -> Workload:
    """The workload `name`, in other sizes than its own if they are given."""
    workload: Workload = import_module(f"benchmarks.workloads.{name}").workload(**sizes)
    return workload


def vectors(
    batch: int, shape: tuple[int, ...], classes: int = CLASSES
) -> Callable[[], tuple[Inputs, np.ndarray]]:
    """Examples of this shape: normal numbers, each example of a random class."""

    def examples() -> tuple[Inputs, np.ndarray]:
        rng = np.random.default_rng(1)
        x = rng.standard_normal((batch, *shape), dtype=np.float32)
        return (x,), rng.integers(0, classes, batch)

    return examples


def layered(
    batch: int,
    shape: tuple[int, ...],
    handgrad: Callable[[np.random.Generator], Any],
    torch: Callable[[], Any],
    jax: Callable[..., tuple[Any, list[Any]]],
    **settings: Any,
) -> Workload:
    """A `Sequential` on vectors or images of this shape."""

    def flops(model: Any) -> int:
        return batch * products(model, shape)

    return Workload(vectors(batch, shape), handgrad, torch, jax, flops, **settings)


def products(model: Any, input_shape: tuple[int, ...]) -> int:
    """FLOPs of one example's products in a step; a multiply-add is 2, all else is left out.

    A dense or convolution layer multiplies each weight once for every position of its output: going
    forward, for the weight's gradient and, except in the first such layer, for the input's.
    """
    flops, shape, first = 0, input_shape, True
    for layer in model.layers.values():
        given = layer.output_shape(shape)
        weight = layer.parameters.get("weight")
        if weight is not None:
            positions = int(np.prod(given)) // weight.shape[0]
            flops += product(weight.size, positions, first=first)
            first = False
        shape = given
    return flops


def product(weights: int, rows: int, *, first: bool = False) -> int:
    """FLOPs of a step for a matrix of so many weights that so many rows are multiplied with.

    first: no layer before it needs a gradient.
    """
    return (2 if first else 3) * 2 * weights * rows
