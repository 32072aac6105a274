"""Modules of PyTorch: the gradients of their inputs and parameters against autograd."""

from __future__ import annotations

import math

import numpy as np
import pytest

import handgrad as hg
from tests.rows import rows

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional


class RootMeanSquareNorm(nn.Module):
    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, width))
        self.eps = eps

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * wide.type_as(x)


class CausalAttention(nn.Module):
    """Its mask is a buffer, larger than what it is used on."""

    def __init__(self, heads=2, width=8, longest=12):
        super().__init__()
        self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.dropout = nn.Dropout(0.1)
        self.heads, self.width = heads, width
        mask = torch.tril(torch.ones(longest, longest)).view(1, 1, longest, longest)
        self.register_buffer("mask", mask)

    def forward(self, x):
        batch, time, width = x.size()
        q, k, v = self.inputs(x).split(self.width, dim=2)
        q, k, v = (
            a.view(batch, time, self.heads, width // self.heads).transpose(1, 2) for a in (q, k, v)
        )
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.mask[:, :, :time, :time] == 0, float("-inf"))
        y = self.dropout(F.softmax(scores, dim=-1)) @ v
        return self.output(y.transpose(1, 2).contiguous().view(batch, time, width))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(8), nn.LayerNorm(8)
        self.attention = CausalAttention()
        self.mlp = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.mlp(self.second(x))


class Residual(nn.Module):
    """Two convolutions that keep the size: the sizes of their kernels hang together."""

    def __init__(self, channels=2):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm, self.relu = nn.BatchNorm2d(channels), nn.ReLU(inplace=True)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        y = self.second(self.relu(self.norm(self.first(x))))
        y += x
        return self.relu(y)


class Tied(nn.Module):
    """A language model whose output is the transpose of its embedding."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Linear(4, 5, bias=False)
        self.output = nn.Linear(4, 5, bias=False)
        self.output.weight = self.embedding.weight

    def forward(self, x):
        return self.output(torch.tanh(x @ self.embedding.weight))


class Coupling(nn.Module):
    """Half of the channels, of an odd number of which one would be over, change the others."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d(2, 3, 3, padding=1), nn.Conv2d(3, 4, 1)

    def forward(self, x):
        a, b = x.chunk(2, 1)
        log_s, t = self.last(torch.tanh(self.first(a))).chunk(2, 1)
        return torch.cat([a, (b + t) * torch.sigmoid(log_s + 2)], 1)


class Heads(nn.Module):
    """Of one product q, k and v."""

    def __init__(self):
        super().__init__()
        self.inputs = nn.Linear(4, 12)

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = self.inputs(x).view(B, T, 3, 2, 2).unbind(2)
        scores = torch.einsum("bshd,bthd->bhst", q, k) / math.sqrt(2)
        return torch.einsum("bhst,bthd->bshd", scores.softmax(-1), v).reshape(B * T, D)


def image_network():
    return nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(18, 3)
    )


class Outputs(nn.Module):
    """Of a recurrent layer or cell the output, by its last states."""

    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, x):
        y, states = self.part(x)
        return y * states[-1].sum()


