"""torch.linalg and torch.fft, by NumPy's functions of the same names."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, Final, NamedTuple

from handgrad.program.primitives.table import module_of_scipy
from handgrad.program.standins import shown_module
from handgrad.program.tensors.table import (
    axes,
    enter,
    torch_function,
    torch_refused,
    xp,
)
from handgrad.program.tensors.windows import pad, windows_of

solver: Final = shown_module(module_of_scipy("linalg"))

#: Those with PyTorch's arguments, and of which also torch.name is known.
_SAME: Final = ("det", "inv", "matrix_power", "eigh", "eig", "eigvalsh", "eigvals", "slogdet")
for _name in (*_SAME, "svdvals", "tensorinv", "tensorsolve"):
    enter(f"linalg.{_name}", getattr(xp.linalg, _name))
for _name in ("det", "matrix_power", "slogdet"):
    enter(_name, getattr(xp.linalg, _name))
enter("inverse", xp.linalg.inv)
enter("linalg.matmul", xp.matmul)


@torch_function("linalg.cholesky", "cholesky")
def cholesky(x: Any, *, upper: bool = False) -> Any:
    return xp.linalg.cholesky(x, upper=upper)


@torch_function("linalg.solve")
def solve(a: Any, b: Any, *, left: bool = True) -> Any:
    if left:
        of_vectors = b.ndim > 1 and b.ndim == a.ndim - 1 and b.shape == a.shape[:-1]
        return xp.linalg.solve(a, b[..., None])[..., 0] if of_vectors else xp.linalg.solve(a, b)
    return xp.swapaxes(xp.linalg.solve(xp.swapaxes(a, -1, -2), xp.swapaxes(b, -1, -2)), -1, -2)


def _with_info(name: str, function: Any, result: str) -> None:
    """A function that says beside its result whether it failed, which it never does here."""
    make: Any = namedtuple  # of names that are known here alone
    kind = make(name, (result, "info"))

    def told(a: Any, *args: Any, check_errors: bool = False, **kwargs: Any) -> Any:
        return kind(function(a, *args, **kwargs), xp.zeros(a.shape[:-2], dtype=int))

    enter(f"linalg.{name}", told)


_with_info("solve_ex", solve, "result")
_with_info("inv_ex", xp.linalg.inv, "inverse")
_with_info("cholesky_ex", cholesky, "L")


@torch_function("linalg.solve_triangular")
def solve_triangular(
    a: Any, b: Any, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    """PyTorch reads no element of the other triangle, and so solves with zeros there."""
    if not left:
        a, b = xp.swapaxes(a, -1, -2), xp.swapaxes(b, -1, -2)
        upper = not upper
    kept = xp.triu(a, int(unitriangular)) if upper else xp.tril(a, -int(unitriangular))
    kept = kept + xp.eye(a.shape[-1]) if unitriangular else kept
    y = xp.linalg.solve(kept, b)
    return y if left else xp.swapaxes(y, -1, -2)


@torch_function("cholesky_solve")
def cholesky_solve(b: Any, factor: Any, upper: bool = False) -> Any:
    factor = xp.triu(factor) if upper else xp.tril(factor)
    turned = xp.swapaxes(factor, -1, -2)
    first, second = (turned, factor) if upper else (factor, turned)
    return xp.linalg.solve(second, xp.linalg.solve(first, b))


@torch_function("logdet")
def logdet(x: Any) -> Any:
    sign, logarithm = xp.linalg.slogdet(x)
    return logarithm + 0.0 * xp.log(sign)  # NaN where the determinant is negative


class Decomposition(NamedTuple):
    """The result of torch.svd, with V and not its transpose."""

    U: Any
    S: Any
    V: Any


@torch_function("linalg.svd")
def svd(x: Any, full_matrices: bool = True, *, driver: Any = None) -> Any:
    return xp.linalg.svd(x, full_matrices=full_matrices)


@torch_function("svd")
def plain_svd(x: Any, some: bool = True, compute_uv: bool = True) -> Any:
    u, s, transposed = xp.linalg.svd(x, full_matrices=not some)
    return Decomposition(u, s, xp.conj(xp.swapaxes(transposed, -1, -2)))


@torch_function("linalg.qr", "qr")
def qr(x: Any, mode: str = "reduced") -> Any:
    return xp.linalg.qr(x, mode)


@torch_function("linalg.pinv", "pinverse")
def pinv(x: Any, rcond: Any = None, *, hermitian: bool = False) -> Any:
    return xp.linalg.pinv(x)


@torch_function("linalg.matrix_exp", "matrix_exp")
def matrix_exp(x: Any) -> Any:
    return solver.expm(x)


@torch_function("linalg.matrix_norm")
def matrix_norm(x: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False) -> Any:
    return xp.linalg.norm(x, ord, axis=axes(dim), keepdims=keepdim)


@torch_function("linalg.vecdot")
def vecdot(x: Any, y: Any, *, dim: int = -1) -> Any:
    return xp.sum(xp.conj(x) * y, axis=dim)


@torch_function("linalg.diagonal")
def diagonal(a: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    return xp.diagonal(a, offset, dim1, dim2)


@torch_function("linalg.vander")
def vander(x: Any, N: Any = None) -> Any:
    return xp.vander(x, N, increasing=True)


torch_refused(
    "{name} of PyTorch is not known to derive; write linalg.solve of the normal equations, or"
    " linalg.pinv",
    *("linalg.lstsq", "linalg.lu", "linalg.lu_factor", "linalg.lu_solve", "linalg.ldl_factor"),
    *("lu", "lu_solve", "linalg.householder_product", "lobpcg"),
)


def _transform(name: str, several: bool) -> Any:
    own = getattr(xp.fft, name)

    def one(x: Any, n: Any = None, dim: int = -1, norm: Any = None) -> Any:
        return own(x, n, dim, norm)

    def more(x: Any, s: Any = None, dim: Any = None, norm: Any = None) -> Any:
        if dim is None and name.endswith("2"):
            dim = (-2, -1)
        return own(x, s, axes(dim), norm)

    return more if several else one


for _name in ("fft", "rfft"):
    for _kind in ("", "2", "n"):
        for _full in (f"{_name}{_kind}", f"i{_name}{_kind}"):
            enter(f"fft.{_full}", _transform(_full, several=bool(_kind)))


def _shift(name: str) -> Any:
    def shifted(x: Any, dim: Any = None) -> Any:
        return getattr(xp.fft, name)(x, axes(dim))

    return shifted


for _name in ("fftshift", "ifftshift"):
    enter(f"fft.{_name}", _shift(_name))


for _name in ("fftfreq", "rfftfreq"):
    enter(f"fft.{_name}", getattr(xp.fft, _name))


@torch_function()
def stft(
    x: Any,
    n_fft: Any,
    hop_length: Any = None,
    win_length: Any = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: Any = None,
    return_complex: Any = None,
) -> Any:
    """Transforms of windows a hop apart: (…, frequencies, windows)."""
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    weights = xp.ones(length) if window is None else window
    before = (n_fft - length) // 2
    weights = xp.pad(weights, (before, n_fft - length - before))
    if center:
        half = n_fft // 2
        x = pad(x, (half, half), pad_mode)
    frames = windows_of(x, -1, n_fft, hop) * weights
    transform = xp.fft.fft if onesided is False or frames.dtype.kind == "c" else xp.fft.rfft
    y = xp.swapaxes(transform(frames, norm="ortho" if normalized else None), -1, -2)
    return y if return_complex else xp.stack((xp.real(y), xp.imag(y)), axis=-1)


torch_refused("istft is not known; write torch.fft.irfft and overlapping sums", "istft")
