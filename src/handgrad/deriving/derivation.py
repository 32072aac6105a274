"""`hg.derive`: from a forward the backward that one would write down, with the reason for it."""

from __future__ import annotations

import contextlib
import inspect
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from handgrad.data.files import as_path
from handgrad.deriving.arrays import Array, Graph
from handgrad.deriving.derivatives import Context
from handgrad.deriving.emission import Emission, Functions
from handgrad.deriving.evaluation import size
from handgrad.deriving.examples import Examples, Given, given_to, letters_in
from handgrad.deriving.facts import Assumption, assumptions, found_facts
from handgrad.deriving.forward import Reader
from handgrad.deriving.loops import NoLoopError, taken_apart
from handgrad.deriving.proving import difference, flat, other_values
from handgrad.deriving.simplify import Simplifier, Step
from handgrad.deriving.source import Source, UnreadableError, of_function, refuse, unexpected
from handgrad.deriving.stepping import Stepping
from handgrad.deriving.sweep import Sweep
from handgrad.deriving.targets import forward_of, op_examples
from handgrad.deriving.terms import Sum
from handgrad.deriving.watching import differing, refused_size, watched
from handgrad.errors import ArgumentError, HandgradError
from handgrad.program import Node, Program, Site, trace
from handgrad.writing import reason, write_file

if TYPE_CHECKING:
    from handgrad.equations.notes import Notes

#: A derived gradient and the plain one differ by no more than this share of the largest value.
_SAME: Final = 1e-8
#: A forward of more operations than this is not written out.
_MOST_STEPS: Final = 200
#: The step of central differences, and by how much they and a gradient may differ.
_STEP: Final = 1e-6
_NEAR: Final = 1e-6


class UnprovedError(Exception):
    """What was derived did not stand its proof; a fault of handgrad, not of the forward."""


@dataclass(frozen=True, eq=False)
class Derivation:
    """A forward and the backward derived from it.

    forward, backward: functions on NumPy arrays, compiled from `forward_source` and
    `backward_source`: y, cache = d.forward(*arrays), gradients = d.backward(dy, cache).
    cache: the names of what forward keeps. steps: every simplification, with both sides, the rule,
    its reason and by how much the sides differ. gradients: the closed form of each gradient.
    chain: every adjoint as the chain rule gives it. fixed: sizes that it holds for alone.
    parts: of a forward with a loop the derivations of what is before, of a step, and of what is
    behind; steps, gradients and chain are those of a step.
    """

    name: str
    graph: Graph = field(repr=False)
    functions: Functions = field(repr=False)
    steps: tuple[Step, ...] = field(repr=False)
    gradients: Mapping[str, Sum] = field(repr=False)
    chain: tuple[tuple[str, Sum], ...] = field(repr=False)
    fixed: Mapping[str, int] = field(repr=False)
    parts: tuple[Derivation, ...] = field(default=(), repr=False)
    #: The forward's line, and arguments that sources for other libraries are run with.
    where: str = field(default="", repr=False)
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def forward_source(self) -> str:
        return self.functions.forward

    @property
    def backward_source(self) -> str:
        return self.functions.backward

    @property
    def cache(self) -> tuple[str, ...]:
        return self.functions.cache

    @cached_property
    def _compiled(self) -> dict[str, Any]:
        return self.functions.compiled()

    @property
    def forward(self) -> Callable[..., Any]:
        function: Callable[..., Any] = self._compiled["forward"]
        return function

    @property
    def backward(self) -> Callable[..., Any]:
        function: Callable[..., Any] = self._compiled["backward"]
        return function

    @property
    def named(self) -> list[Array]:
        """The adjoints that the backward gives a name, in its order."""
        lines = self.backward_source.splitlines()
        made = [line.strip().partition(" = ")[0] for line in lines]
        arrays = (self.graph.arrays.get(name) for name in made)
        return [a for a in arrays if a is not None and a.is_backward and a.definition is not None]

    def notes(self, path: str | os.PathLike[str] | None = None) -> Notes:
        """The derivation as a page, written to a file of its suffix if one is given.

        Raises ArgumentError for an unknown suffix, or where the file cannot be written.
        """
        from handgrad.deriving.story import document
        from handgrad.equations.notes import Notes

        notes = Notes(document(self))
        if path is not None:
            notes.save(path)
        return notes

    def to(self, library: str, path: str | os.PathLike[str] | None = None) -> str:
        """The source for "numpy", "torch" (an autograd.Function) or "jax" (a custom_vjp).

        It is written to a file if one is given. Where the library is installed the source is run
        before. Raises ArgumentError for another library, for a source that is not right there, or
        where the file cannot be written.
        """
        from handgrad.deriving.libraries import prove, source_for

        source = source_for(self, library)
        prove(self, library, source)
        if path is not None:
            try:
                write_file(as_path("derive", path), source.encode())
            except OSError as error:
                raise ArgumentError(
                    f"derive: {path} cannot be written ({reason(error)}); allowed: a file in a "
                    "folder that exists and can be written to"
                ) from None
        return source

    def _repr_html_(self) -> str:
        return self.notes()._repr_html_()

    def __str__(self) -> str:
        return f"{self.forward_source}\n\n{self.backward_source}"


