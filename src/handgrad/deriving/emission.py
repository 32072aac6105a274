"""The derived functions as source: a forward that keeps what is needed, and the backward."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from handgrad.deriving.arrays import Array, Graph
from handgrad.deriving.evaluation import functions_of
from handgrad.deriving.examples import Examples
from handgrad.deriving.forward import Reader
from handgrad.deriving.terms import Sum
from handgrad.deriving.writing import Text, Writer
from handgrad.program.nodes import Node, reachable

_NAME: Final = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\b(?!\s*=[^=])")

_SLICE: Final = re.compile(
    r"np\.zeros\(\([^()]*\)\)\[(?P<before>(:, )*)(?P<range>[^:,]*:[^:,]*)\] <- (?P<value>\w+)"
)


@dataclass(frozen=True)
class Functions:
    """The source of both functions, and the names of what the first keeps for the second."""

    forward: str
    backward: str
    cache: tuple[str, ...]

    def compiled(self) -> dict[str, Any]:
        """Both functions, whose source Python's traceback and inspect can show."""
        return functions_of(f"{self.forward}\n\n{self.backward}")

    def guarded(
        self, settings: Mapping[str, Any], lengths: Mapping[str, int], filled: Sequence[str]
    ) -> Functions:
        """The same, refusing other values of settings, other lengths of axes, and empty arrays."""
        guards = [
            f"    if {said} != {literal(value)}:\n"
            f'        raise ValueError(f"{said} is {{{said}!r}}; allowed: {value}, as it '
            'was derived for")\n'
            for said, value in (*settings.items(), *lengths.items())
            if value == value
        ]
        if filled:
            guards.append(
                f"    if 0 in ({' '.join(f'*{name}.shape,' for name in filled)}):\n"
                '        raise ValueError("an array is empty; allowed: arrays with elements")\n'
            )
        lines = self.forward.splitlines(True)
        head = next(line for line in lines if line.startswith("def forward"))
        return replace(self, forward=self.forward.replace(head, head + "".join(guards)))


