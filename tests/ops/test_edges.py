"""Values at kinks and edges, as the docstrings give them, on both engines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from handgrad import kernels
from handgrad.dispatch import engine
from handgrad.ops import (
    avg_pool2d,
    batch_norm,
    binary_cross_entropy,
    conv1d,
    conv2d,
    conv_transpose1d,
    conv_transpose2d,
    cross_entropy,
    dense,
    dropout,
    embedding,
    erf,
    gelu,
    group_norm,
    layer_norm,
    leaky_relu,
    matmul,
    max_pool2d,
    relu,
    rms_norm,
    sigmoid,
    silu,
    sin,
    softmax,
    squared_error,
    standardize,
    tanh,
)

INF = np.inf


@pytest.fixture(params=("reference", "kernels"), autouse=True)
def on_engine(request: pytest.FixtureRequest) -> Iterator[None]:
    """`auto` stands for the kernels here, so that ops whose kernel is pending still run."""
    if request.param == "kernels" and kernels.native is None:
        pytest.skip(kernels.reason)
    with engine("auto" if request.param == "kernels" else "reference"):
        yield


@pytest.fixture(params=(np.float32, np.float64), ids=("float32", "float64"))
def dtype(request: pytest.FixtureRequest) -> Any:
    return request.param


def rng() -> np.random.Generator:
    return np.random.default_rng(20)


def test_relu_at_its_kink(dtype: Any) -> None:
    y, cache = relu.forward(np.array([-0.0, 0.0, INF, -INF, np.nan], dtype=dtype))
    np.testing.assert_array_equal(y, [0, 0, INF, 0, np.nan])
    dx = relu.backward(np.array([2, 3, 5, 7, 11], dtype=dtype), cache)
    np.testing.assert_array_equal(dx[:4], [0, 0, 5, 0])


def test_leaky_relu_at_its_kink(dtype: Any) -> None:
    _, cache = leaky_relu.forward(np.array([0.0, -0.0], dtype=dtype), negative_slope=0.25)
    dx = leaky_relu.backward(np.array([2, 4], dtype=dtype), cache)
    np.testing.assert_array_equal(dx, [0.5, 1.0])


def test_dense_has_the_kink_of_relu(dtype: Any) -> None:
    x, weight = np.array([[1.0]], dtype=dtype), np.array([[0.0]], dtype=dtype)
    _, cache = dense.forward(x, weight, activation="relu")
    dx, dweight, dbias = dense.backward(np.array([[3.0]], dtype=dtype), cache)
    assert (dx, dweight, dbias) == (0.0, 0.0, None)


@pytest.mark.parametrize("op", [sigmoid, tanh, erf, relu, silu, gelu], ids=lambda op: op.__name__)
def test_far_from_zero_nothing_overflows(op: Any, dtype: Any) -> None:
    bounded = {sigmoid: (0, 1), tanh: (-1, 1), erf: (-1, 1)}
    limits = bounded.get(op, (0, 1e4))
    y, cache = op.forward(np.array([-1e4, 1e4], dtype=dtype))
    np.testing.assert_array_equal(y, np.array(limits, dtype=dtype))
    slope = 1.0 if limits[1] > 1 else 0.0
    np.testing.assert_array_equal(op.backward(np.array([3, 5], dtype), cache), [0, 5 * slope])


@pytest.mark.parametrize(
    "op", [sigmoid, tanh, erf, sin, relu, silu, gelu], ids=lambda op: op.__name__
)
def test_nan_is_passed_on(op: Any, dtype: Any) -> None:
    y, _ = op.forward(np.array([1.0, np.nan, -1.0], dtype=dtype))
    np.testing.assert_array_equal(np.isnan(y), [False, True, False])


def test_sigmoid_tanh_and_erf_at_infinity(dtype: Any) -> None:
    x = np.array([-INF, INF], dtype=dtype)
    np.testing.assert_array_equal(sigmoid.forward(x)[0], [0, 1])
    np.testing.assert_array_equal(tanh.forward(x)[0], [-1, 1])
    y, cache = erf.forward(x)
    np.testing.assert_array_equal(y, [-1, 1])
    np.testing.assert_array_equal(erf.backward(np.ones_like(x), cache), [0, 0])


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_sin_of_large_angles(dtype: Any) -> None:
    """They are reduced by all digits of π; 2¹⁰⁰ is a number of both types."""
    x = np.array([0.5, -0.0, 1e6, -(2.0**100), INF], dtype=dtype)
    y, cache = sin.forward(x)
    exact = x[:-1].astype(np.float64)
    np.testing.assert_allclose(y[:-1], np.sin(exact), rtol=4 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(np.signbit(y[:2]), [False, True])
    dx = sin.backward(np.ones_like(x), cache)
    np.testing.assert_allclose(dx[:-1], np.cos(exact), rtol=4 * np.finfo(dtype).eps)
    assert np.isnan(y[-1])
    assert np.isnan(dx[-1])


def test_softmax_of_a_row_masked_everywhere_is_zero(dtype: Any) -> None:
    y, cache = softmax.forward(np.array([[-INF, -INF], [0.0, -INF]], dtype=dtype))
    np.testing.assert_array_equal(y, [[0, 0], [1, 0]])
    dx = softmax.backward(np.array([[2, 3], [5, 7]], dtype=dtype), cache)
    np.testing.assert_array_equal(dx, [[0, 0], [0, 0]])


def test_softmax_jacobian_is_its_backward() -> None:
    y, cache = softmax.forward(rng().standard_normal((3, 5)))
    dy = rng().standard_normal((3, 5))
    product = np.einsum("ni,nij->nj", dy, softmax.jacobian(y))
    np.testing.assert_allclose(softmax.backward(dy, cache), product, atol=1e-15)


def test_standardize_of_a_constant_is_zero(dtype: Any) -> None:
    y, cache = standardize.forward(np.full((3, 4), 7.0, dtype=dtype))
    np.testing.assert_array_equal(y, np.zeros((3, 4)))
    dy = rng().standard_normal((3, 4)).astype(dtype)
    expected = (dy - dy.mean()) / np.sqrt(1e-5)
    np.testing.assert_allclose(standardize.backward(dy, cache), expected, rtol=1e-4)


def test_norms_of_a_constant_row(dtype: Any) -> None:
    gamma, beta = rng().standard_normal((2, 4)).astype(dtype)
    y, _ = layer_norm.forward(np.full((3, 4), 7.0, dtype=dtype), gamma, beta)
    np.testing.assert_array_equal(y, np.broadcast_to(beta, (3, 4)))
    y, _ = group_norm.forward(np.full((3, 4, 2), 7.0, dtype=dtype), gamma, beta, num_groups=2)
    np.testing.assert_array_equal(y, np.broadcast_to(beta[:, None], (3, 4, 2)))
    y, _ = rms_norm.forward(np.zeros((3, 4), dtype=dtype), gamma)
    np.testing.assert_array_equal(y, np.zeros((3, 4)))


def test_norms_of_a_large_offset_keep_their_digits(dtype: Any) -> None:
    """The variance is that of the centred values; E[x²] − E[x]² would lose all digits here."""
    x = (1e4 + rng().standard_normal((5, 64))).astype(dtype)
    ones, zeros = np.ones(64, dtype=dtype), np.zeros(64, dtype=dtype)
    exact = x.astype(np.float64)
    expected = (exact - exact.mean(axis=1, keepdims=True)) / np.sqrt(
        exact.var(axis=1, keepdims=True) + 1e-5
    )
    np.testing.assert_allclose(layer_norm.forward(x, ones, zeros)[0], expected, atol=2e-3)
    np.testing.assert_allclose(standardize.forward(x, axes=-1)[0], expected, atol=2e-3)
    y, _ = group_norm.forward(x.reshape(1, 5, 64), ones[:5], zeros[:5], num_groups=5)
    np.testing.assert_allclose(y[0], expected, atol=2e-3)
    y, _ = batch_norm.forward(
        np.ascontiguousarray(x.T), ones[:5], zeros[:5], zeros[:5], ones[:5], training=True
    )
    np.testing.assert_allclose(y.T, expected, atol=2e-3)


def test_batch_norm_running_statistics(dtype: Any) -> None:
    x = rng().standard_normal((7, 3, 5)).astype(dtype)
    mean, var = np.array([1, 2, 3], dtype=dtype), np.array([4, 5, 6], dtype=dtype)
    gamma, beta = rng().standard_normal((2, 3)).astype(dtype)
    _, cache = batch_norm.forward(x, gamma, beta, mean, var, training=True, momentum=0.2)
    exact = x.astype(np.float64)
    expected_mean = 0.8 * mean + 0.2 * exact.mean(axis=(0, 2))
    expected_var = 0.8 * var + 0.2 * exact.var(axis=(0, 2), ddof=1)
    np.testing.assert_allclose(cache.running_mean, expected_mean, rtol=1e-5)
    np.testing.assert_allclose(cache.running_var, expected_var, rtol=1e-5)
    np.testing.assert_array_equal(mean, [1, 2, 3])
    np.testing.assert_array_equal(var, [4, 5, 6])
    _, cache = batch_norm.forward(x, gamma, beta, mean, var, training=False)
    np.testing.assert_array_equal(cache.running_mean, mean)
    np.testing.assert_array_equal(cache.running_var, var)


def test_batch_norm_of_an_empty_batch_keeps_its_statistics(dtype: Any) -> None:
    channels = [np.array([1, 2, 3], dtype=dtype) for _ in range(4)]
    y, cache = batch_norm.forward(np.zeros((0, 3), dtype=dtype), *channels, training=True)
    assert y.shape == (0, 3)
    np.testing.assert_array_equal(cache.running_mean, [1, 2, 3])
    np.testing.assert_array_equal(cache.running_var, [1, 2, 3])


def test_dropout_draws_one_float32_per_value(dtype: Any) -> None:
    x = np.full((40, 50), 3.0, dtype=dtype)
    y, cache = dropout.forward(x, 0.25, np.random.default_rng(5))
    kept = np.random.default_rng(5).random(x.shape, dtype=np.float32) >= 0.25
    np.testing.assert_array_equal(y, np.where(kept, dtype(4.0), 0))
    assert 0.72 < kept.mean() < 0.78
    dy = rng().standard_normal(x.shape).astype(dtype)
    dx = dropout.backward(dy, cache)
    np.testing.assert_allclose(dx, np.where(kept, dy / dtype(0.75), 0), rtol=1e-6)


def test_dropout_at_inference_draws_nothing(dtype: Any) -> None:
    generator = np.random.default_rng(5)
    x = rng().standard_normal((3, 4)).astype(dtype)
    for p, training in ((0.5, False), (0.0, True)):
        y, cache = dropout.forward(x, p, generator, training=training)
        np.testing.assert_array_equal(y, x)
        np.testing.assert_array_equal(dropout.backward(x, cache), x)
    assert generator.random() == np.random.default_rng(5).random()


def test_dropout_of_nan_that_is_dropped_is_zero(dtype: Any) -> None:
    x = np.array([np.nan, np.nan], dtype=dtype)
    y, _ = dropout.forward(x, 1.0, np.random.default_rng(0))
    np.testing.assert_array_equal(y, [0, 0])


def test_embedding_of_the_padding_is_shown_but_not_trained(dtype: Any) -> None:
    weight = rng().standard_normal((3, 2)).astype(dtype)
    y, cache = embedding.forward(np.array([2, 0, 2]), weight, padding_idx=2)
    np.testing.assert_array_equal(y, weight[[2, 0, 2]])
    dweight = embedding.backward(np.array([[1, 2], [3, 5], [7, 11]], dtype=dtype), cache)
    np.testing.assert_array_equal(dweight, [[3, 5], [0, 0], [0, 0]])


@pytest.mark.parametrize("integer", [np.uint8, np.int32, np.int64])
def test_tokens_and_targets_of_any_integer_type(integer: Any, dtype: Any) -> None:
    tokens = np.array([1, 0, 1], dtype=integer)
    weight = rng().standard_normal((2, 3)).astype(dtype)
    y, cache = embedding.forward(tokens, weight)
    np.testing.assert_array_equal(y, weight[[1, 0, 1]])
    dy = rng().standard_normal((3, 3)).astype(dtype)
    np.testing.assert_allclose(embedding.backward(dy, cache)[1], dy[0] + dy[2], rtol=1e-6)
    x = rng().standard_normal((3, 2)).astype(dtype)
    loss, _ = cross_entropy.forward(x, tokens)
    expected, _ = cross_entropy.forward(x, tokens.astype(np.int64))
    assert loss == expected


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_with_all_targets_ignored_is_zero(reduction: str, dtype: Any) -> None:
    x = rng().standard_normal((3, 4)).astype(dtype)
    loss, cache = cross_entropy.forward(
        x, np.full(3, -100), label_smoothing=0.1, reduction=reduction
    )
    np.testing.assert_array_equal(loss, np.zeros(3 if reduction == "none" else ()))
    dloss = np.asarray(rng().standard_normal(loss.shape), dtype=dtype)
    np.testing.assert_array_equal(cross_entropy.backward(dloss, cache), np.zeros((3, 4)))


def test_cross_entropy_of_an_impossible_class_without_target(dtype: Any) -> None:
    x = np.array([[0.0, 0.0, -INF]], dtype=dtype)
    loss, cache = cross_entropy.forward(x, np.array([0]))
    np.testing.assert_allclose(loss, np.log(2), rtol=1e-6)
    dx = cross_entropy.backward(np.asarray(2.0, dtype=dtype), cache)
    np.testing.assert_allclose(dx, [[-1, 1, 0]], rtol=1e-6)


def test_losses_of_an_empty_batch_are_zero(dtype: Any) -> None:
    empty = np.zeros((0, 4), dtype=dtype)
    dloss = np.asarray(3.0, dtype=dtype)
    for op, target in (
        (cross_entropy, np.zeros(0, dtype=np.int64)),
        (squared_error, empty),
        (binary_cross_entropy, empty),
    ):
        loss, cache = op.forward(empty, target)
        assert loss == 0.0
        assert op.backward(dloss, cache).shape == (0, 4)


def test_binary_cross_entropy_of_far_logits_is_linear(dtype: Any) -> None:
    x, target = np.array([1e4, -1e4, 1e4], dtype=dtype), np.array([0, 1, 1], dtype=dtype)
    loss, cache = binary_cross_entropy.forward(x, target, reduction="none")
    np.testing.assert_array_equal(loss, np.array([1e4, 1e4, 0], dtype=dtype))
    dx = binary_cross_entropy.backward(np.array([2, 3, 5], dtype=dtype), cache)
    np.testing.assert_array_equal(dx, [2, -3, 0])


def test_max_pool_gives_ties_to_the_first(dtype: Any) -> None:
    x = np.array([[5, 5, 1, 2], [5, 5, 2, 2]], dtype=dtype).reshape(1, 1, 2, 4)
    y, cache = max_pool2d.forward(x, 2)
    np.testing.assert_array_equal(y, [[[[5, 2]]]])
    dx = max_pool2d.backward(np.array([[[[3, 7]]]], dtype=dtype), cache)
    np.testing.assert_array_equal(dx[0, 0], [[3, 0, 0, 7], [0, 0, 0, 0]])


def test_max_pool_passes_nan_on(dtype: Any) -> None:
    x = np.array([[1, np.nan, 4, 3], [2, 0, 1, 2]], dtype=dtype).reshape(1, 1, 2, 4)
    y, _ = max_pool2d.forward(x, 2)
    np.testing.assert_array_equal(y, [[[[np.nan, 4]]]])


def test_max_pool_never_takes_the_padding(dtype: Any) -> None:
    x = np.array([[-3, -5], [-7, -2]], dtype=dtype).reshape(1, 1, 2, 2)
    y, cache = max_pool2d.forward(x, 2, padding=1)
    np.testing.assert_array_equal(y, x)
    dy = rng().standard_normal(y.shape).astype(dtype)
    np.testing.assert_array_equal(max_pool2d.backward(dy, cache), dy)


def test_avg_pool_over_the_whole_image_is_the_mean(dtype: Any) -> None:
    x = rng().standard_normal((2, 3, 5, 7)).astype(dtype)
    y, cache = avg_pool2d.forward(x, "global")
    np.testing.assert_allclose(y[..., 0, 0], x.mean(axis=(2, 3)), rtol=1e-4, atol=1e-7)
    dy = rng().standard_normal(y.shape).astype(dtype)
    dx = avg_pool2d.backward(dy, cache)
    np.testing.assert_allclose(dx, np.broadcast_to(dy / dtype(35), x.shape), rtol=1e-6)


def test_convolution_leaves_what_no_move_reaches_at_zero(dtype: Any) -> None:
    """Yamanishi's figure 4 divides with a floor; there is a term only where it is exact."""
    x = rng().standard_normal((1, 1, 6, 7)).astype(dtype)
    weight = rng().standard_normal((1, 1, 2, 1)).astype(dtype)
    y, cache = conv2d.forward(x, weight, stride=(3, 4))
    assert y.shape == (1, 1, 2, 2)
    dx, _, _ = conv2d.backward(rng().standard_normal(y.shape).astype(dtype), cache)
    reached = np.zeros((6, 7), dtype=bool)
    reached[np.ix_([0, 1, 3, 4], [0, 4])] = True
    np.testing.assert_array_equal(dx[0, 0] != 0, reached)


