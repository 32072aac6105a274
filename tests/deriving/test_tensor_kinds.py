"""Forwards that ask PyTorch for types and for what runs them, and that leave results out."""

from __future__ import annotations

import numpy as np
import pytest

import handgrad as hg
from tests.deriving.of_torch import Rounded, assert_equal_to_torch
from tests.rows import rows

torch = pytest.importorskip("torch")
nn = torch.nn
X = np.random.default_rng(21).standard_normal((4, 3))


def tiny_of(dtype):
    if not dtype.is_floating_point:
        raise TypeError("floats are wanted")
    return 1e-13 if dtype in (torch.float, torch.double) else 1e-4


def masked_mean(x):
    mask = x > -10
    lowest = torch.finfo(x.dtype).min
    shown = x.masked_fill(~mask, lowest if x.dtype != torch.half else -6e4)
    total = (shown.amax(-1) * mask.type(x.dtype).sum(-1)).to(x.dtype)
    return total / mask.float().sum(-1).clamp(min=tiny_of(x.dtype))


def widened(x):
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x * x


def scripted(x):
    if torch.jit.is_scripting() or torch.jit.is_tracing() or torch.is_autocast_enabled("cpu"):
        return x
    return x.exp() if torch.is_grad_enabled() else x


def focused(x):
    loss = torch.log1p(x * x)
    torch.set_grad_enabled(False)
    weight = (1 - torch.sigmoid(x)) ** 2
    torch.set_grad_enabled(True)
    loss *= weight
    return loss


def lengthened(x):
    gate = 2 * x.sum(-1)
    gate.unsqueeze_(1)
    turned = x * 2
    turned.t_()
    return gate * x + turned.T


def smoothed(x, rate=0.1):
    places = torch.arange(x.shape[0])[:, None] % 2
    target = torch.full_like(x, rate / 3).scatter_(1, places, 1 - rate)
    return -(target * x.log_softmax(1)).sum(1)


def pairs(x):
    same = (torch.arange(x.shape[0])[:, None] % 2 == torch.arange(x.shape[0]) % 2).byte()
    other = same ^ 1
    i, j = torch.where(other)
    near = (x @ x.T)[i, j]
    kept = near > 0
    count = torch.sum(kept)
    if count >= 1:
        return torch.sum(near[kept] ** 2) / count
    return torch.sum(near * 0)


def decayed(q):
    steps = q.new_tensor(range(q.shape[0]), dtype=torch.float)
    decay = torch.exp2(steps[:, None] - steps) * steps[:, None].ge(steps)
    return decay.to(q.dtype) @ q


def solved(x):
    squares = x[:, :, None] * x[:, None, :] + 2 * torch.eye(x.shape[1])
    return torch.linalg.solve(squares, x)


def gram_solved(x):
    """The squares of an x that is the same everywhere have no inverse."""
    return torch.linalg.solve(x.T @ x, x.sum(0)) * x.new_tensor(2.0, dtype=torch.float)


def placed(x):
    if x.device.type not in ("cpu", "cuda") or x.device != torch.ones(1).device:
        raise ValueError("a processor is wanted")
    return x @ torch.eye(x.shape[1], device=x.device, dtype=x.dtype).roll(1, 0) * x.abs()


def levels(x):
    parts = [x * (1 << level) for level in range(int(x.shape[1]))]
    return torch.stack(parts).cumsum(0)


@rows(
    "function",
    [
        *(masked_mean, widened, scripted, focused, lengthened, smoothed, pairs, decayed, solved),
        *(gram_solved, placed, levels),
    ],
)
def test_its_gradient_is_that_of_torch(function):
    assert_equal_to_torch(function, {"x" if function is not decayed else "q": ("N", 3)}, [X])


def gated(x: torch.Tensor, g: torch.Tensor, state: torch.Tensor | None = None, last: bool = False):
    h = torch.zeros(x.shape[0], x.shape[2]) if state is None else state
    out = torch.zeros_like(x)
    for t in range(x.shape[1]):
        h = g[:, t].exp() * h + x[:, t]
        out[:, t] = h
    return out, h if last else None


