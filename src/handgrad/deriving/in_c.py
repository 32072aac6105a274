"""A pair as functions in C over arrays in memory."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from handgrad.deriving.arguments import at
from handgrad.deriving.guards import fixed_letters, is_of_few, open_rules
from handgrad.deriving.modules import NEAR, compare, wanted_of
from handgrad.deriving.moving import double, single
from handgrad.deriving.pair import DerivedPair
from handgrad.deriving.refusals import UnprovedError
from handgrad.program.c_axes import elements, merged
from handgrad.program.c_spellings import typed
from handgrad.program.emit_c import CEmitter, refused_in_c
from handgrad.program.emit_nest import Filling, Nest
from handgrad.program.libraries import C, helper
from handgrad.program.node import Node, Program, within

if TYPE_CHECKING:
    from handgrad.deriving.proof import Proof

_FLAGS: Final = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
_LONG: Final = 96


@dataclass(frozen=True)
class CFunction:
    """A function in C: the lengths, arrays and numbers that it takes, in order, its source.

    results: the nodes of what it fills, which come last.
    """

    name: str
    letters: Sequence[str]
    arrays: Sequence[Node]
    results: Sequence[Node]
    source: str
    helpers: Sequence[str]


def functions(pair: DerivedPair, name: str) -> tuple[CFunction, CFunction]:
    """The forward and the backward. Raises UnwritableError for what has no loop over rows."""
    world, arguments = pair.traced.world, pair.traced.arguments
    fixed = _fixed(pair)
    for rule in open_rules(world, arguments):
        sign, left, right = rule
        if not (left - right).letters <= fixed.keys() and not is_of_few(rule):
            raise refused_in_c(None, f"a forward that holds where {left} {sign} {right} alone")
    if any(relation == "true" for relation, *_ in world.guards):
        raise refused_in_c(None, "a branch on a value")
    if world.masks:
        raise refused_in_c(None, "an array of as many elements as a mask selects")
    plain = re.sub(r"\W", "_", name, flags=re.ASCII).strip("_")
    prefix = "" if plain == "forward" else f"{plain}_"
    inputs, outputs = pair.traced.program.inputs, pair.forward.outputs
    # Values that the forward keeps are called as in the source for NumPy.
    cache = dict(zip(map(id, pair.kept), pair.written().cache, strict=False))
    ends = [""] if len(outputs) == 1 else [str(k + 1) for k in range(len(outputs))]
    made = [(cache.get(id(n)) or n.name or f"y{k}", n) for k, n in zip(ends, outputs, strict=True)]
    known = set(map(id, [*inputs, *outputs]))
    made += [(cache[id(n)], n) for n in pair.kept if id(n) not in known]
    given = [("dy" if len(pair.cotangents) == 1 else n.name, n) for n in pair.cotangents]
    given += [(cache[id(n)], n) for n in pair.kept]
    wanted = [f"d{'_'.join(map(str, path))}" for path in pair.wanted]
    gradients = list(zip(wanted, pair.backward.outputs, strict=True))
    real, letters = real_of(pair), arguments.letters
    with within(world):
        forward = _CWriting(f"{prefix}forward", real, letters, False)
        backward = _CWriting(f"{prefix}backward", real, letters, True)
        both = forward.of([(n.name, n) for n in inputs], made), backward.of(given, gradients)
    for letter in fixed:
        if any(letter in each.letters for each in both):
            raise refused_in_c(None, f"a size of {letter}, which is {fixed[letter]} alone,")
    return both


def _fixed(pair: DerivedPair) -> dict[str, Any]:
    """Settings that the pair is for one value of, which are no arguments in C."""
    numbers = fixed_letters(pair.traced.world)
    found = {}
    for setting in pair.traced.arguments.settings:
        if setting.letter in numbers or not (setting.is_free or setting.letter):
            found[setting.letter or setting.name] = setting.value
    return found


def real_of(pair: DerivedPair) -> str:
    """The type of floats: single where all arrays of the example are."""
    floats = [s for s in pair.traced.arguments.specs if s.kind == "f"]
    return "float" if floats and all(s.is_single for s in floats) else "double"


@dataclass
class _CWriting:
    """The name, type and letters with which a function is written."""

    name: str
    real: str
    letters: Sequence[str]
    loose: bool

    def of(
        self, inputs: Sequence[tuple[str, Node]], outputs: Sequence[tuple[str, Node]]
    ) -> CFunction:
        """The function of some arrays and numbers that fills others."""
        e = CEmitter(self.real, loose=self.loose)
        made, axes = merged(*elements(Program([n for _, n in inputs], [n for _, n in outputs])))
        used = set(map(id, [*made.outputs, *(a for n in made.body for a in n.args)]))
        given = [(e.names.fresh(own or "given"), n) for own, n in inputs if id(n) in used]
        filled = [(e.names.fresh(own), n) for own, n in outputs]
        e.filled = {own for own, _ in filled}
        results = [
            Filling(own, n, each)
            for (own, _), n, each in zip(filled, made.outputs, axes, strict=True)
        ]
        nest = Nest(e, made, results)
        for n in made.places:
            e.variables[id(n)] = nest.counter(made.axes[id(n)][0])
        for own, n in given:
            e.variables[id(n)] = nest.element(own, made.axes[id(n)]) if n.shape else own
        nest.run()
        letters = sorted(e.names.letters, key=[*self.letters, *e.names.letters].index)
        parameters = [f"ptrdiff_t {e.names.letters[x]}" for x in letters]
        for own, n in given:
            star = "const {} *restrict {}" if n.shape else "{} {}"
            parameters.append(star.format(e.type_of(n), own))
        parameters += [f"{e.type_of(n)} *restrict {own}" for own, n in filled]
        source = "\n".join([_wrapped(f"void {self.name}(", parameters), "{", *e.lines, "}"])
        nodes = [n for _, n in given], [n for _, n in filled]
        return CFunction(self.name, letters, *nodes, source + "\n", list(e.helpers))


def _wrapped(start: str, parameters: Sequence[str]) -> str:
    """A head with its parameters, in lines that are not long."""
    lines, line = [], start
    for k, each in enumerate(parameters):
        text = each + ("," if k < len(parameters) - 1 else ")")
        if len(line) + len(text) > _LONG:
            lines.append(line.rstrip())
            line = "    "
        line += text + " "
    return "\n".join([*lines, line.rstrip()])


def module(pair: DerivedPair, found: Sequence[CFunction]) -> str:
    """The source of both functions."""
    helpers = sorted({each for f in found for each in f.helpers})
    heads = "\n".join(C.imports.format(each) for each in ("math", "stddef"))
    own = [typed(helper(each, C), real_of(pair)) for each in helpers]
    told = [f"{name} = {value}" for name, value in _fixed(pair).items()]
    rules = open_rules(pair.traced.world, pair.traced.arguments)
    told += [f"{left} {sign} {right}" for sign, left, right in filter(is_of_few, rules)]
    if told:  # C has no error for others
        heads = f"/* For {', '.join(told)}. */\n{heads}"
    return "\n".join([f"{heads}\n", *own, *(f.source for f in found)])


def prove(proof: Proof, found: Sequence[CFunction], source: str) -> str:
    """Compile a source and run it beside the functions for NumPy, and say how it went.

    Raises UnprovedError where it does not compile, or has other values.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        return "not run: no C compiler is installed"
    with built(compiler, source) as library:
        trials = [trial for trial in proof.trials() if trial.is_first or "=" in trial.said]
        for trial in trials[:2]:
            _compare(proof, library, found, trial.values)
    return "run"


