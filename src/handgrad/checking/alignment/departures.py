"""The least change of a line that gives it the right value that it departs from."""

from __future__ import annotations

import ast
import copy
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, islice, permutations, takewhile
from typing import Any, Final

import numpy as np

from handgrad.checking.alignment.borrowing import Borrowed
from handgrad.checking.alignment.changes import Change, Place, expressions
from handgrad.checking.alignment.generators import within
from handgrad.checking.alignment.hits import Hit
from handgrad.checking.alignment.interventions import Departed, Intervention, Interventions
from handgrad.checking.alignment.lacking import lacking
from handgrad.checking.alignment.needed import of_parts, parts
from handgrad.checking.alignment.paths import same
from handgrad.checking.alignment.size import size_of
from handgrad.checking.alignment.slots import LineSlot
from handgrad.checking.alignment.solved import forms, solved
from handgrad.checking.alignment.spelled import Speller, with_sizes
from handgrad.checking.alignment.variants import Variant, names_in, spreads
from handgrad.checking.alignment.wording import said
from handgrad.checking.alignment.words import SourceWords
from handgrad.checking.alignment.written import written
from handgrad.checking.attempts import attempt, attempted
from handgrad.checking.work import CHANGE, EXPRESSION, SWEPT

#: The words that a change counts of which the source is not known.
_IN_WORDS: Final = 20.0
#: Right values of lines that are taken for granted while a second fault is looked for.
_GUESSES: Final = 3
#: The share of the work in which lines are looked for.
_LOOKED_FOR: Final = 6
#: The share of the work that is left in which one line is told in words.
_ONE_LINE: Final = 16
#: The words more that a change of another kind may have.
_WORD: Final = 1
#: Parts of a line's expression that are solved for, to change the lines which set them.
_PARTS: Final = 12
#: Lines of which the right value is written out, and letters of one that is told.
_SPELLED: Final = 8
_LETTERS: Final = 240
#: Changes that are tried in pairs: 60 make 1770 of them.
_PAIRED: Final = 60
_STRUCTURAL: Final = frozenset(
    {
        *("wrong sign", "extra factor", "extra term", "transposed", "transpose missing"),
        *("scale missing", "scale inverted", "sum for mean", "mean for sum", "wrong axis"),
    }
)


