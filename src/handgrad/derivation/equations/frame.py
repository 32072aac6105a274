"""What is known at one place of a run: the values of names, and how each is written there."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import MutableMapping
from dataclasses import dataclass, field, replace
from typing import Any

from handgrad.derivation.equations.dimensions import Dimensions
from handgrad.derivation.equations.glossary import Glossary
from handgrad.derivation.formulas.formula import Formula, Sign, row
from handgrad.trees.nodes import Node


@dataclass(frozen=True)
class Sequence:
    """An array of steps in time, or a list of them.

    `axis` is that of the steps, counted from the last one. What stands at step t has the index
    t + `first` − 1 of the name `of`, which `owner` writes; without one, of the sequence itself.
    """

    axis: int
    first: int = 1
    of: str = ""
    owner: Frame | None = None

    def whole(self) -> Formula | None:
        """The symbol of all steps together, where each goes by another name."""
        return self.step(None)

    def step(self, index: Formula | None) -> Formula | None:
        if self.owner is None:
            return None
        self.owner.used.setdefault(self.of)
        name = self.owner.renamed.get(self.of, self.of)
        return self.owner.glossary.symbol(name, self.owner.primes.get(self.of, 0), index)


@dataclass
class Frame:
    """What is known where an expression stands."""

    names: dict[str, Any]
    glossary: Glossary
    dimensions: Dimensions
    #: "if" and "otherwise"
    words: tuple[str, str] = ("if", "otherwise")
    #: Names that stand for something else: another name in another shape, or zeros.
    aliases: dict[str, Node] = field(default_factory=dict)
    #: Names of lists made by a loop: the index of their elements, and the axis they are stacked on.
    families: dict[str, tuple[Formula, int | None]] = field(default_factory=dict)
    #: Names that are written as another: what the cache calls it, or without `_t` and the like.
    renamed: dict[str, str] = field(default_factory=dict)
    #: How often a name was set anew.
    primes: dict[str, int] = field(default_factory=dict)
    #: Names whose factor is 1 and not written.
    ones: frozenset[str] = frozenset()
    #: Names of arrays of steps in time.
    sequences: dict[str, Sequence] = field(default_factory=dict)
    #: The step at which a name that changes from step to step has its value.
    moments: dict[str, Formula] = field(default_factory=dict)
    #: The counters of loops over steps, as they count here, from 1.
    counters: dict[str, Formula] = field(default_factory=dict)
    #: Every name that was written, in order, and every function with the words that explain it.
    used: dict[str, None] = field(default_factory=dict)
    helpers: dict[str, tuple[Formula, str]] = field(default_factory=dict)
    #: Names of other functions, where what they compute is written out.
    outer: dict[str, Any] = field(default_factory=dict)
    #: Values found here, by the identity of the node, which is kept so that it stays one.
    values: dict[int, tuple[Node, Any]] = field(default_factory=dict)
    #: What calls are where they are written out, by the identity of the call.
    opened: dict[int, tuple[Node, Node | None]] = field(default_factory=dict)

    @property
    def environment(self) -> MutableMapping[str, Any]:
        return ChainMap(self.names, self.outer)

    def symbol(self, name: str, index: Formula | None = None) -> Formula:
        """The symbol of a name as it is now, with an index behind that of its step."""
        sequence = self.sequences.get(name)
        whole = sequence.whole() if sequence is not None and index is None else None
        if whole is not None:
            return whole
        moment = self.moments.get(name)
        if moment is not None:
            index = moment if index is None else row(moment, Sign(","), index)
        primes = self.primes.get(name, 0)
        return self.glossary.symbol(self.renamed.get(name, name), primes, index)

    def at(
        self,
        names: dict[str, Any],
        moments: dict[str, Formula] | None = None,
        counters: dict[str, Formula] | None = None,
    ) -> Frame:
        """The same where names have other values."""
        return replace(
            self,
            names=names,
            moments=self.moments if moments is None else moments,
            counters=self.counters if counters is None else counters,
            values={},
            opened={},
        )
