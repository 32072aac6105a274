"""The origin of the numbered symbols of a layer that is several ops: part, block and round.

Composition numbers every part, so that no two symbols are alike: W_{1.5.2.3}. From the number
follow the layer that a symbol is in, its block or step, and what goes on from block to block.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from handgrad.documents.formulas.formula import (
    Accent,
    Fenced,
    Formula,
    Number,
    Script,
    Symbol,
    Text,
    parts_in,
    separated,
)
from handgrad.equations.models.steps import Block, OpCall
from handgrad.equations.models.symbols import indices_of

#: The index that a layer's name in the code stands for; names that say nothing have none.
_WORDS: Final[Mapping[str, str]] = {
    "q_proj": "Q",
    "k_proj": "K",
    "v_proj": "V",
    "o_proj": "O",
    "linear1": "1",
    "linear2": "2",
    "linear_gate": "gate",
    "attention": "attn",
    "cross_attention": "cross",
    "feed_forward": "ff",
    "encoder": "enc",
    "decoder": "dec",
    "tokens": "tok",
    "positions": "pos",
    "blocks": "",
    "inner": "",
    "norm": "",
}
#: The letters for results of ops whose own letter y says no more than that.
_GIVEN: Final[Mapping[str, str]] = {
    "layer_norm": "z",
    "rms_norm": "z",
    "attention": "o",
    "embedding": "e",
}
_SUM: Final = Symbol("x")


@dataclass(frozen=True)
class SymbolOrigin:
    """The origin of a numbered symbol."""

    path: str
    op: str
    block: Block | None
    is_sum: bool = False
    loop: tuple[str, int] | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The layers that it is in, from the outermost, within its block."""
        inside = self.path if self.block is None else inner_path(self.path)
        found = short(inside)
        is_stream = self.is_sum and len(found) > 1
        return found[:-1] if is_stream else found or short(self.op)


class NumberedSymbol(NamedTuple):
    """A symbol without its number, the number, and that of the part which takes this copy."""

    plain: Formula
    number: str
    into: str


class Carried(NamedTuple):
    """A value that a block hands on: its letter, the stack of the block, and its number."""

    letter: Formula
    stack: str
    number: int


def block_of(path: str, loop: tuple[str, int] | None) -> Block | None:
    """The block by the number in a layer's name, or the step by the round of a loop."""
    components = path.split(".")
    for i, each in enumerate(components):
        if each.isdigit():
            return Block(".".join(components[:i]), int(each) + 1, Symbol("l"))
    return None if loop is None else Block(loop[0], loop[1] + 1, Symbol("t"))


def inner_path(path: str) -> str:
    """The name of a layer within its block."""
    return re.sub(r"^.*?(^|\.)\d+(\.|$)", "", path)


