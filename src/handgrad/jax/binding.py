"""A model over other arrays: the twin that a function of JAX is traced with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

from handgrad.arrays import Array
from handgrad.dispatch import engine, get_precision
from handgrad.dispatch.translation import translating
from handgrad.jax.loops import scanned
from handgrad.layers.base import Layer
from handgrad.layers.twins import twin


class KeyGenerator(np.random.Generator):
    """Uniform numbers of a JAX key, for layers that draw from a generator in training.

    `key` is the data of the one that the next numbers come from.
    """

    def __init__(self, key: Array) -> None:
        super().__init__(np.random.PCG64(0))
        self.key = key

    def random(  # type: ignore[override]
        self, size: Any = None, dtype: Any = np.float64, out: None = None
    ) -> Any:
        """Numbers from 0 to 1, and another key."""
        following, own = jax.random.split(jax.random.wrap_key_data(self.key))
        self.key = jax.random.key_data(following)
        return jax.random.uniform(own, size or (), dtype)


def bound(model: Layer, arrays: Mapping[str, Array], keys: Mapping[str, Array]) -> Layer:
    """A model like this one with these parameters and buffers, and generators of these keys."""
    return twin(model, arrays, {name: KeyGenerator(keys[name]) for name in model.generators})


@contextmanager
def references() -> Iterator[None]:
    """Ops run as their references, with loops over time as XLA compiles them.

    Unless it is told so, XLA rounds the operands of float32 products on GPUs and TPUs.
    """
    products = jax.default_matmul_precision("bfloat16" if get_precision() == "bf16" else "highest")
    with engine("reference"), translating(scanned), products:
        yield
