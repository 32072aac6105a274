"""Matrix products in GFLOP/s: `hg.matmul`, NumPy, BLIS, PyTorch and JAX on the same operands.

NumPy multiplies with its OpenBLAS, PyTorch with MKL where it was built so; BLIS is the library of
the system (Van Zee, van de Geijn, BLIS: a framework for rapidly instantiating BLAS functionality,
2015), called by ctypes. For bf16, handgrad gets float32 matrices and converts them itself; PyTorch
and JAX get theirs already converted.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from ctypes.util import find_library
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


def always(precision: str) -> tuple[str, ...]:
    """The libraries of products alone, which are no `--peers`: those that are here."""
    if precision != "float32":
        return ()
    return ("numpy", "blis") if find_library("blis") else ("numpy",)


def measure(
    size: tuple[int, int, int], precision: str, peers: Iterable[str], **settings: Any
) -> dict[str, Any]:
    names = ["handgrad", *peers]
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


def blis(size: list[int], precision: str) -> Job:
    library = ctypes.CDLL(find_library("blis"))
    library.bli_info_get_version_str.restype = ctypes.c_char_p
    number, matrix, factor = ctypes.c_int, ctypes.c_void_p, ctypes.c_float
    operands = (factor, matrix, number, matrix, number, factor, matrix, number)
    library.cblas_sgemm.argtypes = (*[number] * 6, *operands)
    a, b = _operands(size)
    rows, columns, depth = size
    c = np.empty((rows, columns), np.float32)
    row_major, as_it_is = 101, 111

    def product() -> None:
        # The arrays are named here so that they live as long as the product.
        library.cblas_sgemm(
            *(row_major, as_it_is, as_it_is, rows, columns, depth, 1, a.ctypes.data, depth),
            *(b.ctypes.data, columns, 0, c.ctypes.data, columns),
        )

    product()
    np.testing.assert_allclose(c, a @ b, rtol=1e-3, atol=1e-3 * depth**0.5)
    version = library.bli_info_get_version_str().decode()
    return Job(_repeated(product), version, 2 * rows * columns * depth)


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
