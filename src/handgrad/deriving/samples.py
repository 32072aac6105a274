"""Arguments to run a forward on: lengths for letters, and numbers that it is defined for."""

from __future__ import annotations

import inspect
import itertools
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from handgrad.deriving.algebra.facts import Assumption
from handgrad.deriving.arguments import Arguments, Path, Setting, Spec

#: Lengths of letters: those of the trace and of the first proof, and those of the second.
_FIRST: Final = ((5, 6, 4, 7, 8, 3, 9, 10, 11, 12), (4, 8, 6, 12, 10, 16, 14, 18, 20, 22))
_SECOND: Final = ((6, 7, 5, 4, 3, 8, 10, 9, 12, 11), (6, 4, 8, 10, 12, 14, 16, 20, 18, 24))

#: Orders of lengths: as above, the first letters the longest (a kernel is shorter than what it
#: slides over), or the last; each also with even lengths. ("long", 2) and ("short", 2) are as above
#: but for the third letter.
Order = tuple[str, int]
ORDERS: Final[tuple[Order, ...]] = tuple(
    itertools.product(("mixed", "falling", "rising"), (False, True))
)

Draw = Callable[[np.random.Generator, tuple[int, ...]], Any]


def _definite(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Symmetric matrices with positive eigenvalues, where the last two axes are of one length."""
    x = rng.standard_normal(shape)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        return x
    return x @ np.swapaxes(x, -1, -2) / shape[-1] + np.eye(shape[-1])


DOMAINS: Final[dict[str, Draw]] = {
    "any": lambda rng, shape: rng.standard_normal(shape),
    "positive": lambda rng, shape: rng.uniform(0.5, 2.0, shape),
    "fraction": lambda rng, shape: rng.uniform(0.1, 0.9, shape),
    "definite": _definite,
    "large": lambda rng, shape: rng.uniform(1.5, 3.0, shape),
}


@dataclass
class Sampler:
    """Draws arguments; `domains` are those of each array that is not drawn from all numbers.

    every: lengths are tried too in which one letter alone is the longest or the shortest.
    """

    arguments: Arguments
    assumed: list[Assumption] = field(default_factory=list)
    domains: dict[Path, str] = field(default_factory=dict)
    order: Order = ORDERS[0]
    every: bool = True

    def lengths(self) -> dict[str, int]:
        """A length for each letter: those of examples, where there are any."""
        known = self.arguments.known
        free = _lengths(*self.order, len(self.arguments.letters), second=False)
        return {x: known[x] if x in known else next(free) for x in self.arguments.letters}

    def others(self) -> Iterator[dict[str, int]]:
        """Further lengths, of which a forward may not take each."""
        letters = self.arguments.letters
        for order in dict.fromkeys((self.order, *ORDERS)):
            drawn = dict(zip(letters, _lengths(*order, len(letters), second=True), strict=False))
            kept = drawn | self.arguments.known
            yield from filter(self._fits, [drawn] if kept == drawn else [drawn, kept])

    def _fits(self, lengths: Mapping[str, int]) -> bool:
        """True where no array would have a negative size."""
        return all(n >= 0 for spec in self.arguments.specs for n in spec.lengths(lengths))

    def draw(
        self,
        rng: np.random.Generator,
        lengths: Mapping[str, int],
        settings: Mapping[Path, Any] | None = None,
        *,
        examples: bool = False,
    ) -> dict[str, Any]:
        """Arguments of these lengths; the user's own arrays where examples are asked for."""
        short = min(lengths.values(), default=2)
        known = dict(lengths)
        for setting in self.arguments.settings:  # whole settings that are lengths as well
            number = (settings or {}).get(setting.path, setting.example)
            if setting.letter == setting.name and number is not None:
                known[setting.letter] = int(number)

        kept = self._kept(rng, lengths)

        def value(leaf: Spec | Setting) -> Any:
            if isinstance(leaf, Setting):
                if settings and leaf.path in settings:
                    return settings[leaf.path]
                if kept and leaf.letter and leaf.path[0] == "cache":
                    return int(kept[int(leaf.path[1])])
                return lengths.get(leaf.letter, leaf.example) if leaf.letter else leaf.example
            if examples and leaf.example is not None:
                return leaf.example.copy()
            if kept and leaf.path[0] == "cache":
                return np.array(kept[int(leaf.path[1])])
            return self._array(rng, leaf, leaf.lengths(known), short)

        found = self.arguments.mapped(value)
        for fact in self.assumed:
            found[fact.name] = fact.true_of(np.asarray(found[fact.name], float))
        return found

    def _kept(self, rng: np.random.Generator, lengths: Mapping[str, int]) -> Sequence[Any]:
        """The cache of a forward; none where it takes no arrays of these lengths."""
        keeping = self.arguments.keeping
        if keeping is None:
            return ()
        try:
            return keeping(rng, lengths)
        except (ValueError, IndexError, ArithmeticError, np.linalg.LinAlgError):
            return ()

    def _array(
        self, rng: np.random.Generator, spec: Spec, shape: tuple[int, ...], short: int
    ) -> Any:
        like = spec.example
        if spec.kind == "b":
            truths = np.asarray(rng.random(shape) < 0.7)
            truths[..., :1] = True
            return truths
        if spec.kind == "i":
            if like is not None and like.size:
                return rng.choice(np.unique(like), shape).astype(like.dtype)
            return rng.integers(0, max(1, short), shape)
        if like is not None and like.size and spec.path not in self.domains:
            low, high = float(like.min()), float(like.max())
            if low >= 0:
                return rng.uniform(low, high if high > low else low + 1.0, shape)
            if high <= 0:  # such as logarithms of probabilities
                return rng.uniform(low if high > low else high - 1.0, high, shape)
        return np.asarray(DOMAINS[self.domains.get(spec.path, "any")](rng, shape))

    def choices(self) -> Iterator[None]:
        """Ways to draw: from all numbers, then from others, for all arrays and for each alone."""
        floats = [spec.path for spec in self.arguments.specs if spec.kind == "f"]
        domains: list[dict[Path, str]] = [{}]
        domains += [dict.fromkeys(floats, name) for name in DOMAINS if name != "any"]
        domains += [{p: name} for p in floats for name in DOMAINS if name != "any"]
        pairs = itertools.permutations(floats, 2) if len(floats) <= 4 else ()
        domains += [{p: "positive", q: "definite"} for p, q in pairs]
        free = self.lengths().keys() - self.arguments.known
        orders = ORDERS if free else ORDERS[:2]
        places = range(len(self.arguments.letters) if free and self.every else 0)
        others = itertools.product(domains[:2], itertools.product(("long", "short"), places))
        for self.domains, self.order in [*itertools.product(domains, orders), *others]:
            if self._fits(self.lengths()):
                yield


def _lengths(order: str, how: int, count: int, *, second: bool) -> Iterator[int]:
    """Lengths for so many letters; `how` is the letter's place, or whether they are even."""
    if order in ("mixed", "long", "short"):
        several = (_SECOND if second else _FIRST)[how if order == "mixed" else False]
        found = list(itertools.islice(itertools.chain(several, itertools.count(25)), count))
        if order != "mixed":
            found[how] = 2 if order == "short" else 20 + found[how]
        return iter(found)
    rising = range(5 if second else 3, count + (7 if second else 5))
    span = rising if order == "rising" else reversed(rising)
    return iter([n * (1 + how) for n in span])


def called(
    function: Callable[..., Any],
    parameters: Mapping[str, inspect.Parameter],
    values: Mapping[str, Any],
) -> Any:
    """The results of a forward on arguments by name, without its warnings."""
    signature = inspect.Signature(list(parameters.values()))
    bound = inspect.BoundArguments(signature, OrderedDict(values))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function(*bound.args, **bound.kwargs)
