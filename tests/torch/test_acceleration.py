"""Models of PyTorch whose modules become ours, in place: the same results, and a report."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad import kernels
from handgrad.errors import ArgumentError
from tests.tolerances import assert_close

torch = pytest.importorskip("torch")
hgt = pytest.importorskip("handgrad.torch")
nn = torch.nn

pytestmark = pytest.mark.skipif(kernels.native is None, reason="no compiled kernels")


SMALL = "a product with fewer than 65536 weights gains nothing"


class Model(nn.Module):  # type: ignore[misc, name-defined]
    """A model with a program of its own, and a table that its last product shares."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(1024, 64)
        layer = nn.TransformerEncoderLayer(64, 4, 1024, 0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.lstm = nn.LSTM(64, 64, batch_first=True)
        self.norm = nn.BatchNorm1d(64)
        self.small = nn.Linear(64, 3)
        self.decoder = nn.TransformerDecoderLayer(64, 4, 1024, 0.0, batch_first=True)
        self.head = nn.Linear(64, 1024, bias=False)
        self.head.weight = self.table.weight

    def forward(self, tokens: Any) -> Any:
        z = self.encoder(self.table(tokens))
        h = self.norm(self.lstm(z)[0].transpose(1, 2)).transpose(1, 2)
        z = self.decoder(h, z)
        return self.head(z) + self.small(z).sum(-1, keepdim=True)


def test_a_model_computes_the_same_and_keeps_its_objects() -> None:
    torch.manual_seed(0)
    theirs = Model().double()
    ours = copy.deepcopy(theirs)
    before = dict(ours.named_parameters(remove_duplicate=False))
    modules = dict(ours.named_modules())
    report = hgt.accelerate(ours)
    after = dict(ours.named_parameters(remove_duplicate=False))
    assert list(after) == list(before)
    assert all(after[name] is before[name] for name in before)
    assert all(each is modules[name] for name, each in ours.named_modules())
    assert ours.head.weight is ours.table.weight
    assert isinstance(ours.lstm, nn.LSTM)
    assert report.replaced == {
        "encoder.layers.0": "TransformerEncoderLayer",
        "encoder.layers.1": "TransformerEncoderLayer",
        "lstm": "LSTM",
        "decoder.self_attn": "MultiheadAttention",
        "decoder.multihead_attn": "MultiheadAttention",
        "decoder.linear1": "Linear",
        "decoder.linear2": "Linear",
        "head": "Linear",
    }
    assert report.left == {
        "table": "no module of handgrad.torch stands for Embedding",
        "norm": "no module of handgrad.torch stands for BatchNorm1d",
        "small": SMALL,
        **{f"decoder.norm{i}": "PyTorch's own LayerNorm is as fast" for i in (1, 2, 3)},
    }
    tokens = torch.tensor(np.random.default_rng(0).integers(0, 1024, (3, 5)))
    y, z = theirs(tokens), ours(tokens)
    dy = torch.tensor(np.random.default_rng(1).standard_normal(y.shape))
    assert_close(z.detach().numpy(), y.detach().numpy(), "torch float64", "y")
    y.backward(dy)
    z.backward(dy)
    for (name, wanted), found in zip(theirs.named_parameters(), ours.parameters(), strict=True):
        assert_close(found.grad.numpy(), wanted.grad.numpy(), "torch float64", name)


def test_a_module_itself_is_replaced() -> None:
    module = nn.Linear(256, 256)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    assert hgt.accelerate(module).replaced == {"": "Linear"}
    assert type(module) is hgt.Linear
    module(torch.ones(2, 256)).sum().backward()
    before = module.weight.detach().clone()
    optimizer.step()
    assert (module.weight != before).any()
    assert str(hgt.accelerate(module)) == "replaced: nothing"


def test_hooks_and_mode_stay() -> None:
    model = nn.Sequential(nn.Linear(256, 256), nn.Dropout()).eval()
    calls: list[Any] = []
    model[0].register_forward_hook(lambda module, args, output: calls.append(module))
    hgt.accelerate(model)
    model(torch.ones(2, 256))
    assert calls == [model[0]]
    assert not model[0].training


def test_the_report_says_what_was_left_and_why() -> None:
    class Own(nn.Linear):  # type: ignore[misc, name-defined]
        pass

    model = nn.Sequential(
        nn.Linear(256, 256),
        nn.Linear(256, 256).half(),
        nn.Conv1d(64, 64, 3, padding=1, padding_mode="circular"),
        *(nn.BatchNorm1d(3) for _ in range(5)),
        Own(64, 64),
        nn.ReLU(),
    )
    assert str(hgt.accelerate(model)).splitlines() == [
        "replaced: 1 Linear",
        "left: 1: its parameters are float16 on cpu",
        "left: 2: its padding_mode is 'circular'",
        "left: 3, 4, 5 and 2 more: no module of handgrad.torch stands for BatchNorm1d",
        "left: 8: no module of handgrad.torch stands for Own",
    ]


def test_of_a_layer_without_an_operator_the_parts_are_replaced() -> None:
    settings = {"activation": nn.Tanh(), "batch_first": True}
    report = hgt.accelerate(nn.TransformerEncoderLayer(256, 4, 256, **settings))
    assert report.replaced == {
        "self_attn": "MultiheadAttention",
        "linear1": "Linear",
        "linear2": "Linear",
    }
    assert report.left[""] == "its activation is none of relu, gelu, silu"


def test_an_accelerated_module_becomes_a_layer_too() -> None:
    model = nn.Sequential(nn.Linear(256, 256), nn.RMSNorm(256))
    layer = hg.from_torch(model)
    hgt.accelerate(model)
    x = np.random.default_rng(0).standard_normal((3, 256)).astype(np.float32)
    np.testing.assert_array_equal(hg.from_torch(model)(x), layer(x))


def test_restoring_undoes_it() -> None:
    torch.manual_seed(0)
    model = Model()
    calls: list[Any] = []
    model.lstm.register_forward_hook(lambda *_: calls.append("lstm"))
    model.encoder.layers[0].linear1.eval()
    modules, classes = dict(model.named_modules()), [type(each) for each in model.modules()]
    parameters = dict(model.named_parameters(remove_duplicate=False))
    tokens = torch.randint(1024, (2, 5))
    expected = model(tokens)
    report = hgt.accelerate(model)
    restored = hgt.restore(model)
    assert [type(each) for each in model.modules()] == classes
    assert dict(restored.replaced) == dict(report.replaced)
    assert restored.left == {}
    assert all(each is modules[name] for name, each in model.named_modules())
    found = dict(model.named_parameters(remove_duplicate=False))
    assert all(found[name] is each for name, each in parameters.items())
    assert model.head.weight is model.table.weight
    assert not model.encoder.layers[0].linear1.training
    assert torch.equal(model(tokens), expected)
    assert calls == ["lstm", "lstm"]
    assert not any("handgrad" in each.__class__.__module__ for each in model.modules())


def test_restoring_takes_what_a_program_made_itself_and_leaves_derived_classes() -> None:
    linear = hgt.Linear(512, 256)
    nn.utils.parametrizations.weight_norm(linear)
    model = nn.Sequential(hgt.LayerNorm(512), linear, hgt.GRU(256, 8), nn.ReLU())
    assert str(hgt.restore(model)) == (
        "replaced: 1 GRU, 1 LayerNorm\nleft: 1: it is of the class ParametrizedLinear"
    )
    assert [type(each) for each in model][::2] == [nn.LayerNorm, nn.GRU]
    assert str(hgt.restore(nn.ReLU())) == "replaced: nothing"


def test_an_optimizer_goes_on_through_both() -> None:
    torch.manual_seed(0)
    model, x = nn.LSTM(64, 64).double(), torch.randn(5, 3, 64, dtype=torch.float64)
    other = copy.deepcopy(model)
    weights = torch.randn(5, 3, 64, dtype=torch.float64)
    optimizers = [torch.optim.Adam(each.parameters()) for each in (model, other)]
    for turn in (hgt.accelerate, None, hgt.restore, None):
        if turn is not None:
            turn(model)
        for each, optimizer in zip((model, other), optimizers, strict=True):
            optimizer.zero_grad()
            (each(x)[0] * weights).sum().backward()
            optimizer.step()
    for ours, theirs in zip(model.parameters(), other.parameters(), strict=True):
        assert_close(ours.detach().numpy(), theirs.detach().numpy(), "torch float64")


def test_only_modules_are_taken() -> None:
    with pytest.raises(ArgumentError, match=r"restore: a int is given; allowed: a torch\.nn"):
        hgt.restore(3)
    with pytest.raises(ArgumentError, match=r"accelerate: a type is given; allowed: a torch\.nn"):
        hgt.accelerate(nn.Linear)
