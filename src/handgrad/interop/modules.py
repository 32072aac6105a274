"""Modules of PyTorch as layers and the other way, by the conversion of handgrad.torch."""

from __future__ import annotations

from typing import Any

from handgrad.layers import Layer
from handgrad.losses import Loss


def from_torch(module: Any, *, seed: int = 0) -> Layer | Loss:
    """A layer or a loss that computes what a module of PyTorch does, with a copy of its weights.

        layer = hg.from_torch(module)
        y = layer(x)                                  # as module.eval()(x)
        y, cache = layer.forward(x, training=True)    # as module.train()(x)

    Takes torch.nn's Linear, Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d, BatchNorm, LayerNorm,
    GroupNorm, InstanceNorm, RMSNorm, Embedding, Dropout, Flatten, Identity, ReLU, LeakyReLU, GELU,
    SiLU, Tanh, Sigmoid, Softmax, MaxPool, AvgPool, AdaptiveAvgPool(1), ConstantPad, ZeroPad,
    ReflectionPad, ReplicationPad, CircularPad, RNN, GRU, LSTM and their cells, MultiheadAttention,
    TransformerEncoderLayer, TransformerDecoderLayer, TransformerEncoder, TransformerDecoder, and
    Sequential of those; also what `to_torch` made. Of a cell comes the
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


def to_torch(layer: Layer) -> Any:
    """A torch.nn.Module that computes what a layer does, in eval mode, with a copy of the weights.

    `from_torch` is the other way, and lists the modules. A layer with an activation of its own
    becomes two modules in a Sequential; one that hides later steps (causal=True) adds that mask
    itself. Recurrent layers and attention return what torch.nn's do, with batch_first; in a
    container they are wrapped, so that only y goes on.
    Raises ArgumentError, with its place in the model, for a layer or a setting that torch.nn has
    not, and what `build` is missing. Needs PyTorch.
    """
    from handgrad.torch import conversion

    return conversion.to_torch(layer)
