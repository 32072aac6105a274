"""Matrix products in GFLOP/s: `hg.matmul`, NumPy, PyTorch and JAX on the same operands.

For bf16, handgrad gets float32 matrices and converts them itself; PyTorch and JAX get theirs
already converted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from benchmarks.bursts import compare
from benchmarks.contender import Job

#: (M, N, K) of C = A B with A (M, K) and B (K, N), and the precision.
PRODUCTS: Final = (
    ((1024, 1024, 1024), "float32"),
    ((1040, 1040, 1040), "float32"),
    ((2048, 1536, 384), "float32"),
    ((768, 3072, 2048), "float32"),
    ((1024, 1024, 1024), "bf16"),
    ((2048, 1536, 384), "bf16"),
)
#: K from 960 on, powers of two and what is beside them: rows that far apart may collide in a cache.
SWEEP: Final = tuple(
    ((1024, 1024, k), "float32")
    for k in (960, 1008, 1024, 1040, 1152, 1280, 1536, 1792, 2032, 2048, 2064, 2112)
)
SECTIONS: Final = {"matmul": PRODUCTS, "matmul_sweep": SWEEP}


def title(size: tuple[int, int, int], precision: str) -> str:
    return f"{'×'.join(map(str, size))} {precision}"


def measure(
    size: tuple[int, int, int], precision: str, peers: Iterable[str], **settings: Any
) -> dict[str, Any]:
    names = ["handgrad", *(["numpy"] if precision == "float32" else []), *peers]
    arguments = {"size": size, "precision": precision}
    found = compare([(name, arguments) for name in names], "benchmarks.matmul", **settings)
    return {**found, "precision": precision}


def _operands(size: list[int]) -> tuple[np.ndarray, np.ndarray]:
    rows, columns, depth = size
    rng = np.random.default_rng(0)
    a = rng.standard_normal((rows, depth), dtype=np.float32)
    return a, rng.standard_normal((depth, columns), dtype=np.float32)


def _repeated(product: Callable[[], Any]) -> Callable[[int], None]:
    def run(count: int) -> None:
        for _ in range(count):
            product()

    return run


def handgrad(size: list[int], precision: str) -> Job:
    import handgrad as hg

    a, b = _operands(size)
    c = np.empty((size[0], size[1]), np.float32)
    run = _repeated(lambda: hg.matmul(a, b, out=c, precision=precision))
    return Job(run, hg.__version__, 2 * size[0] * size[1] * size[2])


def numpy(size: list[int], precision: str) -> Job:
    a, b = _operands(size)
    c = np.empty((size[0], size[1]), np.float32)
    return Job(_repeated(lambda: np.matmul(a, b, out=c)), np.__version__)


def torch(size: list[int], precision: str) -> Job:
    import torch as library

    dtype = library.bfloat16 if precision == "bf16" else library.float32
    a, b = (library.from_numpy(x).to(dtype) for x in _operands(size))
    c = library.empty(size[0], size[1], dtype=dtype)
    return Job(_repeated(lambda: library.mm(a, b, out=c)), library.__version__)


def jax(size: list[int], precision: str) -> Job:
    import jax as library
    from jax import numpy as jnp

    dtype = jnp.bfloat16 if precision == "bf16" else jnp.float32
    a, b = (jnp.asarray(x, dtype) for x in _operands(size))
    product = library.jit(jnp.matmul)
    return Job(_repeated(lambda: product(a, b).block_until_ready()), library.__version__)
