"""ColumnEmbeddings: numbers stay, levels become rows, and both get their gradients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import HandgradError
from handgrad.layers import ColumnEmbeddings
from handgrad.layers.inputs import reads_tokens


def made(columns: tuple[int, ...] = (1, 4), dtype: Any = np.float64) -> ColumnEmbeddings:
    rng = np.random.default_rng(0)
    count = len(columns)
    return ColumnEmbeddings(columns, (5, 3)[:count], (2, 4)[:count], rng=rng, dtype=dtype)


def batch(columns: tuple[int, ...] = (1, 4), width: int = 5) -> np.ndarray:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(7, width))
    for column in columns:
        x[:, column] = rng.integers(0, 3, len(x))
    return x


def test_each_level_is_a_row_behind_the_numbers() -> None:
    layer, x = made(), batch()
    first, second = (each.weight for each in layer.layers.values())
    expected = [x[:, [0, 2, 3]], first[x[:, 1].astype(int)], second[x[:, 4].astype(int)]]
    np.testing.assert_array_equal(layer(x), np.concatenate(expected, axis=1))
    assert layer.output_shape((5,)) == (9,)
    assert set(layer.parameters) == {"1.weight", "4.weight"}
    assert first.std() < 0.3


@pytest.mark.parametrize("columns", [(1, 4), (0, 1), (2,), (0,), (3, 4)])
def test_gradients_are_those_of_differences(columns: tuple[int, ...]) -> None:
    layer, x = made(columns), batch(columns)
    y, cache = layer.forward(x, training=True)
    dy = np.random.default_rng(2).normal(size=y.shape)
    dx, gradients = layer.backward(dy, cache)
    assert dx is not None

    def difference(array: np.ndarray, at: tuple[int, ...]) -> float:
        values = []
        for step in (1e-4, -1e-4):
            kept = array[at]
            array[at] = kept + step
            values.append(float((layer(x) * dy).sum()))
            array[at] = kept
        return (values[0] - values[1]) / 2e-4

    for name, array in layer.parameters.items():
        expected = [difference(array, at) for at in np.ndindex(array.shape)]
        np.testing.assert_allclose(gradients[name].ravel(), expected, atol=1e-8)
    for at in np.ndindex(x.shape):
        expected_dx = 0.0 if at[1] in columns else difference(x, at)
        assert dx[at] == pytest.approx(expected_dx, abs=1e-8)
    given = {name: np.full_like(array, np.nan) for name, array in layer.parameters.items()}
    none, written = layer.backward(dy, cache, gradients=given, input_gradient=False)
    assert none is None
    for name in gradients:
        np.testing.assert_array_equal(written[name], gradients[name])


def test_it_is_saved_and_exported_as_it_is(tmp_path: Path) -> None:
    model = hg.Sequential(made(dtype=np.float32), hg.Dense(9, 2, rng=np.random.default_rng(3)))
    assert not reads_tokens(model)
    x = batch().astype(np.float32)
    model.save(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(hg.load(tmp_path / "m.safetensors").model(x), model(x))
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    hg.export_onnx(model, tmp_path / "m.onnx", input_shape=(5,))
    session = runtime.InferenceSession(tmp_path / "m.onnx")
    (found,) = session.run(None, {session.get_inputs()[0].name: x})
    np.testing.assert_allclose(found, model(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((), (), ()), r"columns are \(\); allowed: one or more, which rise"),
        (((2, 1), (3, 3), (1, 1)), r"columns are \(2, 1\); allowed: one or more, which rise"),
        (((-2,), (3,), (1,)), r"columns are \(-2,\); allowed: one or more, which rise"),
        (((0, 1), (3,), (1, 1)), "there are 1 levels and 2 features; allowed: 2 of each"),
    ],
)
def test_columns_that_are_impossible(arguments: Any, message: str) -> None:
    with pytest.raises(HandgradError, match=message):
        ColumnEmbeddings(*arguments, rng=np.random.default_rng(0))


def test_numbers_that_are_no_levels() -> None:
    layer, x = made(), batch()
    with pytest.raises(HandgradError, match=r"shape \(4,\); allowed: \(D,\) with D of 5 or more"):
        layer(x[:, :4])
    for wrong in (5.0, -1.0):
        x[2, 1] = wrong
        with pytest.raises(HandgradError, match=f"{wrong:.0f}"):
            layer(x)
