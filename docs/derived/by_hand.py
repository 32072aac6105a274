"""The hand-written backward of an op as a program, from a run on the arrays of a derivation."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

from handgrad.deriving import Derivation
from handgrad.deriving.arguments import Setting, Spec, leaves
from handgrad.ops.samples import gradient_names
from handgrad.program.loops import rolled
from handgrad.program.node import Node, Program, World, within
from handgrad.program.sizes import Size
from handgrad.program.trace import TracedInt, Tracer, invoke, run, unwrap


class ByHand(NamedTuple):
    """The gradients by hand, as a program of what the op's own cache keeps and of cotangents."""

    program: Program
    cotangents: list[Node]
    kept: list[Node]
    world: World


def by_hand(op: str, derivation: Derivation) -> ByHand:
    """Both references of an op, run one after the other on what the derivation was made from."""
    module = import_module(f"handgrad.ops.{op}")
    forward, backward = module.forward.reference, module.backward.reference
    traced = derivation.pair.traced
    world = World()
    world.lengths |= traced.world.lengths
    inputs: list[Node] = []

    def given(leaf: Spec | Setting) -> Any:
        if isinstance(leaf, Spec):
            return made(traced.inputs[leaf.path])
        if leaf.letter:
            return TracedInt(int(leaf.example), Size.of(leaf.letter))
        return made(traced.numbers[leaf.path]) if leaf.is_free else leaf.example

    def made(like: Node) -> Tracer:
        inputs.append(Node("input", (), {}, like.shape, like.kind, like.value, like.name))
        return Tracer(inputs[-1])

    def both(arguments: Any, dys: Any) -> Any:
        y, cache = invoke(forward, arguments)
        return backward(_nested(y, iter(dys)), cache), cache

    with within(world):
        world.events = []
        arguments = traced.arguments.mapped(given)
        known = len(inputs)
        dys = [made(each) for each in derivation.pair.cotangents]
        cotangents = inputs[known:]
        gradients, cache = run(both, {"arguments": arguments, "dys": dys})
        several = gradients if isinstance(gradients, tuple) else (gradients,)
        named = dict(zip(gradient_names(op), several, strict=True))
        wanted = [unwrap(named[path[0]]) for path in derivation.pair.wanted]
        kept = [unwrap(each) for each in leaves(cache) if isinstance(each, Tracer)]
        outputs = rolled([*wanted, *kept])
    count = len(wanted)
    kept = outputs[count:]
    return ByHand(Program([*kept, *cotangents], outputs[:count]), cotangents, kept, world)


def _nested(like: Any, each: Iterator[Any]) -> Any:
    """Arrays in the tuples of others."""
    if isinstance(like, tuple):
        return tuple(_nested(part, each) for part in like)
    return next(each)
