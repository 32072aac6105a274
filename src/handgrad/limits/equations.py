"""A program and the recursion of its kernel as formulas, one for all positions alike.

Vectors of different positions that are made in the same way are one line, with an index t (or p of
an image); what a line reads from other positions has that index moved, as h_{t−1}.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from handgrad.documents.formulas.formula import (
    Big,
    Fenced,
    Formula,
    FormulaRow,
    Fraction,
    Number,
    Operator,
    Root,
    Script,
    Sign,
    Symbol,
    Text,
    equals,
    row,
)
from handgrad.documents.formulas.numbers import number
from handgrad.limits.program import MomentFactor
from handgrad.limits.variables import (
    Bias,
    Concat,
    Function,
    InputVector,
    LinComb,
    MatMul,
    Nonlin,
    One,
    Variable,
    Weight,
    is_gaussian,
    operands_of,
    parts_of,
)

_PRIME = Sign("′")


class VectorRow(NamedTuple):
    """A vector of the program: its kind (G or H), what it is, and its second moment where that
    follows from others by a rule of its own."""

    kind: str
    definition: Formula
    moment: Formula | None


class Equations:
    """Lines of a program, with numbers for its vectors and its weights in the order of use."""

    def __init__(self, variables: list[Variable]) -> None:
        self._families: dict[Any, Variable] = {}
        self._numbers: dict[Any, int] = {}
        self._counts = {"g": 0, "h": 0}
        #: Names of parameters, in the order of their numbers.
        self.weights: dict[str, int] = {}
        self.biases: dict[str, int] = {}
        for variable in variables:
            for name, numbers in self._drawn(variable):
                numbers.setdefault(name, len(numbers) + 1)
        named = [each for each in variables if self._has_line(each)]
        for variable in named:
            # The last of a family says most: the first step of a sequence has no state yet.
            self._families[self._key(variable)] = variable
        for key, variable in self._families.items():
            letter = "g" if is_gaussian(variable) else "h"
            self._counts[letter] += 1
            self._numbers[key] = self._counts[letter]

    def _drawn(self, variable: Variable) -> Iterator[tuple[str, dict[str, int]]]:
        if isinstance(variable, MatMul):
            yield _parameter(variable.weight), self.weights
        elif isinstance(variable, Bias):
            yield _parameter(variable.weight), self.biases

    def _has_line(self, variable: Variable) -> bool:
        """Sums and functions are lines; what is drawn, given or put together stands within them."""
        return isinstance(variable, (LinComb, Nonlin, Function))

    def lines(self) -> list[VectorRow]:
        """All lines, each after those it reads."""
        found = []
        for variable in self._families.values():
            kind = "G" if is_gaussian(variable) else "H"
            left = self._symbol(variable, variable)
            definition = equals(left, self._definition(variable))
            found.append(VectorRow(kind, definition, self._moment(variable)))
        return found

    def _key(self, variable: Variable) -> Any:
        """The way in which vectors of one family are made, without their positions."""
        match variable:
            case MatMul() | Bias():
                return _parameter(variable.weight)
            case Nonlin():
                return variable.activation, self._signature(variable.operand)
            case Function():
                return variable.text, tuple(self._signature(each) for each in variable.operands[:1])
            case LinComb():
                return "sum", variable.name or self._signature(variable)
        return type(variable).__name__

    def _signature(self, variable: Variable) -> Any:
        """The first drawn vector that a variable is made of, and how many functions lie between."""
        depth = 0
        while not isinstance(variable, (MatMul, Bias)):
            operands = operands_of(variable)
            if not operands:
                return type(variable).__name__, depth
            depth += not isinstance(variable, (LinComb, Concat))
            variable = operands[0]
        return self._key(variable), depth

    def _symbol(self, variable: Variable, at: Variable) -> Formula:
        """The name of a vector within the line of another, with its index."""
        if isinstance(variable, InputVector):
            return _indexed(Symbol(variable.name), variable, at)
        if isinstance(variable, One):
            return Number("1")
        key = self._key(variable)
        letter = "g" if is_gaussian(variable) else "h"
        marked = Script(Symbol(letter), sup=Fenced(Number(str(self._numbers[key]))))
        return _indexed(marked, variable, at)

    def _operand(self, variable: Variable, at: Variable) -> Formula:
        """The operand of a matrix or a function: a name where it has a line, else itself."""
        if isinstance(variable, (MatMul, Bias)):
            return self._term(variable, at)
        if isinstance(variable, Concat):
            return self._operand(variable.parts[0][1], at)
        return self._symbol(variable, at)

    def _term(self, variable: Variable, at: Variable) -> Formula:
        match variable:
            case MatMul():
                part = variable.weight.number
                sub = None if part is None else Number(str(part + 1))
                w = Script(Symbol("W"), sub, Fenced(Number(str(self._number(variable.weight)))))
                return row(w, self._operand(variable.operand, at))
            case Bias():
                number = self.biases[_parameter(variable.weight)]
                return Script(Symbol("b"), sup=Fenced(Number(str(number))))
        return self._operand(variable, at)

    def _number(self, weight: Weight) -> int:
        return self.weights[_parameter(weight)]

    def _definition(self, variable: Variable) -> Formula:
        match variable:
            case Nonlin():
                name = variable.activation.replace("_", "")
                return row(Operator(name), Fenced(self._operand(variable.operand, variable)))
            case Function():
                return self._function(variable)
            case LinComb():
                return self._sum(variable)
        return self._operand(variable, variable)

    def _function(self, variable: Function) -> Formula:
        """The formula of a gate or a normalisation, from its text."""
        shown = [self._operand(each, variable) for each in variable.operands]
        if "{}" in variable.text:
            return row(Operator(variable.text.partition("(")[0]), Fenced(_listed(shown)))
        return _from_text(variable.text, shown)

    def _sum(self, variable: LinComb) -> Formula:
        """Terms with a plus between them; those of one matrix, or of one role, as one sum."""
        terms: list[Formula] = []
        seen: set[Any] = set()
        for factor, each in variable.terms:
            role = factor.role if isinstance(factor, MomentFactor) else ""
            if role in ("normalized", "scaled"):
                return self._normalised(each, variable, centred=role == "normalized")
            family = (role, self._read(each)) if role or isinstance(each, MatMul) else each
            if family in seen:
                continue
            seen.add(family)
            alike = [other for _, other in variable.terms if self._read(other) == self._read(each)]
            shown = self._term(each, variable)
            if role:
                shown = Big("sum", row(_coefficient(role), self._moving(each)), below=Symbol("s"))
            elif len(alike) > 1 and isinstance(each, MatMul):
                over = Symbol("o" if variable.index else "p")
                w = Script(Symbol("W"), over, Fenced(Number(str(self._number(each.weight)))))
                moving = self._moving(each.operand, at=variable)
                shown = Big("sum", row(w, moving), below=over)
            elif not callable(factor) and factor != 1.0:
                shown = row(number(factor), shown)
            terms.append(shown)
        joined: list[Formula] = []
        for term in terms:
            joined += [Sign("+"), term] if joined else [term]
        return row(*joined) if joined else Number("0")

    def _read(self, variable: Variable) -> Any:
        """The matrix and the family of the vectors that it is applied to."""
        if isinstance(variable, MatMul):
            return _parameter(variable.weight), self._key(parts_of(variable.operand)[0][1])
        return self._key(variable)

    def _moving(self, variable: Variable, at: Variable | None = None) -> Formula:
        """A vector at the position that a sum runs over: s of steps, p or p + o of an image."""
        shown = self._operand(variable, variable)
        bare = shown.parts[-1] if isinstance(shown, FormulaRow) else shown
        if not (isinstance(bare, Script) and bare.sub is not None):
            return shown
        moved: Formula = Symbol("s")
        if at is not None:
            moved = row(Symbol("p"), Sign("+"), Symbol("o")) if at.index else Symbol("p")
        changed = Script(bare.base, moved, bare.sup)
        return row(*shown.parts[:-1], changed) if isinstance(shown, FormulaRow) else changed

    def _normalised(self, inner: Variable, at: Variable, *, centred: bool) -> Formula:
        h = self._operand(inner, at)
        mean = row(Operator("E"), h)
        power = row(
            Operator("E"), Script(h, sup=Number("2")) if not isinstance(h, Script) else _squared(h)
        )
        if centred and not is_gaussian(parts_of(inner)[0][1]):
            below = row(
                power,
                Sign("−"),
                Script(Fenced(mean), sup=Number("2")),
                Sign("+"),
                Symbol("epsilon"),
            )
            return Fraction(row(h, Sign("−"), mean), Root(below))
        return Fraction(h, Root(row(power, Sign("+"), Symbol("epsilon"))))

    def _moment(self, variable: Variable) -> Formula | None:
        """E[u u′] for two examples, u′ that of the other, from those of the operands."""
        left = _product(self._symbol(variable, variable))
        match variable:
            case Nonlin() if is_gaussian(variable.operand):
                g = self._operand(variable.operand, variable)
                v = Script(Symbol("V"), Text(variable.activation.replace("_", " ")))
                return equals(left, row(v, Fenced(_product(g))))
            case LinComb() if _is_plain(variable):
                return equals(left, self._covariance(variable))
        return None

    def _covariance(self, variable: LinComb) -> Formula:
        """Σ σ² E[h h′] over the matrices, and the variances of the biases."""
        terms: list[Formula] = []
        seen: set[str] = set()
        for _, each in variable.terms:
            if not isinstance(each, (MatMul, Bias)) or (name := _parameter(each.weight)) in seen:
                continue
            seen.add(name)
            letter, numbers = (
                ("W", self.weights) if isinstance(each, MatMul) else ("b", self.biases)
            )
            sigma = Script(
                Symbol("sigma"),
                Script(Symbol(letter), sup=Fenced(Number(str(numbers[name])))),
                Number("2"),
            )
            if isinstance(each, Bias):
                terms.append(sigma)
                continue
            alike = sum(
                isinstance(other, MatMul) and _parameter(other.weight) == name
                for _, other in variable.terms
            )
            if alike > 1:
                over = Symbol("o" if variable.index else "p")
                moving = _product(self._moving(each.operand, at=variable))
                terms.append(row(sigma, Big("mean", moving, below=over)))
            else:
                terms.append(row(sigma, _product(self._operand(each.operand, variable))))
        joined: list[Formula] = []
        for term in terms:
            joined += [Sign("+"), term] if joined else [term]
        return row(*joined) if joined else Number("0")


def _parameter(weight: Weight) -> str:
    """The name of the parameter that a matrix is, or is a part of."""
    return weight.name


def _is_plain(variable: LinComb) -> bool:
    """True for a sum of drawn vectors, each taken once."""
    return all(
        factor == 1.0 and isinstance(each, (MatMul, Bias)) for factor, each in variable.terms
    )


def _coefficient(role: str) -> Formula:
    letter = {"attention": "a", "share": "c", "chosen": "c"}.get(role, "c")
    return Script(
        Symbol(letter), row(Symbol("t"), Symbol("s")) if role == "attention" else Symbol("s")
    )


def _listed(parts: list[Formula]) -> Formula:
    if len(parts) <= 2:
        found: list[Formula] = []
        for part in parts:
            found += [Sign(","), part] if found else [part]
        return row(*found)
    return row(parts[0], Sign(","), Sign("⋯"), Sign(","), parts[-1])


def _indexed(symbol: Formula, variable: Variable, at: Variable) -> Formula:
    """The symbol with its position, relative to that of the line."""
    if not variable.index:
        return symbol
    base, sup = (symbol.base, symbol.sup) if isinstance(symbol, Script) else (symbol, None)
    if len(variable.index) > 1:
        return Script(base, Symbol("p"), sup)
    if len(at.index) != 1:
        return Script(base, Symbol("t"), sup)
    moved = variable.index[0] - at.index[0]
    if not moved:
        return Script(base, Symbol("t"), sup)
    sign = Sign("−") if moved < 0 else Sign("+")
    return Script(base, row(Symbol("t"), sign, Number(str(abs(moved)))), sup)


def _primed(symbol: Formula) -> Formula:
    """The same vector of the other example."""
    if isinstance(symbol, FormulaRow):
        return row(*(each if each != symbol.parts[-1] else _primed(each) for each in symbol.parts))
    base, sub, sup = (
        (symbol.base, symbol.sub, symbol.sup)
        if isinstance(symbol, Script)
        else (symbol, None, None)
    )
    return Script(base, sub, _PRIME if sup is None else row(sup, _PRIME))


def _product(symbol: Formula) -> Formula:
    return row(Operator("E"), Fenced(row(symbol, _primed(symbol)), "["))


def _squared(symbol: Script) -> Formula:
    return Script(Fenced(symbol), sup=Number("2"))


_SIGNS = {"⊙": Sign("⊙"), "+": Sign("+"), "−": Sign("−"), "/": Sign("/")}


def _from_text(text: str, shown: list[Formula]) -> Formula:
    """A formula from the text of a function, {0} … for its operands."""
    found: list[Formula] = []
    stack: list[list[Formula]] = [found]
    i = 0
    while i < len(text):
        if text[i] == "{":
            stack[-1].append(shown[int(text[i + 1])])
            i += 3
            continue
        char = text[i]
        i += 1
        if char == "(":
            stack.append([])
        elif char == ")":
            inner = stack.pop()
            rooted = stack[-1] and stack[-1][-1] == Text("√")
            if rooted:
                stack[-1][-1] = Root(row(*inner))
            else:
                stack[-1].append(Fenced(row(*inner)))
        elif char in _SIGNS:
            stack[-1].append(_SIGNS[char])
        elif char == "√":
            stack[-1].append(Text("√"))
        elif char == "²":
            stack[-1][-1] = Script(Fenced(stack[-1][-1]), sup=Number("2"))
        elif char == "σ":
            stack[-1].append(Symbol("sigma"))
        elif char == "ε":
            stack[-1].append(Symbol("epsilon"))
        elif char.isalpha():
            word = char
            while i < len(text) and text[i].isalpha():
                word += text[i]
                i += 1
            stack[-1].append(Operator(word))
        elif char.isdigit():
            stack[-1].append(Number(char))
    return row(*found)