@dataclass
class Emission:
    """Writes both functions of a derivation."""

    graph: Graph
    reader: Reader
    given: Examples
    results: Sequence[str]
    cotangents: Mapping[str, str]
    gradients: Mapping[str, Sum]

    def functions(self) -> Functions:
        backward, used = self._backward()
        kept = [
            each
            for each in self.graph.arrays.values()
            if each.name in used and not each.is_backward
        ]
        letters, extra = self._letters(backward, [*self.cotangents], kept)
        cache = [each.name for each in kept]
        cache += [name for name in self.graph.settings if name in used]
        cache += extra
        returned = self._returned
        taken = ", ".join(self.cotangents)
        lines = []
        if len(self.cotangents) > 1:
            lines.append(f"{taken} = dy")
            taken = "dy"
        if cache:
            lines.append(f"{', '.join(cache)}{',' * (len(cache) == 1)} = cache")
        lines += [*letters, *backward, f"return {', '.join(returned)}"]
        body = "".join(f"    {line}\n" for line in lines)
        head = f"def backward({taken}, cache):\n"
        return Functions(self._forward(cache, extra), head + body, tuple(cache))

    @property
    def _returned(self) -> list[str]:
        return [f"d{name}" for name in self.gradients]

    # The backward

    def _backward(self) -> tuple[list[str], set[str]]:
        """Statements, and the arrays that they read."""
        writer = Writer(self.graph)
        writer.taken.update(self._returned)
        needed = self._needed()
        order = [name for name in self.graph.arrays if name in needed]
        written = [
            array
            for array in self.graph.in_order(order)
            if array.is_backward and array.name not in self.cotangents
        ]
        whole = [a.definition for a in written if a.definition is not None]
        within = {
            f.name
            for each in (*whole, *self.gradients.values())
            if self._joined(writer, each)
            for one in each
            for f in one.factors
        }
        for array in written:
            if array.name not in within:
                self._state(writer, array)
        done: dict[str, Sum] = {}
        for name, gradient in self.gradients.items():
            axes = self.graph[name].axes
            same = (n for n, g in done.items() if g == gradient and self.graph[n].axes == axes)
            if gradient and (twin := next(same, None)) is not None:
                writer.statements.append(f"d{name} = d{twin}")
            else:
                self._final(writer, name, gradient)
            done[name] = gradient
        statements = self._renamed(writer.statements)
        used = set(writer.read)
        for line in statements:
            used.update(_NAME.findall(line))
        return statements, used

    def _renamed(self, statements: list[str]) -> list[str]:
        """Statements where a gradient that only renames an array is that array's name."""
        for line in list(statements):
            result, _, value = line.partition(" = ")
            known = self.graph.arrays.get(value)
            first = next(
                (
                    i
                    for i, each in enumerate(statements)
                    if result in _NAME.findall(each) or each.startswith(f"{result} = ")
                ),
                len(statements),
            )
            if result not in self._returned or known is None or not known.is_backward:
                continue
            if value in self.cotangents:
                continue
            if statements[first] != line:
                continue
            statements.remove(line)
            statements[:] = [
                re.sub(rf"(?<![\w.]){re.escape(value)}\b", result, each) for each in statements
            ]
        return statements

    def _needed(self) -> set[str]:
        """The arrays that the gradients are made of."""
        waiting = [
            f.name.strip("[~]") if f.is_mask else f.name
            for gradient in self.gradients.values()
            for each in gradient
            for f in each.factors
        ]
        found: set[str] = set()
        while waiting:
            name = waiting.pop()
            array = self.graph.arrays.get(name)
            if array is None or name in found:
                continue
            found.add(name)
            if array.is_backward:
                waiting += self.graph.reads(array)
        return found

    def _joined(self, writer: Writer, sum_: Sum) -> str:
        """A sum of arrays of zeros with slices put in, where these are one behind the other."""
        parts: list[tuple[str, str, str]] = []
        for each, coefficient in sum_.items():
            if coefficient != 1 or len(each.factors) != 1 or each.factors[0].power != 1:
                return ""
            array = self.graph.arrays.get(each.factors[0].name)
            found = _SLICE.fullmatch(array.code) if array is not None else None
            if found is None:
                return ""
            parts.append((found["before"], found["range"], found["value"]))
        if len(parts) < 2 or len({before for before, _, _ in parts}) > 1:
            return ""
        ends = {_start(range_): (range_.partition(":")[2], value) for _, range_, value in parts}
        at, values = "", []
        while at in ends:
            at, value = ends.pop(at)
            values.append(value)
            if not at:
                break
        if ends or at:
            return ""
        axis = parts[0][0].count(":")
        for value in values:
            writer.reads(value)
        return f"np.concatenate(({', '.join(values)}), axis={axis})"

    def _state(self, writer: Writer, array: Array) -> None:
        """The statement that makes an array of the backward."""
        if array.definition is not None:
            if joined := self._joined(writer, array.definition):
                writer.statements.append(f"{array.name} = {joined}")
                return
            text = self._whole(writer.sum(array.definition, array.layout), array)
            writer.statements.append(f"{array.name} = {text}")
            return
        code, arrow, value = array.code.partition(" <- ")
        if not arrow:
            writer.statements.append(f"{array.name} = {code}")
            return
        zeros, _, index = code.partition(")[")
        index = index[:-1]
        writer.statements.append(f"{array.name} = {zeros})")
        if set(_NAME.findall(index)) <= self.graph.sizes.lengths.keys() and "[" not in index:
            writer.statements.append(f"{array.name}[{index}] = {value}")
        else:
            writer.statements.append(f"np.add.at({array.name}, ({index}), {value})")

    def _final(self, writer: Writer, name: str, gradient: Sum) -> None:
        array, result = self.graph[name], f"d{name}"
        if not gradient:
            writer.statements.append(f"{result} = np.zeros({self._shape(array)})")
            return
        text = self._joined(writer, gradient)
        text = text or self._whole(writer.sum(gradient, array.layout), array)
        if text != result:
            writer.statements.append(f"{result} = {text}")

    def _whole(self, text: Text, array: Array) -> str:
        """The expression, broadcast where it does not vary along some axes."""
        if len(text.layout) == len(array.axes) and set(array.indices) <= text.indices:
            return text.code
        return f"np.broadcast_to({text.code}, {self._shape(array)})"

    def _shape(self, array: Array) -> str:
        parts = ["1" if each is None else each for each in array.axes]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"

    def _letters(
        self, statements: Sequence[str], first: Sequence[str], kept: Sequence[Array]
    ) -> tuple[list[str], list[str]]:
        """Statements that give sizes their letters, and the letters that have to be kept."""
        wanted = {
            letter
            for letter in self.graph.sizes.lengths
            if any(letter in _NAME.findall(line) for line in statements)
        }
        lines: list[str] = []
        extra: list[str] = []
        known: set[str] = set()
        arrays = [self.graph[name] for name in first] + list(kept)
        given = set(self.given.settings.values()) if first == [] else set()
        for letter in self.graph.sizes.lengths:
            if letter in given:
                known.add(letter)
                continue
            text = next((t for a in arrays if (t := length(letter, a, known))), None)
            if text is not None:
                known.add(letter)
            if letter in wanted:
                wanted.update(_NAME.findall(text or ""))
                if text is None:
                    extra.append(letter)
                else:
                    lines.append(f"{letter} = {text}")
        return lines, extra

    # The forward

    def _forward(self, cache: Sequence[str], extra: Sequence[str]) -> str:
        """The nodes of the forward that the results and the cache are made of."""
        source = self.reader.source
        kept = {*cache, *self.results}
        nodes = {name: node for node, name in source.names.items()}
        steps = self.graph.in_order(
            [
                n
                for n, a in self.graph.arrays.items()
                if a.node is None and not a.is_backward and n in self._steps(kept)
            ]
        )
        kept |= {name for array in steps for name in array.reads}
        wanted = [nodes[name] for name in kept if name in nodes]
        needed = reachable(tuple(wanted))
        users: dict[Node, int] = {}
        for node in needed:
            for operand in set(node.operands):
                users[operand] = users.get(operand, 0) + 1
        final = {
            node: name
            for node, name in source.names.items()
            if node in needed
            and (node.op == "input" or node.name or name in kept or users.get(node, 0) > 1)
        }
        all_names, source.names = source.names, final
        try:
            lines = [
                f"{final[node]} = {source.definition(node)[0]}"
                for node in sorted(needed, key=lambda each: each.number)
                if node in final and node.op != "input"
            ]
        finally:
            source.names = all_names
        lines += [f"{array.name} = {array.code}" for array in steps]
        inputs = [self.graph[name] for name in self.given.letters if name in self.graph.arrays]
        letters, _ = self._letters([*lines, ", ".join(extra)], [], inputs)
        parts = ", ".join(cache)
        tail = f"({parts}{',' * (len(cache) == 1)})" if cache else "()"
        results = ", ".join(self.results)
        results = f"({results})" if len(self.results) > 1 else results
        sizes = [
            f"{value} = {name}"
            for name, value in self.given.settings.items()
            if isinstance(value, str) and value in self.graph.sizes.lengths
        ]
        lines = [*sizes, *letters, *lines, f"cache = {tail}", f"return {results}, cache"]
        used = {name for line in lines for name in _NAME.findall(line)}
        fixed = [f"# for {x} = {n} alone" for x, n in self.given.fixed.items()]
        head = f"def forward({self._signature(used)}):\n"
        return head + "".join(f"    {line}\n" for line in [*fixed, *lines])

    def _steps(self, names: Iterable[str]) -> set[str]:
        """Arrays within functions of the forward that these are or are made of."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            array = self.graph.arrays.get(waiting.pop())
            if array is not None and array.node is None and array.name not in found:
                found.add(array.name)
                waiting += array.reads
        return found

    def _signature(self, used: set[str]) -> str:
        arrays = list(self.given.letters)
        settings = [
            name
            if value in self.graph.sizes.lengths
            else f"{name}={literal(self.given.arguments[0][name])}"
            for name, value in self.given.settings.items()
            if name in used and isinstance(value, int | float | str)
        ]
        return ", ".join([*arrays, *(["*", *settings] if settings else [])])


def literal(value: Any) -> str:
    """A setting's value as Python."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"{'-' if value < 0 else ''}np.{'nan' if math.isnan(value) else 'inf'}"
    return repr(value)


def length(letter: str, array: Array, known: set[str]) -> str:
    """A size as the length of an axis, or of a part of one; "" where the array has none."""
    for at, axis in enumerate(array.axes):
        if axis == letter:
            return f"{array.name}.shape[{at}]"
    for at, axis in enumerate(array.axes):
        factors = (axis or "").split(" * ")
        others = [each for each in factors if each != letter]
        if factors.count(letter) == 1 and all(e.isdecimal() or e in known for e in others):
            below = others[0] if len(others) == 1 else f"({' * '.join(others)})"
            return f"{array.name}.shape[{at}] // {below}"
    return ""


def _start(range_: str) -> str:
    start = range_.partition(":")[0]
    return "" if start == "0" else start
