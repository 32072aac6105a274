"""Computing what a page of a derivation says, from its printed formulas and shapes alone.

An axis has the letter of its length, and values meet by these; where letters do not tell, they
meet as arrays of NumPy do, from the last axis on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from handgrad.deriving.derivation import Derivation
from handgrad.documents.document import Equation, Heading, opened
from handgrad.documents.formulas.formula import (
    Formula,
    Fraction,
    Number,
    Script,
    Sign,
    Symbol,
    parts_in,
    row,
)
from handgrad.program.sizes import Size
from tests.deriving.lettered import (
    Value,
    same,
)
from tests.deriving.printed import PrintedFormulas
from tests.deriving.taken_apart import (
    Rounds,
    bare,
    codes,
    given,
    is_loop,
    loop_of,
    parts_of,
    rounds_of,
    sides,
)
from tests.equations.reading import replaced, split


class Page(PrintedFormulas):
    """The page of a derivation, computed line by line from arrays for its inputs."""

    def __init__(
        self,
        derivation: Derivation,
        inputs: Mapping[str, Any],
        cotangents: Sequence[Any],
        lengths: Mapping[str, int],
    ) -> None:
        self.blocks = list(opened(derivation.notes().document.blocks))
        self.codes = list(codes(self.blocks))
        super().__init__({self.symbol(letter): length for letter, length in lengths.items()})
        named = derivation.pair.traced.program.inputs
        nodes = [(node, np.asarray(inputs[node.name])) for node in named if node.name in inputs]
        known = [self.of_input(node.name) for node, _ in nodes]
        nodes += list(zip(derivation.pair.cotangents, cotangents, strict=True))
        known += given(self.blocks) or [
            self.symbol(node.name) for node in derivation.pair.cotangents
        ]
        for symbol, (node, array) in zip(known, nodes, strict=True):
            axes = tuple(self.letter(size) for size in node.shape)
            self.values[self.dated(symbol)] = Value(array, axes)
        arriving = map(self.dated, known[-len(cotangents) :])
        self.given = {symbol: self.values[symbol] for symbol in arriving}

    def of_input(self, name: str) -> Formula:
        """A result may have the letter of an input, and is primed then."""
        found = self.symbol(name)
        return Symbol(name) if found == Script(Symbol(name[:1]), sup=Sign("′")) else found

    def symbol(self, name: str) -> Formula:
        """The symbol of a name in the code, by the table at the end of the page."""
        found = [symbol for code, symbol in self.codes if code == name]
        if found:
            return found[0]
        if name[:1] == "d" and len(name) > 1:
            return row(Symbol("d"), self.symbol(name[1:]))
        return Symbol(name) if len(name) == 1 else Script(Symbol(name[0]), Number(name[1:]))

    def letter(self, size: Size) -> Formula | None:
        """A length as the page writes it, if it is no number."""
        if not size.letters:
            return None
        ((atoms, coefficient),) = size.terms
        number = [] if coefficient == 1 else [Number(str(coefficient))]
        return row(*number, *(self.symbol(atom) for atom in atoms))

    def run(self) -> None:
        """Every equation in its order; those below a counter, which have it, in each round.

        A step of the algebra that is for any round is left out.
        """
        blocks = list(self.blocks)
        counters = {rounds_of(each)[0] for each in blocks if is_loop(each)}
        while blocks:
            block = blocks.pop(0)
            if block == Heading("Result"):
                # It begins from the same gradients, of which rounds may have set parts to 0.
                self.values = {k: v for k, v in self.values.items() if bare(k) not in self.given}
                self.values |= self.given
            elif is_loop(block):
                self.loop(loop_of(block, blocks), {})
            elif isinstance(block, Equation) and counters.isdisjoint(parts_in(block.formula)):
                self.learn(block.formula, block.shape)

    def loop(self, loop: Rounds, around: Mapping[Formula, tuple[Formula, Formula]]) -> None:
        """Every round of a loop, in one of each of those around it: their lengths and numbers."""
        before, (self.over, rounds) = self.over, self.rounds(loop)
        for now in rounds:
            counted = {**around, loop.counter: (self.over, Number(str(now)))}
            for line in loop.lines:
                if isinstance(line, Rounds):
                    self.loop(line, counted)
                    continue
                formula = line.formula
                for counter, (_, number) in counted.items():
                    formula = replaced(formula, counter, number)
                is_part = line.shape is not None and any(
                    counter in parts_in(sides(line.formula)[0])
                    and letter in self.shape(line.shape)[1]
                    for counter, (letter, _) in counted.items()
                )
                self.learn(formula, None if is_part else line.shape)
        self.over = before
        if not around:
            self.collect(loop, {})

    def rounds(self, loop: Rounds) -> tuple[Formula, range]:
        """The length that a loop counts along, and the numbers of its rounds."""
        first, last = (int(self.value(each).array) for each in loop.ends)
        letter = next(each for each in self.letters if each in parts_in(loop.ends))
        return letter, range(first, last + 1) if first <= last else range(first, last - 1, -1)

    def collect(self, loop: Rounds, around: Mapping[Formula, tuple[Formula, range]]) -> None:
        """The arrays that rounds fill, from the part that each of them has made."""
        counted = {**around, loop.counter: self.rounds(loop)}
        for line in loop.lines:
            if isinstance(line, Rounds):
                self.collect(line, counted)
            elif line.shape is not None:
                left, letters = sides(line.formula)[0], self.shape(line.shape)[1]
                own = {each: counted[each] for each in counted if each in parts_in(left)}
                if not own or not {letter for letter, _ in own.values()} <= set(letters):
                    continue
                parts = []
                for numbers in product(*(sorted(rounds) for _, rounds in own.values())):
                    formula = left
                    for counter, now in zip(own, numbers, strict=True):
                        formula = replaced(formula, counter, Number(str(now)))
                    parts.append(self.values[self.dated(formula)].array)
                sizes = [len(rounds) for _, rounds in own.values()]
                array = np.stack(parts).reshape(*sizes, *parts[0].shape)
                places: list[int] = []
                for letter, _ in own.values():
                    free = (k for k, each in enumerate(letters) if each == letter)
                    places.append(next(k for k in free if k not in places))
                array = np.moveaxis(array, range(len(own)), places)
                self.values[bare(left)] = Value(array, letters)

    def learn(self, formula: Formula, beside: Formula | None) -> None:
        left, right = sides(formula)
        left = self.dated(left)
        *further, right = [row(*each) for _, each in split(parts_of(right), "=")] or [right]
        if beside is None:
            # Zeros, one side of a step beside the other, or a gradient by another name.
            found = self.value(right)
            is_step = left not in self.values and len(parts_of(left)) > 2
            if is_step:
                first, second, _ = self.together(self.value(left), found)
                same(first + 0 * second, second + 0 * first)
            for each in () if is_step else (left, *further):
                # The values of rounds before are those of another array.
                for part in [part for part in self.values if bare(part) == each]:
                    del self.values[part]
                self.values[self.dated(each)] = found
            return
        shape, letters = self.shape(beside)
        self.sizes = shape
        found = self.fitted(self.value(right), shape, letters)
        if left in self.values and Sign("←") not in parts_of(formula) and self.over is None:
            same(found.array, self.values[left].array)
        self.values[left] = found
        match left:
            case Fraction(Number("1"), of):
                self.values[of] = Value(1.0 / found.array, found.axes)

    def fitted(
        self, value: Value, shape: Sequence[int], letters: tuple[Formula | None, ...]
    ) -> Value:
        """A value in the shape that stands beside it."""
        value = value.by_place(self.lengths)
        missing = [each for each in letters if each is not None and each not in value.axes]
        if value.array.ndim == len(shape) and set(value.axes) == set(letters) != {None}:
            order = [value.axes.index(each) for each in letters] if not missing else None
            if order is not None and sorted(order) == list(range(len(order))):
                return Value(np.transpose(value.array, order), letters)
        if value.array.size == math.prod(shape):
            return Value(value.array.reshape(shape), letters)
        first, _, _ = self.together(value, Value(np.empty(shape), letters))
        return Value(np.broadcast_to(first, shape), letters)
