"""Pairs of recurrent layers, which have the same names of weights on both sides."""

from __future__ import annotations

from typing import Any, Final

from torch import nn

from handgrad.layers import GRU, LSTM, RNN
from handgrad.torch.conversion.pair import ModulePath, Pair

_SIZES: Final = {name: name for name in ("input_size", "hidden_size", "num_layers", "dropout")}

_CELL: Final = {name: name for name in ("input_size", "hidden_size")}


class RecurrentPair(Pair):
    """A recurrent module. The layer takes (N, T, D), as the module does with batch_first."""

    def own_settings(self, module: Any, path: ModulePath) -> dict[str, Any]:
        own = super().own_settings(module, path)
        return own | {"bidirectional": module.bidirectional, "bias": module.bias}

    def torch_settings(self, layer: Any, path: ModulePath) -> dict[str, Any]:
        if layer.bias not in ("double", "none"):
            raise path.refusal(layer, f"has bias={layer.bias!r}", "True or False, as in PyTorch")
        settings = super().torch_settings(layer, path)
        bidirectional = layer.directions == 2
        bias = layer.bias == "double"
        return settings | {"bias": bias, "bidirectional": bidirectional, "batch_first": True}


class CellPair(Pair):
    """One step of a recurrent layer. The layer takes all of them, (N, T, D), at once."""

    def own_settings(self, module: Any, path: ModulePath) -> dict[str, Any]:
        return super().own_settings(module, path) | {"bias": module.bias}

    def tensors(self, module: Any) -> dict[str, Any]:
        return {f"{name}_l0": tensor for name, tensor in super().tensors(module).items()}


def _pair(module: Any, layer: Any, *settings: str) -> Pair:
    return RecurrentPair(
        module,
        layer,
        _SIZES | {name: name for name in settings},
        limits={"batch_first": True},
        own_limits={"learned_states": ()},
    )


PAIRS: Final = (
    _pair(nn.RNN, RNN, "nonlinearity"),
    _pair(nn.GRU, GRU),
    _pair(nn.LSTM, LSTM, "proj_size"),
    CellPair(nn.RNNCell, RNN, _CELL | {"nonlinearity": "nonlinearity"}),
    CellPair(nn.GRUCell, GRU, _CELL),
    CellPair(nn.LSTMCell, LSTM, _CELL),
)
