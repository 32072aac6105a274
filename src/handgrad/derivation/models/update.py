"""An optimizer's update rule, printed from the function that runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from handgrad.derivation.equations.dimensions import Dimensions
from handgrad.derivation.equations.expression import Writer
from handgrad.derivation.equations.frame import Frame
from handgrad.derivation.equations.glossary import Glossary
from handgrad.derivation.equations.parts import constant
from handgrad.derivation.formulas.formula import Formula, Sign, Symbol, gradient_of, row
from handgrad.derivation.models.symbols import renamed
from handgrad.optimizers import Optimizer
from handgrad.trees import nodes, read
from handgrad.trees.nodes import Node

#: θ stands for every parameter.
PARAMETER: Final = Symbol("theta")
GRADIENT: Final = gradient_of(PARAMETER)

#: What the names of the rules are called in the literature.
_LETTERS: Final[Mapping[str, str]] = {
    "parameter": "theta",
    "gradient": "g",
    "lr": "eta",
    "weight_decay": "lambda",
    "velocity": "mu",
    "momentum": "beta",
    "dampening": "tau",
    "step": "t",
}


def update_rule(optimizer: Optimizer) -> list[tuple[Formula, Formula]]:
    """θ and ← θ − η ∂L/∂θ, and what comes before it; both sides of each line.

    What is multiplied by a setting that is 0, such as no weight decay, is left out. Raises
    TreeError where the source of the rule cannot be read.
    """
    body = list(_body(optimizer))
    state = {_LETTERS.get(name, name) for name in ("parameter", "gradient", *optimizer.slots)}
    names: dict[Formula, Formula] = {}
    found: list[tuple[Formula, Formula]] = []
    if len(body) > 1:
        found.append((Symbol("g"), row(Sign("="), GRADIENT)))
    else:
        names[Symbol("g")] = GRADIENT
    writer = _writer(optimizer)
    for target, value in body:
        sign = Sign("←") if target in state else Sign("=")
        right = row(sign, writer.result(value))
        found.append((renamed(writer.name(target).formula, names), renamed(right, names)))
    return found


def settings_of(optimizer: Optimizer) -> list[tuple[Formula, Formula]]:
    """The symbol and value of every setting that the rule uses."""
    used = set().union(*(nodes.names(value) for _, value in _body(optimizer)))
    writer = _writer(optimizer)
    return [
        (writer.name(_LETTERS.get(name, name)).formula, constant(value).formula)
        for name, value in _values(optimizer).items()
        if _LETTERS.get(name, name) in used
    ]


def updated(optimizer: Optimizer, parameter: Any, gradient: Any) -> Any:
    """A parameter after the first step of training."""
    slots = [np.zeros_like(parameter) for _ in optimizer.slots]
    values = _values(optimizer) | ({"step": 1} if optimizer.counts_steps else {})
    new, *_ = type(optimizer).update(parameter, gradient, *slots, **values)
    return new


def _values(optimizer: Optimizer) -> dict[str, Any]:
    return {"lr": optimizer.lr, **optimizer.hyperparameters}


def _writer(optimizer: Optimizer) -> Writer:
    """A writer that knows arrays from numbers; their values are never looked at."""
    function = read(type(optimizer).update)
    values: dict[str, Any] = {
        _LETTERS.get(each.name, each.name): 0.5 if each.keyword_only else np.zeros(())
        for each in function.parameters
    }
    return Writer(Frame(values, Glossary(), Dimensions()))


def _body(optimizer: Optimizer) -> Iterator[tuple[str, Node]]:
    """Every assignment of the rule with the letters of the literature, without what is 0."""
    zeros = frozenset(name for name, value in _values(optimizer).items() if value == 0)
    for statement in read(type(optimizer).update).body:
        match statement:
            case nodes.Assign(nodes.Name(name), value):
                value = _without(value, zeros)
                if value != nodes.Name(name):
                    yield _LETTERS.get(name, name), _lettered(value)


def _lettered(node: Node) -> Node:
    if isinstance(node, nodes.Name):
        return nodes.Name(_LETTERS.get(node.id, node.id))
    return nodes.rebuilt(node, _lettered)


def _without(node: Node, zeros: frozenset[str]) -> Node:
    """The node without terms that have a factor 0, and without factors 1 that this leaves."""
    node = nodes.rebuilt(node, lambda part: _without(part, zeros))
    match node:
        case nodes.Sum((first, *rest)):
            kept = (first, *(term for term in rest if not _is_zero(term.value, zeros)))
            return first.value if len(kept) == 1 else nodes.Sum(kept)
        case nodes.Product((nodes.Factor(False, nodes.Constant(1)), second)) if not second.inverse:
            return second.value
    return node


def _is_zero(node: Node, zeros: frozenset[str]) -> bool:
    match node:
        case nodes.Name(name):
            return name in zeros
        case nodes.Product(factors):
            return any(_is_zero(each.value, zeros) for each in factors)
    return False
