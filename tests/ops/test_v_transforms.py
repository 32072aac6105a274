"""V-transforms, expectations over two Gaussian values: numbers and laws of every activation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
import pytest

from handgrad.errors import ArgumentError
from handgrad.ops import erf, gelu, leaky_relu, quadrature, relu, sigmoid, silu, sin, special, tanh
from handgrad.ops.activation import ACTIVATIONS, activate, activation_gradient, gaussian_mean
from handgrad.ops.activation import v_transform as by_name
from tests.tolerances import assert_close

#: Each activation, and the settings of the numbers below.
SETTINGS: Final[dict[str, tuple[Any, dict[str, Any]]]] = {
    "relu": (relu, {}),
    "leaky_relu": (leaky_relu, {"negative_slope": 0.3}),
    "erf": (erf, {}),
    "sin": (sin, {}),
    "gelu": (gelu, {}),
    "gelu_tanh": (gelu, {"approximate": "tanh"}),
    "tanh": (tanh, {}),
    "sigmoid": (sigmoid, {}),
    "silu": (silu, {}),
}
SMOOTH: Final = ("erf", "sin", "gelu", "gelu_tanh", "tanh", "sigmoid", "silu")
SERIES: Final = {
    "tanh": (np.tanh, True),
    "slope of tanh": (lambda x: 1.0 - np.tanh(x) ** 2, False),
    "even part of silu": (lambda x: 0.5 * x * np.tanh(0.5 * x), False),
}

#: k₁₂, k₁₁, k₂₂, E[f(z₁) f(z₂)] and E[f′(z₁) f′(z₂)], by mpmath with 20 digits: for smooth f the
#: trapezoidal rule over two independent normal values, steps 0.22 down to 0.022 as the variance
#: grows, and for f with a kink `quad` over the angle between its kinks.
NUMBERS: Final = {
    "relu": (
        (0.5, 1.0, 2.0, 0.36429888169422318, 0.30751336404065397),
        (-0.6, 0.7, 1.0, 0.019166852597716445, 0.12272604850308644),
        (1.0, 1.0, 1.0, 0.5, 0.5),
        (9.99, 10.0, 10.0, 4.995047453209151, 0.49288178129688017),
        (94.0, 100.0, 90.0, 47.012471230543935, 0.47844993067346823),
    ),
    "leaky_relu": (
        (0.5, 1.0, 2.0, 0.32850645203016936, 0.45068154837992045),
        (-0.6, 0.7, 1.0, -0.17060824222711894, 0.36013576376651235),
        (1.0, 1.0, 1.0, 0.545, 0.545),
        (9.99, 10.0, 10.0, 5.444573252072484, 0.54151207283547128),
        (94.0, 100.0, 90.0, 51.236110902966528, 0.53444046602999943),
    ),
    "erf": (
        (0.5, 1.0, 2.0, 0.16625797148119024, 0.3402875819779294),
        (-0.6, 0.7, 1.0, -0.29516723530086654, 0.53051647697298445),
        (1.0, 1.0, 1.0, 0.46455905439753998, 0.56941003473374165),
        (9.99, 10.0, 10.0, 0.80076791306042338, 0.19693552072537956),
        (94.0, 100.0, 90.0, 0.89200161185950018, 0.03953855018949454),
    ),
    "sin": (
        (0.5, 1.0, 2.0, 0.11627207896741481, 0.25160736220402751),
        (-0.6, 0.7, 1.0, -0.27211524748880361, 0.50668553558260126),
        (1.0, 1.0, 1.0, 0.43233235838169365, 0.56766764161830635),
        (9.99, 10.0, 10.0, 0.4950249158336497, 0.49502491791551827),
        (94.0, 100.0, 90.0, 0.18393972058572114, 0.18393972058572115),
    ),
    "gelu": (
        (0.5, 1.0, 2.0, 0.27133754627399224, 0.31614389022686775),
        (-0.6, 0.7, 1.0, -0.051554083285470294, 0.11963361432855028),
        (1.0, 1.0, 1.0, 0.42522148257029867, 0.45585086564928712),
        (9.99, 10.0, 10.0, 4.942466415672389, 0.51033835327946171),
        (94.0, 100.0, 90.0, 46.985022159542344, 0.48733991292615945),
    ),
    "gelu_tanh": (
        (0.5, 1.0, 2.0, 0.27131076975458924, 0.31616446810893929),
        (-0.6, 0.7, 1.0, -0.051583554620588491, 0.11964693985768787),
        (1.0, 1.0, 1.0, 0.42519371103309945, 0.4558178459629506),
        (9.99, 10.0, 10.0, 4.9427024880221656, 0.51038255706559417),
    ),
    "tanh": (
        (0.5, 1.0, 2.0, 0.14675411546038742, 0.29917202139303589),
        (-0.6, 0.7, 1.0, -0.25043921291703971, 0.44346301037109149),
        (1.0, 1.0, 1.0, 0.39429449039784116, 0.46440290244827011),
        (9.99, 10.0, 10.0, 0.75561695338127911, 0.16429838051897302),
        (94.0, 100.0, 90.0, 0.88080291085725349, 0.036108657766674954),
    ),
    "sigmoid": (
        (0.5, 1.0, 2.0, 0.26881246505381482, 0.037839981666840016),
        (-0.6, 0.7, 1.0, 0.22295568158040382, 0.045651283337113832),
        (1.0, 1.0, 1.0, 0.29337903585809296, 0.044836241350194372),
        (9.99, 10.0, 10.0, 0.38950747007050514, 0.019770796129699029),
    ),
    "silu": (
        (0.5, 1.0, 2.0, 0.21245470441361658, 0.29987524502187366),
        (-0.6, 0.7, 1.0, -0.094281570165750618, 0.16796096346267791),
        (1.0, 1.0, 1.0, 0.35577551981735216, 0.37948235163282931),
        (9.99, 10.0, 10.0, 4.7466705361168858, 0.49662182965991004),
        (94.0, 100.0, 90.0, 46.873588991814443, 0.4943029551623334),
    ),
}
#: k₁₁ and E[f(z₁)], by mpmath's `quad`.
MEANS: Final = {
    "gelu": ((1.0, 0.28209479177387814), (10.0, 1.2028562337275516), (100.0, 3.9696240574660719)),
    "gelu_tanh": (
        (1.0, 0.28203858807878871),
        (10.0, 1.2029123592072894),
        (100.0, 3.9696552080407487),
    ),
    "silu": ((1.0, 0.20662096414190704), (10.0, 1.1029464242734042), (100.0, 3.9259560109364077)),
}

every = pytest.mark.parametrize("name", SETTINGS)


def functions(name: str) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """The V-transform, that of the derivative, and the mean, with their settings."""
    op, settings = SETTINGS[name]
    return (
        partial(op.v_transform, **settings),
        partial(op.v_transform_derivative, **settings),
        partial(op.gaussian_mean, **settings),
    )


def f(name: str, x: Any) -> Any:
    op, settings = SETTINGS[name]
    return op.forward.reference(x, **settings)[0]


def slope(name: str, x: Any) -> Any:
    op, settings = SETTINGS[name]
    return op.backward.reference(np.ones_like(x), op.forward.reference(x, **settings)[1])


def covariances(rows: int, columns: int, seed: int = 4) -> tuple[np.ndarray, ...]:
    """k₁₂ (rows, columns), k₁₁ (rows, 1) and k₂₂ (1, columns) of random vectors."""
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((rows, 6)) / 3.5, rng.standard_normal((columns, 6)) / 3.5
    return x @ y.T, np.sum(x * x, axis=1)[:, None], np.sum(y * y, axis=1)[None]


def product_rule(function: Callable[..., Any], k12: Any, k11: Any, k22: Any) -> Any:
    """E[function(z₁) function(z₂)] by Gauss and Hermite's rule in two independent values."""
    x, weight = np.polynomial.hermite_e.hermegauss(160)
    weight = weight / weight.sum()
    first = np.sqrt(k11)
    rest = np.sqrt(np.maximum(k22 - k12 * k12 / k11, 0.0))
    z1 = first[..., None, None] * x[:, None]
    z2 = (k12 / first)[..., None, None] * x[:, None] + rest[..., None, None] * x
    return np.einsum("...ij,i,j->...", function(z1) * function(z2), weight, weight)


