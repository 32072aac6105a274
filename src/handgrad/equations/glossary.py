"""From the names of the code to the symbols of the paper.

One rule, `Glossary.symbol`, and one table of words, that of `notation`. `dx` is ∂L/∂x, but only
where it depends on the gradient that comes in: `du` in an activation's slope is u′, a derivative
and no gradient.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from itertools import count
from types import MappingProxyType
from typing import Final

from handgrad.documents.formulas.formula import (
    LETTERS,
    Accent,
    Fenced,
    Formula,
    FormulaRow,
    Fraction,
    Number,
    Operator,
    Script,
    Sign,
    Symbol,
    Text,
    gradient_of,
    row,
)
from handgrad.equations.notation import SECOND, SPARE, WORDS

_PRIME: Final = Sign("′")
#: Letters that mean something else: a difference, the base of exp, and indices.
_MEANT: Final = "deijklmnt"
#: Letters of what windows move over, which is computed and no input.
_IMAGES: Final = frozenset({"v"})
#: Words in front of a name, each a function of the rest.
_PREFIXES: Final = ("mean", "expected", "minus", "pre", "log", "exp", "sqrt", "tanh")
_ACCENTS: Final = {"hat": "hat", "bar": "bar", "tilde": "tilde"}
_AXES: Final = frozenset("hwd")
_PARAMETERS: Final = ("weight", "bias")
#: As long as `before`.
_INDEX_LENGTH: Final = 6
_CAPITAL: Final = re.compile(r"([A-Z])([a-z])")
_INDEXED: Final = re.compile(r"([A-Za-z]+?)_?(\d+)")
_HEAD: Final = re.compile(r"(\w+)_head(\d+)")


@dataclass(frozen=True)
class Glossary:
    """The symbols of one forward and backward.

    `known` are the names of their variables; `gradients` says of which name each gradient is one;
    `derivatives` are names that begin with d and do not depend on the gradient that comes in;
    `capitals` single letters that are matrices; `vectors` what has at most one axis; `primes` how
    often a name was set anew; `given` the symbols of names that have none by the rules, or whose
    symbol is taken.
    """

    known: frozenset[str] = frozenset()
    gradients: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    derivatives: frozenset[str] = frozenset()
    capitals: frozenset[str] = frozenset()
    vectors: frozenset[str] = frozenset()
    given: Mapping[str, Formula] = field(default_factory=lambda: MappingProxyType({}))
    #: The names of outputs and of gradients that are returned; each has an equation.
    results: frozenset[str] = frozenset()
    #: Every letter that is a symbol already, and so no index.
    letters: frozenset[str] = frozenset()
    #: The names of forward's arguments.
    inputs: frozenset[str] = frozenset()
    #: The name of the loss where it is the last node; otherwise it goes by its name.
    loss: str = ""

    def symbol(self, name: str, primes: int = 0, index: Formula | None = None) -> Formula:
        """The symbol of a name, with primes and an index; an index of a gradient stands below."""
        if name in self.gradients:
            return gradient_of(self.symbol(self.gradients[name], primes, index))
        found = self._found(name)
        for _ in range(primes):
            found = _primed(found)
        return found if index is None else subscript(found, index)

    def gradient(self, name: str) -> Formula:
        """∂L/∂x for x."""
        return gradient_of(self.symbol(name))

    def reads(self, name: str) -> bool:
        """True where a name is a variable, or has a symbol by the rules."""
        return name in self.known or self._parsed(name) is not None

    def is_word(self, name: str) -> bool:
        """True for a name that says more than the letter that stands for it."""
        return name in self.given or isinstance(self._found(name), Text)

    def free(self, name: str, taken: Container[Formula]) -> Formula:
        """A symbol for a name that has none: a letter of it that is free, or another that is."""
        if name in SECOND and SECOND[name] not in taken:
            return SECOND[name]
        own = [each for each in name.lower() if each.isascii() and each.isalpha()]
        for each in (*own, *SPARE):
            if each not in _MEANT and Symbol(each) not in taken:
                return Symbol(each)
        numbered = (Script(Symbol("u"), Number(str(i))) for i in count(1))
        return next(each for each in numbered if each not in taken)

    def _found(self, name: str) -> Formula:
        plain = name.rstrip("_").removeprefix("_")
        if name in self.given:
            return self.given[name]
        if name == self.loss:
            return Symbol("L")
        found = self._parsed(plain)
        return Text(plain.replace("_", " ") or "_") if found is None else found

    def _parsed(self, name: str) -> Formula | None:
        """The symbol that the rules make of a name; None where there is only the word itself."""
        if name in self.gradients:
            return self.symbol(name)
        if name in self.derivatives:
            return _primed(self._found(name[1:]))
        if name in self.vectors and name in ("weight", "w"):
            return Symbol("w")
        if (found := _table(name)) is not None:
            return found
        if name in _IMAGES and name in self.known - self.inputs:
            return Symbol(name.upper())
        if len(name) == 1 and name.isascii() and name.isalpha():
            return Symbol(name.upper() if name in self.capitals else name)
        if name in LETTERS:
            return Symbol(name)
        for form in (
            self._prefixed,
            self._lettered,
            self._product,
            self._suffixed,
            self._numbered,
            self._subscripted,
        ):
            if (found := form(name)) is not None:
                return found
        return None

    def _prefixed(self, name: str) -> Formula | None:
        for prefix in _PREFIXES:
            rest = self._rest(name, prefix)
            if rest is None:
                continue
            match prefix:
                case "mean" | "expected":
                    # Not a bar: browsers draw none over a fraction.
                    return Fenced(rest, "⟨")
                case "minus":
                    return row(Sign("−"), rest)
                case "pre":
                    return subscript(rest, Text("pre"))
            return applied(prefix, rest)
        return None

    def _rest(self, name: str, prefix: str) -> Formula | None:
        rest = name.removeprefix(prefix + "_")
        return self._parsed(rest) if rest != name else None

    def _suffixed(self, name: str) -> Formula | None:
        if match := _HEAD.fullmatch(name):
            base = self._parsed(match[1])
            return None if base is None else Script(base, sup=Fenced(Number(match[2])))
        stem, _, last = name.rpartition("_")
        if not stem:
            return None
        if last in _ACCENTS:
            base = self._parsed(stem)
            return None if base is None else Accent("hat" if last == "hat" else "bar", base)
        if last in ("offsets", "window", "windows"):
            return self._parsed(stem)
        if last in _AXES and (base := _table(stem)) is not None:
            return subscript(base, Symbol(last))
        if stem.endswith("_of") and (base := self._parsed(stem.removesuffix("_of"))) is not None:
            return subscript(base, Text(last))
        return None

    def _numbered(self, name: str) -> Formula | None:
        """w1 as W₁, and Wx as W_x."""
        if letters := _CAPITAL.fullmatch(name):
            return Script(Symbol(letters[1]), Symbol(letters[2]))
        match = _INDEXED.fullmatch(name)
        base = self._parsed(match[1]) if match else None
        return None if match is None or base is None else subscript(base, Number(match[2]))

    def _product(self, name: str) -> Formula | None:
        """x_w1 as X W₁ where both are variables."""
        parts = name.split("_")
        for cut in range(1, len(parts)):
            both = "_".join(parts[:cut]), "_".join(parts[cut:])
            if all(each in self.known or each in self.gradients for each in both):
                first, second = map(self._parsed, both)
                if first is not None and second is not None:
                    return row(first, second)
        return None

    def _lettered(self, name: str) -> Formula | None:
        """a_i as a with the index i, also where i is a variable."""
        stem, _, last = name.partition("_")
        if (len(stem) != 1 and stem not in LETTERS) or len(last) != 1 or not last.isalpha():
            return None
        return self._subscripted(name)

    def _subscripted(self, name: str) -> Formula | None:
        """w_q as W_q, weight_ih as W_ih: a letter, or a parameter, and a short index."""
        stem, _, last = name.partition("_")
        if stem not in _PARAMETERS and stem not in LETTERS and len(stem) != 1:
            return None
        base = self._parsed(stem) if 0 < len(last) <= _INDEX_LENGTH else None
        if base is None or "_" in last:
            return None
        return subscript(base, Symbol(last) if len(last) == 1 and last.isalpha() else Text(last))


def _table(name: str) -> Formula | None:
    """The table's symbol for the word, or for its singular."""
    found = WORDS.get(name) or WORDS.get(canonical(name))
    return None if found is None else found.symbol


