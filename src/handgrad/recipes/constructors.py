"""Layers as a recipe names them: their keys are the parameters of their constructors.

A type is the name of a class in lower case, `max_pool2d` for MaxPool2d. Sizes that the shape of an
example gives are no keys, nor are generators and types of numbers. Beside the form of values, which
is checked here, the constructor checks what only it knows.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from handgrad import layers
from handgrad.layers import (
    AvgPool1d,
    AvgPool2d,
    Dense,
    Flatten,
    LastStep,
    Layer,
    OpLayer,
    StepPooling,
)
from handgrad.layers.construction import FROM_SHAPE
from handgrad.layers.recurrent import BIAS_MODES, Recurrent
from handgrad.layers.step_pooling import STEP_POOLINGS
from handgrad.ops.activation import ACTIVATIONS
from handgrad.ops.gelu import APPROXIMATIONS
from handgrad.ops.rnn import NONLINEARITIES
from handgrad.recipes.schema import (
    AxisSizes,
    Either,
    Flag,
    Integer,
    Key,
    Keys,
    Kind,
    Real,
    Several,
    String,
)

Shape = tuple[int, ...]

INITIALIZER: Final = String(
    ("he_uniform", "he_normal", "xavier_uniform", "xavier_normal", "truncated_normal", "orthogonal")
)
#: The size of a layer that has as many outputs as the data need.
OUTPUTS: Final = "outputs"
#: The biases of a recurrent layer.
BIAS: Final = Either(Flag(), String(tuple(BIAS_MODES)))

#: Parameters that a recipe calls otherwise, because it never names the size of an input.
_KEYS: Final = {"out_features": "features", "out_channels": "channels"}
_NEVER: Final = frozenset({"self", "rng", "dtype"})

#: The meaning of values by the name of their parameter, which is the same in every layer.
_KINDS: Final[Mapping[str, Kind]] = {
    **dict.fromkeys(("kernel_size", "stride", "dilation"), AxisSizes(1)),
    **dict.fromkeys(("padding", "output_padding"), AxisSizes(0)),
    **dict.fromkeys(("alpha", "dropout", "momentum", "p"), Real(0, 1)),
    "activation": String(ACTIVATIONS),
    "axes": Several(Integer(1)),
    "approximate": String(APPROXIMATIONS),
    "base": Real(above=0),
    "eps": Real(0),
    "initializer": INITIALIZER,
    "name": String(ACTIVATIONS[1:]),
    "nonlinearity": String(NONLINEARITIES),
    "pooling": String(STEP_POOLINGS),
}
#: The meaning of values by the annotation of other parameters.
_ANNOTATED: Final[Mapping[str, Kind]] = {
    "bool": Flag(),
    "bool | str": BIAS,
    "int": Integer(1),
    "float": Real(None),
    "float | None": Real(None),
}
_OF_ONE_LAYER: Final[Mapping[tuple[type[Layer], str], Kind]] = {
    **dict.fromkeys(
        ((AvgPool1d, "kernel_size"), (AvgPool2d, "kernel_size")),
        Either(AxisSizes(1), String(("global",))),
    ),
    (Dense, "out_features"): Either(Integer(1), String((OUTPUTS,))),
}


def _type(layer: type[Layer]) -> str:
    """The op's name where the layer is called like it; leaky_rnn for LeakyRNN."""
    op = getattr(layer, "op", None)
    own = "" if op is None else op.__name__.rpartition(".")[2]
    if own.replace("_", "") == layer.__name__.lower():
        return own
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", layer.__name__).lower()


def _is_typed(value: object) -> bool:
    """True for what a recipe can name: a layer of one op on numbers, or one that rearranges."""
    if not inspect.isclass(value) or value in (OpLayer, Recurrent):
        return False
    return value in (Flatten, LastStep, StepPooling) or (
        issubclass(value, OpLayer | Recurrent) and not value.takes_tokens
    )


def _parameters(layer: type[Layer]) -> dict[str, inspect.Parameter]:
    """Those of the constructor, with the annotations as its source has them."""
    if layer.__init__ is object.__init__:
        return {}
    given = inspect.signature(layer).parameters.items()
    return {name: each for name, each in given if each.kind is not each.VAR_KEYWORD}


def keys_of(layer: type[Layer]) -> dict[str, Key]:
    """The keys of a recipe's table for this layer, in the order of its constructor."""
    found = {}
    for name, parameter in _parameters(layer).items():
        if name in FROM_SHAPE or name in _NEVER:
            continue
        kind = _OF_ONE_LAYER.get((layer, name)) or _KINDS.get(name)
        required = parameter.default is parameter.empty
        found[_KEYS.get(name, name)] = Key(kind or _ANNOTATED[parameter.annotation], required)
    return found


#: Every layer that a recipe can name, by its type.
CLASSES: Final[dict[str, type[Layer]]] = {
    _type(layer): layer
    for layer in (getattr(layers, name) for name in dir(layers))
    if _is_typed(layer)
}
KEYS: Final[dict[str, Keys]] = {name: keys_of(layer) for name, layer in CLASSES.items()}


def constructed(
    type_: str, settings: Mapping[str, Any], shape: Shape, rng: np.random.Generator
) -> Layer:
    """The layer of this type for an example of this shape. Raises what its constructor raises."""
    layer, arguments = CLASSES[type_], {}
    for name in _parameters(layer):
        key = _KEYS.get(name, name)
        if name in FROM_SHAPE:
            arguments[name] = FROM_SHAPE[name](shape)
        elif name == "rng":
            # A layer that draws while it trains has a generator of its own.
            arguments[name] = rng.spawn(1)[0] if name in layer.generator_names else rng
        elif key in settings:
            arguments[name] = settings[key]
    return layer(**arguments)