def test_transposed_convolution_is_the_input_gradient_of_convolution() -> None:
    x, weight = rng().standard_normal((2, 4, 9, 8)), rng().standard_normal((6, 2, 3, 2))
    settings: dict[str, Any] = {"stride": (2, 3), "padding": (1, 0), "groups": 2}
    y, cache = conv2d.forward(x, weight, **settings)
    dy = rng().standard_normal(y.shape)
    dx, _, _ = conv2d.backward(dy, cache)
    left_out = tuple(
        (n + 2 * p - k) % s for n, p, k, s in zip((9, 8), (1, 0), (3, 2), (2, 3), strict=True)
    )
    forward, _ = conv_transpose2d.forward(dy, weight, output_padding=left_out, **settings)
    np.testing.assert_allclose(forward, dx, atol=1e-13)


def test_transposed_convolution_of_sequences_is_the_input_gradient_of_theirs() -> None:
    x, weight = rng().standard_normal((2, 4, 9)), rng().standard_normal((6, 2, 3))
    settings: dict[str, Any] = {"stride": 3, "padding": 1, "groups": 2}
    y, cache = conv1d.forward(x, weight, **settings)
    dy = rng().standard_normal(y.shape)
    dx, _, _ = conv1d.backward(dy, cache)
    forward, _ = conv_transpose1d.forward(dy, weight, output_padding=(9 + 2 - 3) % 3, **settings)
    np.testing.assert_allclose(forward, dx, atol=1e-13)


