"""Models with and without forks, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from handgrad import losses
from handgrad.layers import (
    AvgPool2d,
    BatchNorm,
    Conv2d,
    Dense,
    Dropout,
    Embedding,
    Flatten,
    Layer,
    MaxPool2d,
    OpLayer,
    Residual,
    RMSNorm,
    Sequential,
    Standardize,
)
from handgrad.ops import relu

F64 = np.float64


class Model(NamedTuple):
    name: str
    make: Callable[[np.random.Generator], Layer]
    input_shape: tuple[int, ...]
    loss: losses.Loss | None = None


class Doubled(OpLayer):
    """A user's layer that is its op twice over, and says otherwise by its `op` alone."""

    op = relu

    def forward(self, x, *, training=False):
        y, cache = relu.forward(x)
        return 2 * y, cache

    def backward(self, dy, cache, *, gradients=None, input_gradient=True):
        return relu.backward(2 * dy, cache), {}

    def output_shape(self, input_shape):
        return input_shape

    def flops(self, input_shape):
        return 0


class Scaled(Layer):
    """A user's layer without an op: y = s x."""

    parameter_names = ("scale",)

    def __init__(self, features):
        self.scale = np.linspace(0.5, 1.5, features)

    def forward(self, x, *, training=False):
        return x * self.scale, x

    def backward(self, dy, cache, *, gradients=None, input_gradient=True):
        return dy * self.scale, {"scale": np.sum(dy * cache, axis=0)}

    def output_shape(self, input_shape):
        return input_shape


def dense(rng: np.random.Generator, inputs: int, outputs: int, activation: str = "identity"):
    return Dense(inputs, outputs, rng=rng, activation=activation, dtype=F64)


def conv(rng: np.random.Generator, inputs: int, outputs: int, activation: str = "identity"):
    return Conv2d(inputs, outputs, 3, padding=1, rng=rng, activation=activation, dtype=F64)


def mlp(rng: np.random.Generator) -> Layer:
    return Sequential(dense(rng, 4, 3, "relu"), dense(rng, 3, 2))


def residual(rng: np.random.Generator) -> Layer:
    branch = Sequential(dense(rng, 4, 3, "tanh"), dense(rng, 3, 4))
    return Sequential(first=dense(rng, 4, 4), block=Residual(branch), last=dense(rng, 4, 2))


def projected(rng: np.random.Generator) -> Layer:
    branch = Sequential(BatchNorm(3, dtype=F64), conv(rng, 3, 4, "relu"), conv(rng, 4, 4))
    return Sequential(
        conv(rng, 2, 3),
        Residual(branch, Sequential(conv(rng, 3, 4), BatchNorm(4, dtype=F64))),
        MaxPool2d(2),
        AvgPool2d("global"),
        Flatten(),
        dense(rng, 4, 3),
    )


def nested(rng: np.random.Generator) -> Layer:
    return Sequential(
        dense(rng, 4, 4),
        Residual(Sequential(Residual(dense(rng, 4, 4, "gelu")), dense(rng, 4, 4))),
        Residual(Residual(dense(rng, 4, 4)), Residual(dense(rng, 4, 4, "silu"))),
        dense(rng, 4, 2),
    )


def of_data(rng: np.random.Generator) -> Layer:
    """What comes first has no parameters; the data itself forks."""
    return Sequential(
        Standardize((-2, -1)),
        Flatten(),
        Residual(Sequential(Dropout(0.5, rng=rng), dense(rng, 6, 6, "leaky_relu"))),
        dense(rng, 6, 3),
    )


def words(rng: np.random.Generator) -> Layer:
    table = Embedding(7, 4, rng=rng, dtype=F64)
    return Sequential(table, RMSNorm(4, dtype=F64), dense(rng, 4, 3))


def foreign(rng: np.random.Generator) -> Layer:
    return Sequential(dense(rng, 4, 3), Doubled(), Scaled(3), dense(rng, 3, 2))


CROSS_ENTROPY = losses.CrossEntropy(label_smoothing=0.1)
MODELS = [
    Model("mlp", mlp, (4,), losses.SquaredError(reduction="half_sum")),
    Model("residual", residual, (4,), CROSS_ENTROPY),
    Model("projected", projected, (2, 5, 4), CROSS_ENTROPY),
    Model("nested", nested, (4,), losses.BinaryCrossEntropy()),
    Model("of-data", of_data, (2, 3), CROSS_ENTROPY),
    Model("words", words, (5,)),
    Model("foreign", foreign, (4,), losses.SquaredError()),
    Model("one-layer", lambda rng: dense(rng, 4, 3, "sigmoid"), (4,)),
]
