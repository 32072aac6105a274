"""Arrays to run a forward on, at two sets of sizes in which no two letters are equal."""

from __future__ import annotations

import inspect
import itertools
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from handgrad.deriving.axes import tied_axes
from handgrad.deriving.evaluation import size
from handgrad.deriving.proving import flat
from handgrad.deriving.sizes import Sizes
from handgrad.errors import ArgumentError

#: Distinct primes with distinct differences, so that a number of both runs is one expression.
_FIRST: Final = (3, 5, 7, 11, 13, 17, 19, 23)
_SECOND: Final = (11, 7, 19, 5, 31, 13, 47, 29)
#: Further sizes to prove what was derived at: in other orders, and even ones among them.
_ELSEWHERE: Final = ((13, 12, 10, 9, 8, 6, 5, 4), (4, 9, 2, 12, 6, 14, 8, 10))
#: Letters for the axes of example arrays, in the order in which their lengths occur.
_SIZE: Final = re.compile(r"[A-Za-z_]\w*|(\d+|[A-Za-z_]\w*)( ?(\*|//|\+|-) ?(\d+|[A-Za-z_]\w*))+")
_LETTERS: Final = ("N", "D", "H", "C", "M", "K", "P", "Q", "R", "S", "T", "U", "V", "W")

#: At most so many lengths are fixed because the steps of the forward depend on them.
_MOST_FIXED: Final = 3


@dataclass(frozen=True)
class Examples:
    """A forward's arguments by name for both runs; `letters` are the axes of each array.

    fixed: letters that stand for one length only.
    """

    sizes: Sizes
    letters: Mapping[str, tuple[str, ...]]
    arguments: tuple[dict[str, Any], dict[str, Any]]
    settings: Mapping[str, Any]
    fixed: Mapping[str, int]


