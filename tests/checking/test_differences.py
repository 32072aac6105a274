"""Derivatives by differences: their error is below their bound, and the bound is small."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.differences.directional import (
    CENTRAL,
    COMPLEX,
    KINK,
    NOT_FINITE,
    UNMOVED,
    Derivative,
    complex_step,
    directional,
    elementwise,
)
from handgrad.errors import ArgumentError
from tests.ops.cases import SMALL_CASES, Case, each, leaves

#: A bound is to say something: below this fraction of the derivative where the function is smooth.
SMALL = 1e-6
#: Calls of f along one direction, with kinks or without; more where the derivative is nearly 0.
MOST_CALLS = 13

SMOOTH: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "square": (np.square, lambda x: 2 * x),
    "cubic": (lambda x: x**3 - x, lambda x: 3 * x**2 - 1),
    "quintic": (lambda x: x**5 + 3 * x**4, lambda x: 5 * x**4 + 12 * x**3),
    "exp": (np.exp, np.exp),
    "sin": (np.sin, np.cos),
    "tanh": (np.tanh, lambda x: 1 - np.tanh(x) ** 2),
}


class Counted:
    """⟨w, f(x)⟩, and how often it was asked for."""

    def __init__(self, function: Callable[[Any], Any], weights: np.ndarray) -> None:
        self.function = function
        self.weights = weights
        self.calls = 0

    def __call__(self, point: dict[str, Any]) -> float:
        self.calls += 1
        return float(np.sum(self.weights * self.function(point["x"])))


def _assert_within(found: Derivative, right: float) -> None:
    assert abs(found.value - right) <= found.bound, (found, right)


def test_smooth_functions() -> None:
    rng = np.random.default_rng(0)
    calls = []
    for i in range(300):
        function, slope = SMOOTH[list(SMOOTH)[i % len(SMOOTH)]]
        size = int(rng.integers(1, 200))
        x, d, w = rng.standard_normal((3, size))
        f = Counted(function, w)
        found = directional(f, {"x": x}, {"x": d})
        _assert_within(found, float(np.sum(w * slope(x) * d)))
        assert found.bound <= SMALL * np.linalg.norm(w * slope(x) * d)
        assert found.method == CENTRAL
        calls.append(f.calls)
    assert np.mean(np.array(calls) > MOST_CALLS) < 0.03


@pytest.mark.parametrize("scale", [1e-30, 1e-8, 1e-4, 1e4, 1e8, 1e30])
def test_badly_scaled_inputs(scale: float) -> None:
    rng = np.random.default_rng(0)
    x, d, w = rng.standard_normal((3, 50))
    for name in ("square", "cubic"):
        function, slope = SMOOTH[name]
        found = directional(Counted(function, w), {"x": scale * x}, {"x": d})
        _assert_within(found, float(np.sum(w * slope(scale * x) * d)))
        assert found.bound <= SMALL * abs(found.value)
    for name in ("exp", "sin", "tanh"):
        function, slope = SMOOTH[name]
        if scale < 1:
            found = directional(Counted(function, w), {"x": scale * x}, {"x": d})
            _assert_within(found, float(np.sum(w * slope(scale * x) * d)))
            assert scale < 1e-20 or found.bound <= SMALL * abs(found.value)


@pytest.mark.parametrize("scale", [1e4, 1e6])
def test_a_function_that_changes_on_a_smaller_scale_than_its_input(scale: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, d, w = scale * rng.standard_normal(50), *rng.standard_normal((2, 50))
        found = directional(Counted(np.sin, w), {"x": x}, {"x": d})
        _assert_within(found, float(np.sum(w * np.cos(x) * d)))
        assert found.bound <= 1e-2 * np.linalg.norm(w * np.cos(x) * d)


@each([case for case in SMALL_CASES if case.row.smooth])
def test_every_op(case: Case) -> None:
    arrays = case.arrays()
    with hg.engine("reference"):
        y, cache = case.forward(arrays)
        dy = case.random_like(y, "cotangent")
        gradients = case.backward(dy, cache)

        def f(point: dict[str, Any]) -> float:
            outputs = zip(leaves(dy), leaves(case.forward(point)[0]), strict=True)
            return float(sum(np.sum(d * output) for d, output in outputs))

        dy_size = np.sqrt(sum(np.sum(d * d) for d in leaves(dy)))
        for name in case.differentiable:
            direction = case.random_like(arrays[name], f"direction of {name}")
            terms = gradients[name] * direction
            found = directional(f, arrays, {name: direction})
            rounding = 1e-15 * np.sum(np.abs(terms))  # of the right value itself
            assert abs(found.value - np.sum(terms)) <= found.bound + rounding
            if dy_size > 0 and "wide" not in case.label:
                scale = max(np.linalg.norm(terms), 1e-3 * dy_size)
                assert found.bound <= 10 * SMALL * scale


def test_several_arrays_at_once_and_constants() -> None:
    rng = np.random.default_rng(0)
    a, b, c, da, db = rng.standard_normal((5, 7))
    found = directional(
        lambda point: float(np.sum(point["a"] * point["b"] * point["c"])),
        {"a": a, "b": 1e6 * b, "c": c},
        {"a": da, "b": db},
    )
    _assert_within(found, float(np.sum((da * 1e6 * b + a * db) * c)))


@pytest.mark.parametrize("size", [100, 10_000, 100_000])
def test_relu_of_random_numbers(size: int) -> None:
    rng = np.random.default_rng(size)
    for _ in range(10):
        x, d, w = rng.standard_normal((3, size))
        f = Counted(lambda x: np.maximum(x, 0), w)
        found = directional(f, {"x": x}, {"x": d})
        _assert_within(found, float(np.sum(w * (x > 0) * d)))
        assert found.bound <= SMALL * np.linalg.norm(w * (x > 0) * d)
        assert f.calls <= MOST_CALLS


def test_max_pool_of_random_numbers() -> None:
    rng = np.random.default_rng(0)
    for _ in range(3):
        x, d = rng.standard_normal((2, 5, 4, 64, 80))
        y, cache = hg.ops.max_pool2d.forward(x, 2)
        dy = rng.standard_normal(y.shape)
        terms = hg.ops.max_pool2d.backward(dy, cache) * d
        f = Counted(lambda x: hg.ops.max_pool2d.forward(x, 2)[0], dy)
        found = directional(f, {"x": x}, {"x": d})
        _assert_within(found, float(np.sum(terms)))
        assert found.bound <= SMALL * np.linalg.norm(terms)


def test_network_with_kinks() -> None:
    rng = np.random.default_rng(0)
    for _ in range(40):
        n, a, b = rng.integers(1, 60, 3)
        x, w = rng.standard_normal((n, a)), rng.standard_normal((a, b)) / np.sqrt(a)
        dy, dx, dw = (rng.standard_normal(shape) for shape in ((n, b), (n, a), (a, b)))
        h = x @ w
        dh = dy * (1 - np.tanh(np.maximum(h, 0)) ** 2) * (h > 0)
        found = directional(
            lambda point, dy=dy: float(
                np.sum(dy * np.tanh(np.maximum(point["x"] @ point["w"], 0)))
            ),
            {"x": x, "w": w},
            {"x": dx, "w": dw},
        )
        _assert_within(found, float(np.sum(dh @ w.T * dx) + np.sum(x.T @ dh * dw)))


@pytest.mark.parametrize("nearness", [1e-2, 1e-5, 1e-8, -1e-2, -1e-5, -1e-8])
def test_a_kink_near_the_point(nearness: float) -> None:
    x = np.array([nearness, 1.0, -2.0])
    found = directional(
        Counted(lambda x: np.maximum(x, 0) + np.exp(x), np.array([1.7, 1.0, 1.0])),
        {"x": x},
        {"x": np.array([1.0, 0.0, 0.0])},
    )
    _assert_within(found, 1.7 * (float(nearness > 0) + math.exp(nearness)))


def test_a_kink_at_the_point() -> None:
    found = directional(
        Counted(lambda x: np.abs(x) + x, np.array([1.5])), {"x": np.zeros(1)}, {"x": np.ones(1)}
    )
    assert found.method == KINK
    for convention in (0.0, 1.5, 3.0):
        _assert_within(found, convention)


def test_constant_functions() -> None:
    found = directional(lambda point: 3.0, {"x": np.ones(3)}, {"x": np.array([1.0, -2.0, 0.5])})
    assert found.value == 0
    assert found.bound < 1e-10


def test_a_function_that_no_longer_changes() -> None:
    x, d = np.array([50.0, -60.0]), np.array([0.3, -0.7])
    found = directional(Counted(np.tanh, np.array([1.0, 2.0])), {"x": x}, {"x": d})
    _assert_within(found, 0.0)


def test_a_direction_of_zeros() -> None:
    found = directional(lambda point: 3.0, {"x": np.ones(3)}, {"x": np.zeros(3)})
    assert found == Derivative(0.0, 0.0, UNMOVED, 0.0)
    assert directional(lambda point: 3.0, {"x": np.ones(3)}, {}).method == UNMOVED


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_values_that_are_not_finite(value: float) -> None:
    found = directional(lambda point: value, {"x": np.ones(3)}, {"x": np.ones(3) / 7})
    assert math.isnan(found.value)
    assert found.bound == math.inf
    assert found.method == NOT_FINITE


def test_an_edge_of_the_domain_beside_the_point() -> None:
    x = np.array([1e-5, 1.0, 2.0])
    d, w = np.array([0.3, -0.7, 1.1]), np.array([1.0, 0.5, -2.0])
    found = directional(Counted(np.log, w), {"x": x}, {"x": d})
    _assert_within(found, float(np.sum(w * d / x)))
    assert found.bound <= 1e3 * SMALL * abs(found.value)


def test_infinite_inputs_stay_where_they_are() -> None:
    x, d = np.array([-np.inf, 0.5, 1.0]), np.array([0.0, 0.4, -0.2])
    w = np.array([0.3, -1.0, 2.0])
    y = np.exp(x) / np.sum(np.exp(x))
    found = directional(Counted(lambda x: np.exp(x) / np.sum(np.exp(x)), w), {"x": x}, {"x": d})
    _assert_within(found, float(np.sum(w * y * (d - np.sum(y * d)))))


def test_the_noise_that_the_caller_knows_of() -> None:
    """A function in float32 does not change for steps below its unit."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, d, w = rng.standard_normal((3, 50))
        noise = 4 * 2.0**-24 * float(np.sum(np.abs(w * np.tanh(x))))
        f = Counted(lambda x: np.tanh(x.astype(np.float32)), w)
        found = directional(f, {"x": x}, {"x": d}, noise=noise)
        _assert_within(found, float(np.sum(w * (1 - np.tanh(x) ** 2) * d)))