class Origins:
    """The origins of the symbols in parts of forward and of what is `behind` it.

    `parameters` are the symbols of the layer's parameters. An input of `inputs` may go on from
    block to block.
    """

    def __init__(
        self,
        forward: Sequence[OpCall],
        behind: Sequence[OpCall],
        parameters: Mapping[str, Formula],
        inputs: Collection[Formula] = (),
    ) -> None:
        self._inputs = set(inputs)
        #: The inputs that blocks hand on.
        self.entered: dict[Formula, Carried] = {}
        self.parts: dict[str, SymbolOrigin] = {}
        parts = (*forward, *behind)
        for part in parts:
            self._place(part)
        self.formulas = [each for part in parts for each in _formulas(part)]
        self.formulas += parameters.values()
        self.symbols = {symbol: key for each in self.formulas for symbol, key in found_in(each)}
        owned = {symbol: name.rpartition(".")[0] for name, symbol in parameters.items()}
        self._owned = {
            self.symbols[each]: path for each, path in owned.items() if each in self.symbols
        }
        self.carried = dict(self._carried_over(forward))
        self._steps = dict(self._steps_back(behind))
        for number, each in self.parts.items():
            if each.block is not None and each.block[:2] in self._steps:
                self.parts[number] = replace(each, block=self._steps[each.block[:2]])

    def block(self, part: OpCall) -> Block | None:
        """The block of a part; a step of backward is the one of the forward that it goes back."""
        block = block_of(part.path, part.loop)
        if block is None or block.counter == Symbol("l"):
            return block
        return self._steps.get(block[:2], block)

    def _place(self, part: OpCall) -> None:
        block = block_of(part.path, part.loop)
        for each in part.equations:
            for _, key in found_in(each.left):
                is_sum = bool(each.nodes) and each.nodes[0].op == "add" and not part.name
                is_sum = is_sum and key.plain == Symbol("y")
                self.parts.setdefault(
                    key.number, SymbolOrigin(part.path, part.name, block, is_sum, part.loop)
                )
        self.parts.setdefault(part.number, SymbolOrigin(part.path, part.name, block))

    def of(self, key: NumberedSymbol) -> SymbolOrigin:
        part = self.parts.get(key.number) or SymbolOrigin("", "", None)
        path = self._owned.get(key)
        if path is not None:
            return SymbolOrigin(path, part.op, block_of(path, None))
        return part

    def plain(self, key: NumberedSymbol) -> Formula:
        part = self.of(key)
        if key.plain != Symbol("y"):
            return key.plain
        if part.is_sum:
            return _SUM
        return Symbol(_GIVEN[part.op]) if part.op in _GIVEN else key.plain

    def _steps_back(self, parts: Sequence[OpCall]) -> Iterator[tuple[tuple[str, int], Block]]:
        """The step of the forward that each round of a loop in backward goes back most of all."""
        rounds: dict[tuple[str, int], Counter[Block]] = defaultdict(Counter)
        for part in parts:
            block = block_of(part.path, part.loop)
            if block is None or block.counter == Symbol("l"):
                continue
            for each in part.equations:
                of = (self.of(key).block for _, key in found_in(each.right))
                rounds[block[:2]].update(each for each in of if each is not None)
        for place, counted in rounds.items():
            forward = [each for each in counted if each.stack != place[0]]
            if forward:
                yield place, max(forward, key=lambda each: counted[each])

    # Values that go on from block to block

    def _carried_over(self, parts: Sequence[OpCall]) -> Iterator[tuple[NumberedSymbol, Carried]]:
        """Values that a block takes from the one before, with their letters and its number;
        the first takes what is block 0's."""
        rounds: dict[tuple[str, int], list[Formula]] = defaultdict(list)
        for part in parts:
            block = block_of(part.path, part.loop)
            if block is not None:
                rounds[block[:2]] += [each.right for each in part.equations]
        for (stack, number), first in rounds.items():
            second = rounds.get((stack, number + 1))
            if second is None or (stack, number - 1) in rounds:
                continue
            for one, other in _pairs(first, second, self._inputs):
                after = self.parts.get(other.number)
                if not after or not after.block or after.block[:2] != (stack, number):
                    continue
                if isinstance(one, NumberedSymbol):
                    before = self.parts.get(one.number)
                    if before is None or before.block or one in self._owned:
                        continue
                is_stream = after.block.counter == Symbol("l")
                letter = _SUM if is_stream else self.plain(other)
                if isinstance(one, NumberedSymbol):
                    yield one, Carried(letter, stack, number - 1)
                elif is_stream:
                    self.entered[one] = Carried(letter, stack, number - 1)
                else:
                    continue
                for later in range(len(rounds)):
                    for key in self._alike(other, later):
                        yield key, Carried(letter, stack, number + later)

    def _alike(self, key: NumberedSymbol, later: int) -> Iterator[NumberedSymbol]:
        """The symbols that are in a later block what this one is in its own."""
        part = self.of(key)
        assert part.block is not None
        for other in self.symbols.values():
            found = self.of(other)
            if (
                other.plain == key.plain
                and not other.into
                and found.block == part.block._replace(number=part.block.number + later)
                and _masked(found.path) == _masked(part.path)
                and found.op == part.op
            ):
                yield other


def short(path: str) -> tuple[str, ...]:
    """The words of a layer's name that say something, in short."""
    names = path.split(".")
    found = tuple(filter(None, (_WORDS.get(each, each.replace("_", " ")) for each in names)))
    return found or tuple(filter(None, names[-1:]))