@every
def test_numbers_of_high_precision(name: str) -> None:
    transform, derivative, _ = functions(name)
    for k12, k11, k22, product, slopes in NUMBERS[name]:
        kind = "V-transforms, large variances" if k11 > 50 else "V-transforms"
        assert_close(transform(k12, k11, k22), product, kind, f"V({k12}, {k11}, {k22})")
        assert_close(derivative(k12, k11, k22), slopes, kind, f"V'({k12}, {k11}, {k22})")


def test_the_mean_of_a_square_of_erf_is_known() -> None:
    """E[erf²(z)], z ~ N(0, 1), to all digits of float64."""
    np.testing.assert_allclose(erf.v_transform(1.0, 1.0, 1.0), 0.4645590543975399, rtol=1e-15)


@pytest.mark.parametrize("name", MEANS)
def test_means_of_high_precision(name: str) -> None:
    variance, mean = np.array(MEANS[name]).T
    assert_close(functions(name)[2](variance), mean, "V-transforms")


@pytest.mark.parametrize("name", SMOOTH)
def test_a_product_rule_gives_the_same(name: str) -> None:
    transform, derivative, mean = functions(name)
    k12, k11, k22 = covariances(5, 4)
    assert_close(
        transform(k12, k11, k22), product_rule(partial(f, name), k12, k11, k22), "V-transforms"
    )
    slopes = product_rule(partial(slope, name), k12, k11, k22)
    assert_close(derivative(k12, k11, k22), slopes, "V-transforms")
    x, weight = np.polynomial.hermite_e.hermegauss(160)
    means = f(name, np.sqrt(k11) * x) @ weight / weight.sum()
    assert_close(mean(k11[:, 0]), means, "V-transforms")