def test_matmul_with_nothing_to_sum_is_zero(dtype: Any) -> None:
    c, cache = matmul.forward(np.zeros((2, 0), dtype=dtype), np.zeros((0, 3), dtype=dtype))
    np.testing.assert_array_equal(c, np.zeros((2, 3)))
    da, db = matmul.backward(rng().standard_normal((2, 3)).astype(dtype), cache)
    assert da.shape == (2, 0)
    assert db.shape == (0, 3)


@pytest.mark.parametrize(
    ("a_shape", "b_shape"),
    [
        ((1, 5, 7), (3, 7, 4)),
        ((3, 5, 7), (1, 7, 4)),
        ((5, 7), (3, 7, 1)),
        ((1, 1, 7), (3, 7, 4)),
        ((2, 1, 5, 7), (3, 7, 4)),
    ],
)
def test_matmul_repeats_what_a_batch_has_once(
    a_shape: tuple[int, ...], b_shape: tuple[int, ...]
) -> None:
    a, b = rng().standard_normal(a_shape), rng().standard_normal(b_shape)
    c, cache = matmul.forward(a, b)
    np.testing.assert_allclose(c, a @ b, rtol=1e-12, atol=1e-12)
    da, db = matmul.backward(c, cache)
    assert (da.shape, db.shape) == (a_shape, b_shape)
    np.testing.assert_allclose(np.sum(da * a), np.sum(c * c))
    np.testing.assert_allclose(np.sum(db * b), np.sum(c * c))
