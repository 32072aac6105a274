"""Two programs as the pair of functions that a user gets, written for a library of arrays."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from handgrad.deriving import guards
from handgrad.deriving.arguments import Arguments, Path
from handgrad.deriving.kept import frontier, least
from handgrad.deriving.letters import letters_from
from handgrad.deriving.refusals import refused
from handgrad.deriving.substitution import widened
from handgrad.deriving.traced import Traced
from handgrad.deriving.written import Written
from handgrad.program.emit import Emitter
from handgrad.program.libraries import NUMPY, Library
from handgrad.program.node import Node, Program, within


def _first_reader(lines: Sequence[str], name: str) -> int:
    """The line of the first statement of a function's own block that reads a name."""
    for statement in _block(lines).body:
        if any(_is_named(each, name) for each in ast.walk(statement)):
            return statement.lineno - 2
    return len(lines)


def _is_asked(lines: Sequence[str], name: str) -> bool:
    """Return whether the lines of a function's block ask an array for its parts or its shape."""
    asking = (n for n in ast.walk(_block(lines)) if isinstance(n, ast.Attribute | ast.Subscript))
    return any(_is_named(each.value, name) for each in asking)


def _block(lines: Sequence[str]) -> ast.FunctionDef:
    (function,) = ast.parse("\n".join(("def function():", *lines, "    pass"))).body
    assert isinstance(function, ast.FunctionDef)
    return function