@every
def test_the_slope_along_the_covariance_is_that_of_the_derivative(name: str) -> None:
    """∂E[f(z₁) f(z₂)]/∂k₁₂ = E[f′(z₁) f′(z₂)].

    Source: Price, A useful theorem for nonlinear devices having Gaussian inputs (1958).
    """
    transform, derivative, _ = functions(name)
    k12, k11, k22 = covariances(7, 6)
    k12 = np.clip(k12, -0.8 * np.sqrt(k11 * k22), 0.8 * np.sqrt(k11 * k22))
    step = 1e-4 * np.sqrt(k11 * k22)
    difference = transform(k12 + step, k11, k22) - transform(k12 - step, k11, k22)
    assert_close(difference / (2.0 * step), derivative(k12, k11, k22), "finite differences")


@every
def test_the_two_values_may_change_places(name: str) -> None:
    k12, k11, k22 = covariances(7, 6)
    for function in functions(name)[:2]:
        assert_close(function(k12.T, k22.T, k11.T), function(k12, k11, k22).T, "float64")


@every
def test_uncorrelated_values_have_the_product_of_their_means(name: str) -> None:
    transform, derivative, mean = functions(name)
    k11, k22 = np.array([0.3, 2.0, 9.0])[:, None], np.array([1.0, 0.0])
    assert_close(transform(0.0, k11, k22), mean(k11) * mean(k22), "V-transforms")
    slopes = np.sqrt(derivative(0.0, k11, k11) * derivative(0.0, k22, k22))
    assert_close(derivative(0.0, k11, k22), slopes, "V-transforms")


@every
def test_a_value_that_is_always_zero(name: str) -> None:
    """Its f and f′ are those of the op at 0, at a kink too."""
    transform, derivative, mean = functions(name)
    zero = np.zeros(())
    assert_close(transform(0.0, 0.0, 0.0), f(name, zero) ** 2, "float64")
    assert_close(derivative(0.0, 0.0, 0.0), slope(name, zero) ** 2, "float64")
    assert_close(transform(0.0, 0.0, 2.0), f(name, zero) * mean(2.0), "V-transforms")
    assert_close(transform(0.0, 2.0, 0.0), f(name, zero) * mean(2.0), "V-transforms")
    assert_close(mean(0.0), f(name, zero), "float64")


