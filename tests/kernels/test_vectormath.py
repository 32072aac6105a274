"""The largest errors that vectormath.h states, against arithmetic of twice the precision."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from handgrad import kernels
from handgrad.ops import attention

pytestmark = pytest.mark.skipif(kernels.native is None, reason="the kernels were not compiled")

#: In units in the last place: (float32, float64), as in the table of core/simd/vectormath.h.
BOUNDS = {
    "exp": (1.5, 1.5),
    "log": (1.0, 1.0),
    "log1p": (1.5, 1.5),
    "tanh": (3.0, 3.0),
    "sigmoid": (2.5, 2.5),
    "erf": (1.5, 3.5),
    "sin": (2.5, 2.5),
    "cos": (2.5, 2.5),
    "reciprocal": (1.0, 1.0),
}
COUNT = 20_000
EACH_TYPE = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])


def computed(name: str, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    y = np.empty_like(x)
    getattr(kernels.native, f"vector_{name}")(x, y)
    return y


def arguments(name: str, dtype: Any) -> np.ndarray[Any, Any]:
    """Both signs and every magnitude at which the function is neither constant nor out of range."""
    rng = np.random.default_rng(11)
    lowest, highest = (-103.0, 88.7) if dtype == np.float32 else (-745.0, 709.7)
    if name == "log":
        spread = np.exp(rng.uniform(lowest, highest, COUNT))
        return np.concatenate([spread, rng.uniform(0.5, 2.0, COUNT)]).astype(dtype)
    if name == "log1p":
        spread = np.exp(rng.uniform(lowest, 0.0, COUNT))
        return np.concatenate([spread, rng.uniform(0.0, 1.0, COUNT)]).astype(dtype)
    if name == "reciprocal":
        normal = np.exp(rng.uniform(lowest + 40, highest - 2, COUNT))
        return (normal * rng.choice([-1.0, 1.0], COUNT)).astype(dtype)
    if name in ("sin", "cos"):
        far = np.exp(rng.uniform(0.0, highest, COUNT)) * rng.choice([-1.0, 1.0], COUNT)
        near = rng.integers(-3000, 3000, COUNT) * (np.pi / 2)
        reduced = rng.uniform(-1e6, 1e6, COUNT)
        return np.concatenate([far, near, reduced, rng.uniform(-9, 9, COUNT)]).astype(dtype)
    reach = {"tanh": 20.0, "erf": 6.5}.get(name)
    wide = rng.uniform(*((lowest, highest) if reach is None else (-reach, reach)), COUNT)
    small = np.exp(rng.uniform(lowest, 0.0, COUNT)) * rng.choice([-1.0, 1.0], COUNT)
    return np.concatenate([wide, rng.uniform(-2.0, 2.0, COUNT), small]).astype(dtype)


def precise_erf(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """erf in long double: the Taylor series near 0, a continued fraction of 1 − erf beyond."""
    x = x.astype(np.longdouble)
    root_pi = np.sqrt(4 * np.arctan(np.longdouble(1)))
    near = np.clip(np.abs(x), 0, 2)
    term = total = near
    for n in range(1, 60):
        term = -term * near * near / n
        total = total + term / (2 * n + 1)
    far = np.clip(np.abs(x), 2, 10)
    fraction = np.zeros_like(far)
    for n in range(150, 0, -1):
        fraction = (np.longdouble(n) / 2) / (far + fraction)
    complement = np.exp(-far * far) / (root_pi * (far + fraction))
    return np.sign(x) * np.where(np.abs(x) < 2, 2 / root_pi * total, 1 - complement)


def precise(name: str, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    x = x.astype(np.longdouble)
    if name == "erf":
        return precise_erf(x)
    if name == "reciprocal":
        return 1 / x
    if name == "sigmoid":
        return np.where(x < 0, np.exp(-np.abs(x)), 1) / (1 + np.exp(-np.abs(x)))
    return getattr(np, name)(x)


@pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 60, reason="long double is no more precise than double here"
)
@EACH_TYPE
@pytest.mark.parametrize("name", BOUNDS)
def test_error_is_within_the_stated_bound(name: str, dtype: Any) -> None:
    x = arguments(name, dtype)
    expected = precise(name, x)
    unit = np.spacing(np.abs(expected.astype(dtype))).astype(np.longdouble)
    errors = np.abs(computed(name, x).astype(np.longdouble) - expected) / unit
    worst = np.argmax(errors)
    assert errors[worst] <= BOUNDS[name][dtype == np.float64], f"at x = {x[worst]!r}"


@EACH_TYPE
@pytest.mark.parametrize("count", [1, 3, 15, 17, 123])
def test_last_few_values_equal_whole_vectors(count: int, dtype: Any) -> None:
    x = np.linspace(-3, 3, 128, dtype=dtype)
    for name in ("exp", "tanh", "sigmoid", "erf", "sin", "cos"):
        np.testing.assert_array_equal(computed(name, x[:count]), computed(name, x)[:count])


@EACH_TYPE
@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("exp", math.inf, math.inf),
        ("exp", -math.inf, 0.0),
        ("exp", 1e30, math.inf),
        ("exp", -1e30, 0.0),
        ("exp", 0.0, 1.0),
        ("log", 0.0, -math.inf),
        ("log", -0.0, -math.inf),
        ("log", -1.0, math.nan),
        ("log", math.inf, math.inf),
        ("log", 1.0, 0.0),
        ("log1p", 0.0, 0.0),
        ("tanh", math.inf, 1.0),
        ("tanh", -math.inf, -1.0),
        ("tanh", -0.0, -0.0),
        ("sigmoid", math.inf, 1.0),
        ("sigmoid", -math.inf, 0.0),
        ("sigmoid", 0.0, 0.5),
        ("erf", math.inf, 1.0),
        ("erf", -math.inf, -1.0),
        ("erf", -0.0, -0.0),
        ("sin", -0.0, -0.0),
        ("sin", math.inf, math.nan),
        ("cos", 0.0, 1.0),
        ("cos", -math.inf, math.nan),
        *((name, math.nan, math.nan) for name in BOUNDS),
    ],
)
def test_special_values(name: str, x: float, expected: float, dtype: Any) -> None:
    y = computed(name, np.full(1, x, dtype=dtype))[0]
    np.testing.assert_equal(y, dtype(expected))
    assert math.isnan(expected) or np.signbit(y) == np.signbit(expected)


@EACH_TYPE
def test_denormal_numbers_are_kept(dtype: Any) -> None:
    smallest = np.finfo(dtype).smallest_subnormal
    x = np.full(1, smallest, dtype=dtype)
    assert computed("tanh", x)[0] == smallest
    assert computed("log", x)[0] == dtype(np.log(smallest))
    tiny = computed("exp", np.log(np.finfo(dtype).tiny / 8, dtype=dtype).reshape(1))
    assert 0 < tiny[0] < np.finfo(dtype).tiny


@pytest.mark.parametrize("queries", [1, 40])
@pytest.mark.parametrize(("dtype", "last"), [(np.float32, -87.0), (np.float64, -708.0)])
def test_the_smallest_weight_of_an_attention_that_is_no_denormal(
    dtype: Any, last: float, queries: int
) -> None:
    """Few queries and many go different ways; y is the weights themselves."""
    q = np.ones((1, 1, queries, 1), dtype)
    k = np.array([0.0, last, last - 1.0], dtype).reshape(1, 1, 3, 1)
    y, _ = attention.forward(q, k, np.eye(3, dtype=dtype)[None, None], scale=1.0)
    for weights in y[0, 0]:
        assert math.isclose(weights[1], math.exp(last), rel_tol=1e-6)
        assert weights[2] == 0.0
