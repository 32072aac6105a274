"""Parts of a gradient that a line lacks: they come back through a use, in the user's names."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Final

import numpy as np

from handgrad.checking.alignment.paths import same
from handgrad.checking.alignment.pool import Right, SweptForward
from handgrad.checking.alignment.slots import LineSlot
from handgrad.checking.alignment.variants import Variant, binary, multiplied, operands, parsed
from handgrad.checking.alignment.wording import said
from handgrad.program.emit import Emitter
from handgrad.program.libraries import NUMPY, TORCH
from handgrad.program.node import FIXED, Node

#: Uses of a value of which a line may lack two, and steps that may lie between the user's values.
_MOST_USES: Final = 6
_DEEP: Final = 8
#: Letters of what a line may lack.
_LONG: Final = 60


def lacking(
    slot: LineSlot, derived: SweptForward, right: Right, value: np.ndarray
) -> Iterator[Variant]:
    """The line's expression and one or two of the shares that the value has and it has not.

    What a loop hands on is a gradient but for what the step before adds by itself.
    """
    if not right.is_gradient or (right.use is not None and not right.is_rest):
        return
    every = derived.share_nodes(right.node, is_local=right.is_local)
    shares = [each for each in every if each[0] is not right.use][:_MOST_USES]
    known = {
        (array.shape, array.tobytes()): each
        for each, array in reversed(slot.scope.atoms)
        if array.dtype == np.float64 and array.size > 1
    }
    for number in (1, 2):
        for some in combinations(shares, number):
            if same(value - slot.value, sum(np.asarray(g.value) for _, g in some)):
                texts = [_written(g, known, slot) for _, g in some]
                if "" not in texts and len("".join(texts)) <= _LONG:
                    yield _with(slot.place.get(), [_tidied(parsed(text)) for text in texts])


def _with(own: ast.expr, terms: list[ast.expr]) -> Variant:
    new, names = own, []
    for term in terms:
        match term:
            case ast.UnaryOp(ast.USub(), inner):
                new = binary(new, ast.Sub(), inner)
            case _:
                new = binary(new, ast.Add(), term)
        names.append(said(term))
    part = " + ".join(names)
    phrase = "the term {} is missing" if len(terms) == 1 else "the terms {} are missing"
    return new, "term missing", part, f"{phrase} beside {said(own)}"


def _tidied(term: ast.expr) -> ast.expr:
    """A product with its number first, and none that is 1."""
    factors = list(operands(term, ast.Mult))
    numbers = [each for each in factors if isinstance(each, ast.Constant)]
    rest = [each for each in factors if each not in numbers]
    kept = [each for each in numbers if each.value != 1]
    return multiplied([*kept, *rest]) if kept or rest else term


def _written(node: Node, known: Mapping[tuple[object, bytes], ast.expr], slot: LineSlot) -> str:
    """An expression with the user's variables where they hold a value of it; "" if there is none.

    What remains between them is of few steps.
    """
    emitter = Emitter(TORCH if slot.of_tensors else NUMPY, loose=True)

    def name(each: Node, depth: int) -> bool:
        value = np.asarray(each.value)
        own = known.get((value.shape, value.tobytes())) if each.op not in FIXED else None
        if own is None and each.op == "input" and value.size and (value == 1).all():
            own = ast.Constant(1)  # the cotangent of a derivative that dy is multiplied by
        if own is not None:
            emitter.name(each, ast.unparse(own))
            return True
        is_open = each.op != "input" and depth < _DEEP and (each.args or each.op in FIXED)
        return bool(is_open) and all(name(arg, depth + 1) for arg in each.args)

    text = emitter.text(node) if name(node, 0) else ""
    return "" if emitter.helpers or emitter.uses_math or emitter.tables else text