@every
def test_correlations_of_one_and_a_rounding_beyond(name: str) -> None:
    variance = np.array([1e-4, 0.3, 1.0, 7.0])
    for function in functions(name)[:2]:
        equal = function(variance, variance, variance)
        assert np.all(np.isfinite(equal))
        assert_close(function(variance * (1 + 4e-16), variance, variance), equal, "V-transforms")
        opposite = function(-variance * (1 + 4e-16), variance, variance)
        np.testing.assert_array_equal(opposite, function(-variance, variance, variance))
        # Rows and columns of a matrix take another path than its diagonal alone.
        matrix = function(np.sqrt(variance[:, None] * variance), variance[:, None], variance)
        assert_close(np.diagonal(matrix), equal, "V-transforms")


def test_equal_inputs_of_relu_lose_nothing() -> None:
    variance = np.random.default_rng(2).uniform(0.1, 9.0, 1000)
    np.testing.assert_array_equal(relu.v_transform_derivative(variance, variance, variance), 0.5)
    np.testing.assert_array_equal(relu.v_transform(variance, variance, variance), variance / 2)


def test_relu_near_a_correlation_of_one() -> None:
    """(π − θ)/2π, where θ = √(2 · 2⁻⁵⁰) is far more than what an arccosine resolves."""
    angle = np.sqrt(2.0 * 2.0**-50)
    found = relu.v_transform_derivative(1.0 - 2.0**-50, 1.0, 1.0)
    np.testing.assert_allclose(0.5 - found, angle / (2.0 * np.pi), rtol=1e-8)


@pytest.mark.parametrize("variance", [1e4, 1e8])
def test_large_variances(variance: float) -> None:
    """A function that saturates becomes a sign, any other ReLU; both have corrections of
    1/√variance and less."""
    k12 = np.array([-0.5, 0.0, 0.7, 1.0]) * variance
    sign = 2.0 / np.pi * np.arcsin(k12 / variance)
    near = 2.0 / np.sqrt(variance)
    np.testing.assert_allclose(erf.v_transform(k12, variance, variance), sign, atol=near)
    np.testing.assert_allclose(tanh.v_transform(k12, variance, variance), sign, atol=near)
    sigmoids = 0.25 * (1.0 + sign)
    np.testing.assert_allclose(sigmoid.v_transform(k12, variance, variance), sigmoids, atol=near)
    rectified = relu.v_transform(k12, variance, variance) / variance
    for op in (gelu, silu):
        found = op.v_transform(k12, variance, variance) / variance
        np.testing.assert_allclose(found, rectified, atol=near)


@pytest.mark.parametrize("variance", [1e-3, 1.0, 30.0, 1e3, 1e5])
def test_the_series_of_a_function_with_a_closed_form(variance: float) -> None:
    """The series knows nothing of erf; where it leaves terms out, its bound says how much."""
    correlation = np.array([-1.0, -0.9999, -0.3, 0.0, 0.6, 0.99, 0.99999, 1.0])
    k11, k22 = np.float64(variance), np.float64(0.5 * variance)
    k12 = correlation * np.sqrt(k11 * k22)
    found = quadrature.expected_product(special.erf, k12, k11, k22, odd=True)
    bound = quadrature.error_bound(special.erf, k11, k22, odd=True)
    assert np.all(np.abs(found - erf.v_transform(k12, k11, k22)) <= bound + 1e-13)
    if variance <= 30.0:
        assert bound < 1e-9


@pytest.mark.parametrize("name", SERIES)
def test_the_bound_of_the_series(name: str) -> None:
    function, odd = SERIES[name]
    for variance, allowed in ((1e-4, 1e-12), (1.0, 1e-12), (10.0, 1e-11), (100.0, 1e-7)):
        assert quadrature.error_bound(function, variance, variance, odd=odd) < allowed


