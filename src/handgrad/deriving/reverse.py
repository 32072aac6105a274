"""Program → Program: the adjoint of every node, from its record.

The reverse of a loop is a loop that runs the other way, so what is derived is a program as well
and can be swept again. Forward mode is two sweeps: a backward is linear in its cotangents, and
its own backward with regard to them is the tangent (Townsend 2017).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from handgrad.deriving.loop_reverse import LoopReverse
from handgrad.deriving.substitution import substituted
from handgrad.program.node import (
    FIXED,
    PRIMITIVES,
    Node,
    Program,
    Refused,
    as_node,
    build,
)

__all__ = ["depends", "gradient", "substituted", "sweep", "tangents", "zeros"]


def depends(body: Iterable[Node], roots: Iterable[Node | int]) -> set[int]:
    """Nodes of floats that the roots flow into, the roots included."""
    live = {r if isinstance(r, int) else id(r) for r in roots}
    for n in body:
        if n.op in FIXED or not (n.kind in "fc" or n.op == "part" or has_parts(n)):
            continue
        if any(id(a) in live for a in n.args):
            live.add(id(n))
    return live


def has_parts(n: Node) -> bool:
    """True for a loop, and for a function of several results."""
    return n.op == "loop" or (n.op in PRIMITIVES and PRIMITIVES[n.op].parts is not None)


def sweep(body: list[Node], adjoint: dict[int, Node], live: set[int]) -> None:
    """Adds to `adjoint` those of all nodes that matter, last to first."""

    def give(node: Node, g: Any) -> None:
        if g is None or id(node) not in live:
            return
        g = as_node(g)
        if g.kind == "c" and node.kind == "f":
            g = build("real", g)
        adjoint[id(node)] = adjoint[id(node)] + g if id(node) in adjoint else g

    parts: dict[int, dict[int, Node]] = {}
    for n in reversed(body):
        if n.op == "part":
            if id(n) in adjoint:
                parts.setdefault(id(n.args[0]), {})[n.attrs["index"]] = adjoint[id(n)]
            continue
        if has_parts(n):
            if id(n) not in parts or id(n) not in live:
                continue
            given = parts[id(n)]
            gradients: Iterable[Any]
            if n.op == "loop":
                before: dict[int, Node] = {}
                for i in range(n.attrs["loop"].constants):
                    is_summed = id(n.args[i]) in live and n.args[i].kind in "fc"
                    if is_summed and (so_far := adjoint.pop(id(n.args[i]), None)) is not None:
                        before[i] = so_far
                gradients = LoopReverse(n, given, live, depends, sweep, before).gradients()
            else:
                gradients = vjp(n, tuple(map(given.get, range(len(n.value)))))
        elif id(n) in adjoint and id(n) in live:
            if n.name:
                _call(adjoint[id(n)], n)
            gradients = vjp(n, adjoint[id(n)])
        else:
            continue
        for a, g in zip(n.args, gradients, strict=True):
            give(a, g)


def vjp(n: Node, g: Any) -> tuple[Any, ...]:
    """Gradients of a node's operands from that of the node, or from those of its parts.

    An analytic function's, of complex numbers, is that of reals between two conjugations.
    """
    record = PRIMITIVES[n.op]
    if record.vjp is None:
        raise Refused(f"line {n.line}: no derivative of {n.op} is known")
    turned = record.analytic and n.kind == "c"
    try:
        found = record.vjp(build("conj", g) if turned else g, n, *n.args, **n.attrs)
    except NotImplementedError as e:
        raise Refused(f"line {n.line}: {e}") from e
    if turned:
        found = tuple(None if d is None else build("conj", d) for d in found)
    return (*found, *(None,) * (len(n.args) - len(found)))


def zeros(like: Node) -> Node:
    return build("zeros", shape=like.shape)


def gradient(program: Program, wrt: list[Node]) -> tuple[list[Node], list[Node]]:
    """The inputs that stand for adjoints of the outputs, and the adjoints of `wrt` from them."""
    names = ["dy"] if len(program.outputs) == 1 else _numbered("dy", len(program.outputs))
    cotangents = [_like(o, name) for o, name in zip(program.outputs, names, strict=True)]
    body = program.body
    live = depends(body, wrt)
    adjoint: dict[int, Node] = {}
    for o, g in zip(program.outputs, cotangents, strict=True):
        if id(o) in live:
            adjoint[id(o)] = adjoint[id(o)] + g if id(o) in adjoint else g
    sweep(body, adjoint, live)
    for x in wrt:
        if id(x) in adjoint:
            _call(adjoint[id(x)], x)
    return cotangents, [adjoint.get(id(x)) or zeros(x) for x in wrt]


def tangents(program: Program, wrt: list[Node]) -> tuple[list[Node], list[Node]]:
    """The inputs that stand for directions of `wrt`, and the outputs' derivatives along them."""
    cotangents, gradients = gradient(program, wrt)
    backward = Program([*program.inputs, *cotangents], gradients)
    directions, derivatives = gradient(backward, cotangents)
    derivatives = linear_in(cotangents, derivatives)
    for d, x in zip(directions, wrt, strict=True):
        d.name = f"{x.name}_tangent" if x.name else "tangent"
    return directions, derivatives


def linear_in(cotangents: Sequence[Node], derivatives: list[Node]) -> list[Node]:
    """Derivatives by cotangents of what is linear in them, so that no value of theirs matters.

    A loop that also carries a gradient reads them all the same.
    """
    read = set(map(id, Program([], derivatives).body))
    if not any(id(c) in read for c in cotangents):
        return derivatives
    swap = {id(c): zeros(c) for c in cotangents}
    return [substituted(d, swap) for d in derivatives]


def _numbered(name: str, count: int) -> list[str]:
    return [f"{name}{i + 1}" for i in range(count)]


def _like(output: Node, name: str) -> Node:
    """An input of an output's shape, for its adjoint."""
    value = np.random.default_rng(7).standard_normal(np.shape(output.value))
    return Node("input", (), {}, output.shape, "f", value, name, primal=output)


def _call(adjoint: Node, of: Node) -> None:
    if not adjoint.name:
        adjoint.name, adjoint.primal = f"d{of.name}", of
