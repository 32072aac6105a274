"""Accelerated models leave by PyTorch's exporters to ONNX, with PyTorch's own operators."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from handgrad import kernels
from tests.tolerances import assert_close

torch = pytest.importorskip("torch")
hgt = pytest.importorskip("handgrad.torch")
onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
nn = torch.nn

pytestmark = pytest.mark.skipif(kernels.native is None, reason="no compiled kernels")


class Called(nn.Module):  # type: ignore[misc, name-defined]
    """A module in a model whose forward is `call`."""

    def __init__(self, module: Any, call: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.module = module
        self.call = call

    def forward(self, x: Any) -> Any:
        return self.call(self.module, x)


MODELS: dict[str, tuple[Callable[[], Any], Callable[[Any, Any], Any], tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(512, 256), lambda m, x: m(x), (2, 512)),
    "conv1d": (lambda: nn.Conv1d(3, 8, 3, padding=1), lambda m, x: m(x), (2, 3, 8)),
    "conv2d": (lambda: nn.Conv2d(3, 8, 3, stride=2), lambda m, x: m(x), (2, 3, 8, 8)),
    "lstm": (lambda: nn.LSTM(3, 4, batch_first=True), lambda m, x: m(x)[1][0][-1], (2, 5, 3)),
    "gru": (lambda: nn.GRU(3, 4, bidirectional=True), lambda m, x: m(x)[0], (5, 2, 3)),
    "attention": (
        lambda: nn.MultiheadAttention(16, 2, batch_first=True),
        lambda m, x: m(x, x, x, need_weights=False)[0],
        (2, 5, 16),
    ),
    "encoder": (
        lambda: nn.TransformerEncoderLayer(64, 4, 512, batch_first=True),
        lambda m, x: m(x),
        (2, 5, 64),
    ),
}


@pytest.mark.parametrize("exporter", ["traced", "exported"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.slow
def test_an_accelerated_model_leaves(name: str, exporter: str, tmp_path: Path) -> None:
    if exporter == "exported" and find_spec("onnxscript") is None:
        pytest.skip("onnxscript, which the exporter needs, is not installed")
    torch.manual_seed(0)
    make, call, shape = MODELS[name]
    model, x = Called(make(), call).eval(), torch.randn(shape)
    with torch.no_grad():
        expected = model(x).numpy()
    assert hgt.accelerate(model).replaced
    path = tmp_path / "model.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the older exporter is to go
        torch.onnx.export(
            model, (x,), path, input_names=["x"], dynamo=exporter == "exported", verbose=False
        )
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    (found,) = onnxruntime.InferenceSession(path, options).run(None, {"x": x.numpy()})
    assert_close(found, expected, "float32")
    assert all(type(each).__module__.startswith("handgrad") for each in [model.module])
