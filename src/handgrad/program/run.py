"""The interpreter of programs over values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from handgrad.program.node import FIXED, LEAVES, PRIMITIVES, Loop, Node, Program, concrete

#: Changes the value of a node before others read it.
Hold = Callable[[Node, Any], Any]


def run(
    program: Program, values: Sequence[Any], lengths: Mapping[str, int], hold: Hold | None = None
) -> list[Any]:
    """The outputs of a program on arrays, in the order of its inputs."""
    known = {id(n): v for n, v in zip(program.inputs, values, strict=True)}

    def value_of(n: Node) -> Any:
        if n.op == "size":
            return concrete(n.attrs["size"], lengths)
        return n.attrs["value"] if n.op in FIXED else known[id(n)]

    for n in program.body:
        if n.op in LEAVES:
            continue
        known[id(n)] = evaluated(n, [value_of(a) for a in n.args], lengths, hold)
    return [value_of(n) for n in program.outputs]


def evaluated(
    n: Node, values: Sequence[Any], lengths: Mapping[str, int], hold: Hold | None = None
) -> Any:
    """The value of a node on those of its operands; of a loop a tuple, as of run_loop."""
    if n.op == "loop":
        return run_loop(n.attrs["loop"], values, lengths, hold)
    attrs = {k: concrete(v, lengths) for k, v in n.attrs.items()}
    value = PRIMITIVES[n.op].evaluate(*values, **attrs)
    return value if hold is None else hold(n, value)


def run_loop(
    loop: Loop, values: Sequence[Any], lengths: Mapping[str, int], hold: Hold | None = None
) -> tuple[Any, ...]:
    """The carried values after the last round, then the stacks, in the order of the counter."""
    constants, carried = list(values[: loop.constants]), list(values[loop.constants :])
    count = loop.count.number(lengths)
    stacks: list[list[Any]] = [[] for _ in loop.body.outputs[loop.carried :]]
    for k in range(count - 1, -1, -1) if loop.reverse else range(count):
        out = run(loop.body, [*constants, *carried], {**lengths, loop.counter: k}, hold)
        carried = out[: loop.carried]
        for stack, value in zip(stacks, out[loop.carried :], strict=True):
            stack.append(value)
    if loop.reverse:
        stacks = [stack[::-1] for stack in stacks]
    return (*carried, *map(np.stack, stacks))