@contextmanager
def built(compiler: str, source: str) -> Iterator[ctypes.CDLL]:
    """A source as a library that can be called; its file is there for as long as that takes."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "derived.so")
        command = [compiler, *_FLAGS, "-x", "c", "-", "-o", str(made), "-lm"]
        told = subprocess.run(
            command, input=source, capture_output=True, encoding="utf-8", check=False
        )
        if told.returncode:
            first = next((x for x in told.stderr.splitlines() if "error" in x), "it fails")
            raise UnprovedError(f"the source for c does not compile ({first})")
        yield ctypes.CDLL(str(made))


def _compare(
    proof: Proof, library: ctypes.CDLL, found: Sequence[CFunction], values: dict[str, Any]
) -> None:
    pair, precision = proof.pair, "float32" if real_of(proof.pair) == "float" else "float64"
    if precision == "float32":
        values = single(values)
    try:
        dys, wanted = wanted_of(proof, values)
        _, exact = wanted_of(proof, double(values))
    except ValueError:  # what it refuses
        return
    own = {id(n): at(values, path) for path, n in pair.traced.inputs.items()}
    own |= {id(n): at(values, path) for path, n in pair.traced.numbers.items()}
    own |= {id(n): dy for n, dy in zip(pair.cotangents, dys, strict=True)}
    lengths = pair.traced.arguments.lengths_of(values)
    for function in found:
        run(library, function, lengths, own, precision)
    results = [own[id(n)] for n in (*pair.forward.outputs, *pair.backward.outputs)]
    compare("c", precision, NEAR[precision], results, wanted, exact, wanted)


def run(
    library: ctypes.CDLL,
    function: CFunction,
    lengths: Mapping[str, int],
    values: dict[int, Any],
    precision: str,
) -> None:
    """Call a function on the values of nodes, to which those that it makes are added."""
    kinds = {"f": precision, "i": "int64", "b": "bool"}
    given: list[Any] = [ctypes.c_ssize_t(lengths[x]) for x in function.letters]
    made = []
    for n in function.arrays:
        value = np.ascontiguousarray(values[id(n)], kinds[n.kind])
        made.append(value)
        number = np.ctypeslib.as_ctypes_type(value.dtype)
        given.append(value.ctypes.data_as(ctypes.c_void_p) if n.shape else number(value.item()))
    for n in function.results:
        shape = tuple(size.number(lengths) for size in n.shape)
        # None of what is there before counts.
        values[id(n)] = np.full(shape, 3, kinds[n.kind])
        given.append(values[id(n)].ctypes.data_as(ctypes.c_void_p))
    getattr(library, function.name)(*given)
