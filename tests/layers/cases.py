"""Every layer and some compositions, in float64, with one batch each."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from handgrad.errors import HandgradError
from handgrad.layers import (
    GEGLU,
    GRU,
    LSTM,
    RNN,
    Activation,
    AddNorm,
    AvgPool1d,
    AvgPool2d,
    BatchNorm,
    ColumnEmbeddings,
    Conv1d,
    Conv2d,
    ConvTranspose1d,
    ConvTranspose2d,
    Dense,
    Dropout,
    Embedding,
    FeedForward,
    Flatten,
    GroupNorm,
    InstanceNorm,
    LastStep,
    Layer,
    LayerNorm,
    LeakyRNN,
    LearnedPositions,
    MaxPool1d,
    MaxPool2d,
    MultiHeadAttention,
    Pad,
    PositionalEncoding,
    Residual,
    RMSNorm,
    Sequential,
    Standardize,
    StepPooling,
    SwiGLU,
    TransformerBlock,
    TransformerEncoder,
    walk,
)
from handgrad.layers.recurrent import BIAS_MODES
from handgrad.recipes.constructors import CLASSES, KEYS, constructed
from handgrad.recipes.schema import Real, String

F64 = np.float64


class Case(NamedTuple):
    """A name, how to make the layer, the shape of a batch; `tokens` for a batch of integers.

    levels: the columns of a batch that hold numbers of levels, which are not differentiable.
    """

    name: str
    make: Callable[[np.random.Generator], Layer]
    shape: tuple[int, ...]
    tokens: bool = False
    levels: tuple[int, ...] = ()

    def batch(self) -> np.ndarray:
        rng = np.random.default_rng(5)
        if self.tokens:
            return rng.integers(0, 7, self.shape)
        x = rng.standard_normal(self.shape)
        for column in self.levels:
            # Not whole, so that a small difference finds the same level.
            x[:, column] = rng.integers(0, 3, len(x)) + 0.25
        return x


def from_recipe(name: str, dtype: Any = F64) -> Case:
    """The layer that a recipe makes of nothing but what it has to say, on sequences or images."""
    kinds = {key: each.kind for key, each in KEYS[name].items() if each.required}
    settings = {
        key: kind.choices[0] if isinstance(kind, String) else 0.5 if isinstance(kind, Real) else 2
        for key, kind in kinds.items()
    }

    def make(shape: tuple[int, ...], rng: np.random.Generator) -> Layer:
        return constructed(name, {**settings, "dtype": dtype}, shape, rng)

    for shape in ((5, 4), (4, 6, 6)):
        with suppress(HandgradError):
            make(shape, np.random.default_rng(0)).output_shape(shape)
            return Case(f"{name}-from-recipe", partial(make, shape), (2, *shape))
    raise AssertionError(f"{name}: a layer of neither sequences nor images")


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
    Case(
        "conv-transpose1d",
        lambda rng: ConvTranspose1d(
            4, 2, 3, rng=rng, stride=2, padding=1, output_padding=1, groups=2, dtype=F64
        ),
        (2, 4, 5),
    ),
    Case("max-pool1d", lambda rng: MaxPool1d(3, 2, padding=1, dilation=2), (2, 3, 9)),
    Case("avg-pool1d", lambda rng: AvgPool1d(3, 2, 1, count_include_pad=False), (2, 3, 8)),
    Case("avg-pool1d-global", lambda rng: AvgPool1d("global"), (2, 3, 5)),
    Case("flatten", lambda rng: Flatten(), (2, 3, 4)),
    *(
        Case(f"pad-{mode}", lambda rng, mode=mode: Pad((2, 1, 0, 2), mode=mode), (2, 3, 4))
        for mode in ("constant", "reflect", "replicate", "circular")
    ),
    Case("layer-norm", lambda rng: LayerNorm(5, dtype=F64), (3, 2, 5)),
    Case("layer-norm-without-bias", lambda rng: LayerNorm(5, bias=False, dtype=F64), (3, 2, 5)),
    Case("rms-norm", lambda rng: RMSNorm(5, dtype=F64), (3, 5)),
    Case("batch-norm", lambda rng: BatchNorm(3, dtype=F64), (4, 3, 2, 2)),
    Case("batch-norm-tanh", lambda rng: BatchNorm(3, activation="tanh", dtype=F64), (4, 3, 2, 2)),
    Case("group-norm", lambda rng: GroupNorm(2, 4, eps=0.1, dtype=F64), (3, 4, 5)),
    Case("instance-norm", lambda rng: InstanceNorm(3, dtype=F64), (2, 3, 2, 4)),
    Case("swiglu", lambda rng: SwiGLU(), (3, 2, 6)),
    Case("geglu", lambda rng: GEGLU(), (3, 6)),
    Case("geglu-tanh", lambda rng: GEGLU(approximate="tanh"), (3, 6)),
    Case("embedding", lambda rng: Embedding(7, 4, rng=rng, dtype=F64), (2, 5), tokens=True),
    Case(
        "column-embeddings",
        lambda rng: ColumnEmbeddings((1, 3), (3, 4), (2, 3), rng=rng, dtype=F64),
        (4, 5),
        levels=(1, 3),
    ),
    Case("activation", lambda rng: Activation("sigmoid"), (3, 4)),
    Case("softmax", lambda rng: Activation("softmax", axis=1), (3, 4)),
    Case("standardize", lambda rng: Standardize(), (3, 4, 5)),
    Case("standardize-vector", lambda rng: Standardize(), (3, 7)),
    Case("standardize-image", lambda rng: Standardize((2, 3)), (2, 3, 4, 5)),
    Case("dropout", lambda rng: Dropout(0.5, rng=rng), (3, 4)),
    Case(
        "attention",
        lambda rng: MultiHeadAttention(6, 3, rng=rng, dropout=0.2, post_dropout=0.3, dtype=F64),
        (2, 5, 6),
    ),
    Case(
        "attention-of-all-sizes",
        lambda rng: MultiHeadAttention(
            5,
            4,
            rng=rng,
            q_proj_size=6,
            k_proj_size=6,
            v_proj_size=3,
            o_proj_size=7,
            kv_heads=2,
            scale=0.7,
            bias=False,
            rotary=True,
            dtype=F64,
        ),
        (2, 4, 5),
    ),
    Case(
        "attention-with-norms",
        lambda rng: MultiHeadAttention(
            6, 2, rng=rng, qk_norm=True, bias=("q_proj", "o_proj"), dtype=F64
        ),
        (2, 5, 6),
    ),
    Case(
        "attention-without-projections",
        lambda rng: MultiHeadAttention(
            3, 2, rng=rng, q_proj_size=0, k_proj_size=0, v_proj_size=0, o_proj_size=0, dtype=F64
        ),
        (2, 4, 3),
    ),
    Case(
        "feed-forward", lambda rng: FeedForward(4, 7, rng=rng, activation="gelu", dtype=F64), (5, 4)
    ),
    Case(
        "gated-feed-forward",
        lambda rng: FeedForward(4, 7, rng=rng, activation="swiglu", dropout=0.2, dtype=F64),
        (5, 4),
    ),
    Case("add-norm", lambda rng: AddNorm(Dense(4, 4, rng=rng, dtype=F64), 4, dtype=F64), (3, 4)),
    Case(
        "norm-of-the-sum",
        lambda rng: AddNorm(Dense(4, 4, rng=rng, dtype=F64), 4, norm="post", dtype=F64),
        (3, 4),
    ),
    Case(
        "transformer-block",
        lambda rng: TransformerBlock(
            4, 2, 7, rng=rng, activation="tanh", causal=True, dropout=0.1, dtype=F64
        ),
        (2, 5, 4),
    ),
    Case(
        "transformer-encoder-without-biases",
        lambda rng: TransformerEncoder(
            2, 4, 2, 7, rng=rng, activation="gelu", bias=False, dtype=F64
        ),
        (2, 5, 4),
    ),
    Case(
        "transformer-encoder",
        lambda rng: TransformerEncoder(
            2, 6, 3, 5, rng=rng, norm="post", activation="silu", rotary=True, dtype=F64
        ),
        (2, 4, 6),
    ),
    Case(
        "transformer-encoder-of-rms-norms",
        lambda rng: TransformerEncoder(
            1,
            6,
            3,
            5,
            rng=rng,
            normalization="rms_norm",
            activation="swiglu",
            head_size=4,
            rotary=True,
            rotary_frequencies=(0.5, 0.1),
            bias=False,
            attention_bias=True,
            dtype=F64,
        ),
        (2, 4, 6),
    ),
    Case("positional-encoding", lambda rng: PositionalEncoding(), (2, 5, 3)),
    Case("learned-positions", lambda rng: LearnedPositions(7, 3, rng=rng, dtype=F64), (2, 5, 3)),
    Case(
        "language-model",
        lambda rng: Sequential(
            Embedding(7, 4, rng=rng, dtype=F64),
            LearnedPositions(5, 4, rng=rng, dtype=F64),
            TransformerEncoder(2, 4, 2, 8, rng=rng, activation="gelu", causal=True, dtype=F64),
            Dense(4, 7, rng=rng, dtype=F64),
        ),
        (2, 5),
        tokens=True,
    ),
    Case(
        "rnn",
        lambda rng: Sequential(
            RNN(4, 3, 2, rng=rng, bidirectional=True, dropout=0.3, dtype=F64),
            LastStep(bidirectional=True),
        ),
        (2, 5, 4),
    ),
    Case(
        "relu-rnn",
        lambda rng: Sequential(RNN(4, 3, rng=rng, nonlinearity="relu", dtype=F64)),
        (2, 5, 4),
    ),
    Case(
        "leaky-rnn",
        lambda rng: Sequential(LeakyRNN(4, 3, 2, rng=rng, alpha=[0.1, 0.5, 0.9], dtype=F64)),
        (2, 5, 4),
    ),
    Case(
        "lstm",
        lambda rng: Sequential(
            LSTM(4, 5, 3, rng=rng, bidirectional=True, proj_size=2, dropout=0.3, dtype=F64),
            Dense(4, 3, rng=rng, dtype=F64),
        ),
        (2, 3, 4),
    ),
    Case(
        "residual-lstm",
        lambda rng: Sequential(
            Dense(4, 4, rng=rng, dtype=F64), Residual(LSTM(4, 4, rng=rng, bias=False, dtype=F64))
        ),
        (2, 3, 4),
    ),
    Case("gru", lambda rng: Sequential(GRU(4, 3, 2, rng=rng, dtype=F64), LastStep()), (2, 5, 4)),
    *(
        Case(
            f"{layer.__name__.lower()}-bias-{bias}",
            lambda rng, layer=layer, bias=bias: Sequential(
                layer(4, 3, 2, rng=rng, bidirectional=True, bias=bias, dtype=F64)
            ),
            (2, 3, 4),
        )
        for layer in (RNN, GRU, LSTM)
        for bias in BIAS_MODES
    ),
    Case(
        "lstm-learned-state",
        lambda rng: Sequential(
            LSTM(4, 5, 2, rng=rng, bidirectional=True, proj_size=2, learn_h0=True, dtype=F64),
            Residual(GRU(4, 4, rng=rng, bias="recurrent", learn_h0=True, dtype=F64)),
        ),
        (2, 3, 4),
    ),
    Case("last-step", lambda rng: LastStep(), (2, 3, 4)),
    Case("last-steps", lambda rng: LastStep(bidirectional=True), (2, 3, 4)),
    Case("mean-of-steps", lambda rng: StepPooling("mean"), (2, 3, 4)),
    Case("max-of-steps", lambda rng: StepPooling("max"), (2, 3, 4)),
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
_SHOWN = {type(each) for case in CASES for _, each in walk(case.make(np.random.default_rng(0)))}
CASES += [from_recipe(name) for name, layer in CLASSES.items() if layer not in _SHOWN]
