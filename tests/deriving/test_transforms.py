"""Transforms and their frequencies, numbers at the ends of arrays, and counts: kinds of forwards
whose derivation asks for functions that make arrays of numbers.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.special

import handgrad as hg
from tests.deriving.of_torch import assert_equal_to_torch
from tests.rows import rows

X = np.random.default_rng(4).standard_normal((4, 5))
FORWARDS: dict[str, Any] = {
    "ends": lambda x: np.append(np.append(x, 1.0) ** 2, [3]),
    "ends of shapes": lambda x: np.concatenate([x[0], np.reshape(x.shape[1] * 0.5, 1)]) ** 2,
    "frequencies": lambda x: np.fft.ifft2(np.fft.fft2(x) * (1j * np.fft.fftfreq(len(x[0])))).real,
    "frequencies of spacings": lambda x: np.fft.fftfreq(len(x), x[0, 0] ** 2 + 1) @ x,
    "frequencies of reals": lambda x: np.fft.irfft(
        np.fft.rfft(x) * np.fft.rfftfreq(x.shape[1], 0.5), x.shape[1]
    ),
    "scipy's": lambda x: scipy.fft.irfft(scipy.fft.rfft(x)[:, ::-1], x.shape[1]),
    "complex with real": lambda x: np.abs((np.eye(2, dtype=complex) * 1j) @ x[:2] + x[:2] * 2j),
    "slopes of digamma": lambda x: scipy.special.digamma(1 + x * x),
    "cosines": lambda x: scipy.fft.dct(x) + scipy.fft.dct(x, 3, axis=0, norm="ortho"),
    "cosines back": lambda x: scipy.fft.idct(x, norm="ortho") * scipy.fft.idct(x, 3, axis=0),
    "cosines forward": lambda x: scipy.fft.dct(x, norm="forward") * scipy.fft.idct(x, norm="ortho"),
    "cosines of all axes": lambda x: scipy.fft.idctn(np.tanh(scipy.fft.dctn(x)), norm="forward"),
}


@pytest.mark.parametrize("name", FORWARDS)
def test_it_is_derived_for_all_lengths(name: str) -> None:
    forward = FORWARDS[name]
    derived = hg.derive(forward, x=("N", "D"))
    assert not derived.fixed
    rng = np.random.default_rng(6)
    for shape in ((4, 5), (5, 8)):
        x, way = rng.standard_normal(shape), rng.standard_normal(shape)
        y, cache = derived.forward(x)
        np.testing.assert_allclose(y, forward(x), rtol=1e-9, atol=1e-11)
        dy = rng.standard_normal(y.shape)
        slope = np.vdot(dy, forward(x + 1e-6 * way) - forward(x - 1e-6 * way)) / 2e-6
        np.testing.assert_allclose(np.vdot(derived.backward(dy, cache), way), slope, rtol=1e-6)


@rows("library", ["torch", "jax"])
def test_it_is_written_for_other_libraries(library: str) -> None:
    importlib.import_module(library)
    for name in ("ends", "frequencies", "complex with real", "slopes of digamma", "cosines back"):
        assert hg.derive(FORWARDS[name], x=("N", "D")).to(library)


def test_a_cosine_transform_of_another_type_is_named() -> None:
    with pytest.raises(hg.errors.ArgumentError, match="only cosine transforms of types 2 and 3"):
        hg.derive(lambda x: scipy.fft.dct(x, 4), x=("N", "D"))


def _spectrum(torch: Any) -> Any:
    def spectrum(z: Any, w: Any) -> Any:
        """The window is shorter than the transform, and the sequence is reflected at its ends."""
        y = torch.stft(z, 6, 2, 4, w, return_complex=True)
        return y.abs() + torch.stft(z, 6, 2, center=False, return_complex=True).imag.sum()

    return spectrum


def _counted(torch: Any) -> Any:
    def counted(z: Any, w: Any) -> Any:
        inside = torch.histc(z, 4, -1, 1) + torch.bincount((z > 0).long().flatten(), minlength=4)
        return inside * w * z.sum() * z.shape.numel() / z.shape[1:].numel()

    return counted


@rows("made", [_spectrum, _counted])
def test_what_pytorch_has_of_its_own(made: Any) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(8)
    z, w = rng.standard_normal((2, 14)), rng.standard_normal(4)
    assert_equal_to_torch(made(torch), {"z": z, "w": w}, [z, w])


def test_places_are_given_in_a_tuple() -> None:
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(8).standard_normal((4, 5))
    assert_equal_to_torch(lambda x: torch.abs(x[:, (0, 2)]) * x[(1, 3), :2].sum(), {"x": x}, [x])


def _loads(x: Any) -> Any:
    """The share of an expert's rows, as a loss has it that balances them."""
    return ((x > 0).mean(0) * np.tanh(x)).sum()


def test_a_mean_of_truths_is_as_long_as_the_arrays() -> None:
    jax = pytest.importorskip("jax")
    derived, names = hg.derive(_loads, x=("N", "D")), {}
    exec(derived.to("jax"), names)
    x = np.random.default_rng(3).standard_normal((7, 4))
    wanted = derived.backward(np.float64(1), derived.forward(x)[1])
    with jax.enable_x64(True):
        _, cache = names["forward"](jax.numpy.asarray(x))
        found = names["backward"](jax.numpy.ones(()), cache)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
