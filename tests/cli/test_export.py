from __future__ import annotations

import json

import numpy as np
import pytest

import handgrad as hg

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def test_a_run_answers_the_same_in_onnxruntime(handgrad, digits_run, tmp_path) -> None:
    path = tmp_path / "digits.onnx"
    result = handgrad("export", digits_run, path)
    assert result.exit_code == 0, result.output
    assert str(path) in result.stdout
    trained, data = hg.load(digits_run), hg.data.load("digits")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    x = np.ascontiguousarray(trained.preprocessing(data.x_test[:]), np.float32)
    for batch in (x[:1], x):
        (found,) = session.run(None, {given.name: batch})
        np.testing.assert_allclose(found, trained.model(batch), rtol=0, atol=1e-4)
    assert np.array_equal(found.argmax(axis=1), trained.model(x).argmax(axis=1))
    said = {each.key: each.value for each in onnx.load(path).metadata_props}
    assert json.loads(said["classes"]) == list(data.classes)


def test_what_cannot_be_exported_is_refused(refused, digits_run, tmp_path) -> None:
    assert "lengths is True" in refused("export", digits_run, tmp_path / "a.onnx", "--lengths")
    assert "does not exist" in refused("export", tmp_path / "none", tmp_path / "a.onnx")
    missing = tmp_path / "missing" / "a.onnx"
    assert "cannot be written" in refused("export", digits_run, missing)