def canonical(name: str) -> str:
    """`strides` is the same word as `stride`, and `w` as `weight`."""
    if name == "w":
        return "weight"
    singular = name.removesuffix("s")
    return singular if singular in WORDS else name


def is_word(name: str) -> bool:
    """True where the table has this word, so that another name may claim the letter."""
    return _table(name) is not None


def is_parameter(name: str, axes: int) -> bool:
    """True for the name and number of axes of an array that training updates."""
    if name in ("weight", "bias", "gamma", "beta", "w", "W"):
        return True
    if name in ("b", "B"):
        return axes == 1
    return re.fullmatch(r"[WwBb](\d+|_\w+)|(weight|bias|gamma|beta)_?\w+", name) is not None


def subscript(base: Formula, index: Formula) -> Formula:
    """The base with an index, behind one that it has already; outside of a shape or a slice."""
    match base:
        case Script(sub=Fenced()):
            return Script(Fenced(base), index)
        case Script(inner, sub, sup):
            return Script(inner, index if sub is None else row(sub, Sign(","), index), sup)
        case FormulaRow((*before, Symbol() | Script() as last)) if all(
            isinstance(each, Operator | Sign) for each in before
        ):
            return row(*before, subscript(last, index))
        case FormulaRow() | Fraction():
            return Script(Fenced(base), index)
    return Script(base, index)


def _primed(base: Formula) -> Formula:
    match base:
        case Script(inner, sub, sup):
            return Script(inner, sub, _PRIME if sup is None else row(sup, _PRIME))
        case FormulaRow() | Fraction():
            return Script(Fenced(base), sup=_PRIME)
    return Script(base, sup=_PRIME)


def applied(function: str, argument: Formula) -> Formula:
    """log p and tanh u without brackets, exp(x) and anything of more than one part with them."""
    bare = isinstance(argument, Symbol | Script | Accent) and function in ("log", "tanh")
    return row(Operator(function), argument if bare else Fenced(argument))
