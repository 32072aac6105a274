"""Loops in C for a program of elements: over rows, and in each over what a row has.

Axes that are summed before the result is read are inside. Each pass over a row makes sums for the
next; what is summed over rows is added up in the result itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

from handgrad.program.c_axes import Axis, ElementProgram
from handgrad.program.emit_c import CEmitter, refused_in_c
from handgrad.program.expressions import LONG
from handgrad.program.node import Node, Program

_SIGNS: Final = {"sum": "+=", "prod": "*="}
_STARTS: Final = {"sum": "0", "prod": "1", "max": "-INFINITY", "min": "INFINITY"}
_CHEAP: Final = ("add", "subtract", "multiply", "divide", "negative", "where", "square", "input")
_NONE: Final[frozenset[Axis]] = frozenset()


@dataclass(eq=False)
class Filling:
    """An array that a function fills: its pointer, what its elements are, and its axes."""

    name: str
    node: Node
    axes: tuple[Axis, ...]


#: The purpose of a loop: a sum to add to, or a result to fill.
Item: TypeAlias = Node | Filling


class Nest:
    """The statements of a function.

    inner: the axes inside a row. late: reductions over rows, which are known behind the loops.
    """

    def __init__(self, e: CEmitter, program: ElementProgram, results: Sequence[Filling]) -> None:
        self.e, self.p, self.results = e, program, results
        self.reductions = [n for n in program.body if id(n) in program.over]
        self.behind = self._behind()
        items: list[Item] = [*program.body, *results]
        every = _NONE.union(*map(self._along, items))
        self.order = self._ordered(every)
        self.inner = self._inside()
        self.outer = [x for x in self.order if x not in self.inner]
        self.late = [n for n in self.reductions if not program.over[id(n)] <= self.inner]
        late = set(map(id, self.late))
        self.tail = {id(n) for n in program.body if self.behind[id(n)] & late}
        #: Reductions that are the same in all rows.
        self.first = {
            id(n)
            for n in self.reductions
            if self.outer and not program.spaces[id(n)] and program.over[id(n)] <= self.inner
        }
        self.homes: dict[int, Filling] = {}
        for n in self.reductions:
            self._place(n)
        self._levels = self._passes_of_nodes()

    # The plan

    def _along(self, x: Item) -> frozenset[Axis]:
        """The axes that a node is computed along, or an array filled."""
        if isinstance(x, Filling):
            return frozenset(x.axes)
        return self.p.spaces[id(x)] | self.p.over.get(id(x), _NONE)

    def _behind(self) -> dict[int, set[int]]:
        """Of each node the reductions that it is computed from."""
        found: dict[int, set[int]] = {id(n): set() for n in self.p.inputs}
        for n in self.p.body:
            own = set[int]().union(*(found[id(a)] for a in n.args))
            found[id(n)] = own | {id(a) for a in n.args if id(a) in self.p.over}
        return found

    def _ordered(self, axes: frozenset[Axis]) -> list[Axis]:
        """Axes as the largest arrays have them."""
        arrays = [*(r.axes for r in self.results), *self.p.axes.values()]
        arrays.sort(key=len, reverse=True)
        return [x for x in dict.fromkeys(x for each in arrays for x in each) if x in axes]

    def _inside(self) -> frozenset[Axis]:
        inner = _NONE
        for r in self.reductions:
            over, own = self.p.over[id(r)], self.p.spaces[id(r)]
            readers: list[Item] = [n for n in self.p.body if id(r) in self.behind[id(n)]]
            readers += [x for x in self.results if x.node is r or id(r) in self.behind[id(x.node)]]
            again = any(self._along(x) & over for x in readers)
            place = self.order.index
            if again or (own and min(map(place, over)) > max(map(place, own))):
                inner |= over
        return inner if inner or len(self.order) < 2 else frozenset(self.order[-1:])

    def _place(self, r: Node) -> None:
        """Let a sum over rows be added up in the memory of a result; a number has a variable."""
        own = self.p.spaces[id(r)]
        if id(r) in self.tail:
            raise refused_in_c(r, f"a {r.op} of what is summed over rows")
        if self.p.over[id(r)] <= self.inner:
            if own & self.inner:
                raise refused_in_c(r, f"a {r.op} along an axis beside one along another")
            return
        if not own:
            return
        taken = list(map(id, self.homes.values()))
        homes = [x for x in self.results if frozenset(x.axes) == own and id(x) not in taken]
        exact = [x for x in homes if x.node is r]
        through = [x for x in homes if id(r) in self.behind[id(x.node)]]
        if not exact and not through:
            raise refused_in_c(r, f"a {r.op} over rows that is no result")
        self.homes[id(r)] = (exact or through)[0]

    def _passes_of_nodes(self) -> dict[int, int]:
        """Of each node the first pass over a row that it can be computed in."""
        found = {id(n): 0 for n in self.p.inputs}
        for n in self.p.body:
            sums = self.p.over.keys() - self.first
            found[id(n)] = max((found[id(a)] + (id(a) in sums) for a in n.args), default=0)
        return found

    # Statements

    def run(self) -> None:
        late = set(map(id, self.late))
        tail = [r for r in self.results if id(r.node) in self.tail | late]
        early = [r for r in self.results if r not in tail]
        self._zero()
        first = [n for n in self.reductions if id(n) in self.first]
        self._hoisted([*first, *self.late, *early])
        self._passes(first)
        self._hoisted([*self.late, *early])
        groups: dict[tuple[Axis, ...], list[Item]] = {}
        items: list[Item] = [*self.late, *early]
        for x in items:
            own = tuple(each for each in self.outer if each in self._along(x))
            groups.setdefault(own, []).append(x)
        for axes, group in groups.items():
            with self._loops(axes):
                self._passes(self._sums_for(group, axes), group)
        for r in self.late:
            if id(r) in self.homes:
                self.e.variables[id(r)] = self.place(self.homes[id(r)])
        self._fill_behind(tail)

    def _sums_for(self, items: Sequence[Item], axes: Collection[Axis]) -> list[Node]:
        """The sums over a row that items are made of, where loops over some axes are open."""
        sources = list(map(_source, items))
        read = set[int]().union(*(self.behind[id(n)] for n in sources), map(id, sources))
        found = [n for n in self.reductions if id(n) in read and id(n) not in self.e.variables]
        for n in found:
            if not self.p.spaces[id(n)] <= set(axes):
                raise refused_in_c(n, f"a {n.op} along other rows")
        return found

    def place(self, result: Filling) -> str:
        """An element of a result."""
        return self.element(result.name, result.axes)

    def element(self, name: str, axes: Sequence[Axis]) -> str:
        """An element of an array in memory, or the number that one without axes points to."""
        text = ""
        for axis in axes:
            size, precedence = self.e.names.size(axis.size)
            size = size if precedence == 9 else f"({size})"
            text = f"{f'({text})' if '+' in text else text} * {size} + " if text else ""
            text += self.counter(axis)
        return f"{name}[{text}]" if axes else f"*{name}"

    def counter(self, axis: Axis) -> str:
        if not axis.counter:
            axis.counter = self.e.names.fresh("ijkl"[min(3, self.order.index(axis))])
        return axis.counter

    @contextmanager
    def _loops(self, axes: Sequence[Axis]) -> Iterator[None]:
        if not axes:
            yield
            return
        i, size = self.counter(axes[0]), self.e.size(axes[0].size)
        with (
            self.e.block(f"for (ptrdiff_t {i} = 0; {i} < {size}; {i}++)"),
            self._loops(axes[1:]),
        ):
            yield

    def _zero(self) -> None:
        """What is reduced over rows, before the first."""
        groups: dict[tuple[Axis, ...], list[Node]] = {}
        for r in self.late:
            home = self.homes.get(id(r))
            groups.setdefault(home.axes if home else (), []).append(r)
        for axes, group in groups.items():
            with self._loops([x for x in self.order if x in axes]):
                for r in group:
                    if axes:
                        self.e.line(f"{self.place(self.homes[id(r)])} = {_STARTS[r.op]};")
                    else:
                        self._start(r)

    def _start(self, r: Node) -> None:
        """A variable for a reduction, with the value of one of nothing."""
        name = self.e.variables[id(r)] = self.e.named(r)
        self.e.line(f"{self.e.type_of(r)} {name} = {_STARTS[r.op]};")

    def _hoisted(self, items: Sequence[Item], within: Collection[Axis] = ()) -> None:
        """Variables for what is the same in all rounds of the loops that follow.

        within: the axes whose loops are open.
        """
        found = []
        for n in self._reached(items):
            is_same = n.args and self._along(n) <= set(within)
            if is_same and id(n) not in self.e.variables:
                found.append(n)
        inside = [n for n in self._reached(items) if not self._along(n) <= set(within)]
        read = {id(a) for n in inside for a in n.args}
        read |= {id(_source(x)) for x in items if not self._along(x) <= set(within)}
        self._compute([n for n in found if id(n) in read and self._is_ready(n)], keep=True)

    def _is_ready(self, n: Node) -> bool:
        """Return whether all sums that a node is made of are known."""
        known = self.e.variables
        reached = Program([x for x in self._nodes() if id(x) in known], [n]).body
        return not any(id(each) in self.p.over for each in reached)

    def _nodes(self) -> list[Node]:
        return [*self.p.inputs, *self.p.body]

    def _reached(self, items: Sequence[Item]) -> list[Node]:
        """The nodes that have to be computed for some items."""
        known = [n for n in self._nodes() if id(n) in self.e.variables]
        return Program(known, list(map(_source, items))).body

    def _compute(self, wanted: Sequence[Node], *, keep: bool = False) -> None:
        known = [n for n in self._nodes() if id(n) in self.e.variables]
        self.e.compute(known, wanted, keep=keep)

    def _passes(self, sums: Sequence[Node], others: Sequence[Item] = ()) -> None:
        """Passes over a row, each for what the ones before have made."""
        items: list[Item] = [*sums, *others]
        items += self._lent(items)
        level = {id(x): self._level(x) for x in items}
        for number in sorted(set(level.values())):
            now = [x for x in items if level[id(x)] == number]
            for x in now:
                if isinstance(x, Node) and x not in self.late:
                    self._start(x)
            groups: dict[frozenset[Axis], list[Item]] = {}
            for x in now:
                groups.setdefault(self._along(x) & self.inner, []).append(x)
            for along, group in sorted(groups.items(), key=lambda each: len(each[0])):
                if along:
                    self._hoisted(group, self.outer)
                with self._loops([x for x in self.order if x in along]):
                    self._statements(group)
                for x in group:
                    if isinstance(x, Filling):
                        # What is stored may be read there in the passes that follow.
                        self.e.variables.setdefault(id(x.node), self.place(x))

    def _level(self, x: Item) -> int:
        """The pass that an item stands in."""
        n = _source(x)
        is_sum = id(n) in self.p.over and id(n) not in self.first
        return self._levels[id(n)] + is_sum

    def _lent(self, items: Sequence[Item]) -> list[Filling]:
        """Results that hold what several passes read, until they are filled themselves.

        All else that is read in a later pass is computed again.
        """
        found: list[Filling] = []
        full: set[int] = set()
        own = {id(x.node) for x in items if isinstance(x, Filling)}
        for n in reversed(self.p.body):
            along = self._along(n)
            if n.op in _CHEAP or n.kind != "f" or id(n) in own or not along & self.inner:
                continue
            if id(n) in self.p.over or id(n) in self.tail:
                continue
            outside = [x.node for x in found] + self.reductions
            readers = [x for x in items if n in Program(outside, [_source(x)]).body]
            levels = list(map(self._level, readers))
            if not levels or max(levels) == self._levels[id(n)]:
                continue
            for x in items:
                if not isinstance(x, Filling) or x.node.kind != "f" or self._along(x) != along:
                    continue
                if (level := self._level(x)) >= max(levels) and level not in full:
                    full.add(level)
                    found.append(Filling(x.name, n, x.axes))
                    break
        return found

    def _statements(self, group: Sequence[Item]) -> None:
        e = self.e
        self._compute(list(map(_source, group)))
        for x in group:
            n = _source(x)
            if len(e.text(n)) > LONG:
                e.assign(n)
            if isinstance(x, Filling):
                e.line(f"{self.place(x)} = {e.text(n)};")
                continue
            home = self.homes.get(id(x))
            total = self.place(home) if home else e.variables[id(x)]
            if x.op in _SIGNS:
                e.line(f"{total} {_SIGNS[x.op]} {e.text(n)};")
            else:
                e.line(f"{total} = {e.helper(f'{x.op}imum')}({total}, {e.text(n)});")

    def _fill_behind(self, results: Sequence[Filling]) -> None:
        """Results that are made of sums over rows."""
        self._hoisted(results)
        groups: dict[frozenset[Axis], list[Filling]] = {}
        for x in results:
            if self.homes.get(id(x.node)) is not x:
                groups.setdefault(self._along(x), []).append(x)
        for along, group in sorted(groups.items(), key=lambda each: -len(each[0])):
            with self._loops([x for x in self.order if x in along]):
                self._compute([x.node for x in group], keep=len(group) > 1)
                for x in group:
                    self.e.line(f"{self.place(x)} = {self.e.text(x.node)};")


def _source(x: Item) -> Node:
    """What an item is made of."""
    return x.node if isinstance(x, Filling) else x.args[0]
