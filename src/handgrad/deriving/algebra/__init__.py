"""The algebra of a backward: nodes in, nodes out, with the steps that led there and their reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from handgrad.deriving.algebra.choose import Costs
from handgrad.deriving.algebra.facts import assumptions
from handgrad.deriving.algebra.simplify import Algebra
from handgrad.deriving.algebra.steps import Step
from handgrad.deriving.algebra.values import twin
from handgrad.program.node import Node, Program, World


def simplified(
    program: Program,
    cotangents: Sequence[Node],
    gradients: Sequence[Node],
    assume: Mapping[str, float] | None,
    world: World,
) -> tuple[list[Node], list[Step]]:
    """Gradients that are equal and cost no more, and the steps from the ones to the others."""
    body = Program([*program.inputs, *cotangents], [*program.outputs, *gradients]).body
    flows = {id(n) for n in cotangents}
    for node in body:
        if any(id(a) in flows for a in node.args):
            flows.add(id(node))
    own = {id(n) for n in Program(program.inputs, program.outputs).body} | {id(n) for n in program.inputs}
    pure = {id(n) for n in body if id(n) not in flows}
    costs = Costs(world.lengths)
    there = {id(n) for n in (*program.inputs, *program.outputs)}
    stated = assumptions(assume)
    inputs = [*program.inputs, *cotangents]
    algebra = Algebra(costs, own, there, pure, twin(world, inputs, gradients, stated))
    facts = [each.fact(algebra.reader, program.inputs) for each in stated]
    algebra.read(body, gradients, facts)
    algebra.put_in(body, gradients)
    algebra.recognise(body, gradients)
    algebra.keep_less(body, gradients)
    made = [algebra.array(each) for each in gradients]
    if algebra.cost(made) > algebra.cost(gradients):
        import os; os.environ.get("DBG") and print("DEARER", algebra.costs.total(made,own), algebra.costs.total(gradients,own))
        if os.environ.get("DBG")=="2": return made, []
        return list(gradients), []
    return made, algebra.steps


__all__ = ["Step", "simplified"]
