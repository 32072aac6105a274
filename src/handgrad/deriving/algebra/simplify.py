"""Gradients in fewer operations: read as sums of products, simplified, written as nodes.

Adjoints that are sums of several terms are arrays of their own. One is put in the place where it is
read if what follows is cheaper: terms cancel, a sum is known, a part has a name. Everything is
counted on the nodes that would be emitted, so nothing dearer is ever chosen.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from handgrad.deriving.algebra.choose import Costs
from handgrad.deriving.algebra.facts import found_facts
from handgrad.deriving.algebra.fold import ProductNames
from handgrad.deriving.algebra.keep import keep_less
from handgrad.deriving.algebra.loops import Loops
from handgrad.deriving.algebra.multiply import Multiplier
from handgrad.deriving.algebra.read import MOST_TERMS, Reader
from handgrad.deriving.algebra.special import recognised
from handgrad.deriving.algebra.steps import Simplification, joined, reason
from handgrad.deriving.algebra.terms import BaseTable, Component, Fact, Reason, Sum
from handgrad.deriving.algebra.values import SAME, Twin, difference, largest, made_of
from handgrad.deriving.algebra.write import TermWriter
from handgrad.deriving.algebra.written import WrittenNodes
from handgrad.program.node import Node, build

#: An array that so many others read is not put into them.
_MOST_READERS: Final = 6
#: Arrays that are put in one after another before something has to become cheaper.
_DEPTH: Final = 3
#: Costs up to this ratio are the same.
_SAME: Final = 1.01


@dataclass
class Algebra:
    """The simplification of one program's backward."""

    costs: Costs
    #: Nodes that are there anyway: those of the forward.
    own: set[int]
    #: Those of them that come in or go out, and are kept in any case.
    there: set[int]
    #: Nodes that cotangents flow into; what else is not of the forward is found from it alone.
    flows: set[int]
    twin: Twin | None = None
    #: By how much two evaluations of one array may differ.
    same: float = SAME
    table: BaseTable = field(default_factory=BaseTable)
    steps: list[Simplification] = field(default_factory=list)
    #: Nodes of the forward that are found again rather than kept.
    again: set[int] = field(default_factory=set)
    _definitions: dict[int, Sum] = field(default_factory=dict)
    _written: WrittenNodes = field(default_factory=WrittenNodes)
    _order: list[Node] = field(default_factory=list)
    #: Arrays that are there for others to read, while some are written in two ways.
    _shared: set[int] = field(default_factory=set)
    _ranks: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.reader = Reader(self.table)
        self.loops = Loops()
        self.names = ProductNames(self.table, self.costs.volume)
        times = Multiplier(self.costs.volume, again=self.again)
        self.writer = TermWriter(self.table, self.array, times)

    def inner(self, own: set[int], flows: set[int], twin: Twin | None) -> Algebra:
        """The algebra of a loop's body, whose inputs are what is there."""
        return Algebra(Costs(self.costs.lengths), own, own, flows, twin, self.same)

    def simplified(
        self, body: Sequence[Node], roots: Sequence[Node], facts: Iterable[Fact] = ()
    ) -> tuple[list[Node], list[Simplification]]:
        """The roots in fewer operations, and the steps; as they were where nothing is gained."""
        self.read(body, roots, facts)
        self.put_in(body, roots)
        self.recognise(body, roots)
        keep_less(self, body, roots)
        made = self.rewritten(roots)
        self._look_at_steps(roots)
        if self.cost(made) > self.cost(roots) or not all(map(self.is_same, roots, made)):
            return list(roots), []
        return made, self.steps

    def read(self, body: Sequence[Node], roots: Sequence[Node], facts: Iterable[Fact]) -> None:
        """Reads a program: what is there first, with the facts about it, then the backward."""
        uses = self.reader.uses
        for node in (*body, *roots):
            for operand in node.args if node in body else ():
                uses[id(operand)] = uses.get(id(operand), 0) + 1
        ready = [n for n in body if id(n) in self.own]
        self.reader.read(ready)
        for fact in facts:
            self.table.facts.setdefault(fact.base, []).append(fact)
        for fact in found_facts(self.reader, ready):
            self.table.facts.setdefault(fact.base, []).append(fact)
        self.names.know((node, self.reader.form(node)) for node in ready)
        for node in body:
            if id(node) not in self.own:
                self._read_backward(node)

    def _read_backward(self, node: Node) -> None:
        self.table.used.clear()
        form = self.reader.form(node)
        if used := dict.fromkeys(self.table.used):
            facts, self.table.facts = self.table.facts, {}
            plain = self.reader.read_again(node)
            self.table.facts = facts
            if plain != form:
                why = joined((fact.why for fact in used), "; ")
                self._step(node, "fact", plain, form, why)
        self._ranks[id(node)] = self.names.rank()
        if (self.reader.uses.get(id(node), 0) > 1 or node.name) and self._is_plain(form):
            self.names.keep(node, form)

    def _is_plain(self, form: Sum) -> bool:
        """A product of arrays alone: computed for one reader, it is there for the next."""
        return all(
            coefficient == 1
            and all(f.power == 1 and isinstance(self.table.bases[f.base], Node) for f in term)
            for term, coefficient in form.items()
        )

    def _step(self, node: Node, rule: str, before: Sum, after: Sum, why: Reason) -> None:
        self.steps.append(Simplification(node, rule, before, after, why, table=self.table))

    def _look_at_steps(self, roots: Sequence[Node]) -> None:
        """Evaluates both sides of every step; one that changes a value, or is of no array that is
        left, is none.
        """
        needed = self.needed(roots)
        looked = []
        for step in self.steps:
            if step.table is not self.table:
                looked.append(step)
                continue
            if id(step.array) not in needed:
                continue
            sides = [
                self.writer.write(side, step.array.shape) for side in (step.before, step.after)
            ]
            differences = [difference(*(side.value for side in sides))]
            if self.twin is not None:
                differences.append(self.twin.difference(*sides))
            if max(differences) <= self.same:
                looked.append(dataclasses.replace(step, differences=tuple(differences)))
        self.steps = looked

    @property
    def is_softmax(self) -> bool:
        """Return whether an array of the forward is something over its own sum."""
        for name in self.names.of_forward():
            powers = {f.base: f.power for f in name.factors}
            for base, power in powers.items():
                own = self.table.bases[base]
                if isinstance(own, Component) and power == -1 and len(own.term) == 1:
                    return powers.get(own.term[0].base) == 1
        return False

    # Arrays

    def definition(self, node: Node) -> Sum:
        return self._definitions.get(id(node), self.reader.form(node))

    def array(self, node: Node) -> Node:
        """The node that stands for an array of the old program in the new one."""
        made = self._written.of.get(id(node))
        if made is not None:
            return made
        if id(node) in self.again:
            made = self._copy(node)
        elif id(node) in self.own or not node.args:
            return node
        elif id(node) not in self.flows:
            made = node if node.op == "loop" else self.opaque(node)
        else:
            form = self.definition(node)
            made = None if form == self.table.atom(node) else self._from_sum(node, form)
            if made is None:
                made = self.opaque(node)
            made.take_name(node)
        self._written.put(id(node), made, alone=id(node) not in self._shared)
        return made

    def _copy(self, node: Node) -> Node:
        """A node of the forward found again, which is another node than the one that would be
        kept.
        """
        operands = tuple(self.array(each) for each in node.args)
        return Node(
            node.op, operands, node.attrs, node.shape, node.kind, node.value, line=node.line
        )

    def _from_sum(self, node: Node, form: Sum) -> Node | None:
        """An array written from its sum; None where that has another value, for which there should
        be no case.
        """
        folded = self.names.folded(form, node.shape, self._ranks.get(id(node)))
        made = self.writer.write(folded, node.shape)
        return made if self.is_same(node, made) else None

    def is_same(self, old: Node, new: Node) -> bool:
        """Return whether two nodes have one value, on the example and at other sizes."""
        floor = max((largest(each.value) for each in made_of(old)), default=0.0)
        if difference(old.value, new.value, floor) > self.same:
            return False
        return self.twin is None or self.twin.difference(old, new) <= self.same

    def opaque(self, node: Node) -> Node:
        """A primitive that the algebra does not read, on new operands."""
        operands = [self.array(each) for each in node.args]
        if node.op == "loop":
            return self.loops.simplified(self, node, operands)
        if all(a is b for a, b in zip(operands, node.args, strict=True)):
            return node
        return build(node.op, *operands, **node.attrs)

    def is_backward(self, node: Node) -> bool:
        return id(node) not in self.own and id(node) in self.flows and bool(node.args)

    def reads(self, node: Node) -> list[Node]:
        """The arrays of the backward that an array is made of."""
        form = self.definition(node)
        if form == self.table.atom(node):
            return [each for each in node.args if self.is_backward(each)]
        bases = {base for term in form for f in term for base in self.table.inside(f.base)}
        nodes = (self.table.bases[base] for base in sorted(bases))
        return [n for n in nodes if isinstance(n, Node) and self.is_backward(n)]

    def needed(self, roots: Iterable[Node]) -> set[int]:
        found: set[int] = set()
        waiting = [n for n in roots if self.is_backward(n)]
        while waiting:
            node = waiting.pop()
            if id(node) not in found:
                found.add(id(node))
                waiting += self.reads(node)
        return found

    # Definitions in the place of arrays

    def put_in(self, body: Sequence[Node], roots: Sequence[Node]) -> None:
        """Tries for every array that is a sum, from the gradients back, whether it is better
        written out.
        """
        needed = self.needed(roots)
        order = [n for n in body if id(n) in needed]
        readers: dict[int, list[Node]] = {}
        for node in order:
            for each in self.reads(node):
                readers.setdefault(id(each), []).append(node)
        self._order, self._shared = order, set(needed)
        self.rewritten(roots)
        kept = {id(n) for n in roots}
        for node in reversed(order):
            if len(self.definition(node)) < 2 or id(node) in kept:
                continue
            self._try([node], readers)

    def recognise(self, body: Sequence[Node], roots: Sequence[Node]) -> None:
        """Writes functions in the place of sums that are one."""
        needed = self.needed(roots)
        for node in body:
            form = self.definition(node) if id(node) in needed else {}
            while len(form) > 1 and (found := recognised(self.reader, form)) is not None:
                new, why = found
                self._step(node, "function", form, new, why)
                self._definitions[id(node)] = form = new

    def _try(self, chosen: list[Node], readers: dict[int, list[Node]]) -> bool:
        """Puts arrays into what reads them and keeps the result if it is cheaper."""
        first = chosen[0]
        changed: dict[int, tuple[Node, Sum]] = {}
        for reader in readers.get(id(first), ()):
            form = self._definitions.get(id(reader), self.reader.form(reader))
            if form != self.table.atom(reader):
                changed[id(reader)] = (reader, form)
            else:
                return False
        if not changed or len(changed) > _MOST_READERS:
            return False
        affected = [node for node, _ in changed.values()]
        before = self._price([*affected, first], {})
        current = {key: form for key, (_, form) in changed.items()}
        waiting, path = [first], list[Node]()
        while waiting and len(path) < _DEPTH:
            node = waiting.pop(0)
            base, definition = self.table.number(node), self.definition(node)
            following = {}
            for key, form in current.items():
                self.table.used.clear()
                replaced = self.table.replaced(form, base, definition)
                if replaced is None or len(replaced) > MOST_TERMS:
                    return False
                following[key] = replaced
            current = following
            path.append(node)
            after = self._price([*affected, first], current)
            # Of two that cost the same, a sum that is known or a term that vanishes says more.
            tells = bool(self.table.used) or not all(current.values())
            if after < before - 1e-6 or (tells and after <= before * _SAME):
                self._accept(affected, current, path, readers)
                return True
            waiting += [
                n for n in self.reads(node) if len(self.definition(n)) > 1 and n not in path
            ]
        return False

    def _accept(
        self,
        affected: list[Node],
        current: dict[int, Sum],
        path: list[Node],
        readers: dict[int, list[Node]],
    ) -> None:
        facts = list(self.table.used)
        for node in affected:
            old = self.definition(node)
            new = current[id(node)]
            why = reason(self.table, old, new, path, facts, is_softmax=self.is_softmax)
            self._step(node, "definition" if new else "vanishes", old, new, why)
            self._definitions[id(node)] = new
            self._written.pop(id(node))
            for each in self.reads(node):
                if node not in readers.setdefault(id(each), []):
                    readers[id(each)].append(node)
        for each in path:
            readers[id(each)] = [n for n in readers.get(id(each), ()) if n not in affected]

    def spare(self, nodes: Iterable[Node], *, yes: bool) -> None:
        """Lets arrays of the forward be found again, or be kept."""
        change = set.add if yes else set.discard
        for node in nodes:
            change(self.again, id(node))
            change(self.names.banned, self.table.number(node))

    def note_meetings(self, nodes: Iterable[Node]) -> None:
        """Notes which factors meet often, and which sums are needed as such, not as means."""
        for node in nodes:
            folded = self.names.folded(self.definition(node), node.shape, self._ranks.get(id(node)))
            self.writer.sharing.sums |= self.writer.sharing.unaveraged(folded)
            self.writer.sharing.meet(folded)

    def rewritten(self, roots: Sequence[Node]) -> list[Node]:
        """The roots with everything below them written anew, each array after those it reads."""
        self._written = WrittenNodes()
        needed = self.needed(roots)
        for node in self._order:
            if id(node) in needed:
                self.array(node)
        return [self.array(node) for node in roots]

    def cost(self, nodes: Iterable[Node], beside_others: bool = False) -> float:
        """The cost of nodes; of what other arrays are written as, nothing, where that is asked."""
        free = self._written if beside_others else ()
        return self.costs.total(nodes, self.own, there=self.there, free=free).total

    def _price(self, nodes: Sequence[Node], definitions: dict[int, Sum]) -> float:
        """The cost of some arrays with these definitions; of those that they read, what nobody
        else does.
        """
        saved = {key: self._definitions[key] for key in definitions if key in self._definitions}
        written = {id(n): self._written.pop(id(n)) for n in nodes}
        self._definitions |= definitions
        self._shared -= written.keys()
        price = self.cost([self.array(n) for n in (nodes[:-1] if definitions else nodes)], True)
        for key in definitions:
            self._definitions.pop(key)
        self._definitions |= saved
        for key in written:
            self._written.pop(key)
        self._shared |= written.keys()
        for key, made in written.items():
            if made is not None:
                self._written.put(key, made, alone=False)
        return price
