"""The algebra of a backward: nodes in, nodes out, and the steps between with their reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from handgrad.deriving.algebra.choose import Costs
from handgrad.deriving.algebra.facts import assumptions
from handgrad.deriving.algebra.loops import flowing
from handgrad.deriving.algebra.simplify import Algebra
from handgrad.deriving.algebra.steps import Simplification
from handgrad.deriving.algebra.values import SAME, SINGLE, twin
from handgrad.program.node import Node, Program, World


def simplified(
    program: Program,
    cotangents: Sequence[Node],
    gradients: Sequence[Node],
    assume: Mapping[str, float] | None,
    world: World,
) -> tuple[list[Node], list[Simplification]]:
    """Gradients that are equal and cost no more, and the steps from the ones to the others."""
    stated = assumptions(assume)
    inputs = [*program.inputs, *cotangents]
    body = Program(inputs, [*program.outputs, *gradients]).body
    forward = Program(program.inputs, program.outputs)
    own = {id(n) for n in (*forward.body, *program.inputs)}
    there = {id(n) for n in (*program.inputs, *program.outputs)}
    other = twin(world, inputs, gradients, stated)
    same = SINGLE if any(node.op == "single" for node in body) else SAME
    flows = flowing(body, cotangents)
    algebra = Algebra(Costs(world.lengths), own, there, flows, other, same)
    facts = [each.fact(algebra.reader, program.inputs) for each in stated]
    return algebra.simplified(body, gradients, facts)


__all__ = ["Simplification", "simplified"]
