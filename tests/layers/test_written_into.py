"""Attributes set in a layer, and those refused: one sentence, and nothing changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handgrad.errors import ArgumentError
from handgrad.layers import BatchNorm, Dense, FlatArrays, Layer
from handgrad.optimizers import SGD

RIGHT = np.arange(6.0).reshape(2, 3)
WRONG: dict[str, Any] = {
    "None": None,
    "a str": "weight",
    "bytes": b"x",
    "an object": object(),
    "objects": RIGHT.astype(object),
    "complex": RIGHT.astype(complex),
    "bool": RIGHT > 0,
    "text": RIGHT.astype(str),
    "times": RIGHT.astype("m8[s]"),
    "masked": np.ma.masked_array(RIGHT, RIGHT > 1),
    "ragged": [[1.0], [2.0, 3.0]],
    "structured": np.zeros((2, 3), [("a", "f4")]),
}


@pytest.fixture
def layer() -> Layer:
    return Dense(3, 2, rng=np.random.default_rng(0))


@pytest.mark.parametrize("value", WRONG.values(), ids=WRONG)
def test_what_is_no_array_of_numbers_is_refused(layer: Layer, value: Any) -> None:
    before = {name: array.copy() for name, array in layer.parameters.items()}
    given = {"bias": np.ones(2, np.float32), "weight": value}
    with pytest.raises(ArgumentError, match=r"update_parameters: 'weight' is a .*; allowed: "):
        layer.update_parameters(given)
    for name, array in layer.parameters.items():
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.parametrize("given", [None, 3, "weight", [("weight", RIGHT)], RIGHT])
def test_what_is_no_mapping_is_refused(layer: Layer, given: Any) -> None:
    with pytest.raises(ArgumentError, match="allowed: a mapping of names to arrays"):
        layer.update_parameters(given)
    with pytest.raises(ArgumentError, match="allowed: a mapping of names to arrays"):
        BatchNorm(2).update_buffers(given)


def test_a_number_too_large_for_the_type_is_refused(layer: Layer) -> None:
    with pytest.raises(ArgumentError, match=r"'weight' has a value of 1e\+300; .* float32"):
        layer.update_parameters({"weight": RIGHT * 1e300 / 5, "bias": np.zeros(2)})


def test_infinity_stays_infinity(layer: Layer) -> None:
    layer.update_parameters({"weight": np.full((2, 3), np.inf), "bias": np.full(2, np.nan)})
    assert np.isposinf(layer.parameters["weight"]).all()
    assert np.isnan(layer.parameters["bias"]).all()


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4", "i1", "i8", "u2"])
def test_real_numbers_of_any_type_are_taken(layer: Layer, dtype: str) -> None:
    layer.update_parameters({"weight": RIGHT.astype(dtype), "bias": np.ones(2, dtype)})
    np.testing.assert_array_equal(layer.parameters["weight"], RIGHT)


def test_parameters_may_be_exchanged_with_each_other() -> None:
    layer = Dense(2, 2, rng=np.random.default_rng(0))
    weight = layer.parameters["weight"].copy()
    layer.update_parameters({"weight": layer.parameters["weight"].T, "bias": weight[0]})
    np.testing.assert_array_equal(layer.parameters["weight"], weight.T)


def test_arrays_of_one_buffer_may_be_exchanged() -> None:
    flat = FlatArrays.of({"a": np.ones(3), "b": np.zeros(3)})
    flat.copy_from({"a": flat["b"], "b": flat["a"]})
    np.testing.assert_array_equal(flat.buffer, [0, 0, 0, 1, 1, 1])


def test_a_key_of_any_type_is_named(layer: Layer) -> None:
    given = {**layer.parameters, (1, "\n"): RIGHT}
    with pytest.raises(ArgumentError) as error:
        layer.update_parameters(given)
    assert "\n" not in str(error.value)


def test_many_names_are_counted() -> None:
    many = {f"p{i}": np.zeros(1) for i in range(200)}
    with pytest.raises(ArgumentError, match=r"p7 and 192 more") as error:
        FlatArrays.of(many).copy_from({})
    assert len(str(error.value)) < 200


def test_a_gradient_that_is_none_is_refused() -> None:
    with pytest.raises(ArgumentError, match="'a' is a NoneType"):
        SGD(0.1).step({"a": np.ones(2)}, {"a": None})