@pytest.mark.parametrize("name", SMOOTH)
def test_gradient_element_by_element(name: str) -> None:
    function, slope = SMOOTH[name]
    x, w = np.random.default_rng(0).standard_normal((2, 5, 7))
    f = Counted(function, w)
    gradient, bound = elementwise(f, {"x": x}, "x")
    assert gradient.shape == bound.shape == x.shape
    assert np.all(np.abs(gradient - w * slope(x)) <= bound)
    assert np.max(bound) <= SMALL * np.max(np.abs(gradient))


def test_gradient_of_ops_element_by_element() -> None:
    rng = np.random.default_rng(0)
    for op, arrays in (
        (hg.ops.softmax, {"x": rng.standard_normal((3, 7))}),
        (hg.ops.layer_norm, dict(zip("xgb", rng.standard_normal((3, 11)), strict=True))),
    ):
        y, cache = op.forward(*arrays.values())
        dy = rng.standard_normal(y.shape)
        right = op.backward(dy, cache)
        right = right[0] if isinstance(right, tuple) else right
        gradient, bound = elementwise(
            lambda point, op=op, dy=dy: float(np.sum(dy * op.forward(*point.values())[0])),
            arrays,
            "x",
        )
        assert np.all(np.abs(gradient - right) <= bound)
        assert np.max(bound) <= SMALL * np.max(np.abs(right))


