"""Loops as source: carried values are variables that each round takes over, stacks are filled."""

from __future__ import annotations

from collections.abc import Sequence

from handgrad.program.expressions import Expressions
from handgrad.program.inplace import VIEWS, chain, changes_carried
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
        #: The changes in place of each carried array; none where it is made anew.
        self.inside = [chain(r, c) for r, c in zip(self.results, self.carries, strict=True)]
        #: True for those that rounds change, by themselves or by a loop inside.
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
        uses, outside = e.uses, dict(e.variables)
        self._round()
        # Another loop may have the same body: its rounds have variables of their own.
        e.uses, e.variables = uses, outside
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
            if e.library.changes and self.changes[k] and id(first) in e.owned:
                e.name(carry, e.variables[id(first)])
                continue
            called = self.wanted[k].name if k in self.wanted else ""
            text = e.arg(first, 8 if self.changes[k] else 0)
            name = e.names.fresh(carry.name or called or self.results[k].name or "carried")
            e.name(carry, name)
            is_new = first.op == "zeros" and id(first) not in e.variables
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
        anew = [k for k in range(loop.carried) if not self.inside[k]]
        own = [out for out in stacked.values() if id(out) not in places]
        self.e.owned |= {id(self.carries[k]) for k in anew if self.changes[k]}
        self._compute(anew, own, [(self.carries[k], self.results[k]) for k in anew])
        for i, out in stacked.items():
            if id(out) not in places:
                self._keep(i, out)
        self._in_place()
        self._hand_on(anew)

    def _compute(
        self, anew: Sequence[int], stacked: Sequence[Node], reused: Sequence[tuple[Node, Node]]
    ) -> None:
        """Variables for what a round makes anew and stacks, and for what it puts into arrays."""
        changes = [change for each in self.inside for change in each]
        results = [self.results[k] for k in anew]
        operands = [operand for change in changes for operand in change.args[1:]]
        self.e.program(
            Program(self.body.inputs, [*results, *stacked, *operands]),
            keep={*map(id, self.results), *map(id, stacked)},
            carried=reused,
        )

    def _keep(self, i: int, out: Node) -> None:
        e, name = self.e, self.stacks[i]
        if not self.is_listed:
            e.line(e.stored(name, e.names.letters[self.loop.counter], e.text(out)))
        elif self.loop.reverse:
            e.line(f"{name}.insert(0, {e.text(out)})")
        else:
            e.line(f"{name}.append({e.text(out)})")

    def _in_place(self) -> None:
        """Changes of carried arrays; one that others read, through a view perhaps, comes last."""
        readers = [
            sum(any(a is carry for a in n.args) for n in self.body.body) for carry in self.carries
        ]
        for k in sorted(range(self.loop.carried), key=readers.__getitem__):
            self._values_first(k)
            for change in self.inside[k]:
                self.e.change(change, {}, into=self.e.variables[id(self.carries[k])])

    def _values_first(self, k: int) -> None:
        """Variables for values that are read of an array before its first change, and not after."""
        e, carry = self.e, self.carries[k]
        for change in self.inside[k][1:]:
            value = change.args[1]
            if id(value) in e.variables and value.op not in VIEWS:
                continue
            if any(a is carry for n in Program([], [value]).body for a in n.args):
                text, precedence = e.expression(value)
                name = e.names.fresh(value.name or "value")
                if value.op in VIEWS:
                    text = (text if precedence == 9 else f"({text})") + e.library.copies
                e.line(f"{name} = {text}")
                e.variables[id(value)] = name

    def _hand_on(self, anew: Sequence[int]) -> None:
        """What is carried on takes its new values, all at once."""
        e = self.e
        moves = [
            (e.variables[id(self.carries[k])], self.results[k])
            for k in anew
            if self.results[k] is not self.carries[k]
            and e.variables.get(id(self.results[k])) != e.variables[id(self.carries[k])]
        ]
        if moves:
            names, values = zip(*((name, e.text(value)) for name, value in moves), strict=True)
            e.line(f"{', '.join(names)} = {', '.join(values)}")
