"""The records of a loop, of its parts, and of a pile of what its rounds made."""

from __future__ import annotations

from typing import Any

import numpy as np

from handgrad.program.node import PRIMITIVES, Loop, Node, Primitive, build, world
from handgrad.program.rounds import runs
from handgrad.program.run import run_loop
from handgrad.program.sizes import Size


def looped(loop: Loop, operands: list[Node]) -> list[Node]:
    """The parts of a new loop: the carried values' last, then the stacks."""
    node = build("loop", *operands, loop=loop)
    return [build("part", node, index=i) for i in range(len(loop.body.outputs))]


def _evaluate(*values: Any, loop: Loop) -> tuple[Any, ...]:
    return run_loop(loop, list(values), dict(world().lengths))


def _shape(*nodes: Node, loop: Loop) -> tuple[tuple[Size, ...], str]:
    return (), "f"


def _part_shape(node: Node, index: int) -> tuple[tuple[Size, ...], str]:
    if (parts := PRIMITIVES[node.op].parts) is not None:
        shape: tuple[tuple[Size, ...], str] = parts(*node.args, **node.attrs)[index]
        return shape
    loop: Loop = node.attrs["loop"]
    out = loop.body.outputs[index]
    return (out.shape if index < loop.carried else (loop.count, *out.shape)), out.kind


def _unchanged(node: Node, index: int) -> Node | None:
    """A value that a loop hands on as it was, which no round changes."""
    loop: Loop | None = node.attrs.get("loop")
    if loop is None or index >= loop.carried:
        return None
    place = loop.constants + index
    return node.args[place] if loop.body.outputs[index] is loop.body.inputs[place] else None


def _pile_shape(*nodes: Node) -> tuple[tuple[Size, ...], str]:
    """The number of rounds where the pile is of a loop's rounds, and not what it was here."""
    total = Size.of(0)
    for start, end, length in runs(list(nodes)):
        total = total + (end - start if length is None else length)
    kind = max((n.kind for n in nodes), key="bifc".index)
    return (total, *nodes[0].shape), kind


def _pile_vjp(g: Node, y: Node, *nodes: Node) -> tuple[Node, ...]:
    return tuple(build("getitem", g, index=(Size.of(i),)) for i in range(len(nodes)))


PRIMITIVES["loop"] = Primitive("loop", _evaluate, _shape)
PRIMITIVES["part"] = Primitive(
    "part", lambda value, index: value[index], _part_shape, rewrite=_unchanged
)


def _tensors(e: Any, n: Node) -> str:
    """PyTorch stacks no numbers of Python."""

    def part(x: Node) -> str:
        return f"torch.tensor({e.arg(x)}{e.kind(n)})" if e.is_number(x) else str(e.arg(x))

    return f"torch.stack(({', '.join(map(part, n.args))},))"


#: A stack along a new first axis; the trace keeps it, so that rounds can be told in it.
PRIMITIVES["pile"] = Primitive(
    "pile",
    lambda *values: np.stack(values),
    _pile_shape,
    _pile_vjp,
    lambda e, n: f"np.stack(({', '.join(map(e.arg, n.args))},))",
    _tensors,
)
