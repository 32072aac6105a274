"""Every layer and some compositions, in float64, with one batch each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from handgrad.layers import (
    Activation,
    AvgPool2d,
    BatchNorm,
    Conv1d,
    Conv2d,
    ConvTranspose2d,
    Dense,
    Dropout,
    Embedding,
    Flatten,
    Layer,
    LayerNorm,
    MaxPool2d,
    Residual,
    RMSNorm,
    Sequential,
    Standardize,
)

F64 = np.float64


class Case(NamedTuple):
    """A name, how to make the layer, the shape of a batch; `tokens` for a batch of integers."""

    name: str
    make: Callable[[np.random.Generator], Layer]
    shape: tuple[int, ...]
    tokens: bool = False

    def batch(self) -> np.ndarray:
        rng = np.random.default_rng(5)
        if self.tokens:
            return rng.integers(0, 7, self.shape)
        return rng.standard_normal(self.shape)


class _Repeated(Dropout):
    """Draws the same mask in every forward, so that differences are of one function."""

    def forward(self, x: np.ndarray, *, training: bool = False) -> Any:
        state = self.rng.bit_generator.state
        y, cache = super().forward(x, training=training)
        self.rng.bit_generator.state = state
        return y, cache


def _convnet(rng: np.random.Generator) -> Layer:
    block = Sequential(
        conv=Conv2d(3, 3, 3, padding=1, rng=rng, bias=False, dtype=F64),
        norm=BatchNorm(3, dtype=F64),
        act=Activation("gelu", approximate="tanh"),
    )
    return Sequential(
        Standardize((-3, -2, -1)),
        Conv2d(2, 3, 3, stride=2, padding=1, rng=rng, activation="silu", dtype=F64),
        Residual(block),
        AvgPool2d("global"),
        Flatten(),
        Residual(
            Sequential(LayerNorm(3, dtype=F64), Dense(3, 4, rng=rng, activation="tanh", dtype=F64)),
            projection=Dense(3, 4, rng=rng, bias=False, dtype=F64),
        ),
        Dense(4, 5, rng=rng, dtype=F64),
    )


CASES = [
    Case("dense", lambda rng: Dense(5, 3, rng=rng, dtype=F64), (4, 5)),
    Case("dense-no-bias", lambda rng: Dense(5, 3, rng=rng, bias=False, dtype=F64), (2, 4, 5)),
    Case("dense-tanh", lambda rng: Dense(5, 3, rng=rng, activation="tanh", dtype=F64), (4, 5)),
    Case(
        "dense-gelu",
        lambda rng: Dense(5, 3, rng=rng, activation="gelu", approximate="tanh", dtype=F64),
        (4, 5),
    ),
    Case(
        "conv1d",
        lambda rng: Conv1d(4, 6, 3, rng=rng, stride=2, padding=1, groups=2, dtype=F64),
        (2, 4, 9),
    ),
    Case(
        "conv2d",
        lambda rng: Conv2d(2, 3, (3, 2), rng=rng, dilation=(1, 2), activation="tanh", dtype=F64),
        (2, 2, 6, 5),
    ),
    Case(
        "conv-transpose2d",
        lambda rng: ConvTranspose2d(
            4, 2, 3, rng=rng, stride=2, padding=1, output_padding=(1, 0), groups=2, dtype=F64
        ),
        (2, 4, 3, 4),
    ),
    Case("max-pool2d", lambda rng: MaxPool2d(3, 2, padding=1), (2, 3, 7, 6)),
    Case("avg-pool2d", lambda rng: AvgPool2d((2, 3)), (2, 3, 4, 7)),
    Case("avg-pool2d-global", lambda rng: AvgPool2d("global"), (2, 3, 4, 5)),
    Case("flatten", lambda rng: Flatten(), (2, 3, 4)),
    Case("layer-norm", lambda rng: LayerNorm(5, dtype=F64), (3, 2, 5)),
    Case("rms-norm", lambda rng: RMSNorm(5, dtype=F64), (3, 5)),
    Case("batch-norm", lambda rng: BatchNorm(3, dtype=F64), (4, 3, 2, 2)),
    Case("embedding", lambda rng: Embedding(7, 4, rng=rng, dtype=F64), (2, 5), tokens=True),
    Case("activation", lambda rng: Activation("sigmoid"), (3, 4)),
    Case("softmax", lambda rng: Activation("softmax", axis=1), (3, 4)),
    Case("standardize", lambda rng: Standardize(), (3, 4, 5)),
    Case("dropout", lambda rng: _Repeated(0.5, rng=rng), (3, 4)),
    Case("convnet", _convnet, (3, 2, 6, 5)),
    Case(
        "tokens",
        lambda rng: Sequential(
            Embedding(7, 4, rng=rng, dtype=F64),
            RMSNorm(4, dtype=F64),
            Dense(4, 3, rng=rng, dtype=F64),
        ),
        (2, 5),
        tokens=True,
    ),
    Case("empty-sequential", lambda rng: Sequential(), (2, 3)),
]
