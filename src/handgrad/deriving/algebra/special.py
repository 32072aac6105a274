"""Functions that a sum of terms is, though no term says so."""

from __future__ import annotations

from fractions import Fraction

from handgrad.deriving.algebra.read import Reader
from handgrad.deriving.algebra.terms import Factor, Mask, Reason, Sum, Term
from handgrad.program.node import Node, build, number


def recognised(reader: Reader, sum_: Sum) -> tuple[Sum, Reason] | None:
    """A sum with a logistic function in the place of its two halves, and the reason.

    Softplus is written max(x, 0) + log1p(exp(−|x|)) so that it does not overflow. Its derivative is
    σ(x), where the halves meet too: there each of them alone has a kink.
    """
    for first, one in sum_.items():
        for at, factor in enumerate(first):
            mask = reader.table.bases[factor.base]
            if not isinstance(mask, Mask) or mask.inverted or _half(mask.condition) is None:
                continue
            rest = first[:at] + first[at + 1 :]
            for second, two in sum_.items():
                found = _logistic(reader, factor, rest, second, two / one)
                if found is None:
                    continue
                made = reader.table.product((*rest, found), {}, one)
                left = {t: c for t, c in sum_.items() if t not in (first, second)}
                node = reader.table.bases[found.base]
                assert isinstance(node, Node)
                x = node.args[0]
                softplus = ("max(", x, ", 0) + log(1 + exp(−|", x, "|)) is softplus")
                return {**left, **made}, (*softplus, ", so its derivative is σ(", x, ")")
    return None


def _half(condition: Node) -> tuple[Node, bool] | None:
    """The array that a condition compares with zero, and whether it is the positive half."""
    if condition.op not in ("greater", "less") or number(condition.args[1]) != 0:
        return None
    return condition.args[0], condition.op == "greater"


def _logistic(
    reader: Reader, mask: Factor, rest: Term, term: Term, ratio: Fraction
) -> Factor | None:
    """The logistic function that a mask and a term with sign(x) σ(−|x|) make, where they have all
    else in common.
    """
    signs = [f for f in term if _op(reader, f) == "sign"]
    curves = [f for f in term if _op(reader, f) == "sigmoid"]
    held = reader.table.bases[mask.base]
    assert isinstance(held, Mask)
    half = _half(held.condition)
    if len(signs) != 1 or half is None or signs[0].indices != mask.indices:
        return None
    compared, positive = half
    sign = reader.table.bases[signs[0].base]
    assert isinstance(sign, Node)
    x = sign.args[0]
    for curve in curves:
        node = reader.table.bases[curve.base]
        assert isinstance(node, Node)
        inner = reader.unit(node.args[0])
        ((bent, by),) = inner.items() if len(inner) == 1 else ((tuple[Factor, ...](), Fraction(0)),)
        folds = len(bent) == 1 and by == -1 and _op(reader, bent[0]) == "abs"
        others = tuple(sorted(f for f in term if f not in (signs[0], curve)))
        if not folds or others != rest or curve.indices != mask.indices:
            continue
        absolute = reader.table.bases[bent[0].base]
        assert isinstance(absolute, Node)
        side = _side(reader, compared, x)
        if absolute.args[0] is not x or not side or ratio != (-side if positive else side):
            continue
        curve_of = compared if positive else build("negative", compared)
        return mask._replace(base=reader.table.number(build("sigmoid", curve_of)))
    return None


def _side(reader: Reader, compared: Node, x: Node) -> int:
    """1 where an array is x, −1 where it is −x, else 0."""
    own, other = reader.unit(compared), reader.unit(x)
    if own == other:
        return 1
    return -1 if own == {term: -c for term, c in other.items()} else 0


def _op(reader: Reader, factor: Factor) -> str:
    base = reader.table.bases[factor.base]
    return base.op if isinstance(base, Node) and factor.power == 1 else ""