def _is_named(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


@dataclass
class DerivedPair:
    """A forward and its backward as programs.

    kept: what the backward reads of the forward. casts: gradients that have to be put into the
    type of their arrays. floats_alike: arrays that the forward makes are of
    the type of its arguments.
    """

    traced: Traced
    forward: Program
    backward: Program
    kept: list[Node]
    cotangents: list[Node]
    wanted: list[Path]
    casts: set[int] = field(default_factory=set)
    floats_alike: bool = False

    def written(self, library: Library = NUMPY) -> Written:
        """The sources for a library."""
        with within(self.traced.world):
            return _Writing(self, library).run()


def assemble(
    traced: Traced,
    wanted: Sequence[Path],
    cotangents: list[Node],
    gradients: Sequence[Node],
    *,
    keeps_least: bool = False,
) -> DerivedPair:
    """The pair of a program and its gradients: what the forward keeps follows from them."""
    world = traced.world
    everything = widened([*traced.program.outputs, *gradients], world)
    count = len(traced.program.outputs)
    forward = Program(traced.program.inputs, everything[:count])
    if keeps_least:
        kept = least(forward, everything[count:], world.lengths)
    else:
        kept = frontier(forward, everything[count:])
    backward = Program([*kept, *cotangents], everything[count:])
    alike = traced.forward.library != "numpy"
    return DerivedPair(
        traced, forward, backward, kept, cotangents, list(wanted), floats_alike=alike
    )


def alone(traced: Traced, name: str) -> Written:
    """A program as one function, without a cache."""
    pair = DerivedPair(traced, traced.program, Program([], []), [], [], [])
    with within(traced.world):
        writing = _Writing(pair, NUMPY)
        results = writing._forward()
        writing._count_masks()
        lines = writing._signature(name) + writing._head()
        lines += writing.e.lines
        lines.append(f"    return {', '.join(results)}")
    return Written(NUMPY, "\n".join(lines) + "\n", "", (), (), (writing.e,))


class _Writing:
    def __init__(self, pair: DerivedPair, library: Library) -> None:
        self.pair, self.library = pair, library
        self.arguments: Arguments = pair.traced.arguments
        self.world = pair.traced.world
        self.e = Emitter(library, self.arguments.parameters)
        self.b = Emitter(library, loose=True)
        self.e.floats_alike = self.b.floats_alike = pair.floats_alike
        self.unpacked: list[str] = []

    def run(self) -> Written:
        results = self._forward()
        e, b = self.e, self.b
        cache = [(e.variables.get(id(n)) or e.text(n), n) for n in self.pair.kept]
        # Arrays from elsewhere have one name in both functions.
        b.tables = e.tables
        b.names.taken |= {"forward", "backward", "dy", "cache", *e.tables}
        body = self._backward(cache)
        read = letters_from(
            [
                *((b.variables[id(n)], n.shape) for _, n in cache),
                *((b.variables[id(c)], c.shape) for c in self.pair.cotangents),
            ],
            [x for x in b.names.letters if x not in self.world.counters],
        )
        carried = [x for x in b.names.letters if x not in self.world.counters and x not in read]
        names = [name for name, _ in cache]
        backs = [b.variables[id(n)] for _, n in cache]
        numbers = [e.names.letter(x) for x in carried]
        own = [b.names.letters[x] for x in carried]
        below = {s.letter for s in self.arguments.settings if s.letter and s.value < 0}
        signs = ["-" if x in below else "" for x in carried]
        unpacking = self._unpacking(backs, own, signs)
        packed = self._packed(names, numbers, signs)
        lines = [*unpacking, *(f"    {b.names.letters[x]} = {text}" for x, text in read.items())]
        self._count_masks()
        forward = self._signature() + self._head()
        forward += e.lines
        forward.append(f"    return {_listed(results)}, {packed}")
        backward = ["def backward(dy, cache):", *lines, *body]
        return Written(
            self.library,
            "\n".join(forward) + "\n",
            "\n".join(backward) + "\n",
            (*names, *numbers),
            tuple(carried),
            (e, b),
        )

    def _count_masks(self) -> None:
        """Count what a mask selects before the first statement that asks for the number."""
        e = self.e
        for each in self.world.masks.values():
            own = e.names.letters.get(each.letter)
            if own is None:
                continue
            at = _first_reader(e.lines, own)
            text = f"{e.alias}.{each.function}({e.text(each.node)})"
            text = f"len({text})" if each.once else f"int({text})"
            e.lines.insert(at, f"    {own} = {text}")

    def _unpacking(
        self, backs: Sequence[str], own: Sequence[str], signs: Sequence[str]
    ) -> list[str]:
        b, found = self.b, []
        if not self.library.changes and own:  # a shape is known before the numbers are
            sizes = b.names.fresh("sizes")
            found += [f"    {_unpacked([*backs, sizes])} = cache"]
            found += [f"    _, {', '.join(own)} = {sizes}.shape"]
            found += [f"    {x} = -{x}" for x, sign in zip(own, signs, strict=True) if sign]
        elif backs or own:
            found += [f"    {_unpacked([*backs, *own])} = cache"]
        cotangents = [b.variables[id(c)] for c in self.pair.cotangents]
        if len(cotangents) > 1:
            found.append(f"    {', '.join(cotangents)} = dy")
        return found

    def _packed(self, names: Sequence[str], numbers: Sequence[str], signs: Sequence[str]) -> str:
        if not self.library.changes and numbers:
            lengths = ", ".join(f"{sign}{x}" for sign, x in zip(signs, numbers, strict=True))
            sizes = f"{self.e.alias}.empty((0, {lengths}))"
            return _tuple([*names, sizes])
        return _tuple([*names, *numbers])

    def _forward(self) -> list[str]:
        """The statements of the forward; its results as expressions."""
        e, traced = self.e, self.pair.traced
        for setting in self.arguments.settings:
            if setting.letter and setting.letter not in e.names.letters:
                e.names.letters[setting.letter] = setting.name
        for node in traced.inputs.values():
            if node.kind == "f" and not e.like:
                e.like = node.name
        for path, node in [*traced.inputs.items(), *traced.numbers.items()]:
            name = node.name
            if len(path) > 1:
                name = e.names.fresh(name)
                e.line(f"{name} = {self.arguments.text(path)}")
            if e.like == node.name:
                e.like = name
            e.name(node, name, number=path in traced.numbers)
        self.start = len(e.lines)
        outputs = self.pair.forward.outputs
        for k, out in enumerate(outputs):
            if not out.name and any(out is n for n in self.pair.kept):
                out.name = "y" if len(outputs) == 1 else f"y{k + 1}"
        e.behind = behind = guards.ValueGuards(e, self.world)
        wanted = [*behind.nodes, *self.pair.forward.outputs, *self.pair.kept]
        for node in behind.nodes:
            if id(node) in e.variables:
                behind(node)
        e.program(Program(traced.program.inputs, wanted), keep=map(id, self.pair.kept))
        return [e.text(out) for out in self.pair.forward.outputs]

    def _head(self) -> list[str]:
        """What stands before the forward's own statements: parts of arguments, sizes, guards."""
        e = self.e
        unpacked, e.lines = e.lines[: self.start], e.lines[self.start :]
        inputs = self.pair.traced.inputs
        names = {spec.name: e.variables[id(inputs[spec.path])] for spec in self.arguments.specs}
        given = {s.letter for s in self.arguments.settings if s.letter and len(s.path) == 1}
        inside = {
            s.letter: self.arguments.text(s.path)
            for s in self.arguments.settings
            if s.letter and len(s.path) > 1
        }
        arrays = [(names[spec.name], spec.shape) for spec in self.arguments.specs]
        asked = {x for _, shape in arrays for size in shape for x in size.letters}
        found = {
            *given,
            *inside,
            *letters_from(arrays, asked, dict.fromkeys((*given, *inside), "")),
        }
        checks = list(dict.fromkeys(guards.checks(e, self.arguments, self.world, names, found)))
        counted = {each.letter for each in self.world.masks.values()} | set(self.world.counters)
        wanted = [x for x in e.names.letters if x not in given and x not in counted]
        known = {x: e.names.letters[x] for x in given if x in e.names.letters}
        sources = letters_from(arrays, wanted, known)
        sources |= inside
        for letter in wanted:
            if letter not in sources:
                raise refused(
                    f"the length {letter} is no axis of an array by itself",
                    self.pair.traced.forward.function,
                    "an array with this axis",
                )
        sizes = [
            f"    {e.names.letters[x]} = {text}"
            for x, text in sources.items()
            if x in e.names.letters and e.names.letters[x] != text
        ]
        return [*unpacked, *sizes, *checks]

    def _signature(self, name: str = "forward") -> list[str]:
        """The user's own parameters, with the settings that it was derived with as defaults."""
        values = {s.path: s for s in self.arguments.settings}
        arrays = {spec.path[0] for spec in self.arguments.specs}
        found: list[inspect.Parameter] = []
        for each, parameter in self.arguments.parameters.items():
            default: Any = inspect.Parameter.empty
            has_default = parameter.default is not inspect.Parameter.empty
            if has_default and not (each in arrays and _may_ask(parameter, found)):
                setting = values.get((each,))
                value = parameter.default
                if setting is not None and setting.value is not None:
                    value = setting.value
                default = _Written(guards.written_default(value))
            found.append(parameter.replace(default=default, annotation=inspect.Parameter.empty))
        return [f"def {name}{inspect.Signature(found)}:"]

    def _backward(self, cache: Sequence[tuple[str, Node]]) -> list[str]:
        """The statements of the backward; a gradient of many signs has a line of its own."""
        b, pair = self.b, self.pair
        for name, node in cache:
            number = any(node is n for n in pair.traced.numbers.values())
            # JAX keeps arrays alone.
            number = number or (self.library.name != "jax" and self.e.is_number(node))
            b.name(node, b.names.fresh(name), number=number)
        for cotangent in pair.cotangents:
            alone = len(pair.cotangents) == 1
            b.name(cotangent, "dy" if alone else b.names.fresh(cotangent.name))
        arrays = [n for n in (*pair.cotangents, *pair.kept) if n.shape and n.kind == "f"]
        b.like = b.variables[id((arrays or pair.cotangents)[0])]
        gradients = pair.backward.outputs
        given = {id(n) for n in (*pair.kept, *pair.cotangents)}
        for node, path in zip(reversed(gradients), reversed(pair.wanted), strict=True):
            if node.args and node.op != "part" and id(node) not in given:
                node.name = f"d{'_'.join(map(str, path))}"
        b.program(pair.backward)
        texts = []
        for k, (node, path) in enumerate(zip(gradients, pair.wanted, strict=True)):
            name = f"d{'_'.join(map(str, path))}"
            if id(node) not in b.variables and node.op != "zeros":
                b.assign(node, name)
            text = b.text(node)
            if k in pair.casts:
                text = self._cast(b, text, node)
            texts.append(text)
        lines = [*b.lines, f"    return {', '.join(texts)}"]
        if self.library.name != "torch":
            for cotangent in pair.cotangents:
                name = b.variables[id(cotangent)]
                if not cotangent.shape and _is_asked(lines, name):
                    lines.insert(0, f"    {name} = {b.alias}.asarray({name})")
        return lines

    def _cast(self, b: Emitter, text: str, node: Node) -> str:
        if self.library.name == "torch":
            return f"{text}.to({b.float})"
        if not node.shape:
            return f"{b.alias}.asarray({text}, dtype={b.float})"
        return f"{text}.astype({b.float})"


def _may_ask(parameter: inspect.Parameter, before: Sequence[inspect.Parameter]) -> bool:
    """Return whether a parameter may be without a default behind those before it."""
    is_named = parameter.kind is inspect.Parameter.KEYWORD_ONLY
    return is_named or all(each.default is inspect.Parameter.empty for each in before)


class _Written:
    """A default that shows as it is written."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _unpacked(parts: Sequence[str]) -> str:
    return ", ".join(parts) if len(parts) > 1 else _tuple(parts)


def _listed(results: Sequence[str]) -> str:
    return results[0] if len(results) == 1 else _tuple(results)