def test_gradient_with_kinks_element_by_element() -> None:
    x, w = np.random.default_rng(0).standard_normal((2, 500))
    x[3] = 1e-5
    f = Counted(lambda x: np.maximum(x, 0) * np.cos(x), w)
    gradient, bound = elementwise(f, {"x": x}, "x")
    right = np.where(x > 0, np.cos(x) - x * np.sin(x), 0.0) * w
    assert np.all(np.abs(gradient - right) <= bound)
    assert np.max(bound) <= 10 * SMALL * np.max(np.abs(right))
    assert f.calls < 5 * x.size


def test_some_positions_only() -> None:
    x = np.arange(6.0).reshape(2, 3)
    gradient, bound = elementwise(Counted(np.square, np.ones(())), {"x": x}, "x", positions=[1, 5])
    np.testing.assert_array_equal(np.isnan(gradient), [[True, False, True], [True, True, False]])
    np.testing.assert_array_equal(np.isinf(bound), np.isnan(gradient))
    assert abs(gradient[1, 2] - 10.0) <= bound[1, 2]


def test_too_many_elements() -> None:
    with pytest.raises(ArgumentError, match="x has 12 elements to differentiate by; allowed: up"):
        elementwise(lambda point: 0.0, {"x": np.ones(12)}, "x", limit=11)


