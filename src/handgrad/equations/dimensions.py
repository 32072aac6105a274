"""Letters for the sizes of arrays: (N, D) and not (2, 4).

The annotations name the axes of what goes in. A run on tracers then knows the letters of everything
else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.documents.formulas.formula import (
    Fenced,
    Formula,
    Number,
    Script,
    Sign,
    Symbol,
    Text,
    row,
    separated,
)
from handgrad.equations.subject import Parameter
from handgrad.program.sizes import Atom, Quotient, Size

#: The axes of a starred group, such as *batch, by their number.
_STARRED: Final = ("", "N", "NM", "NPM", "NPQM", "NPQRM")
#: Settings that are sizes of something in between.
_SETTINGS: Final = {"num_groups": "G"}


class Share(NamedTuple):
    """One of `by` equal parts of the length of a letter."""

    whole: str
    by: Size


@dataclass(frozen=True)
class Dimensions:
    """The lengths of letters, in the order in which they are written, and the names of sizes.

    Without `names` sizes are written as numbers. `parts` are letters of one of so many equal parts
    of another letter, such as D/2. `taken` are symbols of values, which are no sizes.
    """

    lengths: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    names: Mapping[Size, str] | None = None
    parts: Mapping[str, Share] = field(default_factory=lambda: MappingProxyType({}))
    taken: frozenset[Formula] = frozenset()

    def size(self, size: Size | int) -> Formula:
        """N, H W, D/2, 4 H, N + 2, 2 N + 1, or a number."""
        size = Size.of(size)
        if self.names is None or size.constant is not None:
            return Number(str(size.number(self.lengths)))
        if size in self.names:
            return self._letter(self.names[size])
        for known in self.names:
            if (difference := (size - known).constant) is not None:
                sign = Sign("+" if difference > 0 else "−")
                return row(self.size(known), sign, Number(str(abs(difference))))
            other = size // known
            if len(known.terms) > 1 and len(other.terms) == 1 and not _quotients(other):
                return row(self.size(other), self.size(known))
        parts: list[Formula] = []
        for product, times in size.terms:
            written = self._product(product, abs(times))
            parts += [Sign("+" if times > 0 else "−"), *written] if parts else written
        return row(*parts)

    def letter(self, size: Size) -> str | None:
        """The letter of exactly this size."""
        return (self.names or {}).get(size)

    def shape(self, sizes: Sequence[Size]) -> Formula:
        """(N, D); (N,) has its comma, as in Python."""
        written = tuple(map(self.size, sizes))
        if len(written) == 1:
            return Fenced(row(written[0], Sign(",")))
        return Fenced(separated(written) if written else row())

    def _product(self, atoms: Sequence[Atom], times: int) -> list[Formula]:
        letters = [each for each in atoms if isinstance(each, str)]
        divisors: list[Formula] = []
        for each in [each for each in letters if each in self.parts]:
            whole, by = self.parts[each]
            letters[letters.index(each)] = whole
            if by.constant is not None and times % by.constant == 0:
                times //= by.constant
            elif str(by) in letters:
                letters.remove(str(by))
            else:
                divisors.append(self.size(by))
        parts = [self._letter(each) for each in sorted(letters, key=list(self.lengths).index)]
        for quotient in [each for each in atoms if isinstance(each, Quotient)]:
            parts += [self._fenced(quotient.top), Sign("/"), self._fenced(quotient.bottom)]
        for divisor in divisors:
            parts += [Sign("/"), divisor]
        return parts if times == 1 and parts else [Number(str(times)), *parts]

    def _letter(self, name: str) -> Formula:
        """H_I where there is an H_O, and W_size where W is the symbol of a value."""
        found = _letter(name)
        if f"{name}O" in (self.names or {}).values():
            return Script(found, Symbol("I"))
        return Script(found, Text("size")) if found in self.taken else found

    def _fenced(self, size: Size) -> Formula:
        found = self.size(size)
        is_sum = len(size.terms) > 1 and size not in (self.names or {})
        return Fenced(found) if is_sum else found


def _letter(name: str) -> Formula:
    """H, and H_O for HO; a kernel's KH is K_H."""
    first, rest = name[0], name[1:]
    if not rest:
        return Symbol(first)
    return Script(Symbol(first), Symbol(rest) if len(rest) == 1 else Text(rest))


def axes_of(annotation: str, shape: Sequence[int], known: dict[str, int]) -> list[str] | None:
    """The letter of every axis, "" for one without; None where the annotation does not fit.

    `known` are sizes that letters have already; those found here are added.
    """
    for alternative in annotation.split(" or ") if annotation else ():
        tokens = alternative.split()
        found = _matched(tokens, len(shape))
        if found is None:
            continue
        sizes = dict(known)
        found = [
            _of_broadcast(letter, size, sizes) for letter, size in zip(found, shape, strict=True)
        ]
        if all(
            not letter or sizes.setdefault(letter, size) == size
            for letter, size in zip(found, shape, strict=True)
        ):
            known.update(sizes)
            return found
    return None


def _of_broadcast(letter: str, size: int, known: Mapping[str, int]) -> str:
    """The letter of an axis #N, which is N or 1: none where it is 1 and N is not."""
    plain = letter.removeprefix("#")
    return "" if plain != letter and size == 1 != known.get(plain) else plain


