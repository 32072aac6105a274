"""Arguments that decide what a function does: fixed as they are on the example, and guarded.

A number of axes, a power, places to cut at: where a traced array or a letter is given for one, what
is emitted holds for that value alone and refuses another.
"""

from typing import Any

import numpy as np

from handgrad.program.node import Node, Program, as_node, build, world
from handgrad.program.primitives.record import record
from handgrad.program.rounds import fixed, guard
from handgrad.program.sizes import Size

record(
    "array_equal",
    np.array_equal,
    lambda a, b: ((), "b"),
    lambda g, y, a, b: (None, None),
    text="np.array_equal",
    torch="torch.equal",
)


def constant(x: Any) -> Any:
    """The value of an argument: of a node or a letter that on the example, guarded."""
    if isinstance(x, tuple | list):
        return type(x)(map(constant, x))
    if isinstance(x, Size):
        return count(x)
    if not isinstance(x, Node):
        return x
    value = x.value
    if not all(n.op in ("const", "table") for n in Program([], [x]).body if not n.args):
        same = "array_equal" if np.ndim(value) else "equal"
        guard("true", build(same, x, as_node(value)), None, True)
    return value.item() if np.ndim(value) == 0 and hasattr(value, "item") else value


def count(size: Any) -> int:
    """A whole number; a size with letters is guarded."""
    if isinstance(size, Node):
        return int(constant(size))
    return fixed(size)


def is_within(a: Size, b: Size) -> bool:
    """Return whether a size is no larger than another, as on the example: the emitted function
    checks it. For signatures, of which shapes are not made again.
    """
    w = world()
    outcome = w.length(a) <= w.length(b)
    if (b - a).constant is None:
        guard("__le__", a, b, outcome)
    return outcome


def smaller(a: Size, b: Size) -> Size:
    """The smaller of two sizes as on the example, guarded where letters leave it open.

    For shapes, which are made again with the nodes that a trace leaves.
    """
    w = world()
    if w.length(a) > w.length(b):
        a, b = b, a
    if a != b and ((b - a).constant or -1) < 0:
        rule = ("<=", a, b, True)
        if rule not in w.guards:
            w.guards.append(rule)
    return a
