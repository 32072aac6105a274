"""A function on JAX's arrays as one on NumPy's, in double precision."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

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

    @contextmanager
    def _detaching(self, detached: Detached) -> Iterator[None]:
        """JAX, and the user's modules that have it by its name, with a stop_gradient that keeps."""
        import jax

        own = jax.lax.stop_gradient

        def stopped(x: Any) -> Any:
            return jax.tree_util.tree_map(lambda each: detached(jax.numpy.asarray(each)), own(x))

        functions = (
            each for each in reached(self.function) if isinstance(each, types.FunctionType)
        )
        with mock.patch.object(jax.lax, "stop_gradient", stopped):
            patches = [
                mock.patch.dict(space, {name: stopped})
                for space in {id(f.__globals__): f.__globals__ for f in functions}.values()
                for name in [name for name, value in space.items() if value is own]
            ]
            for each in patches:
                each.start()
            try:
                yield
            finally:
                for each in patches:
                    each.stop()


def _of_jax(value: Any) -> Any:
    import jax.numpy as jnp

    return jnp.asarray(value) if isinstance(value, np.ndarray) else value


def _of_numpy(value: Any) -> Any:
    return np.asarray(value) if hasattr(value, "block_until_ready") else value
