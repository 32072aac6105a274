"""The statements of the two functions that are equations, and the symbols of what they set.

No equation is what only renames or reshapes a value, gives zeros or a part of another array, says
where values are taken from, or is used once, to set the same name anew.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from handgrad.documents.formulas.formula import Formula
from handgrad.equations import families, indexing
from handgrad.equations.comparisons import only_selects, places
from handgrad.equations.naming import StatementNames, stem
from handgrad.equations.pairing import Statement, is_number
from handgrad.equations.scope import LoopPosition, Named, Scope, StepLoop
from handgrad.equations.shaping import EMPTY, OF_SHAPES, positions, stacked
from handgrad.equations.uses import Uses, needed
from handgrad.equations.writer import Writer
from handgrad.program import Node, leaves
from handgrad.program.functions import is_array

#: The outcomes for a statement: one equation, one of an element of a list, one of several names, or
#: one of what a loop is given to begin with.
SINGLE, FAMILY, SEVERAL, INITIAL = "single", "family", "several", "initial"
#: An argument, or a part of one: params["W"], self.W, cache.x.
_PATH: Final = re.compile(r"(?P<root>\w+)(\[['\"](?P<key>\w+)['\"]\]|\.(?P<field>\w+))?(\[\d+\])?$")


class NodeNamer:
    """Names the nodes of a pair that are written."""

    def __init__(self, scope: Scope, of_passes: Mapping[bool, list[Statement]]) -> None:
        self.scope = scope
        self.decided: dict[Any, str] = {}
        #: The names of what has an equation.
        self.written: set[str] = set()
        self._primes: dict[str, int] = {}
        self._owners: dict[Formula, Node] = {}
        self._by_key = _by_key(of_passes)
        forward, backward = scope.runs.forward, scope.runs.backward
        results = forward.result, backward.result
        self._needed = needed(results)
        self._of_forward = set(forward.nodes)
        self._forward = forward.frame.function
        statements = [each for several in of_passes.values() for each in several]
        self._uses = Uses(scope, statements, results)
        self._turned = set(self._find_turned(statements))
        self._name_inputs()

    # Inputs

    def _name_inputs(self) -> None:
        scope = self.scope
        for program in scope.programs:
            for node in program.inputs:
                found = _PATH.match(node.name)
                if found and (found["root"] in program.arguments or found["root"] == "self"):
                    code = found["key"] or found["field"] or found["root"]
                    scope.symbols.setdefault(node, Named(code, code))
        if scope.glossary.loss:
            scope.ones |= set(leaves(scope.runs.incoming))
        for node in list(scope.symbols):
            if node in self._of_forward:
                self._owners.setdefault(scope.symbol(node, None), node)

    def name_incoming(self, names: StatementNames) -> None:
        """The gradients that come in, as those of what forward gave, at the step that it is of."""
        scope, outputs = self.scope, dict(names.outputs())
        for node in leaves(scope.runs.incoming):
            name = names.first_name(node) if "[" in node.name else node.name
            name = name.partition("[")[0]
            output = outputs.get(scope.glossary.gradients.get(name, ""))
            index = None
            if isinstance(output, Node) and output in scope.symbols:
                index = scope.moment(output, None)
            scope.symbols[node] = Named(name, name, self._gradient_primes(name), index)
            self._owners.setdefault(scope.symbol(node, None), node)

    # Statements

    def prepare(self, pairs: list[tuple[Statement, Statement, bool]]) -> None:
        """Decide what becomes of each statement of a function, and name what it sets."""
        for own, generic, _ in pairs:
            if own.key not in self.decided:
                self.decided[own.key] = self._prepare(own, generic)
        for _, generic, again in pairs:
            if not again:
                self._separate(generic)

    def _prepare(self, own: Statement, generic: Statement) -> str:
        if len(own.names) > 1:
            return self._prepare_several(own, generic)
        (name,), (value,), (node,) = own.names, own.values, generic.values
        if families.is_family(self.scope, node) and all(is_array(each.value) for each in node):
            return self._prepare_family(name, value, node)
        if not isinstance(node, Node):
            self._name_numbers(name, value, node)
        elif is_number(node.value):
            self._name_number(name, value, node)
        elif is_array(node.value):
            return self._prepare_single(name, generic, node)
        return ""

    def _prepare_single(self, name: str, statement: Statement, node: Node) -> str:
        scope = self.scope
        rounds = self._by_key[statement.key]
        if self._needed.isdisjoint(leaves([each.values for each in rounds])):
            return ""
        if self._is_written_into(node):
            return ""
        initial = None if statement.rounds else self.initial(name, node)
        if node in scope.symbols:
            return INITIAL if initial not in (None, scope.symbols[node]) else ""
        if initial is not None:
            scope.symbols[node] = initial
            self.written.add(name)
            return SINGLE
        if self._is_kept(statement, node):
            if not self._has_no_need_of_a_name(name, node):
                self._name(statement, name)
            return ""
        if name in scope.glossary.results and not statement.rounds:
            named = scope.symbols.get(Writer(scope).bare(node))
            if named is not None and named.code == name:
                return ""
        elif self._has_no_need_of_a_name(name, node):
            return ""
        if self._goes_on(statement, name, node):
            return ""
        self._name(statement, name)
        return SINGLE

    def _prepare_several(self, own: Statement, generic: Statement) -> str:
        for name, value, node in zip(own.names, own.values, generic.values, strict=True):
            if not isinstance(node, Node):
                self._name_numbers(name, value, node)
            elif is_number(node.value):
                self._name_number(name, value, node, again=node.op != "size")
        arrays = {
            name: node
            for name, node in zip(generic.names, generic.values, strict=True)
            if isinstance(node, Node) and is_array(node.value)
        }
        is_kept = any(self._is_kept(generic, node) for node in arrays.values())
        if not is_kept and self._needed.isdisjoint(arrays.values()):
            return ""
        for name, node in arrays.items():
            is_new = name != "_" and node not in self.scope.symbols
            if is_new and not self._has_no_need_of_a_name(name, node):
                self._name(generic, name)
        return "" if is_kept else SEVERAL

    def _prepare_family(self, name: str, values: Any, items: Any) -> str:
        index = families.index_of(self.scope, items)
        if index is None or items[0] not in self._needed:
            return ""
        named = Named(name, name, self._gradient_primes(name))
        for each in (*items, *values):
            self.scope.symbols[each] = named
            self.scope.elements[each] = index
            self.scope.numbers[each] = families.number_of(self.scope, each) or index
        self.written.add(name)
        return FAMILY

    def _is_kept(self, statement: Statement, node: Node) -> bool:
        """True where a statement of backward takes what forward has computed."""
        return node in self._of_forward and statement.frame.function is not self._forward

    def _is_written_into(self, node: Node) -> bool:
        """True for an array of zeros that elements are written into."""
        users = self.scope.users[node]
        return node.op in EMPTY and any(each.op == "store" for each in users)

    # The beginning of a loop

    def initial(self, name: str, node: Node) -> Named | None:
        """The name of a value that a loop is given to carry on: h_0."""
        scope = self.scope
        for site, carried in scope.carried:
            steps = scope.loops[site]
            shift = scope.carried_shift(steps, name)
            if carried != name or shift is None or not self._is_taken_up(node, steps):
                continue
            index = scope.absolute(steps, (steps.count if steps.is_reversed else -1) + shift)
            return Named(name, name, self._gradient_primes(name), index)
        return None

    def _is_taken_up(self, node: Node, steps: StepLoop) -> bool:
        rounds = (self.scope.round_of(each) for each in self.scope.users[node])
        return any(each is not None and each[0] is steps for each in rounds)

    def name_result(self, name: str, node: Any) -> bool:
        """Name what is returned without a name of its own, where both sides have an index."""
        if not isinstance(node, Node) or node in self.scope.symbols:
            return False
        if node not in self.scope.step_axes and node.op != "einsum":
            return False
        self.scope.symbols[node] = Named(name, name, self._gradient_primes(name))
        return True

    # Values without a symbol

    def _has_no_need_of_a_name(self, name: str, node: Node) -> bool:
        """Another shape, zeros, stacked steps, or a part of another array under a word."""
        writer = Writer(self.scope)
        inner = writer.bare(node)
        if not isinstance(inner, Node) or inner in self.scope.symbols or inner.op in EMPTY:
            return True
        arrays = stacked(inner)
        if arrays is not None:
            items, _ = arrays
            found = indexing.generic(writer, items)
            if families.is_family(self.scope, items) or (found and found[0] in self.scope.symbols):
                return True
        elif inner.op == "store" and stacked(self._last_store(inner)) is not None:
            return True  # the whole is a sequence once the loop is done
        is_word = self.scope.glossary.is_word(name)
        if inner.op == "getitem":
            array, index = inner.args
            is_part = all(isinstance(each, slice) or each is ... for each in positions(index))
            return is_part and (is_word or array in self.scope.step_axes)
        if is_word and inner.op == name and len(inner.operands) == 1:
            return True
        return any(True for _ in places(writer, inner)) and only_selects(self.scope, inner)

    def _last_store(self, node: Node) -> Node:
        """The array once all that is written into it is there."""
        while True:
            users = self.scope.users[node]
            later = [each for each in users if each.op == "store" and each.args[0] is node]
            if len(later) != 1:
                return node
            node = later[0]

    def _goes_on(self, statement: Statement, name: str, node: Node) -> bool:
        """True where a value is used once, to set the same name anew, or as a step of a loop in
        which a word would say nothing."""
        scope = self.scope
        use = self._uses.only(node)
        if use is None:
            return False
        there = scope.steps_of(use)
        if there is None:
            return name in use.names and not statement.rounds
        steps = scope.steps_of(statement)
        if name in scope.glossary.results or (steps and scope.is_handed_on(node, steps)):
            return False
        if use.names == (name,):
            return True
        if name in scope.glossary.gradients.values():
            return False
        if len(use.names) == 1 and (there.site, use.names[0]) in scope.carried:
            value = use.values[0]
            return isinstance(value, Node) and value.op == "where"
        return scope.glossary.is_word(self._base(statement, name, node))

    # Symbols

    def _name(self, statement: Statement, name: str) -> None:
        """Name one value of a statement, and what it set in other rounds."""
        scope = self.scope
        node = statement.values[statement.names.index(name)]
        base = self._base(statement, name, node)
        named = Named(base, base if base in node.names else name, self._gradient_primes(base))
        scope.symbols[node] = named
        while not statement.rounds:
            owner = self._owners.setdefault(scope.symbol(node, None), node)
            if _is_same(owner, node):
                break
            named = scope.symbols[node] = replace(named, primes=named.primes + 1)
        self._primes[base] = named.primes
        self._rename(statement, name, named)
        self.written |= {name, named.code}

    def _rename(self, statement: Statement, name: str, named: Named) -> None:
        position = statement.names.index(name)
        for each in self._by_key[statement.key]:
            if isinstance(each.values[position], Node):
                self.scope.symbols[each.values[position]] = named

    def _base(self, statement: Statement, name: str, node: Node) -> str:
        """The name without what says that it is of one step, or of all: the index says it."""
        scope, steps = self.scope, self.scope.steps_of(statement)
        if steps is not None and scope.is_handed_on(node, steps):
            for each in self._uses.bound[node]:
                for other in each.names:
                    if (steps.site, other) in scope.carried:
                        return other
        if name in self._turned or (steps is None and node not in scope.step_axes):
            return name
        short, glossary = stem(name, scope.counters), scope.glossary
        is_other = short in glossary.inputs
        if steps is None and short not in node.names:
            is_other |= not {short, glossary.gradients.get(short)}.isdisjoint(
                glossary.inputs | glossary.results
            )
        return name if is_other else short

    def _gradient_primes(self, name: str) -> int:
        """The gradient of a name that forward set anew is that of its last value, unless it is an
        input: then it is that of the first."""
        of = self.scope.glossary.gradients.get(name)
        return 0 if of is None or of in self.scope.glossary.inputs else self._primes.get(of, 0)

    def _separate(self, statement: Statement) -> None:
        """Give what a round sets a prime where another value has its symbol and is read later."""
        place = self.scope.place_of(statement)
        if place is None:
            return
        for name, node in zip(statement.names, statement.values, strict=True):
            named = self.scope.symbols.get(node) if isinstance(node, Node) else None
            if named is not None and is_array(node.value) and self._is_taken(node, place):
                self._rename(statement, name, replace(named, primes=named.primes + 1))

    def _is_taken(self, node: Node, place: LoopPosition) -> bool:
        """True where another value of a round has a node's symbol and is read after it is set."""
        scope = self.scope
        formula, base = scope.symbol(node, place), scope.symbols[node].name
        for other, named in scope.symbols.items():
            if named.name != base or other.number >= node.number:
                continue
            found = scope.round_of(other)
            if found is not None and found[0] is not place.steps:
                continue
            if scope.symbol(other, place) == formula:
                later = (each for each in scope.users[other] if each.number > node.number)
                if any(scope.round_of(each) == (place.steps, place.counted) for each in later):
                    return True
        return False

    # Numbers

    def _name_number(self, name: str, value: Any, node: Node, *, again: bool = False) -> None:
        if node.op in ("counter", "input") or (node in self.scope.symbols and not again):
            return
        self.scope.symbols[node] = Named(name, name)
        if isinstance(value, Node):
            self.scope.symbols[value] = Named(name, name)

    def _name_numbers(self, name: str, values: Any, nodes: Any) -> None:
        """One name for the numbers of a tuple, such as a stride for every axis."""
        if isinstance(nodes, tuple | list) and isinstance(values, tuple | list):
            for value, node in zip(values, nodes, strict=False):
                if isinstance(node, Node) and is_number(node.value) and node.op != "size":
                    self._name_number(name, value, node)

    # Axes that are turned round

    def _find_turned(self, statements: list[Statement]) -> Iterator[str]:
        """The names of which an axis is turned round somewhere, other than to compare places."""
        for each in statements:
            for name, value in zip(each.names, each.values, strict=True):
                for under in self._under_flip(value, inside=False, is_root=True):
                    yield name
                    for statement in self._uses.bound[under]:
                        yield from statement.names

    def _under_flip(self, value: Any, *, inside: bool, is_root: bool = False) -> Iterator[Node]:
        if not isinstance(value, Node) or value.op in OF_SHAPES:
            return
        if not is_root and value in self._uses.bound:
            if inside:
                yield value
            return
        for each in value.operands[1:] if value.op == "where" else value.operands:
            yield from self._under_flip(each, inside=inside or value.op == "flip")


def _by_key(statements: Mapping[bool, list[Statement]]) -> defaultdict[Any, list[Statement]]:
    found: defaultdict[Any, list[Statement]] = defaultdict(list)
    for several in statements.values():
        for each in several:
            found[each.key].append(each)
    return found


def _is_same(node: Node, other: Node) -> bool:
    """True where two nodes are one, or the same array computed twice."""
    if node is other:
        return True
    return node.op == other.op and np.array_equal(node.value, other.value, equal_nan=True)
