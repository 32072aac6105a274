"""Inputs of other types than the parameters: converted, with one warning, or refused."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.data import Pixels
from handgrad.dispatch import engine
from handgrad.errors import ArgumentError, HandgradWarning
from handgrad.layers import Layer


def dense(dtype: Any = np.float32) -> hg.Dense:
    return hg.Dense(4, 3, rng=np.random.default_rng(0), dtype=dtype)


def classifier() -> hg.Sequential:
    rng = np.random.default_rng(0)
    return hg.Sequential(hg.MaxPool2d(2), hg.Flatten(), hg.Dense(4, 3, rng=rng))


def tokens_model() -> hg.Sequential:
    rng = np.random.default_rng(0)
    return hg.Sequential(hg.Embedding(9, 4, rng=rng), hg.Dense(4, 3, rng=rng))


@pytest.fixture
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("dtype", ["float64", "float16", "int64", "int8", "uint8", "bool"])
@pytest.mark.parametrize("make", [dense, classifier])
def test_numbers_of_any_type_are_converted_with_one_warning(make: Any, dtype: str) -> None:
    model: Layer = make()
    shape = (2, 1, 4, 4) if make is classifier else (2, 4)
    x = (np.arange(np.prod(shape)).reshape(shape) % 3).astype(dtype)
    with pytest.warns(HandgradWarning, match=f"x is of {dtype} and the parameters of float32"):
        y, cache = model.forward(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again, _ = model.forward(x)
        expected, _ = model.forward(x.astype(np.float32))
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(again, expected)
    dx, gradients = model.backward(np.ones_like(y), cache)
    assert {dx.dtype, *(g.dtype for g in gradients.values())} == {np.dtype(np.float32)}


def test_the_warning_says_what_to_write_and_stands_at_the_callers_line() -> None:
    model = classifier()
    with pytest.warns(HandgradWarning) as found:
        model.forward(np.ones((2, 1, 4, 4), np.uint8))
    (warning,) = found
    assert warning.filename == __file__
    assert str(warning.message) == (
        "Sequential: x is of uint8 and the parameters of float32, so every call converts it; to "
        "convert once, write x = x.astype(np.float32), of images x.astype(np.float32) / 255"
    )


@pytest.mark.usefixtures("quiet")
def test_float64_models_and_tokens_stay_as_they_are() -> None:
    y, _ = dense(np.float64).forward(np.ones((2, 4)))
    assert y.dtype == np.float64
    model = tokens_model()
    for dtype in (np.int64, np.uint8):
        y, _ = model.forward(np.ones((2, 5), dtype))
        assert y.dtype == np.float32
    y, _ = hg.Activation("relu").forward(np.ones((2, 4)))
    assert y.dtype == np.float64


def test_float32_is_converted_for_a_float64_model() -> None:
    with pytest.warns(HandgradWarning, match=r"write x = x\.astype\(np\.float64\)$"):
        y, _ = dense(np.float64).forward(np.ones((2, 4), np.float32))
    assert y.dtype == np.float64


def test_further_inputs_are_converted_and_lengths_are_not() -> None:
    lstm = hg.LSTM(4, 3, rng=np.random.default_rng(0))
    x, state = np.ones((2, 5, 4), np.float32), np.zeros((1, 2, 3))
    with pytest.warns(HandgradWarning, match="state is of float64"):
        (y, (h, c)), _ = lstm.forward(x, (state, state), np.array([5, 2]))
    assert {y.dtype, h.dtype, c.dtype} == {np.dtype(np.float32)}


def test_a_model_that_changes_its_type_is_looked_at_again() -> None:
    model = dense()
    model.forward(np.ones((2, 4), np.float32))
    twin = copy.deepcopy(model)
    twin.weight, twin.bias = twin.weight.astype(np.float64), twin.bias.astype(np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y, _ = twin.forward(np.ones((2, 4)))
    assert y.dtype == np.float64


def test_a_captured_step_does_not_replay_a_conversion() -> None:
    model, loss = dense(), hg.losses.SquaredError()
    step = hg.training.TrainingStep(model, loss, model.bind().zeros_like())
    x, target = np.random.default_rng(0).standard_normal((3, 2, 4)), np.zeros((2, 3), np.float32)
    with pytest.warns(HandgradWarning, match="float64"):
        step((x[0],), target)
    values = [float(step((each,), target)) for each in x]
    expected = [float(loss(model(each.astype(np.float32)), target)) for each in x]
    assert values == expected


def test_a_number_that_the_type_cannot_hold_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"x has a number that float32 cannot hold; allowed: "):
        dense().forward(np.full((1, 4), 1e300))


@pytest.mark.parametrize(
    ("x", "sentence"),
    [
        ([[1.0, 2, 3, 4]], "Dense: x is a list; allowed: an array; write x = "),
        (None, "Dense: x is None; allowed: an array$"),
        (
            Pixels(np.ones((2, 4), np.uint8)),
            r"Dense: x is a .*Pixels; allowed: an array; write x =",
        ),
        (np.array([["a"] * 4]), "dense: x is an array of <U1 and shape .* an array of floats$"),
        (np.ones((2, 4), np.complex64), "dense: x is an array of complex64 .* of floats$"),
    ],
)
def test_what_is_no_array_of_numbers_is_refused(x: Any, sentence: str) -> None:
    with pytest.raises(ArgumentError, match=sentence):
        dense().forward(x)


def test_y_with_its_cache_is_no_input() -> None:
    model = dense()
    given = model.forward(np.ones((2, 4), np.float32))
    with pytest.raises(ArgumentError, match=r"write x, cache = layer\.forward"):
        model.forward(given)


def test_a_layer_of_ones_own_may_take_anything() -> None:
    class Sum(hg.layers.Layer):
        parameter_names = ("weight",)

        def __init__(self) -> None:
            self.weight = np.ones(1, np.float32)

        def forward(self, x: Any, *, training: bool = False) -> Any:
            return sum(x) * self.weight, None

    assert Sum().forward([1, 2])[0] == 3


@pytest.mark.parametrize("name", ["reference", "auto"])
def test_targets_are_converted_to_the_type_of_y(name: str) -> None:
    y = np.array([0.5, -1.0], np.float32)
    with engine(name):
        for loss in (hg.losses.SquaredError(), hg.losses.BinaryCrossEntropy()):
            for target in (np.array([1.0, 0.0]), np.array([1, 0])):
                with pytest.warns(HandgradWarning, match=f"target is of {target.dtype} and y of"):
                    value, cache = loss.forward(y, target)
                assert value.dtype == loss.backward(cache).dtype == np.float32


@pytest.mark.usefixtures("quiet")
def test_class_numbers_stay_integers() -> None:
    y = np.eye(3, dtype=np.float32)
    assert hg.losses.CrossEntropy()(y, np.array([0, 1, 2])).dtype == np.float32
    with pytest.raises(ArgumentError, match="allowed: integers, because"):
        hg.losses.CrossEntropy()(y, np.array([0.0, 1.0, 2.0]))
