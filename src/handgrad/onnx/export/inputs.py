"""The inputs of a model's graph: names, kinds, and axes of which some may have any length."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, Final, NamedTuple

from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError
from handgrad.layers import (
    Activation,
    AddNorm,
    BatchNorm,
    Conv1d,
    Conv2d,
    ConvTranspose1d,
    ConvTranspose2d,
    Dense,
    Dropout,
    Embedding,
    GroupNorm,
    InstanceNorm,
    LearnedPositions,
    MultiHeadAttention,
    Residual,
    Sequential,
    Standardize,
    TransformerBlock,
    TransformerEncoder,
)
from handgrad.layers.base import Layer, reads_tokens
from handgrad.layers.recurrent import Recurrent
from handgrad.models import (
    CNN,
    Bert,
    ClsEncoder,
    Seq2Seq,
    SequenceClassifier,
    SequenceTagger,
    Transformer,
    TwoLayerNet,
)
from handgrad.models.decoder_only import DecoderOnly

#: Lengths of one example's axes; a name for one that may have any length.
Axes = tuple[int | str, ...]


class Input(NamedTuple):
    """A name, whether it has integers, and the axes behind that of the batch."""

    name: str
    integers: bool
    axes: Axes


#: The axes of an example by the class of the layer that it goes into first.
_AXES: Final[Mapping[type, Callable[[Any], Axes]]] = {
    AddNorm: lambda layer: ("time", layer.norm.features),
    Bert: lambda layer: ("time",),
    CNN: lambda layer: tuple(layer.settings["input_shape"]),
    ClsEncoder: lambda layer: ("time", layer.features),
    Conv1d: lambda layer: (layer.in_channels, "time"),
    Conv2d: lambda layer: (layer.in_channels, "height", "width"),
    ConvTranspose1d: lambda layer: (layer.in_channels, "time"),
    ConvTranspose2d: lambda layer: (layer.in_channels, "height", "width"),
    DecoderOnly: lambda layer: ("time",),
    Dense: lambda layer: (layer.in_features,),
    Embedding: lambda layer: ("time",),
    LearnedPositions: lambda layer: ("time", layer.features),
    MultiHeadAttention: lambda layer: ("time", layer.sizes["query"]),
    Recurrent: lambda layer: ("time", layer.input_size),
    SequenceClassifier: lambda layer: ("time", layer.recurrent.input_size),
    TransformerBlock: lambda layer: _of_block(layer),
    TransformerEncoder: lambda layer: _of_block(layer.blocks[0]),
    TwoLayerNet: lambda layer: (layer.steps, layer.features),
}


def _of_block(block: TransformerBlock) -> Axes:
    return ("time", block.layers["attention"].norm.features)


#: Models that take how many steps of each sequence count.
_WITH_LENGTHS: Final = (Bert, SequenceClassifier, SequenceTagger)
#: Layers whose output has the shape of x: the next one says what goes in.
_KEEP_SHAPE: Final = (Activation, BatchNorm, Dropout, GroupNorm, InstanceNorm, Standardize)


def inputs_of(
    model: Layer,
    shape: Sequence[int | None] | None,
    lengths: bool,
    trained_on: Sequence[int] | None = None,
) -> list[Input]:
    """The inputs of a model for examples of this shape, in which None may be any length.

    Without one the model says it, or the examples that it was trained on.
    Raises ArgumentError where neither the shape nor the model says it, and for lengths of a model
    that takes none.
    """
    if isinstance(model, Seq2Seq | Transformer):
        if shape is not None:
            raise ArgumentError(
                f"export_onnx: input_shape is {shown(shape)}; allowed for a "
                f"{type(model).__name__}: None, because steps may be any number"
            )
        vectors: Axes = ()
        if isinstance(model, Seq2Seq) and model.source is None:
            vectors = (model.embedding,)
        found = [
            Input("sources", not vectors, ("source_time", *vectors)),
            Input("inputs", True, ("time",)),
        ]
        of_lengths = ["source_lengths", "target_lengths"]
    else:
        axes = _axes(model)
        if shape is not None:
            axes = _given(shape)
        elif trained_on is not None and (axes is None or "height" in axes):
            axes = tuple(trained_on)
        if axes is None:
            raise ArgumentError(
                f"export_onnx: input_shape is missing; allowed for a {type(model).__name__}: the "
                "shape of one example, with None for a length that may be any"
            )
        name = next(iter(signature(model.forward).parameters))
        found = [Input(name, reads_tokens(model), axes)]
        of_lengths = ["lengths"] if isinstance(model, _WITH_LENGTHS) else []
    if lengths and not of_lengths:
        raise ArgumentError(
            f"export_onnx: lengths is True; allowed for a {type(model).__name__}: False, because "
            "its forward takes none"
        )
    return found + [Input(name, True, ()) for name in of_lengths if lengths]


def _given(shape: Any) -> Axes:
    is_shape = isinstance(shape, tuple | list) and all(
        each is None or (isinstance(each, int) and each >= 1) for each in shape
    )
    if not is_shape:
        raise ArgumentError(
            f"export_onnx: input_shape is {shown(shape)}; allowed: the shape of one example, with "
            "None for a length that may be any"
        )
    free = [i for i, each in enumerate(shape) if each is None]
    name = ["time", *(f"length_{i}" for i in free[1:])]
    names = dict(zip(free, name, strict=False))
    return tuple(names.get(i, each) for i, each in enumerate(shape))


def _axes(layer: Layer) -> Axes | None:
    """The axes of an example of a layer; None where it takes various."""
    if isinstance(layer, SequenceTagger):
        return ("time",) if layer.takes_tokens else ("time", layer.recurrent.input_size)
    for kind, axes in _AXES.items():
        if isinstance(layer, kind):
            return axes(layer)
    if isinstance(layer, Residual):
        return _axes(layer.inner)
    if isinstance(layer, Sequential):
        for child in layer.layers.values():
            found = _axes(child)
            if found is not None or not isinstance(child, _KEEP_SHAPE):
                return found
    return None
