"""A forward that has been run once on tracers: its program, inputs and settings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np

from handgrad.deriving.arguments import Arguments, Path, Setting, Spec, at, flat, leaves
from handgrad.deriving.lengths import shapes_of
from handgrad.deriving.refusals import ByChanceError, UnreadableError, refused
from handgrad.deriving.samples import called
from handgrad.errors import ArgumentError
from handgrad.program import primitives as primitives
from handgrad.program.jax_arrays.running import OnJaxArrays
from handgrad.program.loops import rolled
from handgrad.program.node import ByChance, Node, Program, World, as_node, within
from handgrad.program.primitives.extremes import ORDERED
from handgrad.program.reading import attributes_of
from handgrad.program.run import run as run_program
from handgrad.program.sizes import Size
from handgrad.program.tensors.running import Detached, OnTensors
from handgrad.program.trace import Refused, TracedInt, Tracer, unwrap
from handgrad.program.trace import run as run_traced


@dataclass(frozen=True)
class OwnForward:
    """A forward as it was given, and the library whose arrays it is for."""

    function: Callable[..., Any]
    library: str

    @property
    def attributes(self) -> Mapping[str, Callable[[Any], Any]]:
        """Those of its library's arrays that NumPy's have otherwise."""
        return attributes_of(self.library)

    @cached_property
    def _runner(self) -> OnTensors | OnJaxArrays | None:
        if self.library == "torch":
            return OnTensors(self.function)
        return OnJaxArrays(self.function) if self.library == "jax" else None

    def on_arrays(self, detached: Detached | None = None) -> Callable[..., Any]:
        """The forward itself as a function of NumPy's arrays."""
        runner = self._runner
        if runner is None:
            return self.function
        return lambda *args, **named: runner.run(args, named, detached or Detached())[0]

    def twice(self, *args: Any, **named: Any) -> list[Any]:
        """The results of a forward that is called again, as arrays."""
        runner = self._runner
        if runner is None:
            return [self.function(*args, **named) for _ in range(2)]
        return runner.run(args, named, Detached(), times=2)

    def gradients(
        self, arguments: Arguments, values: Mapping[str, Any], dys: list[Any], wanted: list[Any]
    ) -> list[Any]:
        """Those that its library has for some of the arrays among the values."""
        runner = self._runner
        assert runner is not None  # NumPy has no gradients

        def run(*args: Any, **named: Any) -> list[Any]:
            return runner.gradients(args, named, dys, wanted)

        found: list[Any] = called(run, arguments.parameters, values)
        return found


_COMPARISONS: Final = frozenset(("equal", "not_equal", *ORDERED))


@dataclass
class HeldValues:
    """Values of some primitives: kept from one run of a program, and given again in others."""

    primitives: Collection[str]
    kept: list[Any] = field(default_factory=list)
    given: Iterator[Any] | None = None

    def __call__(self, node: Node, value: Any) -> Any:
        if node.op not in self.primitives:
            return value
        if self.given is None:
            self.kept.append(value)
            return value
        return next(self.given)

    def again(self) -> HeldValues:
        """The same, for a run that gets what was kept."""
        return HeldValues(self.primitives, self.kept, iter(self.kept))


@dataclass
class Traced:
    """A program with the arguments that its inputs stand for."""

    forward: OwnForward
    arguments: Arguments
    program: Program
    inputs: dict[Path, Node]
    numbers: dict[Path, Node]
    world: World
    has_cache: bool

    @cached_property
    def _detaches(self) -> bool:
        """True where the forward is one of a library that may stop gradients."""
        is_stopped = any(node.op == "stop" for node in self.program.everywhere())
        return is_stopped and self.forward.library != "numpy"

    @cached_property
    def _has_ties(self) -> bool:
        """True for a backward in which what its forward kept is compared."""
        is_backward = self.arguments.keeping is not None
        return is_backward and any(n.op in _COMPARISONS for n in self.program.everywhere())

    def on_arrays(
        self,
        values: Mapping[str, Any],
        held: HeldValues,
        program: Program | None = None,
        more: Sequence[Any] = (),
    ) -> list[Any]:
        """The results of the program with some of its values as they are held, or of another.

        more: what the other has for inputs behind the arguments.
        """
        _, lengths = shapes_of(self.arguments, values)
        for setting in self.arguments.settings:
            if setting.letter:
                lengths[setting.letter] = int(at(values, setting.path))
        given = [at(values, path) for path in (*self.inputs, *self.numbers)]
        whole = {**self.world.lengths, **lengths}
        return run_program(program or self.program, [*given, *more], whole, held)

    def results(
        self, values: Mapping[str, Any], base: Mapping[str, Any] | None = None
    ) -> list[Any]:
        """The results of the forward itself that are floats, on arrays.

        What it detaches is as on those of `base`, where they are given, and so are comparisons
        of values that another forward has kept: apart from each other they have no ties.
        """
        if base is not None and self._has_ties:
            ties = HeldValues(_COMPARISONS)
            self.on_arrays(base, ties)
            return self.on_arrays(values, ties.again())
        detached = Detached()
        if base is not None and self._detaches:
            called(self.forward.on_arrays(detached), self.arguments.parameters, base)
            detached = detached.again()
        found = called(self.forward.on_arrays(detached), self.arguments.parameters, values)
        found = [np.asarray(x) for x in flat(found[0] if self.has_cache else found)]
        return [x for x in found if x.dtype.kind == "f"]

    def wanted(self, wrt: Any) -> list[Path]:
        """The arrays that get a gradient. Raises ArgumentError for names of none."""
        floats = [p for p, node in self.inputs.items() if node.kind == "f"]
        names = {str(p[0]) for p in floats} | {"_".join(map(str, p)) for p in floats}
        unknown = [name for name in wrt or () if name not in names]
        if unknown or not floats or (wrt is not None and not wrt):
            arrays = ", ".join(dict.fromkeys(str(p[0]) for p in floats))
            raise ArgumentError(f"derive: wrt is {wrt!r}; allowed: arrays of floats: {arrays}")
        return [p for p in floats if wrt is None or {p[0], "_".join(map(str, p))} & set(wrt)]