class Departures:
    """The faults of lines of which an intervention says what they should give."""

    def __init__(
        self,
        interventions: Interventions,
        borrowed: Borrowed,
    ) -> None:
        self.interventions, self.borrowed = interventions, borrowed
        self.work = interventions.trials.work
        self._changes: dict[LineSlot, list[tuple[float, Change]]] = {}
        self._found: dict[tuple[str, ...], tuple[list[Intervention], Iterator[LineSlot]]] = {}

    def hits(self, wrong: tuple[str, ...]) -> list[Hit]:
        """The changes of the first line, of which another value puts all of these right, or most.

        Lines that make values which the derivation has come after those that do not: first those
        of which the variable is called after what it should be the gradient of, and last those of
        which it is called after what it is the gradient of.
        """
        return self._first(wrong, self._giving) or self._first(wrong, self._in_what_it_reads)

    def in_words(self, wrong: tuple[str, ...]) -> list[Hit]:
        """The first of these lines, told by what its value is in the derivation."""
        return self._first(wrong, self._said)

    def spelled(self, wrong: tuple[str, ...]) -> list[Hit]:
        """The line of which the right value is the shortest expression of the user's variables."""
        none: list[Hit] = []
        known = self._known(wrong)[:_SPELLED]
        found = [hit for each in known for hit in attempt(partial(self._spelled, each), none)]
        return sorted(found, key=lambda hit: hit.size)[:1]

    def _spelled(self, each: Intervention) -> list[Hit]:
        """The change of a line's whole expression for what the derivation has there."""
        departed = self.interventions.under(each)
        if departed is None:
            return []
        slot, derived = departed.slots[0], self.interventions.derivations[0]
        node = derived.computed(departed.right)
        self.work.take(SWEPT * len(derived.body))
        speller = Speller(slot.scope, derived, of_tensors=slot.of_tensors)
        new = None if node is None else speller.spelled(node)
        if new is None:
            return []
        # It holds at other sizes as well, or as the derivation says at these.
        every = [(whole, True) for whole in (new, *with_sizes(new, slot.scope))]
        for whole, sized in (*every, (new, False)):
            size = float(len(ast.unparse(whole)))
            part = said(whole)
            phrase = f"{part} belongs where {said(slot.place.get())} stands"
            change = Change(slot.place, whole, "other expression", part, phrase, slot.statement)
            if size > _LETTERS:
                continue
            covers = self.interventions.covers(change, each, sized=sized)
            if covers is not None:
                return [Hit(change, slot.piece, covers, written(change, slot.piece), size, size)]
        return []

    def _first(
        self, wrong: tuple[str, ...], told: Callable[[Intervention], list[Hit]]
    ) -> list[Hit]:
        none: list[Hit] = []
        tried: set[Intervention] = set()
        for each in self._in_order(wrong):
            if each not in tried and (hits := attempt(partial(told, each), none)):
                return hits
            tried.add(each)
        return []

    def _in_order(self, wrong: tuple[str, ...]) -> Iterator[Intervention]:
        """Those of variables without doubt that put all right, as they are found; then the rest.

        They are looked for in less work than there is, so that some is left for their changes.
        """
        for each in self._one_by_one(wrong, self.work.part(_LOOKED_FOR)):
            if self.work.over():
                break
            if each.slot.name and len(each.covers) == len(wrong) and not self._doubt(each):
                yield each
        for each in sorted(_of_most(self._found[wrong][0]), key=self._doubt):
            if self.work.over():
                break
            yield each

    def _doubt(self, each: Intervention) -> int:
        if not self.interventions.is_right(each.slot):
            return 0
        # A value of forward is right by chance more often, as 1 − y is.
        if self.interventions.is_named(each.slot, each.right) or each.right.is_local:
            return 1
        return 3 if self.interventions.holds_its_name(each.slot) else 2

    def most(self, wrong: tuple[str, ...]) -> int:
        """The number of these that another value of one line puts right, 0 where none is known."""
        return max((len(each.covers) for each in self._so_far(wrong)), default=0)

    def near(self, wrong: tuple[str, ...]) -> set[ast.stmt]:
        """The first of these lines, and those that make what it reads, or calls."""
        found = self._so_far(wrong)
        if not found:
            return set()
        slot, tree = found[0].slot, found[0].slot.scope.function
        read = names_in(slot.place.get())
        own = _called_in(slot.place.get())
        trees: list[ast.AST] = [each.tree for each in self.interventions.pieces]
        made = [each for each in trees if getattr(each, "name", "") in own]
        return {
            slot.statement,
            *(each for each in _lines(tree) if not read.isdisjoint(_stored(each))),
            *(each for function in made if function is not tree for each in _lines(function)),
        }

    def lines_of(self, wrong: tuple[str, ...]) -> dict[str, ast.stmt]:
        """For gradients the first line without doubt that another value of puts them right.

        Or one that sets what it reads, where that is to be a right value and is another.
        """
        found = [each for each in self._so_far(wrong) if each.slot.name and not self._doubt(each)]
        pool = self.interventions.derivations[0].pool
        lines: dict[str, ast.stmt] = {}
        for each in found[::-1]:
            needed = (own.statement for own, value in self._needed(each) if pool.has(value))
            lines |= dict.fromkeys(each.covers, next(needed, each.slot.statement))
        return lines

    def forget(self) -> None:
        """Let lines be tried anew, where one has been changed."""
        self._found.clear()
        self._changes.clear()

    def _known(self, wrong: tuple[str, ...]) -> list[Intervention]:
        """The interventions that put most of some gradients right."""
        return _of_most(self._one_by_one(wrong))

    def _so_far(self, wrong: tuple[str, ...]) -> list[Intervention]:
        """Those that have been found where they were looked for, in the work that there was."""
        return _of_most(self._found[wrong][0] if wrong in self._found else self._one_by_one(wrong))

    def _one_by_one(
        self, wrong: tuple[str, ...], until: float = math.inf
    ) -> Iterator[Intervention]:
        """The interventions that put any right, each looked for as it is asked for.

        until: the work at which no more are looked for.
        """
        if wrong not in self._found:
            self._found[wrong] = [], iter(self.interventions.slots())
        found, rest = self._found[wrong]
        i = 0
        while True:
            while i < len(found):
                yield found[i]
                i += 1
            is_over = self.work.over() or self.work.done >= until
            slot = None if is_over else next(rest, None)
            if slot is None:
                return
            found += attempted(self.interventions.of(slot, wrong))

    def guesses(self, wrong: tuple[str, ...]) -> Iterator[Hit]:
        """Changes that give lines the values that their names say, whatever follows from them."""
        own = self.interventions.slots()
        every = (each for slot in own for each in self.interventions.named(slot))
        none: list[Hit] = []
        rest = takewhile(lambda _: not self.work.over(), every)
        told = (attempt(partial(self._guessed, each), none) for each in rest)
        yield from islice(chain.from_iterable(told), _GUESSES)

    def _guessed(self, each: Intervention) -> list[Hit]:
        return self._giving(each) or self._said(each)

    def _said(self, each: Intervention) -> list[Hit]:
        departed = self.interventions.under(each)
        if departed is None or departed.value.size != departed.slots[0].value.size:
            return []
        with self.work.hurried(_ONE_LINE):
            told = self.interventions.told(departed)
        if told is None:
            return []
        kind, part, phrase = told
        change = replace(each.change, kind=kind, part=part, phrase=phrase.replace("{}", part))
        return [Hit(change, each.slot.piece, each.covers, None, _IN_WORDS, _IN_WORDS)]

    def _giving(self, each: Intervention) -> list[Hit]:
        """The least change of a line's expression that gives a right value.

        And one of another kind, of a word more at most: either may be what was meant.
        """
        departed = self.interventions.under(each)
        if departed is None or departed.value.size != departed.slots[0].value.size:
            return []
        slot, value = departed.slots[0], departed.value
        known = SourceWords()
        if each.slot not in self._changes:
            places = [(slot.place, slot.statement)]
            places += [(Place(line, "value"), line) for line in slot.fed.values()]
            own = (
                change
                for place, line in places
                for change in within(place, line, slot.scope, self.borrowed)
            )
            sized = [(size_of(change, known), change) for change in attempted(own)]
            self.work.take(CHANGE * len(sized))
            self._changes[each.slot] = sized
        asked = [(size_of(c, known), c) for c in attempted(self._of_value(departed))]
        every = sorted([*self._changes[each.slot], *asked], key=_size)
        found: list[Hit] = []
        for size, change in chain(every, _pairs(every)):
            if self.work.over() or (found and round(size) > round(found[0].size) + _WORD):
                break
            if any(hit.change.kind == change.kind for hit in found):
                continue
            if not self._gives(change, slot, value):
                continue
            covers = self.interventions.covers(change, each)
            if covers is not None:
                text = written(change, slot.piece)
                if all(hit.written != text for hit in found):  # not the same in other words
                    found.append(Hit(change, slot.piece, covers, text, size, size))
            if len(found) > 1:
                break
        return found

    def _in_what_it_reads(self, each: Intervention) -> list[Hit]:
        """The least change of a line that sets a variable, by which that has what is needed.

        The line that reads it has a right value then.
        """
        made: list[tuple[LineSlot, np.ndarray, list[tuple[float, Change]]]] = []
        for own, value in self._needed(each):
            known = SourceWords()
            inside = within(own.place, own.statement, own.scope, self.borrowed)
            sized = sorted(
                ((size_of(change, known), change) for change in attempted(inside)), key=_size
            )
            self.work.take(CHANGE * len(sized))
            made.append((own, value, sized))
        found = [hit for line in made for hit in self._least(*line, each)]
        for own, value, sized in made if not found else ():
            found += self._least(own, value, _pairs(sized), each)
        return sorted(found, key=lambda hit: hit.rank)

    def _needed(self, each: Intervention) -> Iterator[tuple[LineSlot, np.ndarray]]:
        """The lines of variables that a line reads, with the value that it needs of each."""
        departed = self.interventions.under(each)
        if departed is None or len(each.slot.values) > 1:
            return
        slot = departed.slots[0]
        lines = {own.name: own for own in self.interventions.slots() if len(own.values) == 1}
        needed = parts(slot.place, slot.place.get(), departed.value, slot.scope)
        for part in islice(needed, _PARTS):
            own = lines.get(ast.unparse(part.node))
            is_other = own is not None and own.statement is not slot.statement
            if own is not None and is_other and not same(own.value, part.value):
                yield own, part.value

    def _least(
        self,
        own: LineSlot,
        value: np.ndarray,
        sized: Iterable[tuple[float, Change]],
        each: Intervention,
    ) -> list[Hit]:
        """The first of some changes by which a line has a value, and puts right what this does."""
        for size, change in sized:
            if self.work.over():
                break
            if not self._gives(change, own, value):
                continue
            covers = self.interventions.covers(change, each)
            if covers is not None:
                return [Hit(change, own.piece, covers, written(change, own.piece), size, size)]
        return []

    def _gives(self, change: Change, slot: LineSlot, value: np.ndarray) -> bool:
        self.work.take(EXPRESSION, elements=value.size)
        with change.made():
            made = slot.made()
        if made is not None and slot.is_stored and spreads(made, value.shape):
            made = np.broadcast_to(made, value.shape)
        return made is not None and made.shape == value.shape and same(made, value)

    def _of_value(self, departed: Departed) -> Iterator[Change]:
        """The changes that a known value of a slot asks for."""
        slot, value = departed.slots[0], departed.value
        derived = self.interventions.derivations[0]
        own = slot.place.get()
        found: list[tuple[Place, Variant]] = [
            (slot.place, each)
            for each in attempted(
                chain(
                    solved(own, slot.value, value.reshape(1, -1), slot.scope),
                    lacking(slot, derived, departed.right, value),
                )
            )
        ]
        found += attempted(_other_values(slot))
        found += attempted(of_parts(slot.place, value, slot.scope))
        for place, (new, kind, part, phrase) in found:
            said_so = phrase.replace("{}", part)
            yield Change(place, new, kind, part, said_so, slot.statement)


