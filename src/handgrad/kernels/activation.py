"""The native number of the activation of a fused op; see core/elementwise/activation.h."""

from __future__ import annotations

from typing import Final

#: In the order of core/elementwise/activation.h; the two forms of gelu are two activations there.
_NAMES: Final = (
    "identity",
    "relu",
    "leaky_relu",
    "sigmoid",
    "tanh",
    "gelu",
    "gelu_tanh",
    "silu",
    "erf",
    "sin",
)
_CODES: Final = {name: code for code, name in enumerate(_NAMES)}
_FROM_INPUT: Final = frozenset(
    _CODES[name] for name in ("leaky_relu", "gelu", "gelu_tanh", "silu", "erf", "sin")
)


def code_of(activation: str, approximate: str = "none") -> int:
    """The native number of `activation`; `approximate` chooses the form of gelu."""
    if activation == "gelu" and approximate == "tanh":
        return _CODES["gelu_tanh"]
    return _CODES[activation]


def keeps_input(code: int) -> bool:
    """Return whether the gradient needs the value before the activation, not only the output."""
    return code in _FROM_INPUT
