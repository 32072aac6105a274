"""Loops as source: carried values are variables that each round takes over, stacks are filled."""

from __future__ import annotations

from collections.abc import Sequence

from handgrad.program.expressions import Expressions
from handgrad.program.inplace import VIEWS, changes_carried, is_filled, root
from handgrad.program.node import Loop, Node, Program


class LoopWriting:
    """The statements of a loop; its parts are variables afterwards."""

    def __init__(self, e: Expressions, node: Node, parts: Sequence[Node]) -> None:
        self.e, self.node = e, node
        self.wanted = {p.attrs["index"]: p for p in parts}
        self.loop: Loop = node.attrs["loop"]
        body = self.loop.body
        self.body = body
        self.carries = body.inputs[self.loop.constants :]
        self.results = body.outputs[: self.loop.carried]
        #: True for those that rounds change in place, by themselves or by a loop inside.
        self.changes = [changes_carried(self.loop, k) for k in range(self.loop.carried)]
        self.stacks: dict[int, str] = {}
        #: Arrays that never change are stacked at the end, where there is a round for sure.
        self.is_listed = not e.library.changes and bool(self.loop.count.constant)

    def run(self) -> None:
        e, loop = self.e, self.loop
        self._before()
        counter = e.names.counter(loop.counter)
        rounds = f"{e.names.builtin('range')}({e.size(loop.count)})"
        if loop.reverse:
            rounds = f"{e.names.builtin('reversed')}({rounds})"
        e.line(f"for {counter} in {rounds}:")
        e.indent += 1
        start = len(e.lines)
        outside = e.uses, dict(e.variables), e.taken
        self._round()
        # Another loop may have the same body: its rounds have variables of their own.
        e.uses, e.variables, e.taken = outside
        if len(e.lines) == start:
            e.line("pass")
        e.indent -= 1
        for name in self.stacks.values() if self.is_listed else ():
            e.line(f"{name} = {e.alias}.stack({name})")
        self._name_parts()

    def _name_parts(self) -> None:
        for i, part in self.wanted.items():
            is_carried = i < self.loop.carried
            name = self.e.variables[id(self.carries[i])] if is_carried else self.stacks[i]
            self.e.name(part, name)

    def _before(self) -> None:
        """Variables for constants, for the first carried values, and the stacks."""
        e, count = self.e, self.loop.constants
        for inner, outer in zip(self.body.inputs[:count], self.node.args[:count], strict=True):
            self._let(inner, outer, outer.name)
        for k, (carry, first) in enumerate(zip(self.carries, self.node.args[count:], strict=True)):
            if self.results[k] is carry:
                self._let(carry, first, carry.name)
                continue
            known = e.variables.get(id(first))
            if known and e.library.changes and e.taken.get(id(first)) is self.node:
                e.name(carry, known)
                continue
            called = self.wanted[k].name if k in self.wanted else ""
            text = e.arg(first, 8 if self.changes[k] else 0)
            name = e.names.fresh(carry.name or called or self.results[k].name or "carried")
            e.name(carry, name)
            is_new = is_filled(first) and not known
            copies = e.library.copies if self.changes[k] and not is_new else ""
            e.line(f"{name} = {self._first(first, carry, text)}{copies}")
        for i in range(self.loop.carried, len(self.body.outputs)):
            if i in self.wanted:
                own = self.body.outputs[i].name
                name = e.names.fresh(self.wanted[i].name or (f"{own}_all" if own else "stack"))
                self.stacks[i] = name
                self._stack(i, name)

    def _first(self, first: Node, carry: Node, text: str) -> str:
        """The expression of a first carried value."""
        return text

    def _stack(self, i: int, name: str) -> None:
        """An array that the rounds fill."""
        e, out = self.e, self.body.outputs[i]
        if self.is_listed:
            e.line(f"{name} = []")
            return
        shape = e.sizes((self.loop.count, *out.shape))
        e.line(f"{name} = {e.alias}.empty({shape}{e.kind(out)})")

    def _let(self, inner: Node, outer: Node, name: str) -> None:
        """Let a value of the body be what it is outside, as a variable."""
        e = self.e
        if id(outer) not in e.variables and outer.op not in ("const", "size"):
            e.assign(outer, name or inner.name)
        e.name(inner, e.variables.get(id(outer)) or e.arg(outer, 8), number=e.is_number(outer))

    def _round(self) -> None:
        loop = self.loop
        places = {id(c): k for k, c in enumerate(self.carries)}
        stacked = {i: self.body.outputs[i] for i in self.stacks}
        for i, out in stacked.items():  # a carried value as it is before the round
            if id(out) in places:
                self._keep(i, out)
        moved = [k for k in range(loop.carried) if self.results[k] is not self.carries[k]]
        self._compute(moved, [out for out in stacked.values() if id(out) not in places])
        for i, out in stacked.items():
            if id(out) not in places:
                self._keep(i, out)
        self._hand_on(moved)

    def _compute(self, moved: Sequence[int], stacked: Sequence[Node]) -> None:
        """Variables for what a round hands on and stacks."""
        self.e.owned |= {id(self.carries[k]) for k in moved if self.changes[k]}
        results = [self.results[k] for k in moved]
        self.e.program(
            Program(self.body.inputs, [*results, *stacked]),
            keep={*map(id, self.results), *map(id, stacked)},
            carried=[(self.carries[k], self.results[k]) for k in moved if not self.changes[k]],
            copied=[r for r in results if r.op in VIEWS and self._is_changed(root(r))],
        )

    def _is_changed(self, node: Node) -> bool:
        """True for an array that the next round changes."""
        return any(each and node is r for each, r in zip(self.changes, self.results, strict=True))

    def _keep(self, i: int, out: Node) -> None:
        e, name = self.e, self.stacks[i]
        if not self.is_listed:
            e.line(e.stored(name, e.names.letters[self.loop.counter], e.text(out)))
        elif self.loop.reverse:
            e.line(f"{name}.insert(0, {e.text(out)})")
        else:
            e.line(f"{name}.append({e.text(out)})")

    def _hand_on(self, moved: Sequence[int]) -> None:
        """What is carried on takes its new values, all at once."""
        e = self.e
        moves = [
            (e.variables[id(self.carries[k])], self.results[k])
            for k in moved
            if e.variables.get(id(self.results[k])) != e.variables[id(self.carries[k])]
        ]
        if moves:
            names, values = zip(*((name, e.text(value)) for name, value in moves), strict=True)
            e.line(f"{', '.join(names)} = {', '.join(values)}")
