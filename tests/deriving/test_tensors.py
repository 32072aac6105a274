"""Forwards on PyTorch's tensors: each function of the table against PyTorch's own gradient."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from tests.deriving.of_torch import assert_equal_to_torch
from tests.rows import rows

torch = pytest.importorskip("torch")
F = torch.nn.functional

N, D, S = ("N", "D"), ("D",), ("N", "N")
#: Functions of arrays x, y (N, D), w (D,), s (N, N), i (N,) of whole numbers, m (N, D) of truths.
ONE: dict[str, Any] = {
    "unary": lambda x: x.exp() + torch.log1p(x * x) + x.sin() * torch.cos(x) - x.tanh().neg(),
    "roots": lambda x: (
        torch.sqrt(x**2 + 1) + torch.rsqrt(x.square() + 2) + (x * x + 1).reciprocal()
    ),
    "arc": lambda x: torch.atan(x) + torch.asinh(x) + torch.atan2(x, x * x + 1),
    "special": lambda x: torch.sigmoid(x) + torch.erf(x) * torch.special.expit(x),
    "lgamma": lambda x: torch.lgamma(x * x + 1) + torch.digamma(x * x + 1),
    "clamp": lambda x: x.clamp(-0.5, 0.7) * torch.clamp(x, min=0.1) + x.clip(max=0.3),
    "powers": lambda x: torch.pow(x, 3) + x.pow(2) * 2**x,
    "modulo": lambda x: x * torch.fmod(x, 0.7) + torch.frac(x) + x.trunc() * x,
    "add with alpha": lambda x: torch.add(x, x * x, alpha=3) - torch.sub(x, 2, alpha=0.5),
    "div": lambda x: torch.div(x, 3, rounding_mode="floor") * x + x.div(2) + x.true_divide(4),
    "lerp": lambda x: torch.lerp(x, x * x, 0.3) + torch.addcmul(x, x, x, value=2),
    "addcdiv": lambda x: torch.addcdiv(x, x, x * x + 1, value=0.5),
    "sum": lambda x: x.sum() * x.sum(0) + x.sum(dim=-1, keepdim=True) + torch.sum(x, (0, 1)),
    "mean": lambda x: x - x.mean(-1, keepdim=True) * x.mean([0, 1]),
    "var": lambda x: x.var() + torch.var(x, dim=-1, unbiased=False) + x.var(0, keepdim=True).mean(),
    "std": lambda x: x.std(-1, keepdim=True) * x + torch.std(x, 0, correction=0),
    "var_mean": lambda x: (
        torch.var_mean(x, dim=-1, unbiased=False)[0] * torch.std_mean(x, 0)[1].sum()
    ),
    "norm": lambda x: x.norm() + torch.norm(x, dim=-1) + torch.linalg.norm(x) + x.norm(1, -1),
    "vector norm": lambda x: torch.linalg.vector_norm(x, ord=3, dim=-1, keepdim=True) * x,
    "max": lambda x: (
        x.max() * x.max(dim=-1).values + x.amax(-1) + torch.max(x, 0, keepdim=True)[0].sum()
    ),
    "min": lambda x: torch.min(x, -1)[0] + x.min() * x.amin((0, 1)),
    "extremes of two": lambda x: torch.max(x, x * x) + torch.minimum(x, 1 - x) + torch.min(x, -x),
    "argmax": lambda x: x.gather(1, x.argmax(-1, keepdim=True)),
    "logsumexp": lambda x: torch.logsumexp(x, -1) + x.logsumexp((0, 1), keepdim=True).squeeze(),
    "cumulative": lambda x: x.cumsum(-1) + torch.cumprod(x, dim=0) + torch.logcumsumexp(x, 1),
    "sort": lambda x: torch.sort(x, dim=-1, descending=True).values + x.sort()[0].flip(-1),
    "topk": lambda x: (
        x.topk(2, dim=-1).values.sum(-1) + torch.topk(x, 2, largest=False)[0].prod(-1)
    ),
    "median": lambda x: x.median() + x.median(dim=-1).values,
    "prod": lambda x: x.prod(-1) + torch.diff(x, dim=-1).sum(-1),
    "softmax": lambda x: torch.softmax(x, -1) + F.log_softmax(x, dim=0) * x.softmax(1),
    "reshape": lambda x: x.view(-1).reshape(x.size(0), -1) + x.flatten().view(x.shape),
    "transpose": lambda x: x.transpose(0, 1) @ x + x.t() @ x.permute(0, 1) + x.T.mT.T @ x,
    "squeeze": lambda x: (
        x.unsqueeze(1).squeeze(1).squeeze() + x[None].squeeze(0) + x[..., None].squeeze(-1)
    ),
    "expand": lambda x: x.unsqueeze(0).expand(3, -1, -1).sum(0) + x[:1].expand_as(x) * x,
    "repeat": lambda x: x.repeat(2, 3).sum() + x.repeat_interleave(2, dim=1).cumsum(1).sum(-1),
    "cat": lambda x: torch.cat([x, x * x], dim=-1).cumsum(-1) + torch.stack((x, -x), 1).flatten(1),
    "split": lambda x: (
        torch.cat((x, x * x)).split(x.size(0))[1] * x + x.split([1, x.size(1) - 1], -1)[0]
    ),
    "chunk": lambda x: torch.cat((x, x), 1).chunk(2, dim=-1)[0] * x + torch.cat((x, x)).chunk(2)[1],
    "unbind": lambda x: sum(row * row for row in x.unbind(1)) + x.unbind(0)[0].sum(),
    "narrow": lambda x: x.narrow(1, 1, 2) * x.select(1, 0)[:, None],
    "roll": lambda x: x.roll(1, 0) * x.flip(-1) + torch.roll(x, (1, 2), (0, 1)),
    "triangles": lambda x: torch.tril(x @ x.T) + torch.triu(x @ x.T, diagonal=1) * 2,
    "diagonal": lambda x: torch.diagonal(x @ x.T) + torch.diag(x @ x.T) * (x @ x.T).trace(),
    "diag_embed": lambda x: torch.diag_embed(x[:, 0]) @ x + x[:, :1].masked_fill(x[:, :1] > 0, 0.5),
    "where": lambda x: torch.where(x > 0, x * x, 0.1 * x) + x.where(x < 0, x.exp()),
    "masked": lambda x: x.masked_fill(torch.tril(torch.ones(x.size(0), x.size(1))) == 0, 0.0) * x,
    "creation": lambda x: x * torch.arange(x.size(1)) + torch.zeros(x.size(1)) + torch.ones_like(x),
    "more creation": lambda x: (
        x @ torch.eye(x.size(1)) + torch.full((x.size(1),), 0.5) + x.new_zeros(1)
    ),
    "numbers": lambda x: x * torch.tensor(2.0).sqrt() + torch.tensor([1, 2]).float().mean(),
    "linspace": lambda x: x * torch.linspace(0, 1, x.size(1)) + torch.tensor([2.0]) * x,
    "in place": lambda x: x.clone().mul_(2).add_(x, alpha=0.5).clamp_(min=-1).exp_(),
    "write": lambda x: torch.zeros_like(x).index_add_(0, torch.arange(x.size(0)), x * x) + x,
    "casts": lambda x: x.float().to(x.dtype).type_as(x).double() * (x > 0).float() + x.to("cpu"),
    "products": lambda x: (
        torch.einsum("nd,md->nm", x, x) + torch.matmul(x, x.T) + torch.mm(x, x.t())
    ),
    "batched": lambda x: (
        torch.bmm(x[None], x.T[None])[0] + torch.baddbmm(x @ x.T, x[None], x.T[None])[0]
    ),
    "vectors": lambda x: (
        torch.dot(x[0], x[1]) + torch.outer(x[0], x[1]).sum() + torch.mv(x, x[0]).sum()
    ),
    "cdist": lambda x: torch.cdist(x, x.flip(0) + 1),
    "numel": lambda x: x.sum() / x.numel() + x.shape[0] * x.dim() + x.nelement(),
    "activations": lambda x: F.relu(x) + F.gelu(x) + F.gelu(x, approximate="tanh") + F.silu(x),
    "more activations": lambda x: F.softplus(x) + F.elu(x) + F.selu(x) + F.celu(x, 2.0) + F.mish(x),
    "hard": lambda x: F.hardtanh(x, -0.5, 0.5) + F.relu6(4 * x) + F.hardswish(x) + F.hardsigmoid(x),
    "leaky": lambda x: F.leaky_relu(x, 0.2) + F.softsign(x) + F.logsigmoid(x) + F.tanhshrink(x),
    "shrink": lambda x: (
        F.softshrink(x) + F.hardshrink(x) + F.threshold(x, 0.1, 0.5) + F.softmin(x, -1)
    ),
    "glu": lambda x: F.glu(torch.cat((x, x * x), -1)) + F.softplus(x, beta=2.0),
    "normalize": lambda x: (
        F.normalize(x, dim=-1) + F.normalize(x, p=1.0) + F.cosine_similarity(x, x + 1)[:, None]
    ),
    "distance": lambda x: (
        F.pairwise_distance(x, x * x + 1) + torch.nn.PairwiseDistance()(x, x * x + 1)
    ),
    "layer_norm": lambda x: F.layer_norm(x, (x.size(-1),)) + F.rms_norm(x, (x.size(-1),), eps=1e-6),
    "batch_norm": lambda x: (
        F.batch_norm(x, None, None, training=True) + F.dropout(x, 0.5, training=False)
    ),
    "pad": lambda x: (
        F.pad(x, (1, 2))[:, 1:].sum(-1) + F.pad(x, (1, 1, 2, 0), value=1.0).exp().sum()
    ),
    "pad modes": lambda x: (
        F.pad(x[None], (1, 1), mode="reflect") + F.pad(x[None], (1, 1), mode="replicate")
    ),
    "unfold": lambda x: x.unfold(1, 2, 1).prod(-1),
}
TWO: dict[str, Any] = {
    "linear": lambda x, w: F.linear(x, w[None]) + F.linear(x, w[None], w[:1]) * (x @ w)[:, None],
    "norms": lambda x, w: (
        F.layer_norm(x, (x.size(-1),), w, w) + F.batch_norm(x, None, None, w, w, True)
    ),
    "prelu": lambda x, w: F.prelu(x, w) + F.rms_norm(x, (x.size(-1),), w, 1e-5),
    "addmm": lambda x, w: torch.addmm(w[:, None] * w, x.T, x, beta=2, alpha=0.5),
}
LOSSES: dict[str, Any] = {
    "mse": lambda x, y: F.mse_loss(x, y) + F.mse_loss(x, y, reduction="sum"),
    "l1": lambda x, y: (
        F.l1_loss(x, y) + F.smooth_l1_loss(x, y, beta=0.5) + F.huber_loss(x, y, delta=0.7)
    ),
    "bce": lambda x, y: F.binary_cross_entropy_with_logits(
        x, y.sigmoid(), pos_weight=torch.tensor(2.0)
    ),
    "bce of probabilities": lambda x, y: F.binary_cross_entropy(
        x.sigmoid(), y.sigmoid(), reduction="none"
    ),
    "kl": lambda x, y: F.kl_div(F.log_softmax(x, -1), y.softmax(-1), reduction="batchmean"),
    "kl of logs": lambda x, y: F.kl_div(
        x.log_softmax(-1), y.log_softmax(-1), log_target=True, reduction="sum"
    ),
    "poisson": lambda x, y: F.poisson_nll_loss(x, y.exp()) + F.gaussian_nll_loss(x, y, y * y + 1),
    "ranking": lambda x, y: F.margin_ranking_loss(x, y, x.detach().sign(), margin=0.5),
    "triplet": lambda x, y: F.triplet_margin_loss(x, y, x * y, margin=2.0),
    "soft targets": lambda x, y: F.cross_entropy(x, y.softmax(-1), label_smoothing=0.1),
    "attention": lambda x, y: F.scaled_dot_product_attention(x, y, y, is_causal=True),
    "attention with mask": lambda x, y: F.scaled_dot_product_attention(x, y, y, attn_mask=x @ y.T),
    "cosine": lambda x, y: (
        F.cosine_embedding_loss(x, y, torch.ones(x.size(0))) + torch.hypot(x, y).sum()
    ),
}
PLACES: dict[str, Any] = {
    "cross_entropy": lambda x, i: F.cross_entropy(x, i) + F.nll_loss(x.log_softmax(-1), i),
    "smoothed": lambda x, i: F.cross_entropy(x, i, label_smoothing=0.2, reduction="sum"),
    "ignored": lambda x, i: (
        F.cross_entropy(x, i, ignore_index=0) + F.cross_entropy(x, i, reduction="none")
    ),
    "weighted": lambda x, i: F.cross_entropy(x, i, weight=1.0 + torch.arange(x.size(1))),
    "gather": lambda x, i: (
        x.gather(1, i[:, None]) * F.one_hot(i, x.size(1)) + F.embedding(i, x.T)[:, :1]
    ),
    "scatter": lambda x, i: torch.zeros_like(x).scatter_(1, i[:, None], x[:, :1]) + x,
    "scatter_add": lambda x, i: x.scatter_add(1, i[:, None], x[:, :1] ** 2),
    "index_add": lambda x, i: torch.zeros(x.size(1), x.size(1)).index_add(0, i, x),
    "index_select": lambda x, i: x.index_select(1, i) + x[:, i] * x.T[i].sum(),
}
IMAGES: dict[str, Any] = {
    "conv2d": lambda z, k: F.conv2d(z, k, padding=1),
    "strided": lambda z, k: F.conv2d(z, k, stride=2, padding=(1, 0)),
    "dilated": lambda z, k: F.conv2d(z, k, dilation=2, bias=k[:, 0, 0, 0]),
    "conv1d": lambda z, k: F.conv1d(z[:, :, 0], k[:, :, 0], padding=1),
    "pools": lambda z, k: F.max_pool2d(z, 2, stride=1) + F.avg_pool2d(z, 2, 1) * k.sum(),
    "pool": lambda z, k: F.adaptive_avg_pool2d(z, 1) * k.mean() + z.mean((2, 3), keepdim=True),
    "columns": lambda z, k: torch.einsum("ok,nkp->nop", k.flatten(1), F.unfold(z, 3)),
    "group_norm": lambda z, k: F.group_norm(z, 1, k[0, :, 0, 0]) + F.instance_norm(z),
    "channels": lambda z, k: F.batch_norm(z, None, None, k[0, :, 0, 0], k[0, :, 0, 1], True),
    "upsampled": lambda z, k: F.interpolate(z, scale_factor=2) * k.sum(),
}


RNG = np.random.default_rng(5)
X, Y, W = RNG.standard_normal((6, 4)), RNG.standard_normal((6, 4)), RNG.standard_normal(4)


@rows("name", ONE)
def test_a_function_of_one_tensor(name):
    assert_equal_to_torch(ONE[name], {"x": N}, [X])


@rows("name", TWO)
def test_a_function_with_a_parameter(name):
    assert_equal_to_torch(TWO[name], {"x": N, "w": D}, [X, W])


@rows("name", LOSSES)
def test_a_function_of_two_tensors(name):
    assert_equal_to_torch(LOSSES[name], {"x": N, "y": N}, [X, Y])


@rows("name", PLACES)
def test_a_function_with_places(name):
    places = np.array([2, 0, 3, 2, 1, 1])
    assert_equal_to_torch(PLACES[name], {"x": N, "i": ("N", int)}, [X, places])


@rows("name", IMAGES)
def test_a_function_of_images(name):
    z, k = RNG.standard_normal((2, 3, 7, 6)), RNG.standard_normal((4, 3, 3, 3))
    assert_equal_to_torch(IMAGES[name], {"z": z, "k": k}, [z, k])


def rms_norm(x, weight, eps=1e-6):
    """As published models have it: in single precision, then in the type that came."""
    kind = x.dtype
    x = x.to(torch.float32)
    x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    return weight * x.to(kind)


def rotated(x, cos, sin):
    first, second = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def recurrent(x, h, w, u):
    states = []
    for x_t in x.unbind(1):
        h = torch.tanh(x_t @ w + h @ u)
        states.append(h)
    return torch.stack(states, dim=1)


def heads(x, w, n_head=2):
    batch, time, channels = x.size()
    q, k, v = (x @ w).split(channels, dim=2)
    q, k, v = (a.view(batch, time, n_head, -1).transpose(1, 2) for a in (q, k, v))
    scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
    mask = torch.tril(torch.ones(time, time)).view(1, 1, time, time)
    scores = scores.masked_fill(mask == 0, float("-inf"))
    y = F.softmax(scores, dim=-1) @ v
    return y.transpose(1, 2).contiguous().view(batch, time, channels)


PUBLISHED = (
    (rms_norm, {"x": ("N", "T", "D"), "weight": ("D",)}, [(2, 3, 4), (4,)]),
    (rotated, {"x": ("N", "T", 6), "cos": ("T", 6), "sin": ("T", 6)}, [(2, 3, 6), (3, 6), (3, 6)]),
    (
        recurrent,
        {"x": ("N", "T", "D"), "h": ("N", "H"), "w": ("D", "H"), "u": ("H", "H")},
        [(2, 5, 3), (2, 4), (3, 4), (4, 4)],
    ),
    (heads, {"x": ("B", "T", "C"), "w": ("C", "3 * C")}, [(2, 5, 8), (8, 24)]),
)


@rows(("function", "shapes", "sizes"), PUBLISHED)
def test_a_published_forward(function, shapes, sizes):
    assert_equal_to_torch(function, shapes, [RNG.standard_normal(each) for each in sizes], 1e-6)


def test_a_function_that_is_not_known_is_named_with_its_line():
    with pytest.raises(hg.errors.ArgumentError, match=r"line .*: airy_ai of PyTorch is not"):
        hg.derive(lambda x: torch.special.airy_ai(x), x=N)


def quantized(x, levels=4):
    """A gradient that goes straight through a rounding (Bengio and others, 2013)."""
    rounded = torch.round(x * levels) / levels
    return x * x + (rounded - x).detach()


def contrasted(x):
    scores = x @ x.t()
    scores = scores - scores.max(dim=1, keepdim=True)[0].detach()
    scores.fill_diagonal_(-1e9)
    return torch.logsumexp(scores, dim=1)


@rows("function", [quantized, contrasted])
def test_what_is_detached_is_constant(function):
    assert_equal_to_torch(function, {"x": N}, [X])


def test_random_numbers_are_refused():
    with pytest.raises(hg.errors.ArgumentError, match="dropout draws another mask"):
        hg.derive(lambda x: F.dropout(x), x=N)
