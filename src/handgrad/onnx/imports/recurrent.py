"""Recurrent operators of ONNX as layers: gates in our order, time behind the batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import onnx

from handgrad import layers
from handgrad.arrays import Array
from handgrad.escaping import cut
from handgrad.layers.recurrent import Recurrent
from handgrad.onnx.export.recurrent import GATES
from handgrad.onnx.imports.graph import ReadGraph, attributes
from handgrad.onnx.imports.layers import Plan

KINDS: Final[Mapping[str, type[Recurrent]]] = {
    "GRU": layers.GRU,
    "LSTM": layers.LSTM,
    "RNN": layers.RNN,
}
_ACTIVATIONS: Final = {
    "GRU": ["Sigmoid", "Tanh"],
    "LSTM": ["Sigmoid", "Tanh", "Tanh"],
}


def unpacked(kind: str, number: int, w: Array, r: Array, b: Array | None) -> dict[str, Array]:
    """W, R and B of an operator as the parameters of a layer of this number, in our order.

    Raises ValueError where their shapes do not fit.
    """
    count, order = len(GATES[kind]), np.argsort(GATES[kind])

    def ordered(rows: Array) -> Array:
        blocks = np.split(rows, count)
        return np.concatenate([blocks[i] for i in order])

    found: dict[str, Array] = {}
    for direction in range(len(w)):
        suffix = f"_l{number}_reverse" if direction else f"_l{number}"
        found[f"weight_ih{suffix}"] = ordered(w[direction])
        found[f"weight_hh{suffix}"] = ordered(r[direction])
        if b is not None:
            bias_ih, bias_hh = np.split(b[direction], 2)
            found[f"bias_ih{suffix}"] = ordered(bias_ih)
            found[f"bias_hh{suffix}"] = ordered(bias_hh)
    return found


def plan(g: ReadGraph, node: onnx.NodeProto) -> Plan:
    """The layer of a node; raises DataError where it does what no layer of ours does."""
    kind = node.op_type
    names = ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")
    given = {name: value for name, value in zip(names, node.input, strict=False) if value}
    found = dict(attributes(node))
    directions = {"forward": 1, "bidirectional": 2}.get(found.pop("direction", "forward"))
    if directions is None:
        raise g.refusal(node, "the direction forward or bidirectional")
    settings: dict[str, Any] = {"bidirectional": directions == 2}
    functions = found.pop("activations", None)
    if kind == "RNN":
        names_of = {("Tanh",): "tanh", ("Relu",): "relu"}
        chosen = names_of.get(tuple(dict.fromkeys(functions or ["Tanh"])))
        if chosen is None:
            raise g.refusal(node, "the activation Tanh or Relu")
        settings["nonlinearity"] = chosen
    elif functions not in (None, _ACTIVATIONS[kind] * directions):
        raise g.refusal(node, f"the activations {', '.join(_ACTIVATIONS[kind])}")
    if kind == "GRU" and found.pop("linear_before_reset", 0) != 1:
        raise g.refusal(node, "linear_before_reset 1, as PyTorch's GRU has it")
    found.pop("hidden_size", None)
    other = next((f"{cut(name)} {cut(str(value))}" for name, value in found.items() if value), None)
    if other is not None:
        raise g.refusal(node, f"no {other}")
    for name in ("sequence_lens", "P"):
        if name in given and not (name == "P" and g.is_zero(given[name])):
            raise g.refusal(node, f"no {name}")
    for name in ("initial_h", "initial_c"):
        if name in given and not g.is_zero(given[name]):
            raise g.refusal(node, f"an {name} of zeros")
    w, r, b = (g.constant(given[name]) if name in given else None for name in "WRB")
    if w is None or r is None or w.ndim != 3 or r.ndim != 3 or ("B" in given and b is None):
        raise g.refusal(node, "constants for W, R and B")
    settings["bias"] = b is not None
    if len(w) != directions:
        raise g.refusal(node, f"weights of {directions} directions, not {len(w)}")
    return Plan(
        KINDS[kind],
        (w.shape[2], r.shape[2]),
        settings,
        unpacked(kind, 0, w, r, b),
    )