def derive(
    forward: Any,
    *arrays: Any,
    assume: Mapping[str, float] | None = None,
    wrt: Sequence[str] | None = None,
    **named: Any,
) -> Derivation:
    """The backward of a forward, derived from it alone.

    `forward` is a function that takes arrays and returns y, several results, or (y, cache), of
    which the cache is left aside; or an op, such as "layer_norm". Arrays are given as examples, or
    as shapes in letters, such as x=("N", "D") and mask=("N", "D", bool), which tell axes apart that
    are of one length by chance; other arguments are settings. `assume` states sums that are
    constant, such as {"sum(q, -1)": 1}. `wrt` names the arrays that get a gradient; all of floats
    unless given.

    Steps that depend on a size, as those of a loop over an axis, are derived for that size alone;
    `fixed` says which. At a tie max gives each its share, and maximum(x, 0) has derivative 0 at 0.

    Raises ArgumentError for arguments that the forward does not take, and UnreadableError, which
    names the line, for what cannot be derived: in-place changes, random draws, branches on values
    or sizes, and functions without a known derivative.
    """
    facts = assumptions(assume or {})
    name, function, axes = forward_of(forward)
    if not arrays and not axes.keys() & named.keys():
        refused: ArgumentError | None = None
        for example in op_examples(forward, axes):
            try:
                given = given_to(function, (), {**example, **named})
                return _Deriving(name, function, given, facts, wrt).run()
            except ArgumentError as error:
                refused = error
        if refused is not None:
            raise refused
    given = given_to(function, arrays, named)
    return _Deriving(name, function, given, facts, wrt).run()


