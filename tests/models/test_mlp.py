"""MLP: the recursion of Yamanishi's section 2, PyTorch's numbers, dropout, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import ArgumentError
from handgrad.models.mlp import MLP
from tests.layers.gradients import check_destinations, check_gradients
from tests.models.comparing import assert_equals_torch
from tests.tolerances import assert_close

F64 = np.float64


def model(sizes: tuple[int, ...] = (5, 4, 6, 3), **settings: Any) -> MLP:
    mlp = MLP(sizes, rng=np.random.default_rng(11), dtype=F64, **settings)
    # With biases of 0, a unit whose inputs are all off stands at the kink of ReLU.
    rng = np.random.default_rng(12)
    for name, array in mlp.parameters.items():
        if name.endswith("bias"):
            array[...] = rng.standard_normal(array.shape)
    return mlp


def some(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("activation", ["relu", "tanh", "gelu"])
def test_gradients(activation: str, training: bool) -> None:
    check_gradients(model(activation=activation, dropout=0.3), some(4, 5), training=training)


def test_gradients_go_where_they_are_sent() -> None:
    check_destinations(model(), some(4, 5), training=True)


def test_hg_check_finds_nothing_wrong() -> None:
    report = hg.check(model(activation="tanh"), some(4, 5))
    assert report.ok, str(report)


def test_backward_is_the_recursion_of_section_2() -> None:
    mlp = model(activation="tanh")
    x, delta = some(1, 5), some(1, 3)
    weights = [mlp.parameters[f"linear{i}.weight"] for i in (1, 2, 3)]
    biases = [mlp.parameters[f"linear{i}.bias"] for i in (1, 2, 3)]
    h = [x[0]]
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        h.append(np.tanh(weight @ h[-1] + bias))

    scores, cache = mlp.forward(x)
    assert_close(scores[0], weights[-1] @ h[-1] + biases[-1], "float64")
    dx, gradients = mlp.backward(delta, cache)
    da = delta[0]
    for i in (3, 2, 1):
        assert_close(gradients[f"linear{i}.weight"], np.outer(da, h[i - 1]), "float64")
        assert_close(gradients[f"linear{i}.bias"], da, "float64")
        dh = weights[i - 1].T @ da
        da = dh * (1 - h[i - 1] ** 2)
    assert_close(dx[0], dh, "float64")


def test_equals_pytorch() -> None:
    torch = pytest.importorskip("torch")
    mlp = model()
    modules: list[Any] = []
    for i in (1, 2, 3):
        weight, bias = (mlp.parameters[f"linear{i}.{name}"] for name in ("weight", "bias"))
        linear = torch.nn.Linear(weight.shape[1], weight.shape[0], dtype=torch.float64)
        linear.load_state_dict({"weight": torch.tensor(weight), "bias": torch.tensor(bias)})
        modules += [linear, torch.nn.ReLU()]
    assert_equals_torch(torch, mlp, torch.nn.Sequential(*modules[:-1]), some(7, 5))


def test_one_layer_is_a_linear_map_and_a_batch_may_be_empty() -> None:
    mlp = model((5, 3), dropout=0.5)
    assert list(mlp.layers) == ["linear1"]
    x = some(2, 5)
    expected = x @ mlp.parameters["linear1.weight"].T + mlp.parameters["linear1.bias"]
    assert_close(mlp.forward(x, training=True)[0], expected, "float64")
    mlp = model()
    y, cache = mlp.forward(np.zeros((0, 5)))
    dx, gradients = mlp.backward(y, cache)
    assert dx.shape == (0, 5)
    assert not any(np.any(array) for array in gradients.values())


def test_dropout_is_between_the_layers_and_in_training_only() -> None:
    mlp = model(dropout=0.5)
    assert list(mlp.layers) == ["linear1", "dropout1", "linear2", "dropout2", "linear3"]
    x = some(4, 5)
    np.testing.assert_array_equal(mlp.forward(x)[0], model().forward(x)[0])
    first, second = (mlp.forward(x, training=True)[0] for _ in range(2))
    assert not np.array_equal(first, second)


def test_the_table_counts_every_layer() -> None:
    rows = model().rows((5,))
    assert [(row.name, row.output_shape) for row in rows] == [
        ("linear1", (4,)),
        ("linear2", (6,)),
        ("linear3", (3,)),
    ]
    assert sum(row.flops for row in rows) == model().flops((5,))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sizes": (5,)}, r"MLP: sizes are \(5,\); allowed: two or more, each from 1"),
        ({"sizes": (5, 0, 2)}, r"MLP: sizes are \(5, 0, 2\); allowed"),
        ({"activation": "relo"}, "activation is 'relo'"),
        ({"dropout": 1.5}, "p is 1.5; allowed: 0 to 1"),
    ],
)
def test_what_does_not_fit_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        model(**settings)
