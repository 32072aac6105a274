"""Causal attention alone, forward and backward: one sequence, 6 heads of 64 features, T steps.

What the process grows by says whether all T × T weights are ever held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from benchmarks.bursts import compare
from benchmarks.contender import Job
from benchmarks.machine import resident_bytes
from benchmarks.workloads import product

HEADS: Final = 6
SIZE: Final = 64
#: Steps of the sequence that fills a library's own buffers before its memory is looked at.
SHORT: Final = 64


def measure(steps: int, peers: Iterable[str], **settings: Any) -> dict[str, Any]:
    contenders = [(name, {"steps": steps}) for name in ("handgrad", *peers)]
    return compare(contenders, "benchmarks.attention", **settings)


def _arrays(steps: int) -> list[np.ndarray]:
    """q, k, v and dy."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal((1, HEADS, steps, SIZE), dtype=np.float32) for _ in range(4)]


def _job(step: Callable[..., Any], arrays: Callable[[int], list[Any]], **about: Any) -> Job:
    """step: for q, k, v and dy; returns when it is finished."""
    step(*arrays(SHORT))
    before = resident_bytes()
    given = arrays(about["steps"])
    step(*given)

    def run(count: int) -> None:
        for _ in range(count):
            step(*given)

    flops = product(2 * HEADS * SIZE, about["steps"] * (about["steps"] + 1) // 2)
    return Job(run, about["version"], flops, before=before)


def handgrad(steps: int) -> Job:
    import handgrad as hg

    def step(q: Any, k: Any, v: Any, dy: Any) -> None:
        _, cache = hg.ops.attention.forward(q, k, v, causal=True)
        hg.ops.attention.backward(dy, cache)

    return _job(step, _arrays, steps=steps, version=hg.__version__)


def torch(steps: int) -> Job:
    import torch as library
    from torch.nn.functional import scaled_dot_product_attention

    def arrays(steps: int) -> list[Any]:
        *inputs, dy = map(library.from_numpy, _arrays(steps))
        return [*(x.requires_grad_() for x in inputs), dy]

    def step(q: Any, k: Any, v: Any, dy: Any) -> None:
        y = scaled_dot_product_attention(q, k, v, is_causal=True)
        library.autograd.grad(y, (q, k, v), dy)

    return _job(step, arrays, steps=steps, version=library.__version__)


def jax(steps: int) -> Job:
    import jax as library
    from jax import numpy as jnp

    def arrays(steps: int) -> list[Any]:
        return [jnp.asarray(x.transpose(0, 2, 1, 3)) for x in _arrays(steps)]

    def both(q: Any, k: Any, v: Any, dy: Any) -> Any:
        def attention(*qkv: Any) -> Any:
            return library.nn.dot_product_attention(*qkv, is_causal=True)

        y, backward = library.vjp(attention, q, k, v)
        return y, backward(dy)

    compiled = library.jit(both)

    def step(*given: Any) -> None:
        library.block_until_ready(compiled(*given))

    return _job(step, arrays, steps=steps, version=library.__version__)
