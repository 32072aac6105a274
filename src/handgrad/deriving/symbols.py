"""A symbol for every value of a derivation, each its own: no word stands in the place of one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from handgrad.deriving.times import CarriedValue, Moment, adjoints, changes, stacked
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
    separated,
)
from handgrad.equations.glossary import Glossary, subscript
from handgrad.equations.parts import ATOM, SUM, Part
from handgrad.program.node import Loop, Node
from handgrad.program.sizes import Quotient, Size

#: Letters for names without one in the literature, where those of the name are taken.
_SPARE: Final = "uvwrstpqabcfghz"
#: The gradient of what comes out.
_GIVEN: Final = re.compile(r"dy\d*")
#: So many values of a name are primed; more are numbered.
_PRIMES: Final = 2
#: Letters that mean something else on these pages: an adjoint and the indices of sums.
_TAKEN: Final = "deijkl"
#: Letters that the indices of sums are chosen from.
_INDICES: Final = "ijklmnpqrsabcfgh"
#: Letters that count the rounds of loops, those of loops inside later.
_COUNTERS: Final = "tijk"
#: A value used again has a symbol of its own from so many operations on, and any from so many:
#: written out at each use, a chain of n stores would be of length 2ⁿ.
_LONG_AGAIN: Final = 8
#: That of an adjoint, which all gradients of a line are made of, from fewer.
_ADJOINT_AGAIN: Final = 6
_LONG: Final = 30
#: A choice takes a row for each of its cases.
_CHOICE: Final = 5


class NodeSymbols:
    """Symbols of nodes, and of the letters of sizes; `codes` are the names of both in the code.

    Adjoints in `result` have the symbols that those among `nodes` have: they are the same values.
    Adjoints are what the cotangents `given` flow into; `made` has names for results without one.
    """

    def __init__(
        self,
        nodes: Iterable[Node],
        result: Iterable[Node] = (),
        given: Sequence[Node] = (),
        made: Mapping[int, str] | None = None,
    ) -> None:
        nodes, result = list(nodes), list(result)
        nodes = list({id(node): node for node in (*nodes, *result)}.values())
        self.codes: dict[Formula, str] = {}
        self._letters: dict[str, Formula] = {}
        self._bases: dict[str, Formula] = {}
        self._nodes: dict[int, Formula] = {}
        #: The symbol in all rounds, and the times, for each value that belongs to a round.
        self._times: dict[int, tuple[Formula, tuple[Size, ...]]] = {}
        named = [
            (node, name)
            for node in nodes
            if (name := (made or {}).get(id(node), node.name)) and node.op not in ("const", "size")
        ]
        self._names = list(dict.fromkeys(name for _, name in named))
        known = frozenset(self._names)
        self._glossary = Glossary(known=known, inputs=known)
        loops = [node for node in nodes if node.op == "loop"]
        for node in loops:
            self._counter(node.attrs["loop"].counter)
        for letter in _letters(nodes):
            self.letter(letter)
        for name in self._names:
            if (found := self._of_the_literature(name)) is not None:
                self._bases[name] = found
        self._given = given
        self._flowed = adjoints(nodes, given)
        #: The counters of the loops that a node is in a round of, the outermost first.
        self._rounds: dict[int, tuple[str, ...]] = {}
        for node in loops:
            inside = (*self._rounds.get(id(node), ()), node.attrs["loop"].counter)
            self._rounds |= {id(each): inside for each in node.attrs["loop"].body.body}
        self._counters = frozenset(each for inside in self._rounds.values() for each in inside)
        #: The value of a round, for each that is taken from a stack by the round's number.
        self.same = stacked(loops)
        #: The values that each loop carries on.
        self.carried: dict[int, list[CarriedValue | None]] = {}
        for node in loops:
            self._loop(node)
        self._name(named, {id(n) for n in result if self._adjoint(n.name) is not None})
        self._name_adjoints(named)
        self._leave(nodes)
        self._write_long(nodes)

    def _loop(self, node: Node) -> None:
        """The symbols of the values that a loop carries on, before its rounds and in them."""
        loop: Loop = node.attrs["loop"]
        self.carried[id(node)] = list(changes(loop, self._flowed, self._rounds.get(id(node), ())))
        for k, change in enumerate(self.carried[id(node)]):
            start = node.args[loop.constants + k]
            is_given = any(start is each for each in self._given)
            if change is None:
                if is_given and (name := loop.body.inputs[loop.constants + k].name):
                    self._nodes[id(start)] = self.named(name)
                continue
            name = change.carry.name
            self._set(change.carry, change.inside)
            readers = [n for n in loop.body.body if any(arg is change.carry for arg in n.args)]
            for again in readers if len(readers) == 1 and self._is_adjoint(name) else ():
                # To the part of later rounds that of the round's own result is added first.
                if again.name == name:
                    self._set(again, change.inside)
            for each in change.line or (change.result,):
                if each.op not in ("const", "size", "input", "part"):
                    self._set(each, change.made)
            if is_given:
                self._set(start, change.before)
            while start.name == name and start.op not in ("input", "part"):
                self._set(start, change.before)
                if start.op not in ("store", "add_at"):
                    break
                start = start.args[0]  # the same array, before a part of it was set
            if change.made.time is not None:
                now = replace(change.made, time=Size.of(loop.counter))
                self.codes.setdefault(self.at(now), name)

    def _set(self, node: Node, moment: Moment) -> None:
        if id(node) in self._nodes:
            return
        self._nodes[id(node)] = self.at(moment)
        if moment.time is not None:
            self._times[id(node)] = self._base(moment), _times(moment)

    def _name(self, named: Sequence[tuple[Node, str]], anew: set[int]) -> None:
        """A symbol for every value with a name: those of one name are told apart."""
        used = set(self._nodes.values())
        values: dict[tuple[str, bool, tuple[str, ...]], list[Node]] = {}
        for node, name in named:
            if node.primal is None and self._is_open(node):
                rounds = self._rounds.get(id(node), ())
                values.setdefault((name, id(node) in anew, rounds), []).append(node)
        for (name, _, _), several in values.items():
            for i, node in enumerate(several):
                self._number(node, self.named(name), i, len(several), used)
                self.codes.setdefault(self._nodes[id(node)], name)

    def _is_open(self, node: Node) -> bool:
        """True for a value whose symbol is still to be found."""
        return id(node) not in self._nodes and id(node) not in self.same and not is_left(node)

    def _name_adjoints(self, named: Sequence[tuple[Node, str]]) -> None:
        """An adjoint is d and the symbol of what it belongs to; what is added to one that is given
        makes another."""
        known = {_identity(node): node for node, _ in reversed(named) if id(node) in self._nodes}
        given: set[Formula] = set()
        for node, name in named:
            if node.primal is None or not self._is_open(node):
                continue
            of = known.get(_identity(node.primal))
            base = self.named(name)
            times: tuple[Size, ...] = ()
            if of is not None:
                whole, times = self._times.get(id(of), (self._nodes[id(of)], ()))
                base = _adjoint_of(whole)
            while base in given:
                base = _again(base, 1, 1)
            if times:
                self._times[id(node)] = base, times
            self._nodes[id(node)] = self._at(base, times)
            self.codes.setdefault(self._nodes[id(node)], name)
            if any(node is each for each in self._given):
                given.add(base)

    def _leave(self, nodes: Iterable[Node]) -> None:
        """The symbols of what loops leave."""
        for node in filter(is_left, nodes):
            found = self.left(node) or (self.named(node.name) if node.name else None)
            if found is not None:
                self._nodes[id(node)] = found
                if node.name:
                    self.codes.setdefault(found, node.name)

    def _number(self, node: Node, base: Formula, i: int, several: int, used: set[Formula]) -> None:
        """The symbol of the value number i of several, at its time where it is in a round."""
        times = tuple(map(Size.of, self._rounds.get(id(node), ())))
        while True:
            base = _again(base, i, several)
            found = self._at(base, times)
            i = 1
            if found not in used:
                break
        self._nodes[id(node)] = found
        if times:
            self._times[id(node)] = base, times

    def left(self, part: Node) -> Formula | None:
        """The symbol by its times of a last value, or of those of all rounds."""
        whole, index = part.args[0], part.attrs["index"]
        loop: Loop = whole.attrs["loop"]
        if index < loop.carried:
            change = self.carried[id(whole)][index]
            if change is not None:
                return self.at(change.after)
            carry = loop.body.inputs[loop.constants + index]
            return self.of(carry) if carry.name else None
        found = self._times.get(id(loop.body.outputs[index]))
        if found is None:
            return None
        base, (*around, time) = found
        ends = (self.size(time.at({loop.counter: end})) for end in (Size.of(0), loop.count - 1))
        first, last = (end.formula for end in ends)
        return self._timed(base, *self._indices(around), row(first, Sign("⋯"), last))

    def _write_long(self, nodes: Sequence[Node]) -> None:
        """Symbols for values without a name that are too long to be written at each use: δ for
        adjoints. One that the chain rule and the result both have is the same in both."""
        groups: dict[tuple[bool, tuple[str, ...]], list[Node]] = {}
        for node in _long(nodes, self._flowed):
            if id(node) not in self._nodes and id(node) not in self.same:
                key = self._flowed.get(id(node), False), self._rounds.get(id(node), ())
                groups.setdefault(key, []).append(node)
        for (flowed, _), several in groups.items():
            base = self._spare("δ" if flowed else "")
            same = [next(k for k, each in enumerate(several) if _alike(each, n)) for n in several]
            first = sorted(set(same))
            for node, k in zip(several, same, strict=True):
                self._number(node, base, first.index(k), len(first), set())

    def _spare(self, name: str) -> Formula:
        """A letter for values without a name, δ if it is free."""
        if name not in self._bases:
            is_free = name == "δ" and Symbol("delta") not in self._taken
            self._bases[name] = Symbol("delta") if is_free else self._free("")
        return self._bases[name]

    def _base(self, moment: Moment) -> Formula:
        return _again(self.named(moment.name), moment.which, moment.several)

    def at(self, moment: Moment) -> Formula:
        """The symbol of a name at a time."""
        return self._at(self._base(moment), _times(moment))

    def _at(self, base: Formula, times: tuple[Size, ...]) -> Formula:
        return self._timed(base, *self._indices(times)) if times else base

    def _indices(self, times: Sequence[Size]) -> Iterator[Formula]:
        return (self.size(time).formula for time in times)

    def _timed(self, base: Formula, *indices: Formula) -> Formula:
        index = separated(indices) if len(indices) > 1 else indices[0]
        inner = base.parts[-1] if isinstance(base, FormulaRow) else base
        numbered = (
            isinstance(each, Script) and each.base == inner and isinstance(each.sub, Number)
            for each in self._bases.values()
        )
        # h₀ may be another array than h at the time 0.
        return _above(base, Fenced(index)) if any(numbered) else _below(base, index)

    def size(self, size: Size | int) -> Part:
        """A size in letters: 2 H, N − 1, ⌊N/2⌋."""
        terms: list[Formula] = []
        for atoms, coefficient in Size.of(size).terms:
            factors = list(map(self._atom, atoms))
            if abs(coefficient) != 1 or not factors:
                factors.insert(0, Number(str(abs(coefficient))))
            if terms or coefficient < 0:
                terms.append(Sign("−" if coefficient < 0 else "+"))
            terms.append(row(*factors))
        if not terms:
            return Part(Number("0"), ATOM)
        return Part(row(*terms), ATOM if len(terms) == 1 else SUM)

    def _atom(self, atom: str | Quotient) -> Formula:
        if isinstance(atom, Quotient):
            parts = self.size(atom.top).formula, self.size(atom.bottom).formula
            return Fenced(row(parts[0], Sign("/"), parts[1]), "⌊")
        return self.letter(atom)

    def __contains__(self, node: Node) -> bool:
        """True for a node that is written as a symbol wherever it is used."""
        if (same := self.same.get(id(node))) is not None:
            return same in self
        named = bool(node.name) or id(node) in self._nodes
        return named and node.op not in ("const", "size")

    def of(self, node: Node) -> Formula:
        """The symbol of a node that has one."""
        if (same := self.same.get(id(node))) is not None:
            return self.of(same)
        return self._nodes.get(id(node)) or self.named(node.name)

    def counts(self, size: Size) -> bool:
        """True for a place that changes from round to round."""
        return not size.letters.isdisjoint(self._counters)

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
    def indices(self) -> Sequence[Formula]:
        """Letters for the indices of sums: those that stand for nothing else on the page."""
        others = {*self._bases.values(), *self._letters.values()}
        return [each for each in map(Symbol, _INDICES) if each not in others]

    @property
    def _taken(self) -> set[Formula]:
        return {*self._bases.values(), *self._letters.values(), *map(Symbol, _TAKEN)}

    def _adjoint(self, name: str) -> Formula | None:
        if not self._is_adjoint(name):
            return None
        return _adjoint_of(self.named(name[1:]))

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


def _times(moment: Moment) -> tuple[Size, ...]:
    """A time with those of the loops around it; none of what all rounds share."""
    return () if moment.time is None else (*map(Size.of, moment.around), moment.time)


def _alike(one: Node, other: Node) -> bool:
    """True for nodes that are one value on the example, whatever it is computed by."""
    if one is other:
        return True
    values = np.asarray(one.value), np.asarray(other.value)
    if one.shape != other.shape or not np.any(values[0] != values[0].flat[:1]):
        return False
    return np.allclose(*values, rtol=1e-9, atol=0.0)


def _adjoint_of(symbol: Formula) -> Formula:
    return row(Symbol("d"), Fenced(symbol) if isinstance(symbol, Fraction) else symbol)


def _identity(node: Node) -> tuple[object, ...]:
    """Equal for nodes that are the same value in two programs of one forward."""
    return node.op, node.name, node.shape, np.asarray(node.value).tobytes()


def is_left(node: Node) -> bool:
    """True for what a loop leaves."""
    return node.op == "part" and node.args[0].op == "loop"


def _long(nodes: Sequence[Node], flowed: Mapping[int, bool]) -> Iterator[Node]:
    """Nodes without a name whose formulas are too long to be written out at each use."""
    uses = Counter(id(arg) for node in nodes for arg in node.args)
    lengths: dict[int, int] = {}
    again = {False: _LONG_AGAIN, True: _ADJOINT_AGAIN}
    for node in nodes:
        own = _CHOICE if node.op == "where" else 1
        length = own + sum(lengths.get(id(arg), 1) for arg in node.args)
        if node.name or node.op in ("const", "input", "loop", "part", "size"):
            length = 1
        elif length >= (_LONG if uses[id(node)] == 1 else again[flowed.get(id(node), False)]):
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


def _below(base: Formula, index: Formula) -> Formula:
    """A symbol with an index; of an adjoint dx it is that of x."""
    if isinstance(base, FormulaRow):
        *before, last = base.parts
        return row(*before, _below(last, index))
    return subscript(base, index)


def _above(base: Formula, index: Formula) -> Formula:
    if isinstance(base, FormulaRow):
        *before, last = base.parts
        return row(*before, _above(last, index))
    whole = base if isinstance(base, Script) else Script(base)
    return Script(whole.base, whole.sub, index if whole.sup is None else row(whole.sup, index))


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
