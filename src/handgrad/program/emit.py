"""The one emitter: a program as source for NumPy, PyTorch or JAX.

What is used once is written where it is used, unless the user has a name for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from handgrad.program.emit_loops import LoopWriting
from handgrad.program.emit_scan import ScanWriting, can_scan
from handgrad.program.expressions import LONG, ONCE, SHORT, Expressions
from handgrad.program.inplace import CHANGES, VIEWS, Takeovers, is_filled, last_read
from handgrad.program.node import PRIMITIVES, Node, Program, world

_VIEWS: Final = ("transpose", "reshape", "getitem", "broadcast_to")


class Emitter(Expressions):
    """Writes the statements of one function."""

    def program(
        self,
        program: Program,
        keep: Iterable[int] = (),
        carried: Sequence[tuple[Node, Node]] = (),
        copied: Iterable[Node] = (),
    ) -> None:
        """Statements for all that the outputs need; nodes in `keep` get a variable.

        A carried value's next takes over its variable where nothing reads the old one any more.
        Views in `copied` are of arrays that change afterwards.
        """
        masks = world().masks.values()
        takeovers = Takeovers(program.body, program.outputs, self.owned, masks)
        body, self.taken, late = takeovers.order, takeovers.by, takeovers.late()
        changing = {id(n) for n in chain(copied, *late.values()) if n.op in VIEWS}
        self.uses = {}
        for each in [*(a for n in body for a in n.args), *program.outputs]:
            self.uses[id(each)] = self.uses.get(id(each), 0) + 1
        keep = set(keep)
        named = {id(n) for n in body if self._deserves_name(n, keep)}
        stated = {id(n) for n in body if id(n) in named and not self._may_repeat(n, keep)}
        reused: dict[int, str] = {}
        for old, new in carried:
            place = next((i for i, n in enumerate(body) if n is new), None)
            made = id(new) in named and new.op not in ("loop", "part", *CHANGES)
            if (
                place is not None
                and made
                and last_read(old, body, stated, program.outputs) <= place
            ):
                reused[id(new)] = self.variables[id(old)]
        for node in self._each(body):
            if id(node) in self.variables or node.op in (*ONCE, "zeros", "part"):
                continue
            for each in late.get(id(node), ()):
                if id(each) not in self.variables and not _is_statement(each):
                    self._put_aside(each)
            if has_parts(node):
                self._several(node, [n for n in body if n.op == "part" and n.args[0] is node])
                continue
            if node.op == "loop":
                parts = [n for n in body if n.op == "part" and n.args[0] is node]
                scans = self.library.name == "jax" and can_scan(node.attrs["loop"])
                (ScanWriting if scans else LoopWriting)(self, node, parts).run()
            elif node.op in CHANGES:
                self.change(node)
            elif id(node) in changing:
                self._put_aside(node)
            elif id(node) in reused:
                text = self.text(node)
                self.variables[id(node)] = reused[id(node)]
                self.line(f"{reused[id(node)]} = {text}")
            elif id(node) in named:
                if not (self._may_repeat(node, keep) and len(self.text(node)) <= SHORT):
                    self.assign(node)
            elif len(self.text(node)) > 2 * LONG:
                self.assign(node)

    def _each(self, body: Sequence[Node]) -> Iterator[Node]:
        """The nodes in their order, with what stands behind the statements of each."""
        for node in body:
            yield node
            self.behind(node)

    def _several(self, node: Node, parts: Sequence[Node]) -> None:
        """The results of one function, those that nobody reads as an underscore."""
        text = self.text(node)
        wanted = {part.attrs["index"]: part for part in parts}
        names = []
        for i in range(len(node.value)):
            if i in wanted:
                self.name(wanted[i], self.names.fresh(wanted[i].name or f"{node.op}_{i + 1}"))
            names.append(self.variables[id(wanted[i])] if i in wanted else "_")
        self.line(f"{', '.join(names)}{',' if len(names) == 1 else ''} = {text}")

    def _deserves_name(self, node: Node, keep: set[int]) -> bool:
        return _is_statement(node) or self.uses[id(node)] > 1 or bool(node.name) or id(node) in keep

    def _may_repeat(self, node: Node, keep: set[int]) -> bool:
        """Return whether an expression, if short, may as well be repeated: a view, or a number."""
        if id(node) in keep or node.name or _is_statement(node):
            return False
        return node.op in _VIEWS or self.is_number(node)

    def _put_aside(self, node: Node) -> None:
        """A variable for what is read of an array before it changes; a view is copied."""
        is_view = node.op in VIEWS and (node.shape or self.library.name != "numpy")
        text, name = self.arg(node, 8 if is_view else 0), self.names.fresh(node.name or "value")
        self.line(f"{name} = {text}{self.library.copies if is_view else ''}")
        self.variables[id(node)] = name

    def change(self, node: Node) -> None:
        """base[index] += value or = value; in place where nobody else reads the base after it."""
        base, value = node.args[0], node.args[1]
        text, where = self.arg(value), self.index(node)
        name = self.variables.get(id(base), "")
        if self.taken.get(id(base)) is not node or not name:
            is_new = is_filled(base) and not name
            start = self.text(base) if is_new else f"{self.arg(base, 8)}{self.library.copies}"
            name = self.names.fresh(node.name or "placed")
            self.line(f"{name} = {start}")
        self.variables[id(node)] = name
        self.line(self._changed(node, name, where, text))

    def _changed(self, node: Node, name: str, where: str, text: str) -> str:
        if node.op == "store":
            return self.stored(name, where, text)
        if not self.library.changes:
            return f"{name} = {name}.at[{where}].add({text})"
        if len(node.args) == 2:
            return f"{name}[{where}] += {text}"
        is_array = len(node.args) == 3 and len(node.attrs["index"]) == 1
        if self.library.name == "torch":
            helper = self.call("add_at", ()).partition("(")[0]
            index = where if is_array else f"({self.slices(where)},)"
            return f"{helper}({name}, {index}, {text})"
        index = where if is_array else f"{self.alias}.s_[{where}]"
        return f"{self.alias}.add.at({name}, {index}, {text})"

    def slices(self, where: str) -> str:
        """An index as a tuple's elements, its slices spelled out."""
        parts = []
        for part in split_index(where):
            ends = split_index(part, ":")
            if len(ends) == 1:
                parts.append(part)
            else:
                given = ", ".join(end or "None" for end in ends)
                parts.append(f"{self.names.builtin('slice')}({given})")
        return ", ".join(parts)


def _is_statement(node: Node) -> bool:
    return node.op in ("loop", *CHANGES) or has_parts(node)


def has_parts(node: Node) -> bool:
    """Return whether a function has several results."""
    return node.op not in ONCE and PRIMITIVES[node.op].parts is not None


def split_index(where: str, at: str = ",") -> list[str]:
    """The parts of an index, at the commas, or another sign, that are in no brackets."""
    parts, depth = [""], 0
    for sign in where:
        depth += (sign in "([{") - (sign in ")]}")
        if sign == at and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]
