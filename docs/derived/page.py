"""The page: a table of the ops, and both backwards of each."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import Final

from docs.derived.row import DerivedRow, row
from handgrad.ops import OPS

PAGE: Final = Path(__file__).parents[1] / "derived.md"
#: Longer backwards are not shown.
_MOST_LINES: Final = 45

#: In a clause: what is behind other terms than those by hand.
WHY: Final = {
    "conv_transpose2d": "the offsets of the kernel are statements, which it spells out",
    "ctc_loss": "the steps backward are not those of the second recursion, over the symbols behind",
    "erf": "it derives the polynomials that approximate erf; by hand the integrand is known",
    "geglu": "it derives the polynomials that approximate erf; by hand the integrand is known",
    "gelu": "it derives the polynomials that approximate erf; by hand the integrand is known",
}

_INTRODUCTION: Final = """\
# The ops, derived

The backwards of `hg.ops` are written by hand. Here [`hg.derive`](derive.md) was given their
reference forwards alone, without cache and backward, and what it found stands beside them: all
{ops} are derived, `hg.check` finds {right} right, {same} have the terms of the backward by hand.
Nothing on this page is written by hand but its last column: in a clone of the repository
`python -m docs.derived` derives everything again and writes it, and a test compares the two.

- **Terms** are what is left to add when the products of a backward are multiplied out: dx of a
  softmax has two, y dy and y Σ y dy. They are compared by their values on random numbers, each
  with each, so that neither names nor the order of factors matter; a sum that is spelled out may be
  one term or several. In a loop over time, the gradient that each round hands on to the next has to
  have the same terms too. Where they differ, the cell has their number by hand and derived.
- **Contractions** are multiply-adds of matrix products; **elements** are those of all other
  functions and reductions of the backward; **kept** are numbers that the forward keeps for it. Each
  is told by hand → derived, or once where they are equal, on the small example that an op is
  derived on. Where an op has settings, they are those of the example.
- Below the table the lines of both backwards unfold.

| op | `hg.check` | terms | contractions | elements | kept | where it differs |
| --- | --- | --- | --- | --- | --- | --- |
"""


def rows() -> list[DerivedRow]:
    """Every op, in the order of the page."""
    return [row(op) for op in OPS]


def page(found: Sequence[DerivedRow]) -> str:
    """The page in Markdown."""
    introduction = _INTRODUCTION.format(
        ops=len(found),
        right=sum(each.is_right for each in found),
        same=sum(each.has_same_terms for each in found),
    )
    table = "\n".join(map(_line, found))
    return "\n".join([introduction + table + "\n", *map(_section, found)])


def _line(found: DerivedRow) -> str:
    terms = [
        f"d{name} {by_hand} → {ours}"
        for name, (ours, by_hand, same) in found.terms.items()
        if not same
    ]
    costs = [
        _cost(by_hand, ours) for by_hand, ours in zip(found.costs_by_hand, found.costs, strict=True)
    ]
    cells = [
        f"[`{found.op}`](#{found.op})",
        "right" if found.is_right else "wrong",
        ", ".join(terms) or "the same",
        *costs,
        WHY.get(found.op, ""),
    ]
    return f"| {' | '.join(cells)} |"


def _cost(by_hand: float, ours: float) -> str:
    if by_hand == ours:
        return f"{ours:,.0f}"
    return f"{by_hand:,.0f} → {ours:,.0f}"


def _section(found: DerivedRow) -> str:
    ours = found.derivation.backward_source.strip()
    lines = len(ours.splitlines())
    if lines > _MOST_LINES:
        ours = f"# {lines} lines: print(hg.derive({found.op!r}).backward_source)"
    return (
        f"## {found.op}\n\n<details>\n<summary>By hand, and derived</summary>\n\n"
        f"```python\n{_by_hand(found.op)}\n```\n\n```text\n{ours}\n```\n\n</details>\n"
    )


def _by_hand(op: str) -> str:
    """The lines of the backward by hand, without decorator, annotations and docstring."""
    source = dedent(inspect.getsource(import_module(f"handgrad.ops.{op}").backward.reference))
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    body = source.splitlines()[function.body[0].end_lineno :]
    names = ", ".join(each.arg for each in function.args.args)
    return "\n".join([f"def backward({names}):", *body]).rstrip()
