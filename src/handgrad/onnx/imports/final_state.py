"""The last state of a recurrent operator, as models take it from what it gives beside its steps.

Y_h is (directions, N, H). The state of several operators stands in a Concat, those of the last one
at its end. What follows takes (N, H) from it, or both directions side by side.
"""

from __future__ import annotations

from typing import Final

import onnx

from handgrad import layers
from handgrad.onnx.imports.graph import ReadGraph, attributes, axes_of
from handgrad.onnx.imports.layers import TABLE, Plan

_EXPECTED: Final = (
    "the last state of the last layer as h[-1], as h.squeeze(0), or with both directions side by "
    "side"
)


def is_read(g: ReadGraph, node: onnx.NodeProto, end: str) -> bool:
    """Return whether the graph takes the last state of an operator, and none of its steps."""
    steps, *others = node.output
    return bool(others) and steps != end and not g.readers(steps)


def final_state(g: ReadGraph, node: onnx.NodeProto, layer: Plan) -> tuple[Plan, str]:
    """The layer that gives the last state, and the value that has it.

    Raises DataError, with the name of the node that takes another part.
    """
    directions = 2 if layer.settings["bidirectional"] else 1
    value, count, width = node.output[1], directions, directions * layer.args[1]
    readers = g.readers(value)
    if not readers:
        raise g.refusal(node, "that its steps or its last state Y_h are read")
    if len(readers) == 1 and readers[0].op_type == "Concat":
        joined = readers[0]
        count = _states_in(g, joined, value, directions)
        readers = g.readers(joined.output[0])
    found = _taken(g, readers, directions, count, width)
    if found is None:
        raise g.refusal(readers[0] if readers else node, _EXPECTED)
    settings = {"bidirectional": True} if directions == 2 else {}
    return Plan(layers.LastStep, (), settings), found


def _states_in(g: ReadGraph, joined: onnx.NodeProto, value: str, directions: int) -> int:
    """The rows of states of several operators, of which the last are those of `value`."""
    for name in joined.input:
        writer = g.writer(name)
        if writer is None or list(writer.output[1:2]) != [name]:
            raise g.refusal(joined, "the states of all layers")
        both = attributes(writer).get("direction", "forward") == "bidirectional"
        if both != (directions == 2):
            raise g.refusal(joined, "the states of layers of as many directions")
    if attributes(joined).get("axis") != 0 or joined.input[-1] != value:
        raise g.refusal(joined, "the states of all layers in their order")
    return directions * len(joined.input)


def _taken(
    g: ReadGraph, readers: list[onnx.NodeProto], directions: int, count: int, width: int
) -> str | None:
    """The value that has the last `directions` of the states; None where others are taken."""
    kinds = [node.op_type for node in readers]
    if kinds == ["Gather"] and directions == 1 and _row(g, readers[0], count) == count - 1:
        return str(readers[0].output[0])
    if kinds == ["Squeeze"] and count == 1:
        return str(readers[0].output[0]) if axes_of(g, readers[0]) == [0] else None
    if kinds == ["Gather", "Gather"] and directions == 2:
        rows = {_row(g, node, count): str(node.output[0]) for node in readers}
        return _side_by_side(g, [rows.get(count - 2), rows.get(count - 1)])
    if kinds == ["Transpose"] and count == directions:
        return _flattened(g, readers[0], width)
    return None


def _row(g: ReadGraph, node: onnx.NodeProto, count: int) -> int | None:
    """The row that a Gather takes; None where it takes something else."""
    index = g.constant(node.input[1])
    if index is None or index.shape != () or attributes(node).get("axis", 0) != 0:
        return None
    return int(index) + count if index < 0 else int(index)


def _side_by_side(g: ReadGraph, parts: list[str | None]) -> str | None:
    """The value that has both parts, the first in front."""
    readers = [g.readers(name) for name in parts if name is not None]
    if len(readers) != 2 or any(len(each) != 1 for each in readers) or readers[0] != readers[1]:
        return None
    (joined,) = readers[0]
    fits = joined.op_type == "Concat" and attributes(joined).get("axis") in (1, -1)
    return str(joined.output[0]) if fits and list(joined.input) == parts else None


def _flattened(g: ReadGraph, node: onnx.NodeProto, width: int) -> str | None:
    """The value behind (directions, N, H) as (N, directions, H) and then as rows."""
    readers = g.readers(node.output[0])
    if attributes(node).get("perm") != [1, 0, 2] or len(readers) != 1:
        return None
    rows = readers[0]
    if rows.op_type not in ("Flatten", "Reshape"):
        return None
    target = g.constant(rows.input[1]) if rows.op_type == "Reshape" else None
    if target is not None and target.tolist()[1:] != [width] and target.tolist() != [0, -1]:
        return None
    TABLE[rows.op_type](g, rows)  # it has the sentence for other rows
    return str(rows.output[0])
