"""Names by role for the numbered symbols of a layer that is several ops.

Composition numbers every part, so that no two symbols are alike: W_{1.5.2.3}. A reader is told
W_Q^{(2)} instead: what the part is for stands below, the block or the step above. A name is as
short as it can be with no other symbol of the layer having it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from itertools import count as count_from
from typing import Any, Final, NamedTuple

from handgrad.documents.formulas.formula import (
    Accent,
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
from handgrad.equations.models.steps import Block, OpCall, rewritten
from handgrad.equations.models.symbols import indices_of, is_gradient, renamed

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
#: What an op gives, where its own letter y says no more than that.
_GIVEN: Final[Mapping[str, str]] = {
    "layer_norm": "z",
    "rms_norm": "z",
    "attention": "o",
    "embedding": "e",
}
_SUM: Final = Symbol("x")
_VALUES: Final = Symbol("h")


@dataclass(frozen=True)
class _Part:
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
        found = _short(inside)
        is_stream = self.is_sum and len(found) > 1
        return found[:-1] if is_stream else found or _short(self.op)


class _Symbol(NamedTuple):
    """A symbol without its number, the number, and that of the part which takes this copy."""

    plain: Formula
    number: str
    into: str


class _Family(NamedTuple):
    """Symbols that are alike in every block."""

    plain: Formula
    words: tuple[str, ...]
    stack: tuple[str, ...]
    ordinal: int


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
        self._inputs = set(inputs)
        #: What comes in by its name in the first block, where it is what blocks hand on.
        self.entered: dict[Formula, Formula] = {}
        self._mark: tuple[str, ...] = (mark,) if mark else ()
        self._parts: dict[str, _Part] = {}
        parts = (*forward, *behind)
        for part in parts:
            self._place(part)
        formulas = [each for part in parts for each in _formulas(part)]
        formulas += parameters.values()
        self._symbols = {symbol: key for each in formulas for symbol, key in _found(each)}
        self._taken = {each for formula in formulas for each in _others(formula)} | set(taken)
        owned = {symbol: name.rpartition(".")[0] for name, symbol in parameters.items()}
        self._owned = {
            self._symbols[each]: path for each, path in owned.items() if each in self._symbols
        }
        self._carried = dict(self._carried_over(forward))
        self._steps = dict(self._steps_back(behind))
        for number, each in self._parts.items():
            if each.block is not None and each.block[:2] in self._steps:
                self._parts[number] = replace(each, block=self._steps[each.block[:2]])
        self._name(dict(self._settings(parts)))

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
            block=self._block(part),
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
        if is_gradient(equation.left) and is_gradient(equation.right) and not is_step:
            for _, key in _found(equation.left):
                of = self._parts.get(key.number)
                if of is None or (of.block is not None and of.block.counter == Symbol("t")):
                    continue
                return of.path, of.loop
        return part.path, part.loop

    def _block(self, part: OpCall) -> Block | None:
        """The block of a part; a step of backward is the one of the forward that it goes back."""
        block = block_of(part.path, part.loop)
        if block is None or block.counter == Symbol("l"):
            return block
        return self._steps.get(block[:2], block)

    # Where symbols come from

    def _place(self, part: OpCall) -> None:
        block = block_of(part.path, part.loop)
        for each in part.equations:
            for _, key in _found(each.left):
                is_sum = bool(each.nodes) and each.nodes[0].op == "add" and not part.name
                is_sum = is_sum and key.plain == Symbol("y")
                self._parts.setdefault(
                    key.number, _Part(part.path, part.name, block, is_sum, part.loop)
                )
        self._parts.setdefault(part.number, _Part(part.path, part.name, block))

    def _of(self, key: _Symbol) -> _Part:
        part = self._parts.get(key.number) or _Part("", "", None)
        path = self._owned.get(key)
        if path is not None:
            return _Part(path, part.op, block_of(path, None))
        return part

    def _plain(self, key: _Symbol) -> Formula:
        part = self._of(key)
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
                of = (self._of(key).block for _, key in _found(each.right))
                rounds[block[:2]].update(each for each in of if each is not None)
        for place, counted in rounds.items():
            forward = [each for each in counted if each.stack != place[0]]
            if forward:
                yield place, max(forward, key=lambda each: counted[each])

    # What goes on from block to block

    def _carried_over(
        self, parts: Sequence[OpCall]
    ) -> Iterator[tuple[_Symbol, tuple[Formula, int]]]:
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
                after = self._parts.get(other.number)
                if not after or not after.block or after.block[:2] != (stack, number):
                    continue
                if isinstance(one, _Symbol):
                    before = self._parts.get(one.number)
                    if before is None or before.block or one in self._owned:
                        continue
                is_stream = after.block.counter == Symbol("l")
                letter = _SUM if is_stream else self._plain(other)
                if isinstance(one, _Symbol):
                    yield one, (letter, number - 1)
                elif is_stream:
                    self.entered[one] = _named(letter, self._mark, number - 1)
                else:
                    continue
                for later in range(len(rounds)):
                    for key in self._alike(other, later):
                        yield key, (letter, number + later)

    def _alike(self, key: _Symbol, later: int) -> Iterator[_Symbol]:
        """The symbols that are in a later block what this one is in its own."""
        part = self._of(key)
        assert part.block is not None
        for other in self._symbols.values():
            found = self._of(other)
            if (
                other.plain == key.plain
                and not other.into
                and found.block == part.block._replace(number=part.block.number + later)
                and _masked(found.path) == _masked(part.path)
                and found.op == part.op
            ):
                yield other

    # Names

    def _name(self, settings: Mapping[Formula, Formula]) -> None:
        families: dict[_Symbol, _Family] = {}
        counts: dict[Any, list[str]] = defaultdict(list)
        for symbol, key in self._symbols.items():
            if key.into or not key.number or symbol in settings:
                continue
            part, plain = self._of(key), self._plain(key)
            if key in self._carried:
                plain, _ = self._carried[key]
            where = (plain, part.words, part.block and part.block[:2])
            if key.number not in counts[where]:
                counts[where].append(key.number)
            stack = () if part.block is None else _short(part.block.stack)
            ordinal = counts[where].index(key.number) + 1
            families[key] = _Family(plain, part.words, stack, ordinal)
        groups: dict[Any, set[_Family]] = defaultdict(set)
        kinds: dict[_Symbol, Any] = {}
        for key, family in families.items():
            block = self._of(key).block
            kinds[key] = (family.plain, block is not None or key in self._carried)
            if key not in self._carried:
                groups[kinds[key]].add(family)
        carried = {kinds[key] for key in families if key in self._carried}
        chosen = {
            kind: self._scheme(kind, group, kind in carried) for kind, group in groups.items()
        }
        for symbol, key in self._symbols.items():
            if symbol in settings:
                self.names[symbol] = settings[symbol]
            elif key in families:
                block = self._of(key).block
                if key in self._carried:
                    index: tuple[str, ...] = self._mark
                    above: int | None = self._carried[key][1]
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
                for symbol, key in _found(each.symbol):
                    if symbol == each.symbol:
                        values[key.plain][symbol] = repr((each.value, each.definition))
                        words.setdefault(key.plain, self._of(key).words)
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
        """x_{→Q} for the x that goes into Q, as its gradient is not that of x."""
        used: set[Formula] = set(self.names.values())
        for symbol, key in self._symbols.items():
            if not key.into:
                continue
            whole = _without_copy(symbol)
            base = self.names.get(whole, whole)
            part = self._parts.get(key.into) or _Part("", "", None)
            words = part.words or (part.op,)
            ways = (words[-count:] for count in range(1, len(words) + 1))
            again = ((*words[-1:], str(number)) for number in count_from(2))
            names = (
                subscript(base, row(Sign("→"), separated(tuple(map(_index, index)))))
                for index in chain(ways, again)
            )
            name = next(each for each in names if each not in used)
            used.add(name)
            self.names[symbol] = name


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
    number = Fenced(Number(str(above)))
    if isinstance(found, Script) and found.sup is None:
        return Script(found.base, found.sub, number)
    return Script(Fenced(found) if isinstance(found, Script | FormulaRow) else found, sup=number)


def _index(word: str) -> Formula:
    if word.isdigit():
        return Number(word)
    return Symbol(word) if len(word) == 1 else Text(word)


def _short(path: str) -> tuple[str, ...]:
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


def _found(formula: Any) -> Iterator[tuple[Formula, _Symbol]]:
    """The numbered symbols in a formula, and the copies of any."""
    if isinstance(formula, tuple):
        for each in formula:
            yield from _found(each)
        return
    if isinstance(formula, Script):
        into = _copied(formula)
        indices = indices_of(formula.sub)
        at = next((i for i, each in enumerate(indices) if _is_part(each)), None)
        sup = formula.sup if into else None
        if at is not None:
            number = indices[at]
            assert isinstance(number, Number)
            plain = formula.base
            if at:
                plain = Script(plain, separated(tuple(indices[:at])))
            below = separated(tuple(indices[: at + 1]))
            if into:
                yield Script(formula.base, below), _Symbol(plain, number.digits, "")
            yield Script(formula.base, below, sup), _Symbol(plain, number.digits, into)
        elif into:
            yield formula, _Symbol(formula, "", into)
    for name in getattr(formula, "__dataclass_fields__", ()):
        yield from _found(getattr(formula, name))


def _others(formula: Any) -> Iterator[Formula]:
    """The symbols of a formula that have no number of a part."""
    if isinstance(formula, tuple):
        for each in formula:
            yield from _others(each)
        return
    if isinstance(formula, Script):
        yield formula
        indices = indices_of(formula.sub)
        at = next((i for i, each in enumerate(indices) if _is_part(each)), None)
        if at is not None:
            yield from _others(tuple(indices[at + 1 :]))
            return
    elif isinstance(formula, Symbol | Text | Accent):
        yield formula
    for name in getattr(formula, "__dataclass_fields__", ()):
        yield from _others(getattr(formula, name))


def _is_part(index: Formula) -> bool:
    return isinstance(index, Number) and "." in index.digits


def _copied(symbol: Script) -> str:
    """The number of the part that takes this copy of a value, or nothing."""
    match symbol.sup:
        case Fenced(Number(digits)) if "." in digits:
            return digits
    return ""


def _without_copy(symbol: Formula) -> Formula:
    assert isinstance(symbol, Script)
    if symbol.sub is not None:
        return Script(symbol.base, symbol.sub)
    return symbol.base.body if isinstance(symbol.base, Fenced) else symbol.base


def _pairs(
    one: Any, other: Any, inputs: Collection[Formula]
) -> Iterator[tuple[_Symbol | Formula, _Symbol]]:
    """The symbols at the same places of two formulas; an input as it is."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        for pair in zip(one, other, strict=False):
            yield from _pairs(*pair, inputs)
        return
    if isinstance(one, Script) and isinstance(other, Script):
        first, second = (next(_found(each), None) for each in (one, other))
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
