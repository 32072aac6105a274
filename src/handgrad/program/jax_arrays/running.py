"""A function on JAX's arrays as one on NumPy's, in double precision."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from handgrad.program.nodes import mapped
from handgrad.program.reading import reached
from handgrad.program.tensors.running import Detached


@dataclass(frozen=True)
class OnJaxArrays:
    """A function on arrays of JAX as one on those of NumPy."""

    function: Callable[..., Any]

    def run(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], detached: Detached, times: int = 1
    ) -> list[Any]:
        """The results, as NumPy's arrays, of calls after each other."""
        import jax

        results = []
        with jax.enable_x64(True), jax.disable_jit(), self._detaching(detached):
            for _ in range(times):
                given, named = mapped(_of_jax, args), mapped(_of_jax, kwargs)
                results.append(mapped(_of_numpy, self.function(*given, **named)))
        return results

    def gradients(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        dys: list[Any],
        wanted: list[Any],
    ) -> list[Any]:
        """The gradients that JAX has for some of the arrays among the arguments.

        dys: cotangents of the results that are floats.
        """
        import jax
        import jax.numpy as jnp

        def results(own: list[Any]) -> list[Any]:
            places = {id(array): own[k] for k, array in enumerate(wanted)}

            def given(value: Any) -> Any:
                return places[id(value)] if id(value) in places else _of_jax(value)

            found: list[Any] = []
            mapped(found.append, self.function(*mapped(given, args), **mapped(given, kwargs)))
            return [y for y in found if jnp.issubdtype(jnp.result_type(y), jnp.floating)]

        with jax.enable_x64(True):
            _, pull = jax.vjp(results, list(map(_of_jax, wanted)))
            (gradients,) = pull(list(map(jnp.asarray, dys)))
            return list(map(np.asarray, gradients))

    @functools.cached_property
    def _places(self) -> list[tuple[dict[str, Any], str]]:
        """The places of stop_gradient: in jax.lax, and in the user's modules by any name."""
        import jax

        functions = (f for f in reached(self.function) if isinstance(f, types.FunctionType))
        spaces = {id(f.__globals__): f.__globals__ for f in functions}.values()
        return [
            (space, name)
            for space in (vars(jax.lax), *spaces)
            for name, value in space.items()
            if value is jax.lax.stop_gradient
        ]

    @contextmanager
    def _detaching(self, detached: Detached) -> Iterator[None]:
        """JAX with a stop_gradient that keeps what it stops."""
        import jax

        own, places = jax.lax.stop_gradient, self._places

        def stopped(x: Any) -> Any:
            return jax.tree.map(lambda each: detached(jax.numpy.asarray(each)), own(x))

        try:
            for space, name in places:
                space[name] = stopped
            yield
        finally:
            for space, name in places:
                space[name] = own


def _of_jax(value: Any) -> Any:
    import jax.numpy as jnp

    return jnp.asarray(value) if isinstance(value, np.ndarray) else value


def _of_numpy(value: Any) -> Any:
    return np.asarray(value) if hasattr(value, "block_until_ready") else value