@dataclass
class _Deriving:
    name: str
    function: Callable[..., Any]
    arguments: Given
    facts: Sequence[Assumption]
    wrt: Sequence[str] | None
    #: The arrays of the gradients, in the order in which backward returns them.
    returned: Sequence[str] = ()
    #: The settings that a branch of the forward hangs on.
    decided: set[str] = field(default_factory=set)
    #: True where the forward does something else with empty arrays.
    asks_for_empty: bool = False

    def run(self) -> Derivation:
        """The derivation. Raises UnreadableError for all that stands in its way."""
        try:
            return self._run()
        except UnprovedError as error:
            why = str(error).removeprefix("derive: ")
            raise UnreadableError(
                f"derive: {of_function(self.function)}: {why}; allowed: a forward whose code "
                "stands its proof"
            ) from error
        except (HandgradError, MemoryError):
            raise
        except Exception as error:  # of a form that no part of this expects
            raise unexpected(error, self.function) from error

    def _run(self) -> Derivation:
        for reading in self.arguments.readings(self.facts, self.function):
            if reading.fixed:  # a loop over it is written out
                break
            self.given = reading
            with contextlib.suppress(NoLoopError):
                return self._proved(self._stepping())
        programs = self._programs()
        plain = self._derived(programs, simple=False)
        return self._proved(self._derived(programs, simple=True, plain=plain))

    def _programs(self) -> tuple[Program, Program]:
        """Both runs, with as few lengths fixed as there can be."""
        failed: Exception | None = None
        refused: UnreadableError | None = None
        loop = ""
        for reading in self.arguments.readings(self.facts, self.function):
            try:
                first, second, differ = self._watched(reading)
            except UnreadableError:
                raise
            except Exception as error:  # sizes that do not fit, in the user's words
                failed = failed or error
                continue
            if "size" in differ:
                raise refused_size(differ["size"])
            if "round" in differ:
                loop = f"line {differ['round'].line}: "
                continue
            if [(n.op, n.site) for n in first.nodes] == [(n.op, n.site) for n in second.nodes]:
                if len(first.nodes) > _MOST_STEPS:
                    refused = refuse(
                        first.nodes[-1],
                        f"{len(first.nodes)} steps would be written out; allowed: {_MOST_STEPS}",
                    )
                    continue
                self.given = reading
                return first, second
            looped = next((n for n in first.nodes if n.rounds), None)
            loop = f"line {looped.rounds[0].loop.line}: " if looped is not None else loop
        if refused is not None:
            raise refused
        if failed is not None and not loop:
            raise ArgumentError(
                f"derive: the forward fails on its example: {type(failed).__name__}: {failed}; "
                "allowed: arrays or shapes that it takes"
            ) from failed
        raise UnreadableError(
            f"derive: {loop}the steps of the forward depend on sizes or values of its arrays; "
            "allowed: the same operations for all"
        )

    def _watched(self, reading: Examples) -> tuple[Program, Program, dict[str, Site]]:
        """Both runs, and the kinds of decisions that the lengths of one make another way."""
        settings = {
            name: value for name, value in reading.settings.items() if not isinstance(value, str)
        }
        (first, one), (second, two) = (
            watched(self.function, each, settings) for each in reading.arguments
        )
        self.decided = {e.origin.which for e in one.decisions if e.origin.kind == "setting"}
        self.asks_for_empty = one.asks_for_empty
        return first, second, differing(one.decisions, two.decisions)

    def _stepping(self) -> Derivation:
        """The derivation of a forward with a loop over an axis, by its parts.

        Raises NoLoopError where the forward is not of that form.
        """
        try:
            first, second, differ = self._watched(self.given)
        except UnreadableError:
            raise
        except Exception:  # said where the forward is tried again
            raise NoLoopError from None
        if differ:
            raise NoLoopError
        numbers = _numbers(self.given.settings)
        wanted = self._wanted(first)
        outputs = _outputs(first), _outputs(second)
        loop = taken_apart((first, second), outputs, wanted.values(), self.given.sizes, numbers)
        parts = {}
        for part in (loop.before, loop.step, loop.after):
            if part is not None:
                shapes = {name: _as_shape(axes) for name, axes in part.inputs.items()}
                active = [name for name in part.inputs if name in part.active]
                if not active:
                    raise NoLoopError
                settings: dict[str, Any] = {"wrt": active, **shapes}
                parts[part.name] = derive(part.function, **settings)
        arrays = {n: tuple(a) for n, a in self.given.letters.items()}
        functions = Stepping(
            loop, {n: d.functions for n, d in parts.items()}, arrays, numbers, list(wanted)
        ).functions()
        self.returned = list(wanted)
        self._prove_functions(functions, self.returned)
        step = parts["step"]
        return Derivation(
            self.name,
            step.graph,
            functions,
            step.steps,
            step.gradients,
            step.chain,
            {},
            tuple(parts.values()),
        )

    def _prove_functions(self, functions: Functions, wanted: Sequence[str]) -> None:
        """Run what is emitted: the forward's own bits, and gradients as central differences."""
        compiled = functions.compiled()
        for arguments in self.given.arguments:
            own = self._results(arguments)
            if wrong := difference(compiled, self._results, arguments, own, wanted):
                raise UnprovedError(f"derive: {wrong}")

    def _proved(self, derivation: Derivation) -> Derivation:
        """The derivation where it holds at other sizes, values and settings; it says at which not.

        A setting at whose other values the functions differ from the forward is refused by them,
        as are lengths that they do not hold for. Raises UnreadableError where they differ at other
        sizes.
        """
        compiled = derivation.functions.compiled()
        for lengths, arguments in self.arguments.elsewhere(self.given, self.facts):
            own = self._runs(arguments)
            if own is None:
                continue
            wrong = difference(compiled, self._results, arguments, own, self.returned, exact=False)
            if wrong:
                sizes = ", ".join(f"{letter} = {n}" for letter, n in lengths.items())
                raise UnreadableError(
                    f"derive: {self._line(arguments)}: the steps of the forward depend on sizes or "
                    f"values of its arrays: {wrong} for {sizes or 'other values'}; allowed: the "
                    "same operations for all"
                )
        taken = inspect.signature(compiled["forward"]).parameters
        values = self.given.arguments[0]
        frozen = {
            name: values[name]
            for name in self.given.settings
            if name in taken
            and taken[name].default is not inspect.Parameter.empty
            and (name in self.decided or not self._is_free(compiled, name, values[name]))
        }
        arrays = list(self.given.letters) if self.asks_for_empty else []
        functions = derivation.functions.guarded(frozen, self._fixed_lengths(), arrays)
        return replace(
            derivation,
            functions=functions,
            where=of_function(self.function),
            arguments=self.given.arguments[0],
        )

    def _is_free(self, compiled: Mapping[str, Any], name: str, value: Any) -> bool:
        """Return whether the functions are right at other values of a setting, too."""
        tried = 0
        for other in other_values(value):
            arguments = {**self.given.arguments[0], name: other}
            own = self._runs(arguments)
            if own is None:
                continue
            tried += 1
            if difference(compiled, self._results, arguments, own, self.returned, exact=False):
                return False
        return tried > 0

    def _runs(self, arguments: dict[str, Any]) -> list[Any] | None:
        """The results of the forward; None where it fails, or gives no finite numbers."""
        try:
            own = self._results(arguments)
        except Exception:  # arguments that it does not take
            return None
        return own if all(np.all(np.isfinite(each)) for each in own) else None

    def _line(self, arguments: dict[str, Any]) -> str:
        """The line of the first operation that differs with these arguments, or of the forward."""
        runs = []
        for each in (self.given.arguments[0], arguments):
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                runs.append(trace(self.function, **each).nodes)
        for one, two in zip(*runs, strict=False):
            if (one.op, one.site) != (two.op, two.site):
                return f"line {one.line}"
        return of_function(self.function)

    def _fixed_lengths(self) -> dict[str, int]:
        """The axes that the functions hold for one length of, as `x.shape[0]`."""
        return {
            f"{name}.shape[{at}]": size(axis, self.given.fixed)
            for name, axes in self.given.letters.items()
            for at, axis in enumerate(axes)
            if self.given.fixed.keys() >= letters_in(axis).keys()
        }

    def _derived(
        self,
        programs: tuple[Program, Program],
        *,
        simple: bool,
        plain: Derivation | None = None,
    ) -> Derivation:
        first, second = programs
        twins = dict(zip(first.nodes, second.nodes, strict=True))
        graph = Graph(self.given.sizes, settings=_numbers(self.given.settings))
        source = Source(self.given.sizes, twins, graph.settings)
        outputs = _outputs(first)
        wanted = self._wanted(first)
        for number, node in enumerate(outputs):
            node.name = node.name or ("y" if len(outputs) == 1 else f"y{number + 1}")
        reader = Reader(graph, source)
        reader.read(first, outputs, wanted.values())
        context = Context(graph, reader)
        simplifier = None
        if simple:
            simplifier = Simplifier(graph)
            simplifier.facts = [
                *(fact for each in self.facts if (fact := each.fact(graph)) is not None),
                *found_facts(graph),
            ]
        results = [source.names[node] for node in outputs]
        if simplifier is not None:
            simplifier.kept.update(results)
        cotangents = self._cotangents(graph, results)
        sweep = Sweep(graph, context, simplifier)
        names = {name: source.names[node] for name, node in wanted.items() if node in source.names}
        self.returned = list(names)
        gradients = sweep.run(cotangents, list(names.values()))
        if simplifier is not None and plain is not None:
            gradients = {
                name: simplifier.simplify(f"d{name}", each, graph[name].axes)
                for name, each in gradients.items()
            }
            gradients = simplifier.inlined(gradients)
            self._compare(graph, gradients, plain)
        self._prove(graph, gradients, cotangents)
        emission = Emission(graph, reader, self.given, results, cotangents, gradients)
        functions = emission.functions()
        self._read_back(graph, functions, gradients, cotangents)
        steps = tuple(simplifier.steps) if simplifier is not None else ()
        return Derivation(
            self.name, graph, functions, steps, gradients, tuple(sweep.chain), self.given.fixed
        )

    def _wanted(self, program: Program) -> dict[str, Node]:
        found = {}
        for name, value in program.arguments.items():
            is_float = isinstance(value, Node) and np.asarray(value.value).dtype.kind == "f"
            if isinstance(value, Node) and is_float and (self.wrt is None or name in self.wrt):
                found[name] = value
        unknown = [name for name in self.wrt or () if name not in found]
        if unknown or not found:
            arrays = ", ".join(n for n in program.arguments if n in self.given.letters)
            raise ArgumentError(f"derive: wrt is {self.wrt!r}; allowed: arrays of floats: {arrays}")
        return found

    def _cotangents(self, graph: Graph, results: Sequence[str]) -> dict[str, str]:
        """The names of the cotangents with the results that they are of: dy, or d and the name."""
        rng = np.random.default_rng(1)
        found: dict[str, str] = {}
        for result in results:
            name = graph.unique("dy" if len(results) == 1 else f"d{result}")
            array = Array(name, graph[result].axes, is_backward=True)
            values = (rng.standard_normal(np.shape(env[result])) for env in graph.values)
            graph.add(array, *values)
            found[name] = result
        return found

    def _prove(
        self, graph: Graph, gradients: Mapping[str, Sum], cotangents: dict[str, str]
    ) -> None:
        """Compare with central differences of the forward itself, along a random direction."""
        rng = np.random.default_rng(2)
        for run, arguments in enumerate(self.given.arguments):
            env = graph.values[run]
            for name, each in gradients.items():
                x = np.asarray(arguments[name], float)
                way = rng.standard_normal(x.shape)
                h = _STEP * max(1.0, float(np.max(np.abs(x), initial=0.0)))
                ends = [self._results({**arguments, name: x + s * h * way}) for s in (1, -1)]
                slope = sum(
                    float(np.sum((a - b) * env[dy]))
                    for a, b, dy in zip(*ends, cotangents, strict=True)
                ) / (2 * h)
                found = float(np.sum(graph.value(each, graph[name].axes, run) * way))
                size = sum(
                    float(np.sum(np.abs(a * env[dy])))
                    for a, dy in zip(ends[0], cotangents, strict=True)
                )
                if not abs(slope - found) <= _NEAR * (abs(slope) + abs(found) + size):
                    raise UnprovedError(
                        f"derive: d{name} differs from differences of the forward: "
                        f"{found:.6g}, not {slope:.6g}"
                    )

    def _read_back(
        self,
        graph: Graph,
        functions: Functions,
        gradients: Mapping[str, Sum],
        cotangents: Mapping[str, str],
    ) -> None:
        """Run what is emitted: the forward's own bits, and the gradients of the algebra."""
        compiled = functions.compiled()
        taken = inspect.signature(compiled["forward"]).parameters
        for run, arguments in enumerate(self.given.arguments):
            env = graph.values[run]
            known = {name: value for name, value in arguments.items() if name in taken}
            y, cache = compiled["forward"](**known)
            ys = y if isinstance(y, tuple) else (y,)
            if any(
                not np.array_equal(a, b, equal_nan=True)
                for a, b in zip(ys, self._results(arguments), strict=True)
            ):
                raise UnprovedError("derive: the emitted forward has other bits than the forward")
            dys = tuple(env[name] for name in cotangents)
            found = compiled["backward"](dys[0] if len(dys) == 1 else dys, cache)
            found = found if isinstance(found, tuple) else (found,)
            for (name, each), emitted in zip(gradients.items(), found, strict=True):
                wanted = graph.value(each, graph[name].axes, run)
                scale = float(np.max(np.abs(wanted), initial=0.0)) or 1.0
                near = np.shape(emitted) == np.shape(wanted) and bool(
                    np.all(np.abs(emitted - wanted) <= _SAME * scale)
                )
                if not near:
                    raise UnprovedError(f"derive: the emitted d{name} differs from its algebra")

    def _results(self, arguments: dict[str, Any]) -> list[Any]:
        """The results of the user's forward that are floats."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = _without_cache(self.function(**arguments), np.ndarray | np.generic)
        return [np.asarray(each) for each in found if np.asarray(each).dtype.kind == "f"]

    def _compare(self, graph: Graph, gradients: Mapping[str, Sum], plain: Derivation) -> None:
        """Take back every simplified gradient that differs from the plain one: there is none."""
        for name, each in gradients.items():
            for run in (0, 1):
                one = graph.value(each, graph[name].axes, run)
                two = plain.graph.value(plain.gradients[name], graph[name].axes, run)
                scale = float(np.max(np.abs(two), initial=0.0)) or 1.0
                if float(np.max(np.abs(one - two), initial=0.0)) > _SAME * scale:
                    raise UnprovedError(f"derive: d{name} differs from the plain reverse sweep")


def _outputs(program: Program) -> list[Node]:
    """The results as nodes, without a cache."""
    found = _without_cache(program.result, Node)
    if not found or not all(isinstance(each, Node) for each in found):
        raise UnreadableError(
            "derive: forward returns something other than arrays; allowed: y, several results in a "
            "tuple, or (y, cache)"
        )
    return [node for node in found if np.asarray(node.value).dtype.kind == "f"]


def _without_cache(result: Any, kind: Any) -> list[Any]:
    """The results one by one; the second of two is a cache unless it is arrays in plain tuples."""
    if isinstance(result, tuple) and len(result) == 2 and not isinstance(result[1], kind):
        y, cache = result
        is_plain = type(cache) is tuple and all(isinstance(each, kind) for each in flat(cache))
        if not (is_plain and isinstance(y, kind)):
            result = y
    return list(flat(result))


def _as_shape(axes: tuple[str | None, ...]) -> tuple[Any, ...]:
    """Axes as `derive` takes them."""
    shape = tuple(1 if x is None else int(x) if x.isdecimal() else x for x in axes)
    if not any(isinstance(each, str) for each in shape):
        raise NoLoopError
    return shape


def _numbers(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are numbers, which formulas call by name."""
    return {
        name: value
        for name, value in settings.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
