"""Computing what a formula says, from the formula alone: a reader who knows nothing of the code."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from handgrad.documents.formulas.formula import (
    Big,
    Cases,
    Fenced,
    Formula,
    FormulaRow,
    Fraction,
    Number,
    Operator,
    Script,
    Sign,
    Space,
    Symbol,
    row,
)

Function = Callable[[Any], Any]

#: The signs of comparisons.
RELATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": np.equal,
    "≠": np.not_equal,
    "<": np.less,
    "≤": np.less_equal,
    ">": np.greater,
    "≥": np.greater_equal,
}


@dataclasses.dataclass
class Reader:
    """Reads with the values that symbols have, and the functions that letters stand for."""

    values: dict[Formula, Any]
    functions: Mapping[Formula, Function]

    def value(self, formula: Formula) -> Any:
        found = self.known(formula)
        if found is not None:
            return found
        match formula:
            case Number(digits):
                return float(digits)
            case FormulaRow(parts):
                return self.sum(parts)
            case Fraction(numerator, denominator):
                return self.value(numerator) / self.value(denominator)
            case Fenced(FormulaRow(parts), "[") if Sign("∣") in parts:
                blocks = [self.sum(block) for _, block in split(parts, "∣")]
                return np.concatenate(blocks, axis=-1)
            case Fenced(body, "[") if isinstance(body, FormulaRow):
                return np.asarray(self.condition(body), dtype=float)
            case Fenced(body):
                return self.value(body)
            case Script(base, sub, Sign("⊤")):
                return self.value(base if sub is None else Script(base, sub)).swapaxes(-1, -2)
            case Script(base, sub, Number(power)):
                return self.value(base if sub is None else Script(base, sub)) ** int(power)
            case Cases(((value, condition), (otherwise, _))):
                test = self.condition(row(*condition.parts[1:]))
                return np.where(test, self.value(value), self.value(otherwise))
            case Big("sum", body, FormulaRow((index, Sign("="), Number("1"))), above):
                terms = range(1, int(self.value(above)) + 1)
                return sum(self.value(replaced(body, index, Number(str(i)))) for i in terms)
        raise AssertionError(f"no value: {formula}")

    def known(self, formula: Formula) -> Any:
        """The value of a symbol, or the entry n of one: a_n,t where a_t is known."""
        if formula in self.values:
            return self.values[formula]
        for inner in _scripts(formula):
            match inner.sub:
                case FormulaRow((Number(n), Sign(","), *rest)):
                    whole = replaced(formula, inner, Script(inner.base, row(*rest), inner.sup))
                    if whole in self.values:
                        return self.values[whole][int(n) - 1]
        return None

    def sum(self, parts: tuple[Formula, ...]) -> Any:
        total: Any = 0.0
        for sign, term in split(parts, "+", "−"):
            total = total + (self.product(term) if sign == "+" else -self.product(term))
        return total

    def product(self, parts: tuple[Formula, ...]) -> Any:
        """Factors with ⊙ between them, each of them factors of a matrix product or numbers."""
        found: Any = 1.0
        for _, group in split(parts, "⊙"):
            value: Any = None
            for factor in self.factors(group):
                if value is None:
                    value = factor
                elif np.ndim(value) == 0 or np.ndim(factor) == 0:
                    value = value * factor
                else:
                    value = value @ factor
            found = found * value
        return found

    def factors(self, parts: tuple[Formula, ...]) -> list[Any]:
        """The factors of a group, with functions applied to what stands behind them."""
        found: list[Any] = []
        rest = [part for part in parts if not isinstance(part, Space)]
        while rest:
            part = rest.pop(0)
            if part in self.functions:
                found.append(self.functions[part](self.value(rest.pop(0))))
            else:
                found.append(self.value(part))
        return found

    def condition(self, formula: Formula) -> Any:
        relations = {"≤": np.less_equal, "<": np.less, ">": np.greater}
        assert isinstance(formula, FormulaRow)
        (place,) = (i for i, each in enumerate(formula.parts) if _is_sign(each, *relations))
        sign = formula.parts[place]
        assert isinstance(sign, Sign)
        left, right = row(*formula.parts[:place]), row(*formula.parts[place + 1 :])
        first, second = self.value(left), self.value(right)
        second = second[:, np.newaxis] if np.ndim(second) == 1 else second
        return relations[sign.char](first, second)


def replaced(formula: Any, old: Formula, new: Formula) -> Any:
    """The formula with another part, and numbers in its indices added up."""
    if formula == old:
        return new
    if isinstance(formula, tuple):
        return tuple(replaced(each, old, new) for each in formula)
    if not dataclasses.is_dataclass(formula) or isinstance(formula, type):
        return formula
    changes = {
        field.name: replaced(getattr(formula, field.name), old, new)
        for field in dataclasses.fields(formula)
        if field.init
    }
    found = dataclasses.replace(formula, **changes)
    if isinstance(found, Script) and isinstance(found.sub, FormulaRow):
        found = dataclasses.replace(found, sub=added(found.sub))
    return found


def added(index: FormulaRow) -> Formula:
    """2 − 1 as 1; what stands behind a comma is an index of its own."""
    parts: list[Formula] = []
    for part in index.parts:
        match parts, part:
            case [*before, Number(one), Sign("+" | "−" as sign)], Number(other) if (
                not before or before[-1] == Sign(",")
            ):
                total = int(one) + (int(other) if sign == "+" else -int(other))
                parts[-2:] = [Number(str(total))]
            case _:
                parts.append(part)
    return row(*parts)


def split(parts: Sequence[Formula], *signs: str) -> list[tuple[str, tuple[Formula, ...]]]:
    """The terms between some signs, each with the sign before it; the first has the first."""
    found: list[tuple[str, list[Formula]]] = [(signs[0], [])]
    for part in parts:
        if _is_sign(part, *signs):
            found.append((part.char, []))  # type: ignore[union-attr]
        else:
            found[-1][1].append(part)
    return [(sign, tuple(group)) for sign, group in found if group]


def _is_sign(part: Formula, *signs: str) -> bool:
    return isinstance(part, Sign) and part.char in signs


def _scripts(formula: Any) -> list[Script]:
    if isinstance(formula, tuple):
        return [script for each in formula for script in _scripts(each)]
    if not dataclasses.is_dataclass(formula):
        return []
    own = [formula] if isinstance(formula, Script) else []
    inner = (getattr(formula, field.name) for field in dataclasses.fields(formula))
    return own + [script for each in inner for script in _scripts(each)]


FUNCTIONS: Mapping[Formula, Function] = {
    Operator("tanh"): np.tanh,
    Symbol("sigma"): lambda x: 1.0 / (1.0 + np.exp(-x)),
}
