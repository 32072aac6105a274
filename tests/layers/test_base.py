"""Parameters by name: read, set, moved into one buffer, and the errors on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handgrad.errors import ArgumentError, ShapeError
from handgrad.layers import (
    AddNorm,
    BatchNorm,
    Dense,
    Dropout,
    FlatArrays,
    Layer,
    Residual,
    Sequential,
    walk,
)
from tests.tolerances import assert_close


def _model() -> Sequential:
    rng = np.random.default_rng(0)
    return Sequential(
        Dense(4, 3, rng=rng),
        Residual(Sequential(lift=Dense(3, 3, rng=rng, bias=False), norm=BatchNorm(3))),
        Dropout(0.5, rng=rng),
    )


def test_names_are_flat() -> None:
    model = _model()
    assert list(model.parameters) == [
        "0.weight",
        "0.bias",
        "1.inner.lift.weight",
        "1.inner.norm.gamma",
        "1.inner.norm.beta",
    ]
    assert list(model.buffers) == ["1.inner.norm.running_mean", "1.inner.norm.running_var"]
    assert list(model.generators) == ["2.rng"]
    assert [name for name, _ in walk(model)] == [
        "", "0", "1", "1.inner", "1.inner.lift", "1.inner.norm", "2",
    ]  # fmt: skip


def test_update_parameters_reaches_nested_layers() -> None:
    model = _model()
    new = {name: np.full(array.shape, 2.0) for name, array in model.parameters.items()}
    model.update_parameters(new)
    inner = model.layers["1"].layers["inner"].layers["lift"]
    np.testing.assert_array_equal(inner.parameters["weight"], np.full((3, 3), 2.0, np.float32))
    assert inner.parameters["weight"].dtype == np.float32


def test_update_parameters_names_the_missing_key() -> None:
    model = _model()
    new = model.parameters
    del new["1.inner.norm.beta"]
    with pytest.raises(ArgumentError, match=r"'1\.inner\.norm\.beta' is missing"):
        model.update_parameters(new)


def test_update_parameters_names_the_unknown_key() -> None:
    model = _model()
    with pytest.raises(ArgumentError, match=r"'0\.scale' is unknown; allowed: 0\.weight, 0\.bias"):
        model.update_parameters({**model.parameters, "0.scale": np.ones(3)})


def test_update_parameters_names_the_wrong_shape_and_changes_nothing() -> None:
    model = _model()
    before = {name: array.copy() for name, array in model.parameters.items()}
    new = {name: array + 1 for name, array in before.items()}
    new["1.inner.lift.weight"] = np.ones((3, 2))
    with pytest.raises(ShapeError, match=r"'1\.inner\.lift\.weight' .*\(3, 2\); allowed: \(3, 3\)"):
        model.update_parameters(new)
    for name, array in model.parameters.items():
        np.testing.assert_array_equal(array, before[name])


def test_update_buffers_checks_the_same_way() -> None:
    model = _model()
    model.update_buffers({name: array + 1 for name, array in model.buffers.items()})
    np.testing.assert_array_equal(model.buffers["1.inner.norm.running_mean"], np.ones(3))
    with pytest.raises(ArgumentError, match=r"update_buffers: .*running_mean' is missing"):
        model.update_buffers({})


def test_bind_moves_the_parameters_into_one_buffer() -> None:
    model = _model()
    before = {name: array.copy() for name, array in model.parameters.items()}
    flat = model.bind()
    assert list(flat) == list(before)
    flat.buffer += 1
    for name, array in model.parameters.items():
        np.testing.assert_array_equal(array, before[name] + 1)
        assert np.shares_memory(array, flat.buffer)
    model.update_parameters(before)
    np.testing.assert_array_equal(flat["0.weight"], before["0.weight"])


def test_bind_takes_a_buffer_of_the_same_layout_only() -> None:
    model = _model()
    flat = FlatArrays.of(model.parameters).zeros_like()
    assert model.bind(flat) is flat
    assert np.shares_memory(model.parameters["0.bias"], flat.buffer)
    with pytest.raises(ArgumentError, match=r"0\.weight' is unknown"):
        model.bind(FlatArrays.zeros({}))


def test_bind_refuses_two_dtypes() -> None:
    rng = np.random.default_rng(0)
    model = Sequential(Dense(2, 2, rng=rng), Dense(2, 2, rng=rng, dtype=np.float64))
    with pytest.raises(ArgumentError, match="float32, float64; allowed: one dtype"):
        model.bind()


class _Plain(Dense):
    """A derived layer that overrides forward and takes no residual."""

    def forward(self, x: np.ndarray, *, training: bool = False) -> tuple[np.ndarray, Any]:
        return super().forward(x, training=training)


class _Repeating(_Plain):
    capturable = True
    backward_reads_output = False


def test_what_a_class_declares_is_not_inherited() -> None:
    names = "capturable", "adds_residual_forward", "adds_residual_backward"
    assert [getattr(Dense, name) for name in names] == [True, True, True]
    assert [getattr(_Plain, name) for name in names] == [False, False, False]
    assert [getattr(_Repeating, name) for name in names] == [True, False, False]
    assert _Plain.backward_reads_output
    assert not _Repeating.backward_reads_output


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("inner", [Dense, _Plain, Sequential])
def test_a_residual_is_added_whoever_does_it(inner: type[Layer], norm: str) -> None:
    rng = np.random.default_rng(0)
    child = inner() if inner is Sequential else inner(3, 3, rng=rng)
    layer = AddNorm(child, 3, norm=norm)
    x, dy = rng.standard_normal((2, 5, 3)).astype(np.float32)
    y, cache = layer.forward(x)
    dx, gradients = layer.backward(dy, cache)
    z, kept_before = layer.norm.forward(x) if norm == "pre" else (x, None)
    f, kept = child.forward(z)
    expected, kept_after = (x + f, None) if norm == "pre" else layer.norm.forward(x + f)
    dsum = dy if norm == "pre" else layer.norm.backward(dy, kept_after)[0]
    df, dchild = child.backward(dsum, kept)
    dbranch = layer.norm.backward(df, kept_before)[0] if norm == "pre" else df
    assert_close(y, expected, "float32", "y")
    assert_close(dx, dsum + dbranch, "float32", "dx")
    for name, gradient in dchild.items():
        assert_close(gradients[f"inner.{name}"], gradient, "float32", name)