def _of_most(every: Iterable[Intervention]) -> list[Intervention]:
    """Those that put most right, but for what gives back a variable that is one of them."""
    found = [*every]
    kept = {(each.rights, each.slot.name) for each in found if each.slot.name}
    found = [
        each
        for each in found
        if each.slot.name or (each.rights, ast.unparse(each.slot.place.get())) not in kept
    ]
    most = max((len(each.covers) for each in found), default=0)
    return [each for each in found if len(each.covers) == most]


def _size(each: tuple[float, Change]) -> tuple[float, int]:
    """The words of a change, and of equal ones the shorter text."""
    size, change = each
    with change.made():
        return round(size), len(ast.unparse(change.statement))


def _pairs(every: list[tuple[float, Change]]) -> Iterator[tuple[float, Change]]:
    """Two changes of one expression, of the smallest that take no other variable in."""
    plain = [each for each in every if each[1].kind in _STRUCTURAL and not each[1].others]
    for (i, (size, one)), (j, (more, other)) in permutations(enumerate(plain[:_PAIRED]), 2):
        new = _with(one.new, other.place.get(), other.new)
        both = ((other.place, other.new),) if new is one.new else ()
        if both and i > j:  # the same as the other way round
            continue
        kind = one.kind if one.kind == other.kind else "two causes"
        phrase, part = f"{one.phrase}, and {other.phrase}", f"{one.part} and {other.part}"
        yield size + more, Change(one.place, new, kind, part, phrase, one.statement, both)