@dataclass(frozen=True)
class Given:
    """What the user gave: shapes in letters or arrays, and settings."""

    names: tuple[str, ...]
    shapes: Mapping[str, tuple[Any, ...]]
    kinds: Mapping[str, type]
    arrays: Mapping[str, Any]
    settings: Mapping[str, Any]

    def readings(self, facts: Iterable[Any], forward: Callable[..., Any]) -> Iterator[Examples]:
        """Ways to read the shapes: every length a letter, then some lengths fixed.

        Raises ArgumentError where there are more letters than we have sizes for.
        """
        facts = list(facts)
        letters, constant = self._letters(forward)
        names = [name for name in _names(letters) if name not in constant]
        if len(names) > len(_FIRST):
            raise ArgumentError(f"derive: {len(names)} sizes are given; allowed: {len(_FIRST)}")
        for count in range(_MOST_FIXED + 1):
            for fixed in itertools.combinations(names, count):
                yield self._examples(letters, (*constant, *fixed), facts)

    def _examples(
        self, letters: Mapping[str, tuple[str, ...]], fixed: Sequence[str], facts: Sequence[Any]
    ) -> Examples:
        known = self._known(letters)
        names = sorted(_names(letters), key=lambda each: known.get(each, 0))
        # A short axis of the example, such as that of a kernel, is a short one here.
        free = [each for each in names if each not in fixed]
        lengths = {each: (_FIRST[i], _SECOND[i]) for i, each in enumerate(free)}
        usual = dict(zip(names, _FIRST, strict=False))
        constant = {each: known.get(each) or usual[each] for each in fixed}
        rng = np.random.default_rng(0)
        first, second = (
            self._arguments(
                letters, {**constant, **{x: both[run] for x, both in lengths.items()}}, facts, rng
            )
            for run in (0, 1)
        )
        return Examples(Sizes(lengths), letters, (first, second), self.settings, constant)

    def elsewhere(
        self, examples: Examples, facts: Iterable[Any]
    ) -> Iterator[tuple[dict[str, int], dict[str, Any]]]:
        """Further lengths of the letters, no two of them equal, with arguments of other values."""
        facts, rng = list(facts), np.random.default_rng(4)
        free = list(examples.sizes.lengths)
        for lengths in _ELSEWHERE:
            here = dict(zip(free, lengths[-len(free) :] if free else (), strict=True))
            yield here, self._arguments(examples.letters, {**examples.fixed, **here}, facts, rng)

    def _arguments(
        self,
        letters: Mapping[str, tuple[str, ...]],
        lengths: Mapping[str, int],
        facts: Sequence[Any],
        rng: np.random.Generator,
    ) -> dict[str, Any]:
        """Random arrays of these lengths, and the settings."""
        found: dict[str, Any] = {}
        for name in self.names:
            if name not in letters:
                value = self.settings[name]
                is_size = isinstance(value, str) and value in lengths
                found[name] = lengths[value] if is_size else value
                continue
            shape = tuple(size(axis, lengths) for axis in letters[name])
            found[name] = _drawn(rng, shape, self.arrays.get(name), self.kinds.get(name))
        for fact in facts:
            fact.make_true(found)
        return found

    def _letters(self, forward: Callable[..., Any]) -> tuple[dict[str, tuple[str, ...]], list[str]]:
        """The axes of each array, and the letters among them that have one length.

        Shapes in letters are as they are given. Axes of example arrays have one letter where the
        forward asks for it: those that have to keep their length, one for each length.
        """
        rng = np.random.default_rng(5)
        declared = {
            name: shape
            for name, shape in self.shapes.items()
            if any(isinstance(each, str) for each in shape)
        }
        taken = {*self.names, *_names({n: tuple(map(str, s)) for n, s in declared.items()})}
        free = (each for each in _LETTERS if each not in taken)
        lengths = dict(zip(taken, _FIRST, strict=False))

        def runs(shapes: Mapping[str, tuple[int, ...]]) -> bool:
            arguments = {
                name: lengths.get(value, value) if isinstance(value, str) else value
                for name, value in self.settings.items()
            }
            for name in self.names:
                if name in self.shapes:
                    shape = shapes.get(name) or tuple(
                        size(str(each), lengths) for each in self.shapes[name]
                    )
                    kind = self.kinds.get(name)
                    arguments[name] = _drawn(rng, shape, self.arrays.get(name), kind)
            try:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    found = forward(**arguments)
            except Exception:  # lengths that it does not take
                return False
            return bool(np.size(next(flat(found))))

        shapes = {name: shape for name, shape in self.shapes.items() if name not in declared}
        axes = {name: [str(each) for each in shape] for name, shape in self.shapes.items()}
        if not shapes:
            return {name: tuple(each) for name, each in axes.items()}, []
        groups, does_run = tied_axes(shapes, runs)
        if not does_run:
            by_length: dict[int, dict[tuple[str, int], int]] = {}
            for name, shape in shapes.items():
                for at, n in enumerate(shape):
                    by_length.setdefault(n, {})[name, at] = 1
            groups = [group for n, group in sorted(by_length.items()) if n > 1]
        try:
            for group in groups:
                letter = next(free)
                for (name, at), times in group.items():
                    axes[name][at] = letter if times == 1 else f"{times} * {letter}"
            constant: dict[int, str] = {}
            for name, shape in shapes.items():
                for at, n in enumerate(shape):
                    if n > 1 and axes[name][at] == str(n):
                        constant[n] = constant.get(n) or next(free)
                        axes[name][at] = constant[n]
        except StopIteration:
            raise ArgumentError(
                f"derive: more than {len(_LETTERS)} sizes are given; allowed: arrays, or shapes in "
                "letters, with fewer"
            ) from None
        return {name: tuple(each) for name, each in axes.items()}, [*constant.values()]

    def _known(self, letters: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
        """The lengths in the examples of axes that are one letter."""
        return {
            axis: length
            for name, axes in letters.items()
            for axis, length in zip(axes, self.shapes[name], strict=True)
            if isinstance(length, int) and axis.isidentifier()
        }


def _names(letters: Mapping[str, tuple[str, ...]]) -> list[str]:
    found = (letters_in(axis) for axes in letters.values() for axis in axes)
    return list(dict.fromkeys(each for group in found for each in group))


def letters_in(axis: str) -> dict[str, None]:
    """The letters of an axis such as `4 * H`, in order."""
    return dict.fromkeys(re.findall(r"[A-Za-z_]\w*", axis))


def given_to(forward: Callable[..., Any], arrays: Sequence[Any], named: Mapping[str, Any]) -> Given:
    """The arguments of a forward: shapes in letters, arrays, and settings.

    Raises ArgumentError for what the forward does not take, and where there is no array.
    """
    signature = inspect.signature(forward)
    try:
        bound = signature.bind(*arrays, **named)
    except TypeError as error:
        raise ArgumentError(
            f"derive: {error}; allowed: the arguments of {_name(forward)}{signature}, arrays or "
            'their shapes in letters, such as ("N", "D")'
        ) from None
    bound.apply_defaults()
    shapes: dict[str, tuple[Any, ...]] = {}
    kinds: dict[str, type] = {}
    found: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        if is_shape(value):
            kinds[name] = value[-1] if isinstance(value[-1], type) else float
            shapes[name] = tuple(each for each in value if not isinstance(each, type))
        elif isinstance(value, np.ndarray):
            found[name] = value
            shapes[name] = value.shape
        else:
            settings[name] = value
    if not shapes:
        raise ArgumentError("derive: no array is given; allowed: arrays or their shapes in letters")
    return Given(tuple(bound.arguments), shapes, kinds, found, settings)


def is_shape(value: Any) -> bool:
    """Return whether an argument is a shape in letters, such as ("N", "4 * H") or ("N", bool)."""
    if not isinstance(value, tuple) or not any(isinstance(each, str) for each in value):
        return False
    *axes, last = value
    axes = axes if last in (float, bool) else [*axes, last]
    return all(
        type(each) is int or (isinstance(each, str) and _SIZE.fullmatch(each)) for each in axes
    )


def _drawn(rng: np.random.Generator, shape: tuple[int, ...], like: Any, kind: type | None) -> Any:
    """Random values of the kind of an example: its type, and its sign where it has one."""
    if kind is bool:
        return rng.random(shape) < 0.7
    if like is None or (like.dtype.kind == "f" and (like.size == 0 or np.any(like < 0))):
        return rng.standard_normal(shape)
    if like.dtype.kind == "f":
        low, high = float(like.min()), float(like.max())
        return rng.uniform(low, high if high > low else low + 1.0, shape)
    if like.dtype.kind == "b":
        return rng.random(shape) < 0.7
    if like.size == 0:
        return np.zeros(shape, like.dtype)
    return rng.choice(np.unique(like), shape).astype(like.dtype)


def _name(forward: Any) -> str:
    return str(getattr(forward, "__name__", type(forward).__name__))
