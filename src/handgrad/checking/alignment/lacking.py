"""Parts of a gradient that a line lacks: they come back through a use, in the user's names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import combinations
from typing import Final

import numpy as np

from handgrad.checking.alignment.paths import same
from handgrad.checking.alignment.pool import Right, SweptForward
from handgrad.checking.alignment.slots import LineSlot
from handgrad.checking.alignment.spelled import Speller
from handgrad.checking.alignment.variants import Variant, binary
from handgrad.checking.alignment.wording import said

#: Uses of a value of which a line may lack two.
_MOST_USES: Final = 6
#: Letters of what a line may lack.
_LONG: Final = 60
#: Functions of any expression in a term that was left out.
_ARRANGING: Final = frozenset(
    {"sum", "mean", "reshape", "transpose", "swapaxes", "expand_dims", "outer", "dot", "matmul"}
    | {"einsum", "squeeze", "broadcast_to", "where", "unsqueeze", "tensordot", "sign"}
)


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
    speller = Speller(slot.scope, derived, of_tensors=slot.of_tensors)
    for number in (1, 2):
        for some in combinations(shares, number):
            if same(value - slot.value, sum(np.asarray(g.value) for _, g in some)):
                found = [speller.spelled(g) for _, g in some]
                terms = [each for each in found if each is not None and _is_short(each)]
                if len(terms) == number and len("".join(map(ast.unparse, terms))) <= _LONG:
                    yield _with(slot.place.get(), terms)


def _is_short(term: ast.expr) -> bool:
    """Return whether functions in a term are of variables: else it computes forward anew."""
    calls = (each for each in ast.walk(term) if isinstance(each, ast.Call))
    return all(
        ast.unparse(each.func).rpartition(".")[2] in _ARRANGING
        or all(isinstance(own, ast.Name | ast.Attribute | ast.Subscript) for own in each.args)
        for each in calls
    )


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