def traced(
    forward: OwnForward,
    arguments: Arguments,
    values: Mapping[str, Any],
    lengths: Mapping[str, int],
    *,
    ties: str = "first",
    spells_out: bool = False,
) -> Traced:
    """The program of a forward, from one run on examples.

    Raises UnreadableError for what it cannot be made of, with the line.
    """
    w = World()
    w.ties, w.spells_out = ties, spells_out
    w.lengths |= lengths
    if arguments.keeping is not None:  # lengths of what a mask selected are those of the cache
        w.lengths |= shapes_of(arguments, values)[1]
    function = forward.function
    w.attributes = forward.attributes
    inputs: dict[Path, Node] = {}
    numbers: dict[Path, Node] = {}

    def given(leaf: Spec | Setting) -> Any:
        value = at(values, leaf.path)
        if isinstance(leaf, Spec):
            node = Node("input", (), {}, leaf.shape, leaf.kind, np.asarray(value), leaf.name)
            inputs[leaf.path] = node
            return Tracer(node)
        if leaf.letter:
            w.lengths.setdefault(leaf.letter, int(value))
            return TracedInt(int(value), Size.of(leaf.letter))
        if leaf.is_free:
            numbers[leaf.path] = Node("input", (), {}, (), "f", value, leaf.name)
            return Tracer(numbers[leaf.path])
        return value

    with within(w):
        w.events = []
        try:
            result = run_traced(function, arguments.mapped(given))
        except (Refused, NotImplementedError) as error:
            why = str(error)
            if isinstance(error, ByChance):
                raise ByChanceError(str(refused(why, function))) from error
            raise refused(why if why.startswith("line") else w.at_line(why), function) from error
        except RecursionError:
            raise refused(w.at_line("the forward has too many steps"), function) from None
        except UnreadableError:
            raise
        except Exception as error:  # of a form that nothing here expects
            why = f"no derivation is known ({type(error).__name__}: {error})"
            raise refused(w.at_line(why), function) from error
        cached = has_cache(result, Tracer)
        outputs = results_of(result[0] if cached else result, function)
        outputs = rolled(outputs)
    program = Program([*inputs.values(), *numbers.values()], outputs)
    return Traced(forward, arguments, program, inputs, numbers, w, cached)


def results_of(result: Any, function: Callable[..., Any]) -> list[Node]:
    """The results of floats as nodes."""
    found = [unwrap(each) for each in flat(result)]
    found = [as_node(x) if isinstance(x, float | Size) else x for x in found]
    if not found or not all(isinstance(x, Node | int | np.generic | np.ndarray) for x in found):
        raise refused(
            "forward returns something other than arrays",
            function,
            "y, several results in a tuple, or (y, cache)",
        )
    outputs = [x for x in found if isinstance(x, Node) and x.kind == "f"]
    if not outputs:
        raise refused("forward returns no floats", function, "a result that has a derivative")
    return outputs


def has_cache(result: Any, array: Any) -> bool:
    """Return whether a second result is a cache: no plain arrays, or with an input in it."""
    if not (type(result) is tuple and len(result) == 2) or isinstance(result[1], array):
        return False
    y, cache = result
    kept = list(leaves(cache))
    plain = type(cache) in (tuple, list) and all(isinstance(each, array) for each in kept)
    if not plain or not kept:
        return True
    first = {id(each.node) for each in leaves(y) if isinstance(each, array)}
    return any(id(each.node) in first or each.node.op == "input" for each in kept)
