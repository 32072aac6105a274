"""Strides, paddings, windows and groups at their ends: right at once, or one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from typing import Any

import numpy as np
import pytest

from handgrad import kernels
from handgrad.dispatch import engine
from handgrad.errors import ArgumentError, HandgradError, ShapeError
from handgrad.ops import (
    avg_pool1d,
    avg_pool2d,
    conv1d,
    conv2d,
    conv_transpose1d,
    conv_transpose2d,
    max_pool1d,
    max_pool2d,
)
from tests.rows import rows

MOST = 2**31 - 1


@pytest.fixture(params=("reference", "kernels"), autouse=True)
def on_engine(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.param == "kernels" and kernels.native is None:
        pytest.skip(kernels.reason)
    with engine(request.param):
        yield


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(4).standard_normal(shape)


def results(op: Any, *arrays: np.ndarray, **settings: Any) -> list[np.ndarray]:
    """y and the gradients for one cotangent."""
    y, cache = op.forward(*arrays, **settings)
    gradients = op.backward(normal(*y.shape), cache)
    several = gradients if isinstance(gradients, tuple) else (gradients,)
    return [y, *(each for each in several if each is not None)]


def same(op: Any, arrays: tuple[Any, ...], far: dict[str, Any], near: dict[str, Any]) -> None:
    for found, expected in zip(
        results(op, *arrays, **far), results(op, *arrays, **near), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("stride", [2**28, MOST, (MOST, 2**30)])
def test_a_stride_past_everything_is_one_position(stride: Any) -> None:
    x, weight, bias = normal(2, 3, 5, 7), normal(4, 3, 3, 2), normal(4)
    same(conv2d, (x, weight, bias), {"stride": stride}, {"stride": 7})
    same(max_pool2d, (x,), {"kernel_size": 3, "stride": stride}, {"kernel_size": 3, "stride": 7})
    same(avg_pool2d, (x,), {"kernel_size": 3, "stride": stride}, {"kernel_size": 3, "stride": 7})
    same(conv_transpose2d, (x[..., :1, :1], normal(3, 4, 3, 2)), {"stride": stride}, {})
    line = (normal(2, 3, 9), normal(4, 3, 2))
    same(conv1d, line, {"stride": 2**30}, {"stride": 9})
    for op in (max_pool1d, avg_pool1d):
        same(op, line[:1], {"kernel_size": 3, "stride": MOST}, {"kernel_size": 3, "stride": 9})
    same(conv_transpose1d, (line[0][..., :1], normal(3, 4, 2)), {"stride": 2**30}, {})


def test_a_dilation_of_one_tap_has_no_part() -> None:
    arrays = normal(2, 3, 5, 7), normal(4, 3, 1, 2)
    same(conv2d, arrays, {"dilation": (MOST, 3)}, {"dilation": (1, 3)})
    arrays = normal(2, 4, 5, 7), normal(4, 3, 1, 2)
    same(conv_transpose2d, arrays, {"dilation": (2**30, 3)}, {"dilation": (1, 3)})


@pytest.mark.parametrize("op", [max_pool2d, avg_pool2d], ids=["max", "avg"])
def test_a_window_far_larger_than_the_image_takes_all_of_it(op: Any) -> None:
    x = normal(2, 3, 4, 5)
    settings = {"kernel_size": (2**20, 2**9), "stride": 1, "padding": (2**19, 2**8)}
    y, cache = op.forward(x, **settings)
    assert y.shape == (2, 3, 5, 6)
    dx = op.backward(np.ones_like(y), cache)
    if op is max_pool2d:
        np.testing.assert_array_equal(
            y, np.broadcast_to(x.max(axis=(2, 3), keepdims=True), y.shape)
        )
        assert dx.sum() == y.size
    else:
        mean = x.sum(axis=(2, 3), keepdims=True) / 2**29
        np.testing.assert_allclose(y, np.broadcast_to(mean, y.shape), rtol=1e-12)
        np.testing.assert_allclose(dx, np.full(x.shape, 30 / 2**29))


@pytest.mark.parametrize("op", [max_pool1d, avg_pool1d], ids=["max", "avg"])
def test_a_window_far_longer_than_the_sequence_takes_all_of_it(op: Any) -> None:
    x = normal(2, 3, 5)
    y, cache = op.forward(x, 2**20, 1, 2**19)
    assert y.shape == (2, 3, 6)
    dx = op.backward(np.ones_like(y), cache)
    if op is max_pool1d:
        np.testing.assert_array_equal(y, np.broadcast_to(x.max(axis=2, keepdims=True), y.shape))
        assert dx.sum() == y.size
    else:
        mean = x.sum(axis=2, keepdims=True) / 2**20
        np.testing.assert_allclose(y, np.broadcast_to(mean, y.shape), rtol=1e-12)
        np.testing.assert_allclose(dx, np.full(x.shape, 6 / 2**20))


@pytest.mark.parametrize(
    ("one", "two"),
    [(conv1d, conv2d), (conv_transpose1d, conv_transpose2d)],
    ids=["conv", "transposed"],
)
def test_a_convolution_of_sequences_is_that_of_images_of_one_row(one: Any, two: Any) -> None:
    arrays = normal(2, 4, 9), normal(4, 4, 3), normal(4)
    rows = arrays[0][:, :, None], arrays[1][:, :, None], arrays[2]
    settings = {"stride": 2, "padding": 1, "dilation": 2}
    of_rows = {"stride": (1, 2), "padding": (0, 1), "dilation": (1, 2)}
    found, expected = results(one, *arrays, **settings), results(two, *rows, **of_rows)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs.reshape(ours.shape), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("one", "two"), [(max_pool1d, max_pool2d), (avg_pool1d, avg_pool2d)], ids=["max", "avg"]
)
def test_a_pooling_of_sequences_is_that_of_images_of_one_row(one: Any, two: Any) -> None:
    x = normal(2, 4, 9)
    found = results(one, x, kernel_size=3, stride=2, padding=1)
    rows = {"kernel_size": (1, 3), "stride": (1, 2), "padding": (0, 1)}
    expected = results(two, x[:, :, None], **rows)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs.reshape(ours.shape), rtol=1e-12, atol=1e-12)


def test_averages_without_padding_count_what_is_there() -> None:
    x = normal(2, 3, 4, 5)
    settings = {"kernel_size": 2**14, "stride": 2, "padding": 2**13, "count_include_pad": False}
    y, _ = avg_pool2d.forward(x, **settings)
    np.testing.assert_allclose(y[..., 1, 1], x.mean(axis=(2, 3)), rtol=1e-12)


@rows("setting", ["stride", "padding", "dilation"])
@rows(
    "value", [2**31, 2**62, 2**63 - 1, -1, True, None, "1", (1,), (1, 2, 3), (1, 2**40), np.ones(2)]
)
def test_settings_out_of_range_are_one_sentence(setting: str, value: Any) -> None:
    x = normal(1, 2, 3, 4)
    for op, arrays in (
        (conv2d, (x, normal(2, 2, 1, 1))),
        (conv_transpose2d, (x, normal(2, 2, 1, 1))),
        (max_pool2d, (x, 2)),
    ):
        if op is max_pool2d and setting == "stride" and value is None:
            continue
        with pytest.raises(HandgradError, match=rf"^{op.__name__.split('.')[-1]}: .*allowed: "):
            op.forward(*arrays, **{setting: value})


@rows("setting", ["stride", "padding", "dilation", "output_padding"])
@rows("value", [2**31, -1, True, None, "1", (), (1, 2), np.ones(1)])
def test_settings_of_one_axis_out_of_range_are_one_sentence(setting: str, value: Any) -> None:
    x, weight = normal(1, 2, 5), normal(2, 2, 2)
    for op, arrays in (
        (conv1d, (x, weight)),
        (conv_transpose1d, (x, weight)),
        (max_pool1d, (x, 2)),
        (avg_pool1d, (x, 2)),
    ):
        name = op.__name__.split(".")[-1]
        if setting not in signature(op.forward).parameters:
            continue
        if "pool" in name and setting == "stride" and value is None:
            continue
        with pytest.raises(HandgradError, match=rf"^{name}: .*allowed: "):
            op.forward(*arrays, **{setting: value})


@pytest.mark.parametrize("kernel_size", [2**31, 2**40, 0, (2, 2**40), "whole", None, 2.0])
def test_windows_out_of_range_are_one_sentence(kernel_size: Any) -> None:
    for op in (max_pool2d, avg_pool2d):
        with pytest.raises(HandgradError, match=r"kernel_size is .*; allowed: "):
            op.forward(normal(1, 2, 3, 4), kernel_size)
    for op in (max_pool1d, avg_pool1d):
        with pytest.raises(HandgradError, match=r"kernel_size is .*; allowed: "):
            op.forward(normal(1, 2, 4), kernel_size)


def test_planes_stay_below_what_32_bits_count() -> None:
    x, weight = normal(1, 1, 1, 1), normal(1, 1, 1, 1)
    with pytest.raises(ShapeError, match=r"conv2d: the padded input has 131073 · 131073 elements"):
        conv2d.forward(x, weight, padding=2**16)
    with pytest.raises(ShapeError, match="max_pool2d: the padded input has"):
        max_pool2d.forward(x, 2**17, padding=2**16)
    with pytest.raises(ShapeError, match="conv_transpose2d: the output with its padding has"):
        conv_transpose2d.forward(normal(1, 1, 2, 2), weight, stride=2**20)


def test_groups_without_channels_are_one() -> None:
    with pytest.raises(ArgumentError, match="groups is 4611686018427387904; allowed: a divisor"):
        conv2d.forward(normal(2, 0, 3, 3), normal(0, 0, 1, 1), groups=2**62)


@pytest.mark.parametrize("op", [max_pool2d, avg_pool2d], ids=["max", "avg"])
@pytest.mark.parametrize("shape", [(1, 7, 4, 0), (1, 7, 0, 4), (0, 0, 0, 0)])
def test_images_without_elements_have_nothing_to_pool(op: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="with H and W at least 1"):
        op.forward(np.zeros(shape, "f"), 2, 1, 1)


@pytest.mark.parametrize("op", [max_pool1d, avg_pool1d], ids=["max", "avg"])
@pytest.mark.parametrize("shape", [(1, 7, 0), (0, 0, 0)])
def test_sequences_without_steps_have_nothing_to_pool(op: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"allowed: \(N, C, T\) with T at least 1"):
        op.forward(np.zeros(shape, "f"), 2, 1, 1)


def test_windows_of_nothing_but_padding_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"finds only padding on \(1,\)"):
        max_pool1d.forward(normal(1, 1, 1), 2, 1, 1, dilation=2)
    with pytest.raises(ShapeError, match="finds only padding"):
        max_pool2d.forward(normal(1, 1, 1, 4), 2, 1, 1, dilation=2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_window_of_minus_infinity_gives_its_gradient_to_its_first_value(dtype: Any) -> None:
    x = np.full((1, 1, 3, 3), -np.inf, dtype)
    y, cache = max_pool2d.forward(x, 2, 1, 1)
    assert np.all(y == -np.inf)
    dx = max_pool2d.backward(np.ones_like(y), cache)
    np.testing.assert_array_equal(dx[0, 0], [[4, 2, 2], [2, 1, 1], [2, 1, 1]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_first_nan_of_a_window_takes_its_gradient(dtype: Any) -> None:
    x = np.array([[[[1, np.nan, 5], [np.nan, 2, 9]]]], dtype)
    y, cache = max_pool2d.forward(x, 2, 1)
    assert np.isnan(y).all()
    np.testing.assert_array_equal(
        max_pool2d.backward(np.ones_like(y), cache)[0, 0], [[0, 2, 0], [0, 0, 0]]
    )


@pytest.mark.parametrize("op", [conv1d, conv2d], ids=["conv1d", "conv2d"])
@pytest.mark.parametrize("junk", [1, (), "x", np.zeros(2), np.zeros((1, 1, 1, 1, 1))])
def test_gradients_go_into_arrays_of_their_shape_only(op: Any, junk: Any) -> None:
    axes = 1 if op is conv1d else 2
    y, cache = op.forward(normal(2, 3, *(4,) * axes), normal(5, 3, *(2,) * axes))
    with pytest.raises(ArgumentError, match=r"out=? has .*; allowed: "):
        op.backward(normal(*y.shape), cache, out=(junk, None, None))
