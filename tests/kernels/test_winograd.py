"""Convolutions by Winograd's algorithms: against the reference, at awkward sizes and edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad import kernels
from handgrad.dispatch.settings import WINOGRAD
from handgrad.ops import conv2d
from tests.tolerances import assert_close

pytestmark = pytest.mark.skipif(kernels.native is None, reason="there are no kernels here")

#: N, C, H, W, O, padding, groups, activation: fewer outputs than a tile, tiles that end beyond the
#: image, more tiles than a panel, lanes that do not fill a vector, several bands of tiles.
SIZES: list[tuple[Any, ...]] = [
    (1, 1, 3, 3, 1, 0, 1, "identity"),
    (2, 3, 1, 1, 4, 1, 1, "relu"),
    (2, 5, 7, 9, 3, 1, 1, "gelu"),
    (3, 8, 5, 123, 12, (2, 1), 2, "tanh"),
    (2, 17, 13, 14, 33, (0, 2), 1, "identity"),
    (1, 40, 40, 37, 65, 1, 1, "leaky_relu"),
    (5, 128, 16, 16, 70, 1, 1, "relu"),
    (1, 2, 6, 1500, 2, 1, 1, "identity"),
]
NAMES = ("y", "dx", "dweight", "dbias")


@pytest.fixture(autouse=True)
def _settings_as_before() -> Iterator[None]:
    threads = hg.get_threads()
    yield
    hg.set_threads(threads)
    assert kernels.native is not None
    kernels.native.set_winograd(WINOGRAD["auto"])


def _set(tile: str) -> None:
    assert kernels.native is not None
    kernels.native.set_winograd(WINOGRAD[tile])


def _inputs(n: int, c: int, h: int, w: int, o: int, groups: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((o, c // groups, 3, 3)) / np.sqrt(9 * c / groups)
    x, bias = rng.standard_normal((n, c, h, w)), rng.standard_normal(o)
    return [each.astype(np.float32) for each in (x, weight, bias)]


def _results(inputs: list[np.ndarray], **options: Any) -> list[np.ndarray]:
    y, cache = conv2d.forward(*inputs, **options)
    dy = np.random.default_rng(1).standard_normal(y.shape).astype(y.dtype)
    return [y, *conv2d.backward(dy, cache)]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("tile", ["2", "4"])
def test_it_is_the_reference(size: tuple[Any, ...], tile: str) -> None:
    n, c, h, w, o, padding, groups, activation = size
    inputs = _inputs(n, c, h, w, o, groups)
    options = {"padding": padding, "groups": groups, "activation": activation}
    with hg.engine("reference"):
        y, cache = conv2d.forward(*(each.astype(np.float64) for each in inputs), **options)
        dy = np.random.default_rng(1).standard_normal(y.shape).astype(np.float32)
        expected = [y, *conv2d.backward(dy.astype(np.float64), cache)]
    _set(tile)
    found = _results(inputs, **options)
    for name, actual, wanted in zip(NAMES, found, expected, strict=True):
        assert_close(actual, wanted, "float32", name)
    for threads in (1, 3):
        hg.set_threads(threads)
        for name, actual, again in zip(NAMES, found, _results(inputs, **options), strict=True):
            np.testing.assert_array_equal(again, actual, err_msg=name)


@pytest.mark.parametrize("tile", ["2", "4"])
def test_whole_numbers_and_one_hot_kernels_are_shifts(tile: str) -> None:
    x = np.random.default_rng(2).integers(-8, 9, (2, 3, 11, 10)).astype(np.float32)
    _set(tile)
    for position in range(9):
        weight = np.zeros((3, 3, 3, 3), np.float32)
        weight[np.arange(3), np.arange(3), position // 3, position % 3] = 1
        y, _ = conv2d.forward(x, weight, padding=1)
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        i, j = divmod(position, 3)
        assert_close(y, padded[:, :, i : i + 11, j : j + 10], "float32")


@pytest.mark.parametrize(
    ("options", "kernel"),
    [
        ({"stride": 2}, 3),
        ({"dilation": 2, "padding": 2}, 3),
        ({"padding": 3}, 3),
        ({"padding": 2}, 5),
    ],
)
def test_other_convolutions_go_as_before(options: dict[str, Any], kernel: int) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2, 32, 12, 12)).astype(np.float32)
    weight = rng.standard_normal((32, 32, kernel, kernel)).astype(np.float32)
    found = []
    for tile in ("0", "4"):
        _set(tile)
        found.append(_results([x, weight], **options)[:3])
    for actual, wanted in zip(*found, strict=True):
        np.testing.assert_array_equal(actual, wanted)


def test_float64_and_bf16_go_as_before() -> None:
    inputs = _inputs(2, 32, 12, 12, 32, 1)
    wide = [each.astype(np.float64) for each in inputs]
    found = []
    for tile in ("0", "4"):
        _set(tile)
        results = _results(wide, padding=1)
        if kernels.native is not None and kernels.native.bf16_unit != "none":
            with hg.precision("bf16"):
                results += _results(inputs, padding=1)
        found.append(results)
    for actual, wanted in zip(*found, strict=True):
        np.testing.assert_array_equal(actual, wanted)


def test_large_layers_take_large_tiles() -> None:
    inputs = _inputs(4, 64, 32, 32, 64, 1)
    found = {}
    for tile in WINOGRAD:
        _set(tile)
        found[tile] = _results(inputs, padding=1)[0]
    np.testing.assert_array_equal(found["auto"], found["4"])
    assert not np.array_equal(found["0"], found["4"])
