"""Names by role for the numbered symbols of a layer that is several ops.

Composition numbers every part, so that no two symbols are alike: W_{1.5.2.3}. A reader is told
W_Q^{(2)} instead: what the part is for stands below, the block or the step above. A name is as
short as it can be with no other symbol of the layer having it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby
from itertools import count as count_from
from typing import Any, Final, NamedTuple

from handgrad.documents.formulas.formula import (
    Fenced,
    Formula,
    FormulaRow,
    Number,
    Script,
    Sign,
    Symbol,
    Text,
    row,
    separated,
)
from handgrad.equations.derived import DerivedEquation
from handgrad.equations.glossary import subscript
from handgrad.equations.models.origins import (
    Carried,
    NumberedSymbol,
    Origins,
    SymbolOrigin,
    block_of,
    found_in,
    other_symbols,
    short,
    without_copy,
)
from handgrad.equations.models.steps import OpCall, rewritten
from handgrad.equations.models.symbols import is_gradient, renamed

_VALUES: Final = Symbol("h")


class _Family(NamedTuple):
    """Symbols that are alike in every block."""

    plain: Formula
    words: tuple[str, ...]
    stack: tuple[str, ...]
    ordinal: int


class Roles:
    """Gives names to the symbols of one layer's parts.

    `parameters` are the symbols of its parameters; `mark` is an index that all names have, where
    other layers are on the page, and `taken` are names that others have. An input of `inputs` that
    goes on from block to block has a name as they give it.
    """

    def __init__(
        self,
        forward: Sequence[OpCall],
        behind: Sequence[OpCall],
        parameters: Mapping[str, Formula],
        *,
        mark: str,
        taken: Collection[Formula],
        inputs: Collection[Formula] = (),
    ) -> None:
        self.names: dict[Formula, Formula] = {}
        self._mark: tuple[str, ...] = (mark,) if mark else ()
        self._origins = Origins(forward, behind, parameters, inputs)
        others = (each for formula in self._origins.formulas for each in other_symbols(formula))
        self._taken = {*others, *taken}
        letters: dict[Formula, set[str]] = defaultdict(set)
        for each in (*self._origins.carried.values(), *self._origins.entered.values()):
            letters[each.letter].add(each.stack)
        self._several = {letter for letter, stacks in letters.items() if len(stacks) > 1}
        #: The inputs that blocks hand on, by their names in the first block.
        self.entered = {
            symbol: _named(each.letter, self._index(each), each.number)
            for symbol, each in self._origins.entered.items()
        }
        self._name(dict(self._settings((*forward, *behind))))

    def _index(self, carried: Carried) -> tuple[str, ...]:
        """The index of a value that goes on from block to block: the stack, if there are
        several that hand on values of one letter."""
        return self._mark + (short(carried.stack) if carried.letter in self._several else ())

    def named(self, part: OpCall) -> OpCall:
        """The part with names in the place of numbers, and the block that it is in."""
        settings, functions = (
            tuple(
                replace(
                    each,
                    symbol=renamed(each.symbol, self.names),
                    definition=each.definition and renamed(each.definition, self.names),
                )
                for each in several
            )
            for several in (part.settings, part.functions)
        )
        equations = tuple(rewritten(each, self.names) for each in part.equations)
        return replace(
            part,
            equations=equations,
            settings=settings,
            functions=functions,
            block=self._origins.block(part),
        )

    def told(self, parts: Sequence[OpCall]) -> tuple[OpCall, ...]:
        """All parts; a gradient that is another one stands in the block of what it is of."""
        found: list[OpCall] = []
        for part in parts:
            if part.name:
                found.append(part)
                continue
            for place, group in groupby(part.equations, key=lambda each: self._passed(part, each)):
                path, loop = place
                found.append(replace(part, equations=tuple(group), path=path, loop=loop))
        return tuple(map(self.named, found))

    def _passed(
        self, part: OpCall, equation: DerivedEquation
    ) -> tuple[str, tuple[str, int] | None]:
        """The layer and the loop that an equation between ops belongs to."""
        block = block_of(part.path, part.loop)
        is_step = block is not None and block.counter == Symbol("t")
        is_passed = is_gradient(equation.left) and any(found_in(equation.right))
        if is_passed and is_gradient(equation.right) and not is_step:
            for _, key in found_in(equation.left):
                of = self._origins.parts.get(key.number)
                if of is None or (of.block is not None and of.block.counter == Symbol("t")):
                    continue
                return of.path, of.loop
        return part.path, part.loop

    # Names

    def _name(self, settings: Mapping[Formula, Formula]) -> None:
        families: dict[NumberedSymbol, _Family] = {}
        counts: dict[Any, list[str]] = defaultdict(list)
        for symbol, key in self._origins.symbols.items():
            if key.into or not key.number or symbol in settings:
                continue
            part, plain = self._origins.of(key), self._origins.plain(key)
            if key in self._origins.carried:
                plain = self._origins.carried[key].letter
            where = (plain, part.words, part.block and part.block[:2])
            if key.number not in counts[where]:
                counts[where].append(key.number)
            stack = () if part.block is None else short(part.block.stack)
            ordinal = counts[where].index(key.number) + 1
            families[key] = _Family(plain, part.words, stack, ordinal)
        groups: dict[Any, set[_Family]] = defaultdict(set)
        kinds: dict[NumberedSymbol, Any] = {}
        for key, family in families.items():
            block = self._origins.of(key).block
            kinds[key] = (family.plain, block is not None or key in self._origins.carried)
            if key not in self._origins.carried:
                groups[kinds[key]].add(family)
        carried = {kinds[key] for key in families if key in self._origins.carried}
        chosen = {
            kind: self._scheme(kind, group, kind in carried) for kind, group in groups.items()
        }
        for symbol, key in self._origins.symbols.items():
            if symbol in settings:
                self.names[symbol] = settings[symbol]
            elif key in families:
                block = self._origins.of(key).block
                if key in self._origins.carried:
                    carried_on = self._origins.carried[key]
                    index = self._index(carried_on)
                    above: int | None = carried_on.number
                else:
                    index = self._mark + chosen[kinds[key]](families[key])
                    above = None if block is None else block.number
                self.names[symbol] = _named(families[key].plain, index, above)
        self.names |= self.entered
        self._name_copies()

    def _settings(self, parts: Sequence[OpCall]) -> Iterator[tuple[Formula, Formula]]:
        """Settings that are the same wherever they stand have one name."""
        values: dict[Formula, dict[Formula, Any]] = defaultdict(dict)
        words: dict[Formula, tuple[str, ...]] = {}
        for part in parts:
            for each in part.settings:
                for symbol, key in found_in(each.symbol):
                    if symbol == each.symbol:
                        values[key.plain][symbol] = repr((each.value, each.definition))
                        words.setdefault(key.plain, self._origins.of(key).words)
        for plain, found in values.items():
            names = (_named(plain, self._mark + words[plain][:end], None) for end in (0, 1))
            name = next((each for each in names if each not in self._taken), None)
            if name is not None and len(set(found.values())) == 1:
                yield from ((symbol, name) for symbol in found)

    def _scheme(
        self, kind: tuple[Formula, bool], group: set[_Family], has_carried: bool
    ) -> Callable[[_Family], tuple[str, ...]]:
        """The shortest indices that tell all of a group apart."""
        plain, is_above = kind
        for scheme in _SCHEMES:
            indices = [self._mark + scheme(each) for each in group]
            names = [_named(plain, each, None) for each in indices]
            free = is_above or not any(each in self._taken for each in names)
            if plain == _VALUES and not is_above:  # h_1 is a value between layers
                free = free and not any(
                    scheme(each)[:1] and scheme(each)[0].isdigit() for each in group
                )
            bare = has_carried or (plain == _VALUES and not is_above)
            if len(set(indices)) == len(group) and free and not (bare and self._mark in indices):
                return scheme
        return _SCHEMES[-1]

    def _name_copies(self) -> None:
        """x_{→Q} for the x that goes into Q, as its gradient is not that of x; where several blocks
        take it, with the number of the block."""
        used: set[Formula] = set(self.names.values())
        takers: dict[Formula, set[int]] = defaultdict(set)
        for symbol, key in self._origins.symbols.items():
            if key.into:
                takers[without_copy(symbol)].add(self._taker(key)[1])
        for symbol, key in self._origins.symbols.items():
            if not key.into:
                continue
            whole = without_copy(symbol)
            base = self.names.get(whole, whole)
            words, block = self._taker(key)
            above = block if len(takers[whole]) > 1 and block else None
            ways = (words[-count:] for count in range(1, len(words) + 1))
            again = ((*words[-1:], str(number)) for number in count_from(2))
            names = (
                subscript(base, row(Sign("→"), _into(index, above))) for index in chain(ways, again)
            )
            name = next(each for each in names if each not in used)
            used.add(name)
            self.names[symbol] = name

    def _taker(self, key: NumberedSymbol) -> tuple[tuple[str, ...], int]:
        """The layer that takes a copy, by its words, and the number of its block or 0."""
        part = self._origins.parts.get(key.into) or SymbolOrigin("", "", None)
        return part.words or (part.op,), part.block.number if part.block else 0


_SCHEMES: Final[tuple[Callable[[_Family], tuple[str, ...]], ...]] = (
    lambda each: (),
    lambda each: each.words[-1:],
    lambda each: (*each.stack, *each.words[-1:]),
    lambda each: each.words[-2:],
    lambda each: (*each.stack, *each.words[-2:]),
    lambda each: (*each.stack, *each.words),
    lambda each: (str(each.ordinal),),
    lambda each: (*each.words[-1:], str(each.ordinal)),
    lambda each: (*each.stack, *each.words, str(each.ordinal)),
)


def _named(plain: Formula, index: tuple[str, ...], above: int | None) -> Formula:
    found = plain
    for each in index:
        found = subscript(found, _index(each))
    if above is None:
        return found
    if isinstance(found, Script) and found.sup is None:
        return Script(found.base, found.sub, _above(above))
    bare = Fenced(found) if isinstance(found, Script | FormulaRow) else found
    return Script(bare, sup=_above(above))


def _into(index: tuple[str, ...], above: int | None) -> Formula:
    """Q, with the number of its block as in Q^{(2)}."""
    *outer, last = map(_index, index)
    return separated((*outer, last if above is None else Script(last, sup=_above(above))))


def _above(number: int) -> Formula:
    return Fenced(Number(str(number)))


def _index(word: str) -> Formula:
    if word.isdigit():
        return Number(word)
    return Symbol(word) if len(word) == 1 else Text(word)
