"""Letters for the sizes of arrays: (N, D) and not (2, 4).

The annotations name the axes of what goes in. A run on inputs in which every such letter has a size
of its own then shows the letters of everything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations, permutations
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

Letters = Mapping[int, str]

#: Even, and with odd halves, so that a half is no padded size, nor a size and 1; and far enough
#: apart that one letter with padding on both sides is never another. Small, because everything is
#: computed once.
_SIZES: Final = (6, 18, 26, 34, 42, 50, 58, 66)
#: For kernels, which have to fit into what they run over.
_KERNEL_SIZES: Final = (3, 5)
_PADDED: Final = (1, 2, 4, -2, -4)
_MULTIPLE: Final = 8
#: The numbers of blocks that the gates of a recurrent layer are.
_TIMES: Final = (2, 3, 4)
#: The number of pairs of letters that are tried as one.
_TRIALS: Final = 6
#: The axes of a starred group, such as *batch, by their number.
_STARRED: Final = ("", "N", "NM", "NPM", "NPQM", "NPQRM")
#: Settings that are sizes of something in between.
_SETTINGS: Final = {"num_groups": "G"}


class Relation(NamedTuple):
    """The size of `letter` is `times` that of `other`."""

    letter: str
    other: str
    times: int = 1


@dataclass(frozen=True)
class Dimensions:
    """The letters of sizes; without any, sizes are numbers."""

    letters: Letters = field(default_factory=lambda: MappingProxyType({}))

    def size(self, size: int, own: int | None = None) -> Formula:
        """N, H W, D/2, 4 H, N + 2, 2 N + 1, or the number where no letter fits.

        `own` is what it is on inputs of other sizes: what is the same there is no such sum.
        """
        if size == 1 or not self.letters:
            return Number(str(size))
        if size in self.letters:
            return _letter(self.letters[size])
        if size == own:
            return Number(str(size))
        for found in chain(self._product(size), self._padded(size), self._odd(size)):
            return found
        return Number(str(size))

    def letter(self, size: int) -> str | None:
        """The letter of exactly this size."""
        return self.letters.get(size)

    def shape(self, array: Any, own: Any = None) -> Formula:
        """(N, D); (N,) has its comma, as in Python. `own` is the array on other inputs."""
        return self.sizes(array.shape, np.shape(own))

    def sizes(self, shape: Sequence[int], own: Sequence[int] = ()) -> Formula:
        """The same for the sizes themselves."""
        others = own if len(own) == len(shape) else (None,) * len(shape)
        sizes = tuple(map(self.size, shape, others))
        if len(sizes) == 1:
            return Fenced(row(sizes[0], Sign(",")))
        return Fenced(separated(sizes) if sizes else row())

    def _product(self, size: int) -> Iterator[Formula]:
        for (first, one), (second, two) in combinations(self.letters.items(), 2):
            if first * second == size:
                yield row(_letter(one), _letter(two))
        for part, letter in self.letters.items():
            for (first, one), (second, two) in combinations(self.letters.items(), 2):
                if letter in _SETTINGS.values() and first * second == part * size:
                    yield row(_letter(one), _letter(two), Sign("/"), _letter(letter))
        for known, letter in self.letters.items():
            if known == 2 * size:
                yield row(_letter(letter), Sign("/"), Number("2"))
            if size % known == 0 and size // known <= _MULTIPLE:
                yield row(Number(str(size // known)), _letter(letter))

    def _padded(self, size: int) -> Iterator[Formula]:
        for known, letter in self.letters.items():
            if size - known in _PADDED:
                sign = "+" if size > known else "−"
                yield row(_letter(letter), Sign(sign), Number(str(abs(size - known))))

    def _odd(self, size: int) -> Iterator[Formula]:
        for known, letter in self.letters.items():
            if size == 2 * known + 1:
                yield row(Number("2"), _letter(letter), Sign("+"), Number("1"))


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


def renamed_inputs(
    parameters: Sequence[Parameter], arrays: Mapping[str, np.ndarray], output: str
) -> Iterator[tuple[dict[str, np.ndarray], dict[int, str]]]:
    """The same inputs with a size of its own for every letter, and what each size is called.

    First with all letters apart; then with two of them related that are so in `arrays`, alike as
    the channels of an image and of a kernel, or one a multiple of the other as the rows of an
    LSTM's weights; with all that are alike; last with two relations. Of two letters for one
    size that of `output`, an annotation, is kept. Nothing where an array has no annotation.
    """
    known: dict[str, int] = {}
    axes: dict[str, list[str]] = {}
    by_name = {each.name: each for each in parameters}
    for name, array in arrays.items():
        found = axes_of(by_name[name].shape, array.shape, known) if name in by_name else None
        if found is None:
            return
        axes[name] = _aligned(found, array.shape, axes, arrays)
    letters = list(dict.fromkeys(letter for each in axes.values() for letter in each if letter))
    together = [*(set(each) for each in axes.values()), set(output.split())]
    pairs = [
        Relation(b, a)
        for a, b in combinations(letters, 2)
        if known[a] == known[b] and not any({a, b} <= each for each in together)
    ]
    # A letter that stands in one place only is the likeliest to be another name of a size.
    pairs.sort(key=lambda pair: sum(letter in each for letter in pair[:2] for each in together))
    multiples = [
        Relation(a, b, times)
        for a, b in permutations(letters, 2)
        for times in _TIMES
        if known[a] == times * known[b]
    ]
    trials = [[], *([pair] for pair in pairs[:_TRIALS]), pairs, *([one] for one in multiples)]
    trials += map(list, combinations([*pairs[:_TRIALS], *multiples], 2))
    for related in trials:
        sizes = _own_sizes(letters, related)
        if sizes is not None:
            names: dict[int, str] = {}
            derived = {each.letter for each in related if each.times > 1}
            for letter in sorted(letters, key=lambda each: each not in output.split()):
                if letter not in derived:
                    names.setdefault(sizes[letter], letter)
            yield {name: _filled(arrays[name], axes[name], sizes) for name in arrays}, names


def _aligned(
    found: list[str],
    shape: tuple[int, ...],
    axes: Mapping[str, list[str]],
    arrays: Mapping[str, np.ndarray],
) -> list[str]:
    """Axes annotated `...` go by those of the first array, to which they broadcast."""
    if all(found) or not axes:
        return found
    first = next(iter(axes))
    behind = [""] * len(shape) + axes[first]
    sizes = (0,) * len(shape) + arrays[first].shape
    pairs = zip(found, shape, behind[-len(shape) :], sizes[-len(shape) :], strict=True)
    return [letter or (other if size == wide else "") for letter, size, other, wide in pairs]


def _own_sizes(letters: list[str], related: Sequence[Relation]) -> dict[str, int] | None:
    """A size for each letter; None where there are too many, or the relations contradict."""
    kernels, others = iter(_KERNEL_SIZES), iter(_SIZES)
    sizes: dict[str, int] = {}
    for letter in letters:
        if any(each.letter == letter for each in related):
            continue
        size = next(kernels if letter[0] == "K" else others, None)
        if size is None:
            return None
        sizes[letter] = size
    for _ in related:
        for letter, other, times in related:
            if other in sizes and sizes.setdefault(letter, times * sizes[other]) != (
                times * sizes[other]
            ):
                return None
    return sizes if len(sizes) == len(letters) else None


def _filled(array: np.ndarray, axes: list[str], sizes: Mapping[str, int]) -> np.ndarray:
    shape = tuple(
        sizes[letter] if letter else size for letter, size in zip(axes, array.shape, strict=True)
    )
    if array.dtype.kind == "f":
        return np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(array.dtype)
    count = int(np.prod(shape))
    return (np.arange(count) % 2).reshape(shape).astype(array.dtype)


def setting_letters(options: Mapping[str, Any], letters: Letters) -> dict[int, str]:
    """`letters` with those of settings added that are sizes."""
    added = dict(letters)
    for name, letter in _SETTINGS.items():
        if options.get(name, 1) > 1:
            added.setdefault(options[name], letter)
    return added


def output_letters(annotation: str, shape: tuple[int, ...], letters: Letters) -> dict[int, str]:
    """`letters` with those of an output added, where its annotation names sizes not seen before."""
    found = axes_of(annotation, shape, {letter: size for size, letter in letters.items()})
    added = dict(letters)
    for letter, size in zip(found or (), shape, strict=False):
        if letter and size > 1:
            added.setdefault(size, letter)
    return added
