"""What `hg.derive` gives: two functions, their sources, and how they were found."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from handgrad.arrays import Array
from handgrad.deriving import modules, second
from handgrad.deriving.derived import Derived
from handgrad.deriving.lengths import with_lengths
from handgrad.deriving.proof import DoubleError, Proof
from handgrad.deriving.refusals import UnprovedError, refused
from handgrad.deriving.second import Second
from handgrad.deriving.second_proof import prove_hvp, prove_jvp
from handgrad.deriving.story import document
from handgrad.errors import ArgumentError
from handgrad.paths import as_path
from handgrad.program.libraries import LIBRARIES
from handgrad.writing import reason, write_file

if TYPE_CHECKING:
    from handgrad.equations.notes import Notes


#: One array, or several.
Results: TypeAlias = Array | tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class Derivation(Derived):
    """A forward and the backward derived from it.

    forward, backward: functions on NumPy arrays, compiled from `forward_source` and
    `backward_source`: y, cache = d.forward(*arrays), gradients = d.backward(dy, cache).
    cache: the names of what forward keeps. steps: every simplification, with both sides, the rule
    and its reason. fixed: sizes that it holds for alone. programs: both as nodes.
    """

    @cached_property
    def forward(self) -> Callable[..., tuple[Results, object]]:
        return with_lengths(self.proof.functions["forward"], self.pair.traced.arguments)

    @property
    def backward(self) -> Callable[..., Results]:
        function: Callable[..., Any] = self.proof.functions["backward"]
        return function

    @cached_property
    def jvp(self) -> Callable[..., Results]:
        """`d.jvp(tangents, *arrays)`: the change of the results along one of the arrays.

        tangents: that of each array that has a gradient, bare where there is one.
        """
        function: Callable[..., Any] = self._jvp.function
        return function

    @cached_property
    def hvp(self) -> Callable[..., Results]:
        """`d.hvp(vectors, dy, *arrays)`: the change of the gradients along one of the arrays.

        Where the result is a number and dy is 1, this is the product of the Hessian with vectors.
        """
        function: Callable[..., Any] = self._hvp.function
        return function

    @property
    def jvp_source(self) -> str:
        return self._jvp.source

    @property
    def hvp_source(self) -> str:
        return self._hvp.source

    @cached_property
    def _jvp(self) -> Second:
        return self._proved(second.jvp(self.pair, self.chain.gradients), prove_jvp)

    @cached_property
    def _hvp(self) -> Second:
        return self._proved(second.hvp(self.pair, self.chain.gradients), prove_hvp)

    def _proved(self, found: Second, prove: Callable[[Proof, Second], None]) -> Second:
        try:
            prove(self.proof, found)
        except UnprovedError as error:
            function = self.pair.traced.forward.function
            raise refused(str(error), function, "a forward that stands its proof") from error
        return found

    def notes(self, path: str | os.PathLike[str] | None = None) -> Notes:
        """The derivation as a page, written to a file of its suffix if one is given.

        Raises ArgumentError for an unknown suffix, or where the file cannot be written.
        """
        from handgrad.equations.notes import Notes

        notes = Notes(document(self))
        if path is not None:
            notes.save(path)
        return notes

    def to(self, library: str, path: str | os.PathLike[str] | None = None) -> str:
        """The source for "numpy", "torch" (an autograd.Function), "jax" (a custom_vjp) or "c".

        In C it is two functions over row-major arrays, for functions of elements and reductions
        over rows. It is written to a file if one is given. Where the library, or a C compiler, is
        installed the source is run before. Raises ArgumentError for another library, for a source
        that is not right there, for what C has no loop over rows for, or where the file cannot be
        written.
        """
        if library not in LIBRARIES:
            raise ArgumentError(f"derive: library is {library!r}; allowed: {', '.join(LIBRARIES)}")
        source = self._in_c() if library == "c" else self._source(library)
        if path is not None:
            try:
                write_file(as_path("derive", path), source.encode())
            except OSError as error:
                raise ArgumentError(
                    f"derive: {path} cannot be written ({reason(error)}); allowed: a file in a "
                    "folder that exists and can be written to"
                ) from None
        return source

    def _source(self, library: str) -> str:
        casts = set(self.pair.casts)
        try:
            while True:
                source = modules.module(self.pair, self.name, library)
                if library == "numpy":
                    return source
                try:
                    modules.prove(self.proof, library, source)
                    return source
                except DoubleError as error:
                    if error.place in self.pair.casts:
                        raise UnprovedError(f"the source for {library} is not float32") from error
                    self.pair.casts.add(error.place)
        except UnprovedError as error:
            function = self.pair.traced.forward.function
            raise refused(str(error), function, "the source for numpy") from error
        finally:
            self.pair.casts = casts

    def _in_c(self) -> str:
        # Here, because each search of a check loads this module and none writes C.
        from handgrad.deriving import in_c
        from handgrad.program.emit_c import UnwritableError

        function = self.pair.traced.forward.function
        try:
            found = in_c.functions(self.pair, self.name)
            source = in_c.module(self.pair, found)
            in_c.prove(self.proof, found, source)
            return source
        except UnwritableError as error:
            raise refused(str(error), function) from error
        except UnprovedError as error:
            raise refused(str(error), function, "the source for numpy") from error

    def _repr_html_(self) -> str:
        return self.notes()._repr_html_()

    def __str__(self) -> str:
        return f"{self.forward_source}\n\n{self.backward_source}"
