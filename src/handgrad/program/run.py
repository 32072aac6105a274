"""One interpreter over values, and forward mode by two sweeps of reverse mode (Townsend 2017)."""

from __future__ import annotations

import numpy as np

from handgrad.program.node import PRIMITIVES, Loop, Node, Program, concrete


def run(program: Program, values, lengths: dict[str, int]) -> list:
    """The outputs of a program on arrays, in the order of its inputs."""
    known = {id(n): v for n, v in zip(program.inputs, values, strict=True)}

    def of(n: Node):
        if n.op in ("const", "table"):
            return n.attrs["value"]
        if n.op == "size":
            return concrete(n.attrs["size"], lengths)
        return known[id(n)]

    for n in program.body:
        if n.op in ("const", "table", "size", "input"):
            continue
        args = [of(a) for a in n.args]
        known[id(n)] = (
            run_loop(n.attrs["loop"], args, lengths)
            if n.op == "loop"
            else PRIMITIVES[n.op].evaluate(*args, **concrete_attrs(n, lengths))
        )
    return [of(n) for n in program.outputs]


def concrete_attrs(n, lengths):
    return {k: concrete(v, lengths) for k, v in n.attrs.items()}


def run_loop(loop: Loop, values, lengths):
    constants, carried = list(values[: loop.constants]), list(values[loop.constants :])
    count = concrete(loop.count, lengths)
    stacks: list[list] = [[] for _ in loop.body.outputs[loop.carried :]]
    for k in range(count - 1, -1, -1) if loop.reverse else range(count):
        out = run(loop.body, [*constants, *carried], {**lengths, loop.counter: k})
        carried = out[: loop.carried]
        for s, v in zip(stacks, out[loop.carried :]):
            s.append(v)
    if loop.reverse:
        stacks = [s[::-1] for s in stacks]
    return (*carried, *(np.stack(s) for s in stacks))
