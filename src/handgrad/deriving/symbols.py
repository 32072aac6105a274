"""A symbol for every value of a derivation, each its own: no word stands in the place of one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from handgrad.documents.formulas.formula import (
    Accent,
    Fenced,
    Formula,
    FormulaRow,
    Fraction,
    Number,
    Script,
    Sign,
    Symbol,
    row,
)
from handgrad.equations.glossary import Glossary
from handgrad.program.node import Loop, Node

#: Letters for names without one in the literature, where those of the name are taken.
_SPARE: Final = "uvwrstpqabcfghz"
#: The gradient of what comes out.
_GIVEN: Final = re.compile(r"dy\d*")
#: So many values of a name are primed; more are numbered.
_PRIMES: Final = 2
#: Letters that mean something else on these pages: an adjoint and the indices of sums.
_TAKEN: Final = "deijkl"
#: Letters that count the rounds of loops, those of loops inside later.
_COUNTERS: Final = "tijk"
#: A value used again has a symbol of its own from so many operations on, and any from so many:
#: written out at each use, a chain of n stores would be of length 2ⁿ.
_LONG_AGAIN: Final = 8
_LONG: Final = 40


class NodeSymbols:
    """Symbols of nodes, and of the letters of sizes; `codes` are the names of both in the code.

    Adjoints in `result` have the symbols that those among `nodes` have: they are the same values.
    """

    def __init__(self, nodes: Iterable[Node], result: Iterable[Node] = ()) -> None:
        result = list(result)
        nodes = list({id(node): node for node in (*nodes, *result)}.values())
        self.codes: dict[Formula, str] = {}
        self._letters: dict[str, Formula] = {}
        self._bases: dict[str, Formula] = {}
        self._nodes: dict[int, Formula] = {}
        named = [node for node in nodes if node.name and node.op not in ("const", "size")]
        self._names = list(dict.fromkeys(node.name for node in named))
        known = frozenset(self._names)
        self._glossary = Glossary(known=known, inputs=known)
        for node in nodes:
            if node.op == "loop":
                self._counter(node.attrs["loop"].counter)
        for letter in _letters(nodes):
            self.letter(letter)
        for name in self._names:
            if (found := self._of_the_literature(name)) is not None:
                self._bases[name] = found
        anew = {id(node) for node in result if self._adjoint(node.name) is not None}
        values: dict[tuple[str, bool], list[Node]] = {}
        for node in named:
            values.setdefault((node.name, id(node) in anew), []).append(node)
        for (name, _), several in values.items():
            for i, node in enumerate(several):
                self._nodes[id(node)] = _again(self.named(name), i, len(several))
                self.codes.setdefault(self._nodes[id(node)], name)
        long = list(_long(nodes))
        if long:
            self._bases[""] = self._free("")
        for i, node in enumerate(long):
            self._nodes[id(node)] = _again(self._bases[""], i, len(long))

    def __contains__(self, node: Node) -> bool:
        """True for a node that is written as a symbol wherever it is used."""
        named = bool(node.name) or id(node) in self._nodes
        return named and node.op not in ("const", "size")

    def of(self, node: Node) -> Formula:
        """The symbol of a node that has one."""
        return self._nodes.get(id(node)) or self.named(node.name)

    def named(self, name: str) -> Formula:
        """The symbol of a name; an adjoint is d and the symbol of what it belongs to."""
        if name not in self._bases:
            self._bases[name] = self._adjoint(name) or self._free(name)
            self.codes.setdefault(self._bases[name], name)
        return self._bases[name]

    def letter(self, letter: str) -> Formula:
        """The symbol of the length of an axis, of a whole setting or of a loop's counter."""
        if letter not in self._letters:
            found = self._of_the_literature(letter)
            self._letters[letter] = self._free(letter) if found is None else found
            if len(letter) > 1:
                self.codes.setdefault(self._letters[letter], letter)
        return self._letters[letter]

    def _counter(self, letter: str) -> None:
        """The letter that counts the rounds of a loop: t, or inside of another i."""
        depth = letter.lstrip("t")
        self._letters[letter] = Symbol(_COUNTERS[min(int(depth or 0), len(_COUNTERS) - 1)])

    @property
    def _taken(self) -> set[Formula]:
        return {*self._bases.values(), *self._letters.values(), *map(Symbol, _TAKEN)}

    def _adjoint(self, name: str) -> Formula | None:
        if not self._is_adjoint(name):
            return None
        of = self.named(name[1:])
        return row(Symbol("d"), Fenced(of) if isinstance(of, Fraction) else of)

    def _is_adjoint(self, name: str) -> bool:
        """True for d and a name; what comes out may have no name in the forward, as y of dy."""
        return name[:1] == "d" and (name[1:] in self._names or bool(_GIVEN.fullmatch(name)))

    def _of_the_literature(self, name: str) -> Formula | None:
        """The symbol by the rules of notes, where no word is in it and nothing else has it."""
        if self._is_adjoint(name):
            return None
        found = self._glossary.symbol(name)
        whole = found.denominator if isinstance(found, Fraction) else found
        base = whole.base if isinstance(whole, Script) else whole
        is_one = isinstance(base, Symbol | Accent) and found != Symbol("d")
        return found if is_one and found not in self._taken - set(map(Symbol, _TAKEN[1:])) else None

    def _free(self, name: str) -> Formula:
        """A letter of the name that is free, another free one, or one with a number."""
        taken = self._taken
        own = [each for each in name.lower() if each.isascii() and each.isalpha()]
        for each in (*own, *(each.upper() for each in own[:1]), *_SPARE):
            if Symbol(each) not in taken:
                return Symbol(each)
        first = own[0] if own and own[0] not in _TAKEN else "u"
        return next(found for found in _numbered(Symbol(first)) if found not in taken)


def _long(nodes: Sequence[Node]) -> Iterator[Node]:
    """Nodes without a name whose formulas are too long to be written out at each use."""
    uses = Counter(id(arg) for node in nodes for arg in node.args)
    lengths: dict[int, int] = {}
    for node in nodes:
        length = 1 + sum(lengths.get(id(arg), 1) for arg in node.args)
        if node.name or node.op in ("const", "input", "loop", "part", "size"):
            length = 1
        elif length >= (_LONG if uses[id(node)] == 1 else _LONG_AGAIN):
            length = 1
            yield node
        lengths[id(node)] = length


def _letters(nodes: Iterable[Node]) -> Iterator[str]:
    """The letters of sizes in the order in which they come."""
    for node in nodes:
        for size in node.shape:
            yield from sorted(size.letters)
        if node.op == "loop":
            loop: Loop = node.attrs["loop"]
            yield from sorted(loop.count.letters)


def _numbered(base: Formula) -> Iterator[Formula]:
    number = 1
    while True:
        yield Script(base, Number(str(number)))
        number += 1


def _again(base: Formula, time: int, times: int) -> Formula:
    """The value of a name that it has after others: x′ and x″, or of many x₁, x₂ and so on."""
    if time == 0:
        return base
    if isinstance(base, FormulaRow):
        *before, last = base.parts
        return row(*before, _again(last, time, times))
    if isinstance(base, Fraction):
        return Fraction(base.numerator, _again(base.denominator, time, times))
    whole = base if isinstance(base, Script) else Script(base)
    inner, below, above = whole.base, whole.sub, whole.sup
    if times > _PRIMES + 1 and below is None:
        return Script(inner, Number(str(time)), above)
    primes = [Sign("′")] * time
    return Script(inner, below, row(*primes) if above is None else row(above, *primes))
