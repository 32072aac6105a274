"""The samples of every op: they cover its settings, run, and are as smooth as they say."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np
import pytest

import handgrad.ops
from handgrad.checking.trial import leaves, random_like
from handgrad.errors import ArgumentError
from handgrad.ops import OPS
from handgrad.ops.activation import ACTIVATIONS
from handgrad.ops.gelu import APPROXIMATIONS
from handgrad.ops.samples import (
    SITUATIONS,
    SampleInput,
    Seed,
    forward_arguments,
    gradient_names,
    random_sample_input,
    sample_inputs,
    small_cotangent,
    small_example,
)
from tests.tolerances import TOLERANCES

RANDOM_SAMPLES = 20
STEP = 1e-6
MOST_VALUES = 200
#: Situations that every op has; the others depend on what it computes.
EVERYWHERE = ("usual", "one row", "prime sizes", "empty", "extreme values")

each_op = pytest.mark.parametrize("op", OPS)


def generator(op: str) -> np.random.Generator:
    return np.random.default_rng(crc32(op.encode()))


def table_and_random(op: str) -> list[SampleInput]:
    rng = generator(op)
    return sample_inputs(op, rng) + [random_sample_input(op, rng) for _ in range(RANDOM_SAMPLES)]


def forward(op: str, sample: SampleInput) -> tuple[Any, Any]:
    args, kwargs = forward_arguments(op, sample)
    return getattr(handgrad.ops, op).forward(*args, **kwargs)


def backward(op: str, dy: Any, cache: Any) -> dict[str, Any]:
    """Gradients by the name of their input."""
    gradients = getattr(handgrad.ops, op).backward(dy, cache)
    several = gradients if isinstance(gradients, tuple) else (gradients,)
    return dict(zip(gradient_names(op), several, strict=True))


def settings(op: str, name: str, parameter: inspect.Parameter) -> set[str]:
    """The values of one parameter of forward in the samples, or the presence of its array."""
    found = set()
    for sample in sample_inputs(op, generator(op)):
        value = "an array" if name in sample.arrays else sample.options.get(name, parameter.default)
        found.add(repr(value))
    return found


@each_op
def test_gradients_are_inputs_in_the_order_of_forward(op: str) -> None:
    names = gradient_names(op)
    parameters = inspect.signature(getattr(handgrad.ops, op).forward).parameters
    assert names == tuple(name for name in parameters if name in names)


@each_op
def test_samples_are_several_and_cover_the_situations(op: str) -> None:
    found = sample_inputs(op, generator(op))
    assert len(found) >= 4
    assert len({sample.label for sample in found}) == len(found)
    assert (found[0].label, found[0].situation, found[0].smooth) == ("usual", "usual", True)
    situations = {sample.situation for sample in found}
    assert set(EVERYWHERE) <= situations <= set(SITUATIONS)


@each_op
def test_every_setting_is_varied(op: str) -> None:
    parameters = inspect.signature(getattr(handgrad.ops, op).forward).parameters
    required = sample_inputs(op, generator(op))[0].arrays
    for name, parameter in parameters.items():
        if name not in required or parameter.default is None:
            assert len(settings(op, name, parameter)) >= 2, f"{op}: no sample varies {name}"


@each_op
def test_every_choice_is_made(op: str) -> None:
    module = getattr(handgrad.ops, op)
    parameters = inspect.signature(module.forward).parameters
    choices = {
        "activation": ACTIVATIONS,
        "approximate": APPROXIMATIONS,
        "reduction": getattr(module, "REDUCTIONS", ()),
        "training": (True, False),
        "count_include_pad": (True, False),
    }
    for name in choices.keys() & parameters.keys():
        assert settings(op, name, parameters[name]) >= {repr(choice) for choice in choices[name]}


@each_op
def test_arrays_are_small_and_in_the_order_of_forward(op: str) -> None:
    parameters = list(inspect.signature(getattr(handgrad.ops, op).forward).parameters)
    for sample in sample_inputs(op, generator(op)):
        names = list(sample.arrays)
        assert names == [name for name in parameters if name in sample.arrays], sample.label
        for name, array in sample.arrays.items():
            assert array.size <= MOST_VALUES, f"{sample.label}: {name}"
            assert array.dtype == np.float64 or array.dtype.kind in "ib", f"{sample.label}: {name}"
            assert name not in gradient_names(op) or array.dtype == np.float64, sample.label


@each_op
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_results_are_finite(op: str, dtype: Any) -> None:
    rng = generator(op)
    for sample in table_and_random(op):
        arrays = {
            name: array.astype(dtype) if array.dtype.kind == "f" else array
            for name, array in sample.arrays.items()
        }
        y, cache = forward(op, replace(sample, arrays=arrays))
        for output in leaves(y):
            assert output.dtype == dtype, sample
            assert np.all(np.isfinite(output)), sample
        dy = random_like(y, rng)
        for name, gradient in backward(op, dy, cache).items():
            if name in arrays:
                assert gradient.shape == arrays[name].shape, sample
                assert np.all(np.isfinite(gradient)), sample
            else:
                assert gradient is None, sample


def moved(sample: SampleInput, distance: float, directions: dict[str, np.ndarray]) -> SampleInput:
    arrays = dict(sample.arrays)
    for name, direction in directions.items():
        arrays[name] = np.asarray(arrays[name] + distance * direction)
    return replace(sample, arrays=arrays)


@each_op
def test_finite_differences_apply_where_a_sample_is_smooth(op: str) -> None:
    """Every input along a direction at once, so that a kink or a tie close by would show."""
    rng = generator(op)
    for sample in table_and_random(op):
        if not sample.smooth:
            continue
        y, cache = forward(op, sample)
        dy = random_like(y, rng)
        gradients = backward(op, dy, cache)
        directions = {
            name: rng.standard_normal(sample.arrays[name].shape)
            for name in gradients
            if name in sample.arrays
        }
        ahead, _ = forward(op, moved(sample, STEP, directions))
        behind, _ = forward(op, moved(sample, -STEP, directions))
        outputs = zip(leaves(dy), leaves(ahead), leaves(behind), strict=True)
        terms = np.concatenate([np.ravel(d * (a - b)) / (2 * STEP) for d, a, b in outputs])
        found = sum(np.sum(gradients[name] * directions[name]) for name in directions)
        pairs = zip(leaves(dy), leaves(y), strict=True)
        magnitude = sum(np.sum(np.abs(d) * np.maximum(np.abs(v), 1.0)) for d, v in pairs)
        rounding = 4 * np.finfo(np.float64).eps * magnitude / STEP
        allowed = TOLERANCES["finite differences"].relative * np.sum(np.abs(terms)) + rounding
        assert abs(found - np.sum(terms)) <= allowed, sample


@each_op
def test_samples_are_the_same_for_the_same_generator(op: str) -> None:
    for first, again in zip(table_and_random(op), table_and_random(op), strict=True):
        assert (first.label, first.options) == (again.label, again.options)
        for name, array in first.arrays.items():
            np.testing.assert_array_equal(array, again.arrays[name])


@each_op
def test_small_example_fits_on_a_blackboard(op: str) -> None:
    sample = small_example(op)
    for array in sample.arrays.values():
        assert array.size <= 16
        np.testing.assert_array_equal(array, np.round(array))
        assert np.max(np.abs(array)) <= 9
    y, cache = forward(op, sample)
    dy = small_cotangent(op)
    for cotangent, output in zip(leaves(dy), leaves(y), strict=True):
        assert cotangent.shape == output.shape
        np.testing.assert_array_equal(cotangent, np.round(cotangent))
        assert len(np.unique(cotangent)) > 1 or output.size == 1
        assert np.all(np.abs(cotangent) <= 16)
    for result in (*leaves(y), *leaves(tuple(backward(op, dy, cache).values()))):
        assert 0 < np.max(np.abs(result)) <= 50


def test_small_example_is_nobody_elses() -> None:
    small_example("linear").arrays["x"][...] = 0
    small_cotangent("linear")[...] = 0
    assert np.any(small_example("linear").arrays["x"])
    assert np.any(small_cotangent("linear"))


def test_a_seed_is_a_new_generator_at_every_forward() -> None:
    sample = sample_inputs("dropout", generator("dropout"))[0]
    assert isinstance(sample.options["rng"], Seed)
    first, _ = forward("dropout", sample)
    again, _ = forward("dropout", sample)
    np.testing.assert_array_equal(first, again)


def test_dropout_drops_some_and_keeps_some() -> None:
    for sample in (sample_inputs("dropout", generator("dropout"))[0], small_example("dropout")):
        y, _ = forward("dropout", sample)
        assert np.any(y == 0)
        assert np.any(y != 0)


def test_an_unknown_op_is_named() -> None:
    with pytest.raises(
        ArgumentError, match="samples: op is 'layernorm'; allowed: additive_attention, "
    ):
        sample_inputs("layernorm", np.random.default_rng(0))
