"""What backward takes over from forward: the symbols of what lies in the cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from handgrad.derivation.equations.cached import from_cache
from handgrad.derivation.equations.expression import is_array
from handgrad.derivation.formulas.formula import Formula
from handgrad.trees import nodes
from handgrad.trees.nodes import Node

if TYPE_CHECKING:
    from handgrad.derivation.equations.side import Side


def take_over(side: Side, before: Side) -> None:
    """Write in backward what forward has computed as forward has written it."""
    if side.frame.glossary.loss:
        side.frame.ones = frozenset({side.function.parameters[0].name})
    side.moments.arriving = _arriving(side, before)
    kept = set(before.frame.primes) & side.unpacked()
    side.frame.primes.update({name: before.frame.primes[name] for name in kept})
    side.frame.primes.update(_primes_of_gradients(side, before))
    for name, node in from_cache(side.run, side.cache, before.run).items():
        if not isinstance(node, nodes.Name):
            continue
        value = before.frame.aliases.get(node.id, node)
        if isinstance(value, nodes.Name):
            _take_over_name(side, before, name, value.id)
        elif _is_known(side, before, name, value):
            side.frame.aliases[name] = value


def _arriving(side: Side, before: Side) -> dict[str, Formula]:
    """The gradients that come in of what forward's last step has left."""
    names = {side.function.parameters[0].name}
    for line in side.run.lines:
        if side.is_incoming(line):
            names |= set(line.values)
    moments = before.writer_at(len(before.run.lines)).frame.moments
    gradients = side.frame.glossary.gradients
    return {name: moments[gradients[name]] for name in names if gradients.get(name, "") in moments}


def _take_over_name(side: Side, before: Side, name: str, there: str) -> None:
    """The symbol of a name in forward, which may be another value's own name in backward."""
    if there in before.frame.sequences:
        side.frame.sequences[name] = before.frame.sequences[there]
    written = before.frame.renamed.get(there, there)
    if written != name and there in before.written:
        side.frame.renamed[name] = written


def _is_known(side: Side, before: Side, name: str, value: Node) -> bool:
    """Whether what stands for a name in forward has its value in backward too."""
    environment = before.writer(before.labelled.names).frame.environment
    side.frame.outer.update(
        {each: environment[each] for each in nodes.names(value) if each in environment}
    )
    here = dict(side.labelled.names)
    expected = here.pop(name)
    found = side.writer(here).value(value)
    if not is_array(found) or np.size(found) != np.size(expected):
        return False
    return np.array_equal(np.reshape(found, np.shape(expected)), expected)


def _primes_of_gradients(side: Side, before: Side) -> dict[str, int]:
    """The gradient of a name that forward set anew is that of its last value, unless it is an
    input: then it is that of the first."""
    inputs = {each.name for each in before.function.parameters}
    return {
        name: before.frame.primes[of]
        for name, of in side.frame.glossary.gradients.items()
        if of in before.frame.primes and of not in inputs
    }