class SelfAttention(nn.Module):
    """The last token is padding that no other sees."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        padding = torch.arange(x.size(1)).expand(x.size(0), -1) == x.size(1) - 1
        y, weights = self.attention(x, x, x, key_padding_mask=padding)
        return y + weights.sum(-1, keepdim=True) * weights[..., :1]


def encoder():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def upsampling():
    return nn.Sequential(
        nn.ConvTranspose2d(2, 3, 4, 2, 1), nn.LeakyReLU(0.2, inplace=True), nn.Upsample((9, 7))
    )


def circular():
    return nn.Sequential(
        nn.Conv1d(2, 3, 3, padding=1, padding_mode="circular"),
        nn.MaxPool1d(2),
        nn.AvgPool1d(2),
        nn.PReLU(),
    )


MODULES = {
    "linear": (lambda: nn.Linear(3, 2), ("N", 3), (4, 3)),
    "sequence": (
        lambda: nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)),
        ("N", 3),
        (4, 3),
    ),
    "statistics": (lambda: nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2)), ("N", 3), (4, 3)),
    "norm": (lambda: RootMeanSquareNorm(6), ("N", "T", 6), (2, 3, 6)),
    "attention": (CausalAttention, ("B", "T", 8), (2, 5, 8)),
    "block": (Block, ("B", "T", 8), (3, 4, 8)),
    "residual": (Residual, ("N", 2, "H", "W"), (2, 2, 5, 4)),
    "tied": (Tied, ("N", 5), (3, 5)),
    "long memory": (lambda: Outputs(nn.LSTM(3, 4, batch_first=True)), ("N", "T", 3), (2, 5, 3)),
    "gated": (
        lambda: Outputs(nn.GRU(3, 2, num_layers=2, bidirectional=True)),
        ("T", "N", 3),
        (5, 2, 3),
    ),
    "recurrent": (lambda: Outputs(nn.RNN(3, 4, nonlinearity="relu")), ("T", "N", 3), (5, 2, 3)),
    "weight norm": (
        lambda: nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)),
        ("N", 3),
        (4, 3),
    ),
    "memory cell": (lambda: Outputs(nn.LSTMCell(3, 4)), ("N", 3), (2, 3)),
    "gated cell": (lambda: nn.GRUCell(3, 4), ("N", 3), (2, 3)),
    "heads": (SelfAttention, ("N", "T", 8), (2, 5, 8)),
    "encoder": (encoder, ("N", "T", 8), (2, 5, 8)),
    "upsampling": (upsampling, ("N", 2, 3, 4), (2, 2, 3, 4)),
    "circular": (circular, ("N", 2, 8), (3, 2, 8)),
    "coupling": (Coupling, ("N", 4, "H", "W"), (2, 4, 3, 4)),
    "projection of heads": (Heads, ("B", "T", 4), (2, 5, 4)),
    "images": (image_network, ("N", 1, 6, 6), (2, 1, 6, 6)),
}


@rows("name", MODULES)
def test_inputs_and_parameters_have_the_gradients_of_autograd(name):
    made, shape, sizes = MODULES[name]
    torch.manual_seed(0)
    module = made().double().eval()
    derived = hg.derive(module, shape)
    rng = np.random.default_rng(1)
    x = torch.tensor(rng.standard_normal(sizes), requires_grad=True)
    y = module(x)
    dy = torch.tensor(rng.standard_normal(y.shape))
    wanted = torch.autograd.grad(y, [x, *module.parameters()], dy)
    values = {
        name.replace(".", "_") if name[0].isalpha() else f"part_{name.replace('.', '_')}": p
        for name, p in module.named_parameters()
    }
    given = {name: p.detach().numpy() for name, p in values.items()}
    found, cache = derived.forward(x.detach().numpy(), **given)
    np.testing.assert_allclose(found, y.detach().numpy(), rtol=1e-6, atol=1e-6)
    for one, other in zip(derived.backward(dy.numpy(), cache), wanted, strict=True):
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["coupling", "projection of heads"])
def test_the_backward_of_fixed_sizes_is_derived_at_them(name):
    made, shape, sizes = MODULES[name]
    torch.manual_seed(0)
    module = made().double().eval()
    first = hg.derive(module, shape)
    second = hg.derive(first.backward)
    rng = np.random.default_rng(1)
    given = {key.replace(".", "_"): p.detach().numpy() for key, p in module.named_parameters()}
    y, cache = first.forward(rng.standard_normal(sizes), **given)
    dy, other = (rng.standard_normal(y.shape) for _ in range(2))
    found, again = second.forward(dy, cache)
    cotangents = tuple(rng.standard_normal(each.shape) for each in found)
    moved = first.backward(other, cache)  # which is linear in dy
    wanted = sum(np.vdot(c, each) for c, each in zip(cotangents, moved, strict=True))
    np.testing.assert_allclose(np.vdot(second.backward(cotangents, again)[0], other), wanted)


def test_the_module_is_as_it_was():
    module = CausalAttention().eval()
    before = {
        name: (id(value), value.clone())
        for name, value in module.state_dict(keep_vars=True).items()
    }
    hg.derive(module, x=("B", "T", 8))
    after = module.state_dict(keep_vars=True)
    for name, (identity, value) in before.items():
        assert id(after[name]) == identity, name
        assert torch.equal(after[name], value), name


def test_dropout_that_draws_is_refused_with_its_line():
    with pytest.raises(hg.errors.ArgumentError, match=r"line \d+: dropout draws another mask"):
        hg.derive(CausalAttention(), x=("B", "T", 8))


def test_a_module_that_is_one_call_of_the_library_is_named():
    module = nn.CrossMapLRN2d(2)
    with pytest.raises(hg.errors.ArgumentError, match=r"CrossMapLRN2d of PyTorch is"):
        hg.derive(module, ("N", 3, 4, 4))


def test_its_source_for_pytorch_is_right():
    source = hg.derive(RootMeanSquareNorm(4), x=("N", 4)).to("torch")
    assert "torch.autograd.Function" in source


def test_a_row_of_padding_gets_no_gradient():
    module = nn.Embedding(5, 3, padding_idx=0).double()
    derived = hg.derive(module, input=("N", int))
    tokens = np.array([0, 2, 0, 4])
    dy = np.random.default_rng(2).standard_normal((4, 3))
    _, cache = derived.forward(tokens, weight=module.weight.detach().numpy())
    wanted = torch.autograd.grad(module(torch.tensor(tokens)), module.weight, torch.tensor(dy))
    np.testing.assert_allclose(derived.backward(dy, cache), wanted[0].numpy())


def test_a_parameter_without_axes():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.tensor(0.7))

        def forward(self, x):
            return torch.tanh(x) * self.scale.exp()

    derived = hg.derive(Scaled(), x=("N", "D"))
    x = np.random.default_rng(3).standard_normal((3, 2))
    _, cache = derived.forward(x, scale=np.float64(0.7))
    np.testing.assert_allclose(derived.backward(x, cache)[1], (x * np.tanh(x)).sum() * np.exp(0.7))