def _matched(tokens: list[str], axes: int) -> list[str] | None:
    starred = [i for i, token in enumerate(tokens) if token.startswith(("*", "..."))]
    fixed = len(tokens) - len(starred)
    if len(starred) > 1 or axes < fixed or (not starred and axes != fixed):
        return None
    if not starred:
        return ["" if token.isdigit() else token for token in tokens]
    (star,) = starred
    count = axes - fixed
    if tokens[star] == "..." or count >= len(_STARRED):
        group = [""] * count
    else:
        letters = _STARRED[count] if star == 0 else "PQRST"[:count]
        group = [letter if letter not in tokens else letter * 2 for letter in letters]
    return [*tokens[:star], *group, *tokens[star + 1 :]]


def _aligned(
    found: list[str],
    shape: tuple[int, ...],
    axes: Mapping[str, list[str]],
    shapes: Mapping[str, tuple[int, ...]],
) -> list[str]:
    """Axes annotated `...` go by those of the first array, to which they broadcast."""
    if all(found) or not axes:
        return found
    first = next(iter(axes))
    behind = [""] * len(shape) + axes[first]
    sizes = (0,) * len(shape) + shapes[first]
    pairs = zip(found, shape, behind[-len(shape) :], sizes[-len(shape) :], strict=True)
    return [letter or (other if size == wide else "") for letter, size, other, wide in pairs]


def sizes_of_inputs(
    parameters: Sequence[Parameter], arrays: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, int]] | None:
    """The sizes of arrays in the letters of their annotations, and the lengths of the letters.

    A setting that is a size is a letter as well. None where an array has no annotation.
    """
    known: dict[str, int] = {}
    axes: dict[str, list[str]] = {}
    by_name = {each.name: each for each in parameters}
    shapes = {name: np.shape(array) for name, array in arrays.items()}
    for name, shape in shapes.items():
        found = axes_of(by_name[name].shape, shape, known) if name in by_name else None
        if found is None:
            return None
        axes[name] = _aligned(found, shape, axes, shapes)
    sizes: dict[str, Any] = {
        name: tuple(Size.of(letter or n) for letter, n in zip(axes[name], shape, strict=True))
        for name, shape in shapes.items()
    }
    for name, letter in _SETTINGS.items():
        if options.get(name, 1) > 1:
            sizes[name] = Size.of(letter)
            known[letter] = options[name]
    return (sizes, known) if known else None


class Letters:
    """The letters of a run: those that are the same as others, or a multiple of them."""

    def __init__(self, lengths: Mapping[str, int], order: Sequence[str]) -> None:
        self.lengths = dict(lengths)
        self.parts: dict[str, Share] = {}
        self.known: dict[str, Size] = {}
        #: The order in which letters stay, where two are the same.
        self._order = order

    def learn(self, equal: Sequence[tuple[Size, Size]], sizes: Iterable[Size]) -> None:
        """Take what the run took to be equal, and of which letters its `sizes` are parts."""
        self._solve(equal)
        for size in sizes:
            for quotient in _quotients(size.at(self.known)):
                self._part(quotient)
        self._solve(equal)

    def _solve(self, equal: Sequence[tuple[Size, Size]]) -> None:
        for left, right in equal:
            one, other = left.at(self.known), right.at(self.known)
            pairs = [*self._solved(one, other), *self._solved(other, one)]
            if pairs:
                self._set(*min(pairs, key=self._preference))

    def _preference(self, pair: tuple[str, Size]) -> Any:
        """A multiple of another letter is no letter of its own, nor is one that comes later."""
        letter, size = pair
        return bool(_quotients(size)), _letter_of(size) != "", -self._order.index(letter)

    def _solved(self, size: Size, same: Size) -> Iterator[tuple[str, Size]]:
        for quotient in _quotients(size):
            if size == Size((((quotient,), 1),)) and quotient.bottom.constant:
                size, same = quotient.top, same * quotient.bottom
        letter = _letter_of(size)
        is_so = letter in self._order and letter not in same.letters and same.constant is None
        if is_so and same.number(self.lengths) == self.lengths[letter]:
            yield letter, same

    def _part(self, quotient: Quotient) -> None:
        whole, by = _letter_of(quotient.top), quotient.bottom
        divisor = by.number(self.lengths)
        if whole not in self._order or not (by.constant or _letter_of(by)):
            return
        count, rest = divmod(self.lengths[whole], divisor)
        if rest:
            return
        if count == 1 and _letter_of(by) in self._order:
            self._solve([(quotient.top, by)])
            return
        letter = f"{whole}/{by}"
        self.parts[letter], self.lengths[letter] = Share(whole, by), count
        self._set(whole, by * letter)

    def _set(self, letter: str, size: Size) -> None:
        self.known = {key: each.at({letter: size}) for key, each in self.known.items()}
        self.known[letter] = size

    def dimensions(self, annotation: str, output: Sequence[Size]) -> Dimensions:
        """Those of the run. An output's annotation names sizes that have no letter."""
        names = {
            self.known.get(letter, Size.of(letter)): letter
            for letter in self._order
            if letter not in self.known or letter in {each.whole for each in self.parts.values()}
        }
        numbers = [size.number(self.lengths) for size in output]
        for letter, size in zip(axes_of(annotation, numbers, {}) or (), output, strict=False):
            if letter and size.constant is None and letter not in self.lengths:
                names.setdefault(size, letter)
        return Dimensions(self.lengths, names, self.parts)


def _quotients(size: Size) -> list[Quotient]:
    return [atom for product, _ in size.terms for atom in product if isinstance(atom, Quotient)]


def _letter_of(size: Size) -> str:
    """The letter that is all of a size, "" where there is more."""
    (letter, *others) = size.letters or ("",)
    return letter if not others and size == Size.of(letter) else ""