def _with(node: Any, old: ast.AST, new: Any) -> Any:
    """A node in which another stands in the place of one; itself where that is not in it."""
    if node is old:
        return new
    if isinstance(node, list):
        several = [_with(each, old, new) for each in node]
        return several if any(a is not b for a, b in zip(several, node, strict=True)) else node
    if not isinstance(node, ast.AST):
        return node
    changed = {
        name: now for name, own in ast.iter_fields(node) if (now := _with(own, old, new)) is not own
    }
    if not changed:
        return node
    twin = copy.copy(node)
    vars(twin).update(changed)
    return twin


def _lines(tree: ast.AST) -> Iterator[ast.stmt]:
    """The lines of a function that make something."""
    for each in ast.walk(tree):
        if isinstance(each, ast.Assign | ast.AugAssign | ast.Return):
            yield each


def _called_in(node: ast.AST) -> set[str]:
    """The names, or last names, of what an expression calls."""
    return {
        ast.unparse(each.func).rpartition(".")[2]
        for each in ast.walk(node)
        if isinstance(each, ast.Call)
    }


def _stored(statement: ast.stmt) -> set[str]:
    """The variables that a line sets, or writes into."""
    found: set[str] = set()
    for each in ast.walk(statement):
        if isinstance(each, ast.Name | ast.Subscript) and isinstance(each.ctx, ast.Store):
            held: ast.AST = each
            while isinstance(held, ast.Subscript):
                held = held.value
            found |= {held.id} if isinstance(held, ast.Name) else set()
    return found


def _other_values(slot: LineSlot) -> Iterator[tuple[Place, Variant]]:
    """A variable, in any form that broadcasts, for a call or what is computed."""
    for place, node in [(slot.place, slot.place.get()), *expressions(slot.place.get())]:
        is_made = isinstance(node, ast.Call | ast.BinOp)
        array = slot.scope.array(node) if is_made else None
        if array is None:
            continue
        for new, value in forms(slot.scope, array.ndim or slot.value.ndim):
            if value.ndim == (array.ndim or slot.value.ndim):
                part = f"{said(new)} for {said(node)}"
                phrase = "another variable belongs there: {}"
                yield place, (new, "stale variable", part, phrase)