@pytest.mark.parametrize("name", SERIES)
def test_blocks_of_the_series(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variances of any shape, in as many parts as memory takes, give what each alone gives."""
    function, odd = SERIES[name]
    transform = partial(quadrature.expected_product, function, odd=odd)
    k12, k11, k22 = covariances(23, 17)
    whole = transform(k12, k11, k22)
    everywhere = np.broadcast_arrays(k12, k11, k22)
    assert_close(transform(*everywhere), whole, "V-transforms")
    assert_close(transform(*(k.ravel() for k in everywhere)), whole.ravel(), "V-transforms")
    assert_close(transform(k12[5, 3], k11[5, 0], k22[0, 3]), whole[5, 3], "V-transforms")
    assert_close(transform(k12[:, 3], k11[:, 0], k22[0, 3]), whole[:, 3], "V-transforms")
    monkeypatch.setattr(quadrature, "_BLOCK", 10)
    monkeypatch.setattr(quadrature, "_MOST_COEFFICIENTS", 300)
    assert_close(transform(k12, k11, k22), whole, "V-transforms")


@every
def test_shapes_and_types(name: str) -> None:
    transform, derivative, mean = functions(name)
    k12, k11, k22 = (k.astype(np.float32) for k in covariances(3, 2))
    for k in (k12, k11, k22):
        k.setflags(write=False)
    for function in (transform, derivative):
        found = function(k12, k11, k22)
        assert (found.shape, found.dtype) == ((3, 2), np.float64)
        exact = function(*(k.astype(np.float64) for k in (k12, k11, k22)))
        np.testing.assert_array_equal(found, exact)
        assert function(0.0, k11, k22).shape == (3, 2)
        assert function(0.1, 1, 2).shape == ()
        for shape in ((0,), (0, 3), (3, 0)):
            assert function(np.zeros(shape), np.ones(shape), np.ones(shape)).shape == shape
        assert function(np.zeros((0, 3)), np.ones((0, 1)), np.ones((1, 3))).shape == (0, 3)
    assert (mean(k11).shape, mean(k11).dtype) == ((3, 1), np.float64)
    assert mean(1.0).shape == ()
    assert mean(np.ones((0, 3))).shape == (0, 3)


@every
def test_nan_stays_where_it_is(name: str) -> None:
    k12, k11, k22 = np.array([0.3, np.nan, 0.2, 0.1]), np.ones(4), np.array([1.0, 1.0, np.nan, 2.0])
    for function in functions(name)[:2]:
        found = function(k12, k11, k22)
        np.testing.assert_array_equal(np.isnan(found), [False, True, True, False])
        assert_close(found[3], function(0.1, 1.0, 2.0), "V-transforms")


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_by_name(name: str) -> None:
    """Every activation has all three, and they fit what it computes: f(z) with a tiny variance."""
    k12, k11, k22 = covariances(5, 4)
    assert by_name(name, k12, k11, k22).shape == (5, 4)
    tiny = 1e-8
    zero = np.zeros(())
    value, at_zero = activate(zero, name), activation_gradient(np.ones(()), zero, name)
    np.testing.assert_allclose(by_name(name, tiny, tiny, tiny), value**2, atol=1e-7)
    np.testing.assert_allclose(gaussian_mean(name, tiny), value, atol=1e-3)
    np.testing.assert_allclose(
        by_name(name, 0.0, 0.0, 0.0, derivative=True), at_zero**2, rtol=1e-12
    )


def test_identity_and_settings_by_name() -> None:
    k12, k11, k22 = covariances(5, 4)
    np.testing.assert_array_equal(by_name("identity", k12, k11, k22), k12)
    np.testing.assert_array_equal(by_name("identity", k12, k11, k22, derivative=True), 1.0)
    np.testing.assert_array_equal(gaussian_mean("identity", k11), 0.0)
    found = by_name("leaky_relu", k12, k11, k22, negative_slope=1.0)
    assert_close(found, k12, "float64")
    form = by_name("gelu", k12, k11, k22, approximate="tanh")
    np.testing.assert_array_equal(form, gelu.v_transform(k12, k11, k22, approximate="tanh"))
    for settings in ({"negative_slope": 0.3}, {"approximate": "tanh"}):
        np.testing.assert_array_equal(
            by_name("relu", k12, k11, k22, **settings), relu.v_transform(k12, k11, k22)
        )


@pytest.mark.parametrize("function", [by_name, gaussian_mean])
def test_unknown_names_are_refused(function: Callable[..., Any]) -> None:
    arguments = (1.0, 1.0, 1.0) if function is by_name else (1.0,)
    with pytest.raises(ArgumentError, match="activation is 'softmax'; allowed: identity, relu"):
        function("softmax", *arguments)
    with pytest.raises(ArgumentError, match="approximate is 'erf'; allowed: none, tanh"):
        function("gelu", *arguments, approximate="erf")
