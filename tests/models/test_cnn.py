"""CNN: gradients, PyTorch's numbers, stages and sizes, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import HandgradError
from handgrad.models.cnn import CNN
from tests.layers.gradients import check_destinations, check_gradients
from tests.models.comparing import assert_equals_torch

F64 = np.float64
PLAIN: dict[str, Any] = {}
NORMED: dict[str, Any] = {"batch_norm": True, "activation": "tanh", "dropout": 0.3}
each_setting = pytest.mark.parametrize("settings", [PLAIN, NORMED], ids=["plain", "batch norm"])


def model(**settings: Any) -> CNN:
    given = {"input_shape": (2, 9, 6), "channels": (3, 4), "classes": 5, "hidden": 6, **settings}
    return CNN(**given, rng=np.random.default_rng(12), dtype=F64)


def images(batch: int = 3) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((batch, 2, 9, 6))


@each_setting
@pytest.mark.parametrize("training", [False, True])
def test_gradients(settings: dict[str, Any], training: bool) -> None:
    check_gradients(model(**settings), images(), training=training)


@each_setting
def test_gradients_go_where_they_are_sent(settings: dict[str, Any]) -> None:
    settings = {**settings, "dropout": 0.0}
    check_destinations(model(**settings), images(), training=True)


def test_hg_check_finds_nothing_wrong() -> None:
    report = hg.check(model(activation="tanh"), images())
    assert report.ok, str(report)


def _in_torch(torch: Any, ours: CNN, batch_norm: bool) -> Any:
    nn, options = torch.nn, {"dtype": torch.float64}
    stages: list[Any] = []
    for i, (before, after) in enumerate(((2, 3), (3, 4)), start=1):
        stages.append(nn.Conv2d(before, after, 3, padding=1, bias=not batch_norm, **options))
        if batch_norm:
            stages.append(nn.BatchNorm2d(after, **options))
        stages += [nn.Tanh() if batch_norm else nn.ReLU(), nn.MaxPool2d(2)]
        assert f"conv{i}.weight" in ours.parameters
    f = nn.Tanh() if batch_norm else nn.ReLU()
    theirs = nn.Sequential(
        *stages, nn.Flatten(), nn.Linear(8, 6, **options), f, nn.Linear(6, 5, **options)
    )
    with torch.no_grad():
        pairs = zip(theirs.parameters(), ours.parameters.values(), strict=True)
        for parameter, array in pairs:
            parameter.copy_(torch.tensor(array))
    return theirs


@pytest.mark.parametrize("batch_norm", [False, True])
def test_equals_pytorch(batch_norm: bool) -> None:
    torch = pytest.importorskip("torch")
    ours = model(batch_norm=batch_norm, activation="tanh" if batch_norm else "relu")
    assert_equals_torch(torch, ours, _in_torch(torch, ours, batch_norm), images())


def test_stages_halve_the_image_and_have_readable_names() -> None:
    shapes = {row.name: row.output_shape for row in model(**NORMED).rows((2, 9, 6))}
    assert shapes == {
        "conv1": (3, 9, 6),
        "norm1": (3, 9, 6),
        "act1": (3, 9, 6),
        "pool1": (3, 4, 3),
        "conv2": (4, 4, 3),
        "norm2": (4, 4, 3),
        "act2": (4, 4, 3),
        "pool2": (4, 2, 1),
        "flatten": (8,),
        "linear1": (6,),
        "dropout": (6,),
        "linear2": (5,),
    }
    assert list(model().layers)[:2] == ["conv1", "pool1"]
    assert model().output_shape((2, 9, 6)) == (5,)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"input_shape": (28, 28)}, r"CNN: input_shape is \(28, 28\); allowed: \(C, H, W\)"),
        ({"channels": ()}, r"CNN: channels are \(\), .* allowed: one stage or more"),
        ({"hidden": 0}, "hidden is 0 and classes 5; allowed: .* sizes from 1"),
        ({"channels": (3, 3, 3)}, "an image is 9 × 6; allowed: 8 or more each way, because each"),
        ({"activation": "relo"}, "activation is 'relo'"),
        ({"batch_norm": True, "activation": "relo"}, "'relo'; allowed"),
    ],
)
def test_what_does_not_fit_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(HandgradError, match=message):
        model(**settings)
