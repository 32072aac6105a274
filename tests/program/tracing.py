"""A forward as a program without a pair around it: traced, rolled up, run by the interpreter."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from handgrad.deriving.reverse import gradient
from handgrad.program import primitives  # noqa: F401 (fills the tables)
from handgrad.program.loops import rolled
from handgrad.program.node import Node, Program, World, as_node, within
from handgrad.program.run import run
from handgrad.program.sizes import Size
from handgrad.program.trace import TracedInt, Tracer, invoke, unwrap
from handgrad.program.trace import run as trace_run

LENGTHS = (5, 6, 4, 7, 8, 3)
OTHER = (6, 7, 5, 4, 3, 8)
RELATIONS = {"==": operator.eq, "<=": operator.le}


def nest(spec: Any, f: Callable[[Any], Any]) -> Any:
    """A function applied to the leaves of dicts and lists; a tuple is the shape of one array."""
    if isinstance(spec, dict):
        return {k: nest(v, f) for k, v in spec.items()}
    return [nest(v, f) for v in spec] if isinstance(spec, list) else f(spec)


def leaves(x: Any) -> Iterator[Any]:
    """The arrays and numbers of a nest, in order."""
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, list | tuple):
        for v in x:
            yield from leaves(v)
    else:
        yield x


def sizes_of(spec: tuple[Any, ...]) -> tuple[tuple[Size, ...], str]:
    """The shape and kind of an array from letters, expressions of them, numbers and a type."""
    kind = {bool: "b", int: "i"}.get(spec[-1], "f") if spec else "f"
    parts = [s for s in spec if not isinstance(s, type)]
    return tuple(eval(s, {}, Letters()) if isinstance(s, str) else Size.of(s) for s in parts), kind


class Letters(dict[str, Size]):
    def __missing__(self, letter: str) -> Size:
        return Size.of(letter)


class Forward:
    """A forward, its program, and the world that it was traced in."""

    def __init__(self, forward: Callable[..., Any], **given: Any) -> None:
        self.forward = forward
        self.specs = {k: v for k, v in given.items() if isinstance(v, tuple | list | dict)}
        parameters = inspect.signature(forward).parameters
        defaults = {k: p.default for k, p in parameters.items() if p.default is not p.empty}
        self.settings = {k: v for k, v in {**defaults, **given}.items() if k not in self.specs}
        letters: dict[str, None] = {}
        nest(self.specs, lambda s: letters.update(dict.fromkeys(_letters(s))))
        self.lengths = [dict(zip(letters, L, strict=False)) for L in (LENGTHS, OTHER)]
        self.world = World()
        self.world.lengths |= self.lengths[0]
        self.inputs: list[Node] = []
        self.numbers: dict[str, Node] = {}
        with within(self.world):
            self.program = self._traced()

    def _traced(self) -> Program:
        w = self.world
        rng = np.random.default_rng(1)
        arguments = {k: nest(s, lambda s: self._input(s, rng)) for k, s in self.specs.items()}
        for k, v in self.settings.items():
            if type(v) is int:
                w.lengths[k] = v
                arguments[k] = TracedInt(v, k)
            elif type(v) is float:
                self.numbers[k] = Node("input", (), {}, (), "f", v, k)
                arguments[k] = Tracer(self.numbers[k])
            else:
                arguments[k] = v
        w.events = []
        result = trace_run(self.forward, arguments)
        outputs = [as_node(unwrap(x)) for x in leaves(result)]
        return Program([*self.inputs, *self.numbers.values()], rolled(outputs))

    def _input(self, spec: tuple[Any, ...], rng: np.random.Generator) -> Tracer:
        shape, kind = sizes_of(spec)
        value = sample(rng, tuple(map(self.world.length, shape)), kind)
        self.inputs.append(Node("input", (), {}, shape, kind, value, f"x{len(self.inputs)}"))
        return Tracer(self.inputs[-1])

    def loops(self) -> list[Node]:
        """The loop nodes, those inside other loops after them."""

        def inside(program: Program) -> Iterator[Node]:
            for n in program.body:
                if n.op == "loop":
                    yield n
                    yield from inside(n.attrs["loop"].body)

        return list(inside(self.program))

    def values(self, lengths: dict[str, int], seed: int) -> list[Any]:
        rng = np.random.default_rng(seed)
        arrays = [
            sample(rng, tuple(s.number(lengths) for s in n.shape), n.kind) for n in self.inputs
        ]
        return [*arrays, *(n.value for n in self.numbers.values())]

    def itself(self, values: list[Any]) -> list[Any]:
        """The results of the function itself."""
        arrays = iter(values)
        arguments = {k: nest(s, lambda _: np.array(next(arrays))) for k, s in self.specs.items()}
        return list(leaves(invoke(self.forward, {**self.settings, **arguments})))

    def accepts(self, values: list[Any], lengths: dict[str, int]) -> bool:
        """Whether all guards hold."""
        lengths = {**self.world.lengths, **lengths}
        for relation, left, right, outcome in self.world.guards:
            if relation == "true":
                (found,) = run(Program(self.program.inputs, [left]), values, lengths)
                if bool(found) is not outcome:
                    return False
            else:
                sides = [Size.of(s).number(lengths) for s in (left, right)]
                sign = RELATIONS.get(relation) or getattr(operator, relation)
                if sign(*sides) is not outcome:
                    return False
        return True

    def check(self, lengths: dict[str, int], seed: int = 3) -> None:
        """The program's results are the function's, and its gradients meet differences."""
        values = self.values(lengths, seed)
        everything = {**self.world.lengths, **lengths}
        want = self.itself(values)
        got = run(self.program, values, everything)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
        chosen = [n for n in self.inputs if n.kind == "f"]
        with within(self.world):
            cotangents, gradients = gradient(self.program, chosen)
        rng = np.random.default_rng(seed + 1)
        dys = [rng.standard_normal(np.shape(y)) for y in want]
        inputs = [*self.program.inputs, *cotangents]
        grads = run(Program(inputs, gradients), [*values, *dys], everything)
        along = [
            rng.standard_normal(np.shape(v)) if n in chosen else None
            for n, v in zip(self.program.inputs, values, strict=True)
        ]
        h = 1e-6
        up, down = (
            self.itself(
                [v if u is None else v + s * h * u for v, u in zip(values, along, strict=True)]
            )
            for s in (1, -1)
        )
        slope = sum(
            float(np.sum(dy * (np.subtract(a, b, dtype=float))))
            for dy, a, b in zip(dys, up, down, strict=True)
        ) / (2 * h)
        moved = [u for u in along if u is not None]
        exact = sum(float(np.sum(g * u)) for g, u in zip(grads, moved, strict=True))
        size = sum(float(np.sum(np.abs(g * u))) for g, u in zip(grads, moved, strict=True))
        assert abs(exact - slope) < 1e-5 * (size + 1e-3), (exact, slope)


def _letters(spec: tuple[Any, ...]) -> list[str]:
    shape, _ = sizes_of(spec)
    return [n for s in shape for n in sorted(s.letters)]


def sample(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> Any:
    if kind == "b":
        return rng.random(shape) < 0.6
    return rng.permutation(3)[rng.integers(0, 3, shape)] if kind == "i" else rng.random(shape) + 0.1
