"""The symbols of a model: h_3 for what its third node gives, W_3 for the weight of that node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Final, cast

from handgrad.documents.formulas.formula import (
    Fenced,
    Formula,
    FormulaRow,
    Fraction,
    Number,
    Script,
    Sign,
    Symbol,
    Text,
    gradient_of,
    row,
    separated,
)
from handgrad.equations.glossary import Glossary, subscript

Renaming = Mapping[Formula, Formula]

LOSS = Symbol("L")
DELTA: Final = Symbol("delta")
_LEARNED_STATES: Final = ("h0", "c0")


def value_symbol(number: int, into: int | None = None) -> Formula:
    """h_3; with `into`, the copy of a value that forks which goes into that node."""
    symbol = Script(Symbol("h"), Number(str(number)))
    return symbol if into is None else copy_symbol(symbol, into)


def value_gradient(number: int, into: int | None = None) -> Formula:
    """∂L/∂h_3"""
    return gradient_of(value_symbol(number, into))


def copy_symbol(symbol: Formula, into: int | str) -> Formula:
    """A value that forks, as it goes into one node or part: h_3 with the number above."""
    copy = Fenced(Number(str(into)))
    if isinstance(symbol, Script) and symbol.sup is None:
        return Script(symbol.base, symbol.sub, copy)
    return Script(Fenced(symbol) if isinstance(symbol, Script) else symbol, sup=copy)


def numbered(symbol: Formula, number: int | str) -> Formula:
    """W_3 for W, and 1/σ_3 for 1/σ."""
    if isinstance(symbol, Fraction):
        return Fraction(symbol.numerator, numbered(symbol.denominator, number))
    return subscript(symbol, Number(str(number)))


def parameter_symbol(name: str, axes: int, number: int) -> Formula:
    """W_3 for the parameter `weight` of node 3, W_{3,part} for its `part.weight`."""
    path, _, last = name.rpartition(".")
    symbol = numbered(plain_parameter(last, axes), number)
    return subscript(symbol, Text(path)) if path else symbol


def plain_parameter(name: str, axes: int) -> Formula:
    """The symbol of a parameter without its number: h_start for h0, as h_0 is the input."""
    if name in _LEARNED_STATES:
        return Script(Symbol(name[0]), Text("start"))
    return plain_symbol(name, axes)


def plain_symbol(name: str, axes: int) -> Formula:
    """The symbol of an array by its name alone: W for a weight, w where it is a vector."""
    vectors = frozenset((name,) if axes < 2 else ())
    return Glossary(vectors=vectors).symbol(name)


def arriving(name: str, axes: int) -> Formula:
    """δ with what a value of backward, called d and a name, is a gradient of, or a part of one."""
    symbol = plain_symbol(name.removeprefix("d").removeprefix("_"), axes)
    match symbol:
        case Script(base, sub, None) if sub is not None:
            return Script(DELTA, row(base, Sign(","), sub))
    return Script(DELTA, symbol)


def is_arriving(symbol: Formula) -> bool:
    """True for δ of anything."""
    return isinstance(symbol, Script) and symbol.base == DELTA


def uncopied(symbol: Formula) -> Formula:
    """A value that forks, for its copy that goes into one layer or part: h for h_→Q."""
    match symbol:
        case Script(base, FormulaRow((Sign("→"), *_)), sup):
            return base if sup is None else Script(base, sup=sup)
        case Script(base, FormulaRow((*kept, Sign(","), Sign("→"), _)), sup):
            return Script(base, row(*kept), sup)
        case Script(base, None, Fenced()):
            return base.body if isinstance(base, Fenced) else base
        case Script(base, sub, Fenced()):
            return Script(base, sub)
    return symbol


def inline(gradient: Formula) -> Formula:
    """∂L/∂h in one line, for a label; anything but a fraction as it is."""
    if not isinstance(gradient, Fraction):
        return gradient
    return row(gradient.numerator, Sign("/"), gradient.denominator)


def is_gradient(formula: Formula) -> bool:
    """True for ∂L/∂x."""
    match formula:
        case Fraction(FormulaRow((Symbol("partial"), *_)), FormulaRow((Symbol("partial"), *_))):
            return True
    return False


def of_gradient(symbol: Formula) -> Formula:
    """x for ∂L/∂x, and anything else as it is."""
    match symbol:
        case Fraction(_, FormulaRow((Symbol("partial"), *rest))):
            return row(*rest)
    return symbol


def renamed(formula: Formula, names: Renaming) -> Formula:
    """The formula with every symbol that `names` has written in its other way.

    An index stays: W_{m,n} becomes W_{3,m,n}.
    """
    return cast(Formula, _renamed(formula, names))


def _renamed(part: Any, names: Renaming) -> Any:
    if isinstance(part, tuple):
        return tuple(_renamed(each, names) for each in part)
    if not hasattr(part, "__dataclass_fields__"):
        return part
    if part in names:
        return names[part]
    if isinstance(part, Script):
        return _script(part, names)
    return replace(
        part, **{field.name: _renamed(getattr(part, field.name), names) for field in fields(part)}
    )


def _script(part: Script, names: Renaming) -> Formula:
    """A renamed symbol with the indices and exponents that it has not itself: W_ihᵀ, x_t, m′."""
    indices, above = indices_of(part.sub), _parts(part.sup)
    for owned in range(len(indices), -1, -1):
        for raised in range(len(above), -1, -1):
            symbol = _scripted(part.base, indices[:owned], above[:raised])
            if symbol in names:
                rest = [_renamed(each, names) for each in indices[owned:]]
                return _attached(names[symbol], rest, above[raised:])
    rest = [_renamed(each, names) for each in indices]
    return _attached(_renamed(part.base, names), rest, [_renamed(each, names) for each in above])


def _attached(base: Formula, indices: list[Formula], above: list[Formula]) -> Formula:
    """The base with more indices behind its own, and exponents."""
    found = subscript(base, separated(tuple(indices))) if indices else base
    if not above:
        return found
    if not isinstance(found, Script):
        bare = Fenced(found) if isinstance(found, FormulaRow | Fraction) else found
        return Script(bare, sup=row(*above))
    if found.sup is None or all(each in (Sign("′"), Sign("⊤")) for each in above):
        return Script(found.base, found.sub, row(*_parts(found.sup), *above))
    return Script(Fenced(found), sup=row(*above))


def _scripted(base: Formula, indices: list[Formula], above: list[Formula]) -> Formula:
    if not indices and not above:
        return base
    return Script(
        base, separated(tuple(indices)) if indices else None, row(*above) if above else None
    )


def _parts(formula: Formula | None) -> list[Formula]:
    if formula is None:
        return []
    return list(formula.parts) if isinstance(formula, FormulaRow) else [formula]


def indices_of(sub: Formula | None) -> list[Formula]:
    """What stands between commas."""
    found: list[list[Formula]] = [[]]
    for part in _parts(sub):
        if part == Sign(","):
            found.append([])
        else:
            found[-1].append(part)
    return [row(*each) for each in found if each]
