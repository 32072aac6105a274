"""An optimizer's update rule, printed from the function that runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from handgrad.documents.formulas.formula import Formula, Sign, Symbol, gradient_of, parts_in, row
from handgrad.equations.dimensions import Dimensions
from handgrad.equations.glossary import Glossary
from handgrad.equations.models.symbols import renamed
from handgrad.equations.parts import constant
from handgrad.equations.scope import Named, Scope
from handgrad.equations.tracing import NotesRecorder, Runs
from handgrad.equations.writer import Writer
from handgrad.optimizers import Optimizer
from handgrad.program import Node, Program
from handgrad.program.functions import is_array

#: θ stands for every parameter.
PARAMETER: Final = Symbol("theta")
GRADIENT: Final = gradient_of(PARAMETER)

#: The letters of the literature for the names of the rules.
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

    What is multiplied by a setting that is 0, such as no weight decay, is left out.
    """
    program, scope = _recorded(optimizer)
    state = {_LETTERS.get(name, name) for name in ("parameter", "gradient", *optimizer.slots)}
    found: list[tuple[Formula, Formula]] = []
    for each in program.assignments:
        if each.frame is not program.frame or not isinstance(each.value, Node):
            continue
        letter = _LETTERS.get(each.name, each.name)
        if not is_array(each.value.value) or Writer(scope).bare(each.value) in scope.symbols:
            continue
        left, right = scope.glossary.symbol(letter), Writer(scope).definition(each.value)
        scope.symbols[each.value] = Named(letter, letter)
        if left != right:
            found.append((left, row(Sign("←" if letter in state else "="), right)))
    if len(found) > 1:
        return [(Symbol("g"), row(Sign("="), GRADIENT)), *found]
    names: dict[Formula, Formula] = {Symbol("g"): GRADIENT}
    return [(renamed(left, names), renamed(right, names)) for left, right in found]


def settings_of(optimizer: Optimizer) -> list[tuple[Formula, Formula]]:
    """The symbol and value of every setting that the rule uses."""
    _, scope = _recorded(optimizer)
    used = {letter for _, right in update_rule(optimizer) for letter in parts_in(right)}
    found = []
    for name, value in _values(optimizer).items():
        symbol = scope.glossary.symbol(_LETTERS.get(name, name))
        if symbol in used:
            found.append((symbol, constant(value).formula))
    return found


def updated(optimizer: Optimizer, parameter: Any, gradient: Any) -> Any:
    """A parameter after the first step of training."""
    slots = [np.zeros_like(parameter) for _ in optimizer.slots]
    values = _values(optimizer) | ({"step": 1} if optimizer.counts_steps else {})
    new, *_ = type(optimizer).update(parameter, gradient, *slots, **values)
    return new


def _values(optimizer: Optimizer) -> dict[str, Any]:
    return {"lr": optimizer.lr, **optimizer.hyperparameters}


def _recorded(optimizer: Optimizer) -> tuple[Program, Scope]:
    """One step of the rule, its arguments by the letters of the literature."""
    values = _values(optimizer) | ({"step": 1} if optimizer.counts_steps else {})
    arrays = [np.ones((2, 2)) for _ in ("parameter", "gradient", *optimizer.slots)]
    recorder = NotesRecorder()
    program = recorder.traced(type(optimizer).update, tuple(arrays), values)
    scope = Scope(Runs(program, program, {}, {}, {}), Glossary(), Dimensions(), ("", ""))
    for node in program.inputs:
        if node.site is None and node.name in program.arguments:
            letter = _LETTERS.get(node.name, node.name)
            scope.symbols[node] = Named(letter, letter)
            if node.value is not None and not is_array(node.value) and node.value == 0:
                scope.zeros.add(node)
    return program, scope
