"""`hg.derive`: from a forward the backward that one would write down, proved before it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from types import ModuleType
from typing import Any, Final

import numpy as np

from handgrad.deriving.algebra import Simplification, simplified
from handgrad.deriving.algebra.facts import Assumption, assumptions
from handgrad.deriving.arguments import (
    Arguments,
    Path,
    flat,
    read_arguments,
    readings,
    renamed,
    solved,
)
from handgrad.deriving.derivation import Derivation
from handgrad.deriving.derived import ChainRule
from handgrad.deriving.guards import fixed_letters, holds, size_rules
from handgrad.deriving.meetings import MeetingError
from handgrad.deriving.pair import DerivedPair, assemble
from handgrad.deriving.proof import DoubleError, Proof, WiderError
from handgrad.deriving.refusals import ByChanceError, UnprovedError, UnreadableError, refused
from handgrad.deriving.reverse import gradient
from handgrad.deriving.samples import Sampler, called
from handgrad.deriving.second import backward_arguments
from handgrad.deriving.targets import forward_of, op_examples
from handgrad.deriving.traced import OwnForward, Traced, traced
from handgrad.errors import ArgumentError, HandgradError
from handgrad.program.node import Node, Refused, within
from handgrad.program.reading import libraries_of

#: So many choices of numbers are tried where differences tell nothing on those before.
_MOST_NUMBERS: Final = 4
#: Rounds by which a loop is known, though the first two and the last are others.
_ROUNDS: Final = 5


def derive(
    forward: str | Callable[..., object] | ModuleType,
    *arrays: object,
    assume: Mapping[str, float] | None = None,
    wrt: Sequence[str] | None = None,
    save: str | None = None,
    **named: object,
) -> Derivation:
    """The backward of a forward, derived from it alone.

    `forward` is a function that takes arrays of NumPy, or tensors of PyTorch, and returns y,
    several results, or (y, cache), of which the cache is left aside; or a module of PyTorch, whose
    parameters are further arrays; or an op, such as "layer_norm". Arrays are given as examples, or
    as shapes in letters, such as x=("N", "D"), mask=("N", "D", bool) and tokens=("N", int), which
    tell axes apart that are of one length by chance; dicts, tuples and lists of them are taken as
    they are. Other arguments are settings, a tuple of numbers where the forward takes no array of
    that shape. `assume` states sums that are constant, such as {"sum(q, -1)": 1}. `wrt` names the
    arrays that get a gradient; all of floats unless given. With `save="least"` the forward keeps as
    few bytes as the backward can do with, which computes the rest again.

    Where a branch of the forward hangs on a value, a size or a setting, the derived forward raises
    ValueError where it would go another way. At a tie max gives each its share, and maximum(x, 0)
    has derivative 0 at 0, unless the forward is smooth there.

    Raises ArgumentError for arguments that the forward does not take, and UnreadableError, which
    names the line, for what cannot be derived.
    """
    if save not in (None, "least"):
        raise ArgumentError(f"derive: save is {save!r}; allowed: 'least'")
    facts = assumptions(assume or {})
    if isinstance(wrt, str):
        wrt = [wrt]
    name, function, axes = forward_of(forward)
    own = getattr(function, "arguments", None)
    if isinstance(own, Arguments) and not arrays and not named:  # a backward derived before
        return Deriving(name, function, own, facts, assume or {}, wrt, save).run()
    refusal: ArgumentError | None = None
    if not arrays and not axes.keys() & named.keys():
        for example in op_examples(forward, axes):
            try:
                arguments = read_arguments(function, (), {**example, **named})
                found = Deriving(name, function, arguments, facts, assume or {}, wrt, save)
                # Letters of an op that are not free of each other give way to its samples.
                return replace(found, every=False).run()
            except ArgumentError as error:
                refusal = error
    for arguments in readings(function, arrays, named) if refusal is None else ():
        try:
            return Deriving(name, function, arguments, facts, assume or {}, wrt, save).run()
        except ArgumentError as error:
            refusal = refusal or error
    assert refusal is not None
    raise refusal


@dataclass
class Deriving:
    """One derivation on its way; `every` is as that of its samplers."""

    name: str
    function: Callable[..., Any]
    arguments: Arguments
    facts: list[Assumption]
    assume: Mapping[str, float]
    wrt: Sequence[str] | None
    save: str | None = None
    every: bool = True
    #: Loops of a number of rounds that stands in the code are traced as so many statements.
    spells_out: bool = False
    #: The domains of numbers that have been tried.
    found: list[Any] = field(default_factory=list)

    def run(self) -> Derivation:
        """The derivation. Raises UnreadableError for all that stands in its way.

        A setting that stays no variable is fixed: one that decides how the forward goes on, or at
        whose other values the result is wrong.
        """
        self._check_assumed()
        free = [s.path for s in self.arguments.settings if s.is_free]
        refusal: UnreadableError | None = None
        tries: list[list[Path]] = [
            [],
            *([path] for path in free),
            *([free] if len(free) > 1 else []),
        ]
        while tries:
            fixed = tries.pop(0)
            try:
                return self._derived(self.arguments.with_fixed(fixed))
            except UnreadableError as error:
                refusal = error
                if isinstance(unproved := error.__cause__, UnprovedError):
                    named = [path for path in free if path in (*fixed, unproved.setting)]
                    more = named if len(named) > len(fixed) else free
                    tries = [more] if len(more) > len(fixed) else []
            except (HandgradError, MemoryError):
                raise
            except Exception as error:  # of a form that nothing here expects
                why = f"no derivation of this is known ({type(error).__name__}: {error})"
                refusal = refused(why, self.function)
                refusal.__cause__ = error
        assert refusal is not None
        raise refusal

    @cached_property
    def forward(self) -> OwnForward:
        """The forward on its library's arrays: on those of an example, where it runs on them.

        Where nothing tells, all that may be meant have to have the same results.
        """
        known = libraries_of(self.function)
        own = self.arguments.library
        if len(known) == 1 and (not own or known != {"numpy"}):
            return OwnForward(self.function, *known)
        found: dict[str, list[Any]] = {}
        for library in sorted(known | {own} - {""}, key=(own, "numpy", "torch", "jax").index):
            forward = OwnForward(self.function, library)
            with suppress(ArgumentError):
                sampler = next(self._samplers(self.arguments, forward))
                values = sampler.draw(np.random.default_rng(4), sampler.lengths())
                result = called(forward.on_arrays(), sampler.arguments.parameters, values)
                found[library] = flat(result)
            if own and found:
                return forward
        usual, *others = found or ["numpy"]
        for other in others:
            if not all(map(_is_same, found[usual], found[other])):
                raise refused(
                    f"the forward has other results on arrays of {usual} than on those of {other}",
                    self.function,
                    "an example that is an array of its library, or parameters annotated by it",
                )
        return OwnForward(self.function, usual)

    def _derived(self, arguments: Arguments) -> Derivation:
        """The derivation on the first numbers on which differences tell whether it is right."""
        refusal: UnprovedError | None = None
        chance: ByChanceError | None = None
        samplers = self._samplers(arguments, self.forward)
        for sampler in islice(samplers, _MOST_NUMBERS):
            try:
                return self._derived_on(sampler)
            except ByChanceError as error:
                chance = chance or error
                self.found.pop()  # other lengths for the same domains
            except UnprovedError as error:
                refusal = refusal or error
                if not error.is_rough:
                    break
        if refusal is None:
            assert chance is not None
            raise chance
        allowed = "a forward that stands its proof"
        if refusal.array:  # at a jump or a kink, such as labels have it that are floats
            allowed += f", or wrt without {refusal.array}, along which it is not smooth"
        raise refused(str(refusal), self.function, allowed) from refusal

    def _derived_on(self, sampler: Sampler) -> Derivation:
        arguments = sampler.arguments
        found = self._freest(sampler)
        if (again := self._with_rounds(sampler, found)) is not None:
            return again
        if any(spec.example is not None for spec in arguments.specs):
            sampler, found = self._with_letters(sampler, found)
        if self.forward.library != "numpy":
            self._refuse_changes(sampler)
        return self._smooth(found, sampler)

    def _with_rounds(self, sampler: Sampler, found: Traced) -> Derivation | None:
        """The derivation for any number of rounds, where a setting asks for one or two.

        So few are no loop yet: with more of them there is one, if they are alike.
        """
        only = fixed_letters(found.world)
        settings = [s for s in sampler.arguments.settings if s.letter and s.letter == s.name]
        few = [s for s in settings if s.example in (1, 2) and only.get(s.letter) == s.example]
        if not few:
            return None
        arguments = sampler.arguments.with_tried({s.path: _ROUNDS for s in few})
        more = replace(sampler, arguments=arguments)
        with suppress(UnprovedError, UnreadableError):
            world = self._traced(more).world
            lengths = world.lengths | {s.letter: s.value for s in few}
            if all(holds(rule, lengths) for rule in size_rules(world)):
                return self._derived_on(more)
        return None

    def _refuse_changes(self, sampler: Sampler) -> None:
        """Raises UnreadableError for a forward that changes what it goes by."""
        values = sampler.draw(np.random.default_rng(5), sampler.lengths(), examples=True)
        results = called(self.forward.twice, sampler.arguments.parameters, values)
        one, again = map(flat, results)
        if not all(map(_is_same, one, again)):
            raise refused(
                "the forward has another result when it is called again, so that it changes what "
                "it goes by, such as a buffer",
                self.function,
                "a forward of its arguments alone",
            )

    def _smooth(self, found: Traced, sampler: Sampler) -> Derivation:
        """The derivation with the slope, where pieces meet, that is right at smooth points."""
        try:
            return self._proved(found, sampler)
        except MeetingError as error:
            refusal = error
        for ties in ("half", "right") if refusal.is_number else ("flat",):
            try:
                return self._proved(self._traced(sampler, ties), sampler)
            except MeetingError as error:
                refusal = error
        raise refusal

    def _check_assumed(self) -> None:
        names = {spec.name for spec in self.arguments.specs if len(spec.path) == 1}
        for fact in self.facts:
            if fact.name not in names:
                raise ArgumentError(
                    f"derive: assume {fact.text!r}: {fact.name} is no array; allowed: an argument"
                )

    def _samplers(self, arguments: Arguments, forward: OwnForward) -> Iterator[Sampler]:
        """Numbers that the forward is defined for, once for each choice of domains.

        Raises ArgumentError where it always fails.
        """
        sampler = Sampler(arguments, self.facts, every=self.every)
        failed: Exception | None = None
        choice: tuple[Any, Any] | None = None  # the first that runs, or is finite once
        is_finite = False
        self.found.clear()
        for _ in sampler.choices():
            if sampler.domains in self.found:
                continue
            values = sampler.draw(np.random.default_rng(1), sampler.lengths(), examples=True)
            try:
                result = called(forward.on_arrays(), arguments.parameters, values)
            except Exception as error:  # sizes or values that do not fit, in the user's words
                failed = failed or error
                continue
            if _is_finite(result):
                if all(map(_is_finite, self._further(sampler, forward))):
                    self.found.append(sampler.domains)
                    yield replace(sampler)
                if not is_finite:
                    choice, is_finite = (dict(sampler.domains), sampler.order), True
            choice = choice or (dict(sampler.domains), sampler.order)
        if self.found:
            return
        if choice is None:
            raise ArgumentError(
                f"derive: the forward fails on its example: {type(failed).__name__}: {failed}; "
                "allowed: arrays or shapes that it takes"
            ) from failed
        sampler.domains, sampler.order = choice
        yield sampler

    def _further(self, sampler: Sampler, forward: OwnForward) -> Iterator[Any]:
        """Results on further numbers: those that are finite once may be so by chance."""
        for seed in (2, 3):
            values = sampler.draw(np.random.default_rng(seed), sampler.lengths())
            with suppress(Exception):  # of numbers that the forward refuses by itself
                yield called(forward.on_arrays(), sampler.arguments.parameters, values)

    def _traced(self, sampler: Sampler, ties: str = "first") -> Traced:
        lengths = sampler.lengths()
        values = sampler.draw(np.random.default_rng(1), lengths, examples=True)
        return traced(
            self.forward,
            sampler.arguments,
            values,
            lengths,
            ties=ties,
            spells_out=self.spells_out,
        )

    def _freest(self, sampler: Sampler) -> Traced:
        """The trace that holds for the most lengths.

        The layers of a stack, two rounds within each of a loop over time, are rolled up only where
        the loop around them is rolled up as well; spelled out they are values that it hands on.
        """
        found = self._traced(sampler)
        if not self.spells_out and (only := fixed_letters(found.world)):
            self.spells_out = True
            with suppress(UnreadableError):
                other = self._traced(sampler)
                if len(fixed_letters(other.world)) < len(only):
                    return other
            self.spells_out = False
        return found

    def _with_letters(self, sampler: Sampler, found: Traced) -> tuple[Sampler, Traced]:
        """The same with one letter for the axes that the forward lines up."""
        made = [x for x in sampler.arguments.letters if x not in self._declared()]
        equal = [(left, right) for sign, left, right in size_rules(found.world) if sign == "=="]
        arguments = sampler.arguments.with_letters(solved(equal, made))
        arguments = arguments.with_letters(renamed(arguments))
        again = Sampler(arguments, self.facts, sampler.domains, sampler.order)
        return again, self._traced(again)

    def _declared(self) -> set[str]:
        return {
            x
            for spec in self.arguments.specs
            if spec.example is None
            for size in spec.shape
            for x in size.letters
        }

    def _proved(self, found: Traced, sampler: Sampler) -> Derivation:
        """The derivation, simplified where that stands the proof as well."""
        with within(found.world):
            sweep = self._sweep(found)
            pair, steps = self._pair(found, sweep, simple=True)
        try:
            return self._proof(pair, sampler, ChainRule(tuple(sweep.gradients), tuple(steps)))
        except UnprovedError:
            if not steps:
                raise
        with within(found.world):
            pair, _ = self._pair(found, sweep, simple=False)
        return self._proof(pair, sampler, ChainRule(tuple(sweep.gradients), ()))

    def _proof(self, pair: DerivedPair, sampler: Sampler, chain: ChainRule) -> Derivation:
        while True:
            written = pair.written()
            proof = Proof(pair, sampler, written.compiled())
            try:
                proof.run()
            except DoubleError as error:
                if error.place in pair.casts:
                    raise UnprovedError("a gradient of float32 is not float32") from error
                pair.casts.add(error.place)
                continue
            except WiderError:
                pair.floats_alike = True
                continue
            forward, backward = proof.functions["forward"], proof.functions["backward"]
            backward.arguments = backward_arguments(pair, written.letters, sampler, forward)
            return Derivation(self.name, pair, written, proof, chain)

    def _sweep(self, found: Traced) -> Sweep:
        wanted = found.wanted(self._wanted())
        try:
            cotangents, gradients = gradient(found.program, [found.inputs[p] for p in wanted])
        except (NotImplementedError, Refused) as error:
            raise refused(str(error), self.function) from error
        outputs = found.program.outputs
        if len(outputs) > 1:
            for k, (cotangent, out) in enumerate(zip(cotangents, outputs, strict=True)):
                cotangent.name = f"d{out.name}" if out.name else f"dy{k + 1}"
        return Sweep(wanted, cotangents, gradients)

    def _wanted(self) -> Sequence[str] | None:
        """The arrays asked for, of a module's parameters also by their paths; no frozen ones."""
        names = {path: name for name, path in getattr(self.function, "paths", {}).items()}
        frozen = getattr(self.function, "frozen", ())
        if self.wrt is None and frozen:
            kept = (spec for spec in self.arguments.specs if spec.kind == "f")
            return [spec.name for spec in kept if spec.name not in frozen]
        return self.wrt if self.wrt is None else [names.get(each, each) for each in self.wrt]

    def _pair(
        self, found: Traced, sweep: Sweep, *, simple: bool
    ) -> tuple[DerivedPair, list[Simplification]]:
        gradients = sweep.gradients
        steps: list[Simplification] = []
        if simple:
            gradients, steps = simplified(
                found.program, sweep.cotangents, gradients, self.assume, found.world
            )
        is_least = self.save is not None
        pair = assemble(found, sweep.wanted, sweep.cotangents, gradients, keeps_least=is_least)
        return pair, steps


def _is_finite(result: Any) -> bool:
    """True where a result has floats, all of them finite."""
    found = [x for x in flat(result) if getattr(getattr(x, "dtype", None), "kind", "") == "f"]
    return all(x.size and np.all(np.isfinite(x)) for x in found)


def _is_same(one: Any, other: Any) -> bool:
    return np.shape(one) == np.shape(other) and np.allclose(one, other, equal_nan=True)


@dataclass
class Sweep:
    """Gradients as the chain rule gives them, with the cotangents that they hang on."""

    wanted: list[Path]
    cotangents: list[Node]
    gradients: list[Node]


__all__ = ["Deriving", "UnreadableError", "derive"]
