"""Every layer that can be exported, with the function that writes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from handgrad.layers.base import Layer
from handgrad.onnx.export import (
    attention,
    containers,
    convolution,
    elementwise,
    models,
    normalization,
    recurrent,
    sequences,
)
from handgrad.onnx.graph import Value

#: `rule(graph, layer, *inputs)` gives the layer's output.
Rule = Callable[..., Value]

_RULES: Final[Mapping[type, Rule]] = {
    **attention.RULES,
    **containers.RULES,
    **convolution.RULES,
    **elementwise.RULES,
    **models.RULES,
    **normalization.RULES,
    **recurrent.RULES,
    **sequences.RULES,
}


def rule_of(layer: Layer) -> Rule | None:
    """The rule of the layer's class, or of the one whose forward it inherits, as an MLP does."""
    kind = type(layer)
    known = next((each for each in kind.__mro__ if each in _RULES), None)
    if known is None or not issubclass(known, Layer) or known.forward is not kind.forward:
        return None
    return _RULES[known]