def test_no_elements() -> None:
    gradient, bound = elementwise(lambda point: 0.0, {"x": np.ones((0, 3))}, "x")
    assert gradient.shape == bound.shape == (0, 3)


@pytest.mark.parametrize("name", SMOOTH)
def test_complex_step(name: str) -> None:
    function, slope = SMOOTH[name]
    x, d, w = np.random.default_rng(0).standard_normal((3, 40))
    right = float(np.sum(w * slope(x) * d))
    found = complex_step(lambda point: np.sum(w * function(point["x"])), {"x": x}, {"x": d})
    assert found is not None
    assert found.method == COMPLEX
    _assert_within(found, right)
    assert found.bound <= 1e-12 * np.linalg.norm(w * slope(x) * d)


def _needs_real_numbers(point: dict[str, Any]) -> Any:
    if np.iscomplexobj(point["x"]):
        raise TypeError("real numbers only")
    return np.sum(point["x"])


@pytest.mark.parametrize(
    "f",
    [
        lambda point: np.sum(np.abs(point["x"])),
        lambda point: np.sum(point["x"] * np.conj(point["x"])),
        lambda point: float(np.real(np.sum(point["x"]))),
        lambda point: np.sum(point["x"].astype(np.float64) ** 2),
        lambda point: np.sum(np.linalg.norm(point["x"])),
        _needs_real_numbers,
    ],
)
def test_where_the_complex_step_is_not_allowed(f: Callable[[dict[str, Any]], Any]) -> None:
    x, d = np.random.default_rng(0).standard_normal((2, 7))
    assert complex_step(f, {"x": x}, {"x": d}) is None


def test_complex_step_against_central_differences_given() -> None:
    x, d = np.random.default_rng(0).standard_normal((2, 7))
    right = float(np.sum(np.exp(x) * d))

    def f(point: dict[str, Any]) -> Any:
        return np.sum(np.exp(point["x"]))

    agreeing = Derivative(right, 1e-9, CENTRAL, 0.1)
    assert complex_step(f, {"x": x}, {"x": d}, central=agreeing) is not None
    other = Derivative(right + 1.0, 1e-9, CENTRAL, 0.1)
    assert complex_step(f, {"x": x}, {"x": d}, central=other) is None
