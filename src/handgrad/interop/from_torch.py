"""Modules of PyTorch as layers, by the conversion of handgrad.torch."""

from __future__ import annotations

from typing import Any


def from_torch(module: Any, *, seed: int = 0) -> Any:
    """A layer or a loss that computes what a module of PyTorch does, with a copy of its weights.

        layer = hg.from_torch(module)
        y = layer(x)                                  # as module.eval()(x)
        y, cache = layer.forward(x, training=True)    # as module.train()(x)

    Takes torch.nn's Linear, Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d, BatchNorm, LayerNorm,
    GroupNorm, InstanceNorm, RMSNorm, Embedding, Dropout, Flatten, Identity, ReLU, LeakyReLU, GELU,
    SiLU, Tanh, Sigmoid, Softmax, MaxPool, AvgPool, AdaptiveAvgPool(1), RNN, GRU, LSTM and their
    cells, MultiheadAttention, TransformerEncoderLayer, TransformerDecoderLayer, TransformerEncoder,
    TransformerDecoder, and Sequential of those; also what `to_torch` made. Of a cell comes the
    layer that takes all steps, (N, T, D), at once. MSELoss, CrossEntropyLoss, BCEWithLogitsLoss and
    CTCLoss become losses of `handgrad.losses`; the scores of CTCLoss are (N, T, C) there.

    Arrays are float64 where the module's are, else float32. The masks of dropout are drawn from
    generators that `seed` makes. Masks go to each call, as in PyTorch, and say True where a query
    may look. Attention returns y without the weights. Parameters that the module keeps fixed are
    trained as the others are. Needs PyTorch.

    Raises ArgumentError, with its place in the module, for what has no counterpart: another module,
    one with a forward or hooks of its own, a setting that no layer has, batch_first=False, or an
    array that stands in two places.
    """
    from handgrad.torch import conversion

    return conversion.from_torch(module, seed=seed)
