"""The factors that terms have in common: taken outside where that saves work."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from fractions import Fraction

from handgrad.deriving.algebra.multiply import Multiplier
from handgrad.deriving.algebra.pieces import divided, greatest
from handgrad.deriving.algebra.terms import BaseTable, Component, Sum, Term, magnitude


@dataclass
class Sharing:
    """Looks for what terms share."""

    table: BaseTable
    times: Multiplier
    #: Components that are needed as sums somewhere: elsewhere no mean of them is taken.
    sums: set[int] = field(default_factory=set)

    def shared(self, sum_: Sum) -> Term | None:
        """The factors that save most when they stand outside: all that every term has, or one that
        some have.
        """
        found: set[Term] = set()
        common: Term | None = None
        for term in sum_:
            lengths = self.lengths(term)
            usable = [f for f in term if not (f.power < 0 and f.base in lengths)]
            for each in usable:
                one = 1 if each.power > 0 else -1
                found |= {(each,), (each._replace(power=one),)}
            own = tuple(f for f in usable)
            common = own if common is None else greatest(common, own)
        candidates = sorted(found | ({common} if common else set()))
        best: tuple[float, int, int] | None = None
        chosen = None
        for key in candidates:
            inner = [(t, without) for t in sum_ if (without := divided(t, key)) is not None]
            if len(inner) < 2:
                continue
            saved = sum(self._work(t) - self._work(without) for t, without in inner)
            reach = {i for _, t in inner for f in t for i in f.indices}
            outside = self.times.reach(reach | {i for f in key for i in f.indices})
            gain = saved - outside - self._work(key)
            # Equal work with one factor fewer to read is taken where all terms share it.
            rank = (gain, len(inner), len(key))
            if (gain > 1e-9 or (len(inner) == len(sum_) and gain > -1e-9)) and (
                best is None or rank > best
            ):
                best, chosen = rank, key
        return chosen

    def _work(self, term: Term) -> float:
        """The products that a term takes, small ones first: those over the same indices before
        others.
        """
        counts: dict[frozenset[int], int] = {}
        for each in term:
            own, size = frozenset(each.indices), magnitude(each.power)
            counts[own] = counts.get(own, 0) + (int(size) if size >= 1 else 1)
        total = sum((count - 1) * self.times.reach(own) for own, count in counts.items())
        sets = list(counts)
        while len(sets) > 1:
            pairs = ((i, j) for j in range(len(sets)) for i in range(j))
            i, j = min(pairs, key=lambda pair: self.times.reach(sets[pair[0]] | sets[pair[1]]))
            union = sets[i] | sets.pop(j)
            sets[i] = union
            total += self.times.reach(union)
        return total

    def lengths(self, term: Term) -> set[int]:
        """Lengths that make a mean of a sum in this term."""
        found: set[int] = set()
        for each in term:
            component = self.table.bases[each.base]
            if isinstance(component, Component) and each.power == 1:
                for _, size in component.sizes:
                    ((lengths, _number),) = self.table.size(size).items()
                    found |= {f.base for f in lengths}
        return found

    def meet(self, sum_: Sum) -> None:
        """Notes which bases meet in the products of a sum, and inside its components."""
        for term in sum_:
            bases = [f.base for f in term if f.power > 0]
            for pair in itertools.combinations(sorted(bases), 2):
                key = frozenset(pair)
                self.times.pairs[key] = self.times.pairs.get(key, 0) + 1
            for each in term:
                component = self.table.bases[each.base]
                if isinstance(component, Component):
                    self.meet({component.term: Fraction(1)})

    def unaveraged(self, sum_: Sum) -> set[int]:
        """The components that a sum has without their lengths below them."""
        found: set[int] = set()
        for term in sum_:
            divisors = {f.base for f in term if f.power < 0}
            for each in term:
                component = self.table.bases[each.base]
                if isinstance(component, Component) and not self.lengths((each,)) <= divisors:
                    found.add(each.base)
        return found
