from __future__ import annotations

import json

import numpy as np
import pytest

import handgrad as hg
from handgrad.inference.preprocessing import Preprocessing, Standardization
from tests.onnx.running import LAYERS, MODELS, RECURRENT, SIZES, Case, feeds, made, outputs, session
from tests.tolerances import assert_close

onnx = pytest.importorskip("onnx")


@pytest.mark.parametrize("case", [*LAYERS, *RECURRENT, *MODELS], ids=lambda case: case.name)
def test_onnxruntime_computes_the_same(case: Case, tmp_path) -> None:
    model, path = made(case), tmp_path / "model.onnx"
    hg.export_onnx(model, path, **case.settings)
    other = session(path)
    for sizes in SIZES:
        given = feeds(other, case, sizes)
        (found,) = other.run(None, given)
        assert_close(found, outputs(model, given), "float32", case.name)


def test_lengths_of_axes_have_names(tmp_path) -> None:
    def axes(model: hg.layers.Layer, **settings) -> list:
        hg.export_onnx(model, tmp_path / "model.onnx", **settings)
        return session(tmp_path / "model.onnx").get_inputs()[0].shape

    rng = np.random.default_rng(0)
    assert axes(hg.LSTM(4, 6, rng=rng)) == ["batch", "time", 4]
    assert axes(hg.Sequential(hg.Dropout(rng=rng), hg.Conv2d(3, 4, 3, rng=rng))) == [
        *("batch", 3, "height", "width")
    ]
    assert axes(hg.LayerNorm(4), input_shape=(None, 4)) == ["batch", "time", 4]
    assert axes(hg.CNN((1, 8, 9), [4], 3, rng=rng)) == ["batch", 1, 8, 9]


def test_the_metadata_say_what_belongs_to_the_use_of_a_model(tmp_path) -> None:
    model = hg.MLP([2, 3], rng=np.random.default_rng(0))
    trained = hg.TrainedModel(
        model,
        task="classification",
        classes=("no", "ñ", "yes"),
        preprocessing=Preprocessing((Standardization((0.0, 1.0), (2.0, 3.0)),)),
    )
    hg.export_onnx(trained, tmp_path / "model.onnx")
    proto = onnx.load(tmp_path / "model.onnx")
    said = {each.key: json.loads(each.value) for each in proto.metadata_props}
    assert said["classes"] == ["no", "ñ", "yes"]
    assert said["preprocessing"] == [{"step": "standardize", "mean": [0, 1], "std": [2, 3]}]
    assert said["handgrad"]["task"] == "classification"
    assert proto.opset_import[0].version == 17


def test_parameters_stand_in_the_file_as_they_are(tmp_path) -> None:
    model = hg.MLP([5, 7, 3], rng=np.random.default_rng(0))
    hg.export_onnx(model, tmp_path / "model.onnx")
    proto = onnx.load(tmp_path / "model.onnx")
    found = {each.name: onnx.numpy_helper.to_array(each) for each in proto.graph.initializer}
    for name, array in model.parameters.items():
        np.testing.assert_array_equal(found[name], array)


class Doubled(hg.Dense):
    def forward(self, x, *, training=False):
        y, cache = super().forward(x, training=training)
        return 2 * y, cache


class Renamed(hg.Dense):
    pass


def test_a_layer_without_a_rule_is_named(tmp_path) -> None:
    rng = np.random.default_rng(0)
    model = hg.Sequential(first=hg.Dense(3, 4, rng=rng), second=Doubled(4, 2, rng=rng))
    with pytest.raises(hg.errors.ArgumentError, match="layer second, a Doubled, has a forward"):
        hg.export_onnx(model, tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()


def test_a_layer_that_inherits_forward_is_written_as_its_base(tmp_path) -> None:
    case = Case("renamed", lambda rng: Renamed(3, 4, rng=rng))
    test_onnxruntime_computes_the_same(case, tmp_path)


@pytest.mark.parametrize(
    ("make", "settings", "said"),
    [
        (lambda rng: hg.LayerNorm(4), {}, "input_shape is missing"),
        (lambda rng: hg.Dense(4, 2, rng=rng), {"input_shape": 4}, "input_shape is 4"),
        (lambda rng: hg.Dense(4, 2, rng=rng), {"lengths": True}, "lengths is True"),
        (
            lambda rng: hg.TransformerDecoder(1, 4, 1, 4, rng=rng),
            {"input_shape": (None, 4)},
            "memo",
        ),
        (
            lambda rng: hg.TransformerBlock(4, 1, 4, rng=rng, cross=True),
            {"input_shape": (None, 4)},
            "attends to a memory",
        ),
        (
            lambda rng: hg.Transformer(7, 7, rng=rng, d_model=8, heads=2, hidden=4),
            {"input_shape": (3,)},
            "input_shape is",
        ),
        (lambda rng: hg.Dense(None, 2, rng=rng), {}, "no weights yet"),
    ],
)
def test_what_cannot_be_exported_is_one_sentence(make, settings, said, tmp_path) -> None:
    with pytest.raises(hg.errors.HandgradError, match=said):
        hg.export_onnx(make(np.random.default_rng(0)), tmp_path / "model.onnx", **settings)


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path) -> None:
    model = hg.Dense(4, 2, rng=np.random.default_rng(0))
    with pytest.raises(hg.errors.RunError, match="cannot be written"):
        hg.export_onnx(model, tmp_path / "missing" / "model.onnx")