def _masked(path: str) -> str:
    return re.sub(r"\d+", "0", path)


def _formulas(part: OpCall) -> Iterator[Formula]:
    for each in part.equations:
        yield from (each.left, each.right, *(symbol for symbol, _ in each.parts))
        yield from (arrived.symbol for arrived in each.arrived)
        if each.loop is not None:
            yield each.loop
    for meaning in (*part.settings, *part.functions):
        yield meaning.symbol
        if meaning.definition is not None:
            yield meaning.definition


def found_in(formula: Formula) -> Iterator[tuple[Formula, NumberedSymbol]]:
    """The numbered symbols in a formula, and the copies of any."""
    for part in parts_in(formula):
        if isinstance(part, Script):
            yield from _numbered(part)


def _numbered(symbol: Script) -> Iterator[tuple[Formula, NumberedSymbol]]:
    into = _copied(symbol)
    indices = indices_of(symbol.sub)
    at = next((i for i, each in enumerate(indices) if _is_part(each)), None)
    if at is not None:
        number = indices[at]
        assert isinstance(number, Number)
        plain = Script(symbol.base, separated(tuple(indices[:at]))) if at else symbol.base
        below = separated(tuple(indices[: at + 1]))
        if into:
            yield Script(symbol.base, below), NumberedSymbol(plain, number.digits, "")
        sup = symbol.sup if into else None
        yield Script(symbol.base, below, sup), NumberedSymbol(plain, number.digits, into)
    elif into:
        yield symbol, NumberedSymbol(symbol, "", into)


def other_symbols(formula: Any) -> Iterator[Formula]:
    """The symbols of a formula that have no number of a part."""
    if isinstance(formula, tuple):
        for each in formula:
            yield from other_symbols(each)
        return
    if isinstance(formula, Script):
        yield formula
        indices = indices_of(formula.sub)
        at = next((i for i, each in enumerate(indices) if _is_part(each)), None)
        if at is not None:
            yield from other_symbols(tuple(indices[at + 1 :]))
            return
    elif isinstance(formula, Symbol | Text | Accent):
        yield formula
    for name in getattr(formula, "__dataclass_fields__", ()):
        yield from other_symbols(getattr(formula, name))


def _is_part(index: Formula) -> bool:
    return isinstance(index, Number) and "." in index.digits


def _copied(symbol: Script) -> str:
    """The number of the part that takes this copy of a value, or nothing."""
    match symbol.sup:
        case Fenced(Number(digits)) if "." in digits:
            return digits
    return ""


def without_copy(symbol: Formula) -> Formula:
    assert isinstance(symbol, Script)
    if symbol.sub is not None:
        return Script(symbol.base, symbol.sub)
    return symbol.base.body if isinstance(symbol.base, Fenced) else symbol.base


def _pairs(
    one: Any, other: Any, inputs: Collection[Formula]
) -> Iterator[tuple[NumberedSymbol | Formula, NumberedSymbol]]:
    """The symbols at the same places of two formulas; an input as it is."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        for pair in zip(one, other, strict=False):
            yield from _pairs(*pair, inputs)
        return
    if isinstance(one, Script) and isinstance(other, Script):
        first, second = (next(found_in(each), None) for each in (one, other))
        if second is not None:
            if first is not None:
                yield first[1], second[1]
                return
            known = next((each for each in inputs if _without_indices(one, each) == each), None)
            if known is not None:
                yield known, second[1]
                return
    if type(one) is type(other):
        for name in getattr(one, "__dataclass_fields__", ()):
            yield from _pairs(getattr(one, name), getattr(other, name), inputs)


def _without_indices(formula: Script, symbol: Formula) -> Formula:
    """A symbol without the indices behind its own."""
    if not isinstance(symbol, Script) or symbol.sub is None or symbol.sup is not None:
        return formula
    own = len(indices_of(symbol.sub))
    return Script(formula.base, separated(tuple(indices_of(formula.sub)[:own])))
