"""Modules of PyTorch as layers, and back: outputs and gradients stay, in both modes."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.arrays import Array
from handgrad.layers import Layer
from tests.rows import rows
from tests.tolerances import assert_close
from tests.torch.comparing import draw_weights, own_gradients

torch = pytest.importorskip("torch")
nn = torch.nn
from handgrad.torch import OutputOnly, ResidualModule  # noqa: E402

F64: dict[str, Any] = {"dtype": torch.float64}
FIRST: dict[str, Any] = {"batch_first": True, **F64}

#: A module, and the shape of its input; an int first stands for tokens below it.
MODULES: dict[str, tuple[Any, tuple[int, ...]]] = {
    "Linear": (nn.Linear(5, 3, **F64), (2, 7, 5)),
    "Linear without bias": (nn.Linear(1, 3, bias=False, **F64), (1, 1)),
    "Conv1d": (nn.Conv1d(4, 6, 3, 2, 1, 2, 2, **F64), (3, 4, 11)),
    "Conv1d, valid": (nn.Conv1d(1, 2, 2, padding="valid", **F64), (1, 1, 5)),
    "Conv2d": (nn.Conv2d(4, 6, (3, 1), (2, 1), (1, 0), groups=2, bias=False, **F64), (3, 4, 9, 5)),
    "Conv2d, same": (nn.Conv2d(2, 3, (3, 2), padding="same", dilation=2, **F64), (2, 2, 5, 7)),
    "ConvTranspose1d": (nn.ConvTranspose1d(4, 6, 3, 2, 1, 1, 2, **F64), (2, 4, 5)),
    "ConvTranspose2d": (
        nn.ConvTranspose2d(2, 3, (3, 2), 2, dilation=(2, 1), bias=False, **F64),
        (2, 2, 5, 3),
    ),
    "BatchNorm1d": (nn.BatchNorm1d(5, eps=0.1, momentum=0.3, **F64), (7, 5)),
    "BatchNorm1d of sequences": (nn.BatchNorm1d(5, **F64), (1, 5, 3)),
    "BatchNorm2d": (nn.BatchNorm2d(3, **F64), (2, 3, 5, 1)),
    "BatchNorm3d": (nn.BatchNorm3d(3, **F64), (2, 3, 5, 1, 2)),
    "LayerNorm": (nn.LayerNorm(5, 0.01, **F64), (2, 3, 5)),
    "LayerNorm without bias": (nn.LayerNorm((5,), bias=False, **F64), (3, 5)),
    "LayerNorm without weights": (nn.LayerNorm((3, 5), elementwise_affine=False), (2, 3, 5)),
    "GroupNorm": (nn.GroupNorm(2, 6, **F64), (2, 6, 5)),
    "InstanceNorm1d": (nn.InstanceNorm1d(3, affine=True, **F64), (2, 3, 5)),
    "InstanceNorm1d without weights": (nn.InstanceNorm1d(3), (2, 3, 5)),
    "InstanceNorm2d": (nn.InstanceNorm2d(3, affine=True, **F64), (2, 3, 5, 2)),
    "InstanceNorm2d without weights": (nn.InstanceNorm2d(3), (2, 3, 5, 2)),
    "InstanceNorm3d": (nn.InstanceNorm3d(3, affine=True, **F64), (2, 3, 5, 2, 3)),
    "InstanceNorm3d without weights": (nn.InstanceNorm3d(3), (2, 3, 5, 2, 3)),
    "RMSNorm": (nn.RMSNorm(5, **F64), (2, 3, 5)),
    "RMSNorm with eps": (nn.RMSNorm(5, 0.1, **F64), (2, 3, 5)),
    "Embedding": (nn.Embedding(9, 5, padding_idx=2, **F64), (3, 7)),
    "Flatten": (nn.Flatten(), (3, 2, 5)),
    "Identity": (nn.Identity(), (3, 2)),
    "ReLU": (nn.ReLU(), (3, 7)),
    "LeakyReLU": (nn.LeakyReLU(0.3), (3, 7)),
    "GELU": (nn.GELU(), (3, 7)),
    "GELU by tanh": (nn.GELU("tanh"), (3, 7)),
    "SiLU": (nn.SiLU(), (3, 7)),
    "Tanh": (nn.Tanh(), (3, 7)),
    "Sigmoid": (nn.Sigmoid(), (3, 7)),
    "Softmax": (nn.Softmax(dim=1), (2, 3, 5)),
    "Softmax2d": (nn.Softmax2d(), (2, 3, 5, 2)),
    "MaxPool1d": (nn.MaxPool1d(3, 2, 1, 1), (2, 3, 9)),
    "MaxPool2d": (nn.MaxPool2d((3, 2), (2, 1), (1, 0), (1, 2)), (2, 3, 9, 7)),
    "AvgPool1d": (nn.AvgPool1d(3, 2, 1, count_include_pad=False), (2, 3, 9)),
    "AvgPool2d": (nn.AvgPool2d((3, 2), (2, 1), (1, 0)), (2, 3, 9, 7)),
    "AdaptiveAvgPool1d": (nn.AdaptiveAvgPool1d(1), (2, 3, 7)),
    "AdaptiveAvgPool2d": (nn.AdaptiveAvgPool2d((1, 1)), (2, 3, 7, 5)),
    "ConstantPad1d": (nn.ConstantPad1d((2, 0), 0.7), (2, 3, 4)),
    "ZeroPad3d": (nn.ZeroPad3d((1, 0, 0, 2, 1, 1)), (2, 3, 2, 3, 2)),
    "ReflectionPad2d": (nn.ReflectionPad2d((3, 1, 0, 2)), (2, 3, 3, 4)),
    "ReplicationPad2d": (nn.ReplicationPad2d((5, 1, 0, 2)), (2, 3, 1, 4)),
    "CircularPad3d": (nn.CircularPad3d((1, 2, 3, 0, 0, 1)), (2, 1, 2, 3, 2)),
    "RNN": (nn.RNN(3, 5, 2, nonlinearity="relu", bias=False, **FIRST), (2, 4, 3)),
    "GRU": (nn.GRU(3, 5, bidirectional=True, **FIRST), (2, 1, 3)),
    "LSTM": (nn.LSTM(3, 5, 2, bidirectional=True, **FIRST), (1, 4, 3)),
    "LSTM, projected": (nn.LSTM(3, 5, proj_size=2, **FIRST), (2, 4, 3)),
    "TransformerEncoderLayer": (nn.TransformerEncoderLayer(8, 2, 12, 0.0, **FIRST), (2, 5, 8)),
    "TransformerEncoderLayer, pre": (
        nn.TransformerEncoderLayer(
            *(6, 3, 5, 0.0, nn.GELU("tanh"), 0.1), norm_first=True, bias=False, **FIRST
        ),
        (1, 3, 6),
    ),
    "TransformerEncoder": (
        nn.TransformerEncoder(
            nn.TransformerEncoderLayer(8, 2, 12, 0.0, "gelu", **FIRST),
            2,
            nn.LayerNorm(8, **F64),
            enable_nested_tensor=False,
        ),
        (2, 1, 8),
    ),
    "Sequential": (
        nn.Sequential(
            nn.Conv2d(3, 6, 3, padding="same", **F64),
            nn.BatchNorm2d(6, **F64),
            nn.Sequential(nn.ReLU(inplace=True), nn.MaxPool2d(2)),
            nn.Identity(),
            nn.Flatten(),
            nn.Linear(24, 4, **F64),
        ),
        (3, 3, 5, 4),
    ),
}


def drawn(name: str) -> tuple[Any, Any]:
    """The module of this name with weights drawn anew, and an input."""
    module, shape = MODULES[name]
    module = draw_weights(copy.deepcopy(module))
    if name == "Embedding":
        return module, torch.tensor(np.random.default_rng(1).integers(0, 9, shape))
    return module, torch.tensor(np.random.default_rng(1).standard_normal(shape))


def first(y: Any) -> Any:
    return y[0] if isinstance(y, tuple) else y


def compare(module: Any, layer: Layer, x: Any, training: bool) -> None:
    """Compare y, the gradients for a random cotangent, and the running statistics afterwards."""
    module.train(training)
    x = x.clone().requires_grad_(x.is_floating_point())
    expected = first(module(x))
    y, cache = layer.forward_y(x.detach().numpy(), training=training)
    assert_close(y, expected.detach().numpy(), "torch float64", "y")
    dy = np.random.default_rng(2).standard_normal(y.shape)
    dx, gradients = layer.backward_y(dy, cache)
    if not expected.requires_grad:
        return
    expected.backward(torch.tensor(dy))
    if x.requires_grad:
        assert_close(dx, x.grad.numpy(), "torch float64", "dx")
    theirs = own_gradients(module)
    assert set(theirs) == set(gradients)
    for name, gradient in gradients.items():
        assert_close(gradient, theirs[name], "torch float64", name)
    for name, buffer in hg.from_torch(module).buffers.items():
        assert_close(layer.buffers[name], buffer, "torch float64", name)


@rows("training", [False, True], ids=["eval", "train"])
@rows("name", MODULES)
def test_outputs_and_gradients_are_those_of_the_module(name: str, training: bool) -> None:
    module, x = drawn(name)
    compare(module, hg.from_torch(module), x, training)


@rows("training", [False, True], ids=["eval", "train"])
@rows("name", MODULES)
def test_what_comes_back_is_the_same_again(name: str, training: bool) -> None:
    module, x = drawn(name)
    layer = hg.from_torch(module)
    back = layer.to_torch()
    assert not back.training
    compare(back, layer, x, training)
    again = hg.from_torch(back)
    assert list(again.parameters) == list(layer.parameters)
    np.testing.assert_array_equal(
        again.forward_y(x.numpy())[0], hg.from_torch(back.eval()).forward_y(x.numpy())[0]
    )


def test_the_arrays_are_copies() -> None:
    module, _ = drawn("Sequential")
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    layer = hg.from_torch(module)
    back = layer.to_torch()
    for array in (*layer.parameters.values(), *layer.buffers.values()):
        array[...] = 0.0
    assert all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())
    for name, tensor in back.named_parameters():
        assert torch.equal(tensor, before[name])


def test_a_module_comes_without_a_draw_from_pytorch_s_generator() -> None:
    layer = hg.MLP([5, 7, 3], rng=np.random.default_rng(0), dropout=0.5)
    state = torch.get_rng_state()
    layer.to_torch()
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_narrow_floats_become_float32(dtype: str) -> None:
    module = nn.Linear(3, 2).to(getattr(torch, dtype))
    layer = hg.from_torch(module)
    assert layer.parameters["weight"].dtype == np.float32
    np.testing.assert_array_equal(layer.parameters["weight"], module.weight.detach().float())
    assert next(layer.to_torch().parameters()).dtype == torch.float32


def test_masks_of_dropout_come_from_the_seed() -> None:
    module = nn.Sequential(nn.Dropout(0.5), nn.Linear(100, 1))
    x = np.ones((2, 100), np.float32)
    found = [hg.from_torch(module, seed=s).forward(x, training=True)[0] for s in (0, 0, 1)]
    np.testing.assert_array_equal(found[0], found[1])
    assert np.any(found[0] != found[2])
    assert hg.from_torch(module).to_torch()[0].p == 0.5


def sample(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


#: Layers that no module of torch.nn is alone, and the shape of their input.
LAYERS: dict[str, tuple[Layer, tuple[int, ...]]] = {
    "fused": (
        hg.Sequential(
            hg.Conv1d(3, 4, 3, activation="leaky_relu", dtype=np.float64),
            hg.BatchNorm(4, activation="silu", dtype=np.float64),
            hg.Dense(5, 2, activation="leaky_relu", negative_slope=0.3, dtype=np.float64),
            hg.Dense(2, 3, activation="gelu", approximate="tanh", dtype=np.float64),
            seed=0,
        ),
        (2, 3, 7),
    ),
    "MLP": (hg.MLP([5, 7, 3], activation="sin", dtype=np.float64).build(), (4, 5)),
    "CNN": (
        hg.CNN((1, 9, 8), [3, 4], 5, batch_norm=True, dropout=0.3, dtype=np.float64).build(),
        (2, 1, 9, 8),
    ),
    "gates": (
        hg.Sequential(
            hg.Standardize(),
            hg.FeedForward(6, 5, activation="swiglu", dtype=np.float64),
            hg.GEGLU(approximate="tanh"),
            hg.Activation("erf"),
            hg.Activation("softmax"),
            seed=1,
        ),
        (2, 3, 6),
    ),
    "of sequences": (
        hg.Sequential(
            hg.LSTM(3, 4, bidirectional=True, dtype=np.float64),
            hg.Residual(
                hg.MultiHeadAttention(8, 2, bias=False, dtype=np.float64),
                hg.Dense(8, 8, dtype=np.float64),
            ),
            hg.Residual(hg.RNN(8, 8, dtype=np.float64)),
            hg.LastStep(bidirectional=True),
            hg.Dense(8, 2, dtype=np.float64),
            seed=2,
        ),
        (2, 5, 3),
    ),
    "last step": (hg.Sequential(hg.LastStep()), (2, 5, 3)),
    "mean of steps": (hg.Sequential(hg.StepPooling("mean")), (2, 5, 3)),
    "largest of steps": (hg.Sequential(hg.StepPooling("max")), (2, 5, 3)),
    "pooled": (
        hg.Sequential(hg.InstanceNorm(3, dtype=np.float64), hg.AvgPool1d("global")),
        (2, 3, 5),
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_leave_and_come_back(name: str) -> None:
    layer, shape = LAYERS[name]
    module = layer.to_torch()
    x = sample(*shape)
    y = layer(x)
    assert_close(module(torch.tensor(x)).detach().numpy(), y, "torch float64", "module")
    assert_close(hg.from_torch(module)(x), y, "torch float64", "layer again")


def one_of(rng: np.random.Generator, channels: int, steps: int) -> Any:
    """A module that takes (N, channels, steps)."""
    out, kernel = int(rng.integers(1, 8)), int(rng.integers(1, 4))
    choices = [
        lambda: nn.Conv1d(channels, out, kernel, padding=kernel // 2, **F64),
        lambda: nn.ConvTranspose1d(channels, out, kernel, stride=2, **F64),
        lambda: nn.BatchNorm1d(channels, **F64),
        lambda: nn.GroupNorm(1, channels, **F64),
        lambda: nn.LayerNorm(steps, **F64),
        lambda: nn.Linear(steps, 12, bias=out % 2 == 0, **F64),
        lambda: OutputOnly(nn.GRU(steps, 11, bidirectional=True, **FIRST)),
        lambda: nn.MaxPool1d(2, 1),
        lambda: (nn.Tanh(), nn.SiLU(), nn.GELU(), nn.Identity(), nn.ReLU())[out % 5],
        lambda: ResidualModule(nn.Linear(steps, steps, **F64)),
    ]
    return choices[rng.integers(len(choices))]()


@pytest.mark.parametrize("seed", range(12))
def test_chains_of_any_modules(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first = y = torch.tensor(rng.standard_normal((2, rng.integers(1, 8), 13)))
    model = nn.Sequential()
    for _ in range(rng.integers(1, 9)):
        model.append(draw_weights(one_of(rng, *y.shape[1:]), seed))
        y = model[-1](y).detach()
    layer = hg.from_torch(model)
    compare(model, layer, first, training=bool(seed % 2))
    compare(layer.to_torch(), layer, first, training=bool(seed % 2))


def test_a_causal_stack_hides_later_steps_on_both_sides() -> None:
    rng = np.random.default_rng(0)
    block = hg.TransformerBlock(8, 2, 12, causal=True, rng=rng, dtype=np.float64)
    encoder = hg.TransformerEncoder(2, 8, 2, 12, causal=True, rng=rng, dtype=np.float64)
    x = sample(2, 5, 8)
    for layer in (block, encoder):
        module = copy.deepcopy(layer.to_torch())
        assert_close(module(torch.tensor(x)).detach().numpy(), layer(x), "torch float64", "module")
        again = hg.from_torch(module)
        assert_close(again(x), layer(x), "torch float64", "layer again")
        assert_close(layer(x)[:, :2], layer(x[:, :2]), "torch float64", "causal")


@pytest.mark.parametrize("floats", [False, True])
def test_a_causal_decoder_takes_masks_beside_its_own(floats: bool) -> None:
    rng = np.random.default_rng(0)
    decoder = hg.TransformerDecoder(2, 8, 2, 12, rng=rng, dtype=np.float64)
    module = decoder.to_torch()
    x, memory = sample(2, 5, 8), sample(2, 4, 8)
    mask = rng.random((5, 5)) < 0.7
    mask[:, 0] = True
    lengths = np.array([4, 2])
    hidden = torch.tensor(~mask)
    found = module(
        torch.tensor(x),
        torch.tensor(memory),
        torch.zeros(5, 5, **F64).masked_fill(hidden, float("-inf")) if floats else hidden,
        memory_key_padding_mask=torch.tensor(np.arange(4) >= lengths[:, None]),
    )
    expected, _ = decoder.forward(x, memory, mask=mask, memory_lengths=lengths)
    assert_close(found.detach().numpy(), expected, "torch float64", "y")


#: Losses, and the targets of 4 examples; scores are (4, 5).
LOSSES: dict[str, tuple[Any, Any]] = {
    "MSELoss": (nn.MSELoss(reduction="sum"), torch.linspace(-1, 1, 20, **F64).reshape(4, 5)),
    "BCEWithLogitsLoss": (
        nn.BCEWithLogitsLoss(pos_weight=torch.linspace(1, 2, 5, **F64), reduction="none"),
        torch.linspace(0, 1, 20, **F64).reshape(4, 5),
    ),
    "CrossEntropyLoss": (
        nn.CrossEntropyLoss(torch.linspace(1, 2, 5, **F64), ignore_index=3, label_smoothing=0.1),
        torch.tensor([0, 3, 1, 4]),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_becomes_a_loss(name: str) -> None:
    module, target = LOSSES[name]
    scores = torch.tensor(sample(4, 5), requires_grad=True)
    value = module(scores, target)
    dvalue = np.random.default_rng(4).standard_normal(tuple(value.shape))
    value.backward(torch.tensor(dvalue))
    loss = hg.from_torch(module)
    assert isinstance(loss, hg.losses.Loss)
    found, cache = loss.forward(scores.detach().numpy(), target.numpy())
    assert_close(found, value.detach().numpy(), "torch float64", "value")
    assert_close(loss.backward(cache, dvalue), scores.grad.numpy(), "torch float64", "dscores")


def test_a_loss_with_a_forward_of_its_own_is_refused() -> None:
    class Own(nn.MSELoss):  # type: ignore[misc]
        def forward(self, input: Any, target: Any) -> Any:
            return (input - target).abs().mean()

    with pytest.raises(hg.errors.ArgumentError, match=r"has a forward of its own; allowed: nn"):
        hg.from_torch(Own())


def test_a_cell_becomes_the_layer_of_all_its_steps() -> None:
    for module, states in ((nn.GRUCell(3, 4, **F64), 1), (nn.LSTMCell(3, 4, bias=False, **F64), 2)):
        x = sample(2, 5, 3)
        state = None
        for step in range(5):
            state = module(torch.tensor(x[:, step]), state)
        layer = hg.from_torch(module)
        (_, found), _ = layer.forward(x)
        ours, theirs = (found, state) if states == 2 else ((found,), (state,))
        for own, expected in zip(ours, theirs, strict=True):
            assert_close(own[0], expected.detach().numpy(), "torch float64", "state")