@rows("last", [False, True])
def test_a_result_that_is_left_out_is_no_result(last):
    derived = hg.derive(gated, x=("N", "T", "D"), g=("N", "T", "D"), last=last)
    x, g = np.random.default_rng(3).standard_normal((2, 3, 4, 2))
    tx, tg = torch.tensor(x, requires_grad=True), torch.tensor(g, requires_grad=True)
    wanted = [y for y in gated(tx, tg, torch.zeros(3, 2).double(), last) if y is not None]
    y, cache = derived.forward(x, g, last=last)
    rng = np.random.default_rng(4)
    dys = [rng.standard_normal(tuple(each.shape)) for each in wanted]
    if last:
        np.testing.assert_allclose(y[1], wanted[1].detach().numpy(), rtol=1e-12)
    found = derived.backward(tuple(dys) if last else dys[0], cache)
    gradients = torch.autograd.grad(wanted, [tx, tg], list(map(torch.tensor, dys)))
    for one, other in zip(found, gradients, strict=True):
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-10, atol=1e-10)


def test_a_function_with_a_gradient_of_its_own_is_refused_by_name():
    rounded = Rounded.apply

    def quantized(x):
        return rounded(x) * x

    quantized.takes_tensors = True
    with pytest.raises(hg.errors.ArgumentError, match=r"Rounded is a torch.autograd.Function with"):
        hg.derive(quantized, x=("N", "D"))


class Divergence(nn.Module):
    def __call__(self, output, target):
        return (output.softmax(-1) * (output - target)).sum()


def test_a_module_is_called_by_its_own_names():
    derived = hg.derive(Divergence(), output=("N", "D"), target=("N", "D"))
    x, t = torch.tensor(X), torch.tensor(X[::-1].copy())
    np.testing.assert_allclose(derived.forward(X, X[::-1])[0], Divergence()(x, t).numpy())


def rotated(freqs: torch.Tensor, x: torch.Tensor):
    width = freqs.shape[-1]
    middle, rest = x[..., :width], x[..., width:]
    half = torch.cat((-middle[..., width // 2 :], middle[..., : width // 2]), -1)
    return torch.cat((middle * freqs.cos() + half * freqs.sin(), rest), -1)


@rows("width", [4, 6])
def test_a_rest_that_is_empty_on_the_example_is_not_elsewhere(width):
    derived = hg.derive(rotated, freqs=("T", 4), x=("N", "T", "D"))
    rng = np.random.default_rng(5)
    freqs, x = rng.standard_normal((3, 4)), rng.standard_normal((2, 3, width))
    tf, tx = torch.tensor(freqs, requires_grad=True), torch.tensor(x, requires_grad=True)
    wanted = rotated(tf, tx)
    dy = rng.standard_normal(tuple(wanted.shape))
    y, cache = derived.forward(freqs, x)
    np.testing.assert_allclose(y, wanted.detach().numpy(), rtol=1e-12)
    gradients = torch.autograd.grad(wanted, [tf, tx], torch.tensor(dy))
    for one, other in zip(derived.backward(dy, cache), gradients, strict=True):
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-10, atol=1e-12)


def first_five(x):
    return x[:5].sum() / x.shape[0]


def test_a_slice_beyond_an_axis_is_held_to_that():
    derived = hg.derive(first_five, x=np.ones(3))
    with pytest.raises(ValueError, match="allowed"):
        derived.forward(np.ones(7))


def segment_sums(x):
    length = x.size(-1)
    sums = x.cumsum(-1)[..., :, None] - x.cumsum(-1)[..., None, :]
    mask = torch.tril(torch.ones(length, length, dtype=bool))
    return sums.masked_fill(~mask, -torch.inf)


@pytest.mark.filterwarnings("error")
def test_a_mask_of_infinities_has_a_gradient_beside_it():
    segment_sums.takes_tensors = True
    derived = hg.derive(segment_sums, x=("N", "T"))
    given = torch.tensor(X, requires_grad=True)
    wanted = segment_sums(given)
    dy = np.random.default_rng(6).standard_normal(tuple(wanted.shape))
    y, cache = derived.forward(X)
    np.testing.assert_allclose(y, wanted.detach().numpy(), rtol=1e-12)
    (dx,) = torch.autograd.grad(wanted, given, torch.tensor(dy))
    np.testing.assert_allclose(derived.backward(dy, cache), dx.numpy(), rtol=1e-10, atol=1e-12)
    assert "inf" in derived.to("torch")


def no_number(x):
    return torch.sqrt(x - 100)


def test_what_is_no_number_is_refused():
    no_number.takes_tensors = True
    with pytest.raises(hg.errors.ArgumentError, match="not finite on its example"):
        hg.derive(no_number, x=("N",))
