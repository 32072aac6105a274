"""Things that a forward of PyTorch reaches without computing with them, or refuses itself."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import handgrad as hg
from tests.deriving.of_torch import Rounded, assert_equal_to_torch
from tests.rows import rows

torch = pytest.importorskip("torch")


def squares(x):
    return (x * x).sum(-1)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_scripted_function_is_derived_from_its_source():
    scripted = torch.jit.script(squares)
    x = np.random.default_rng(3).standard_normal((3, 4))
    assert_equal_to_torch(lambda x: scripted(x) * x[:, 0], {"x": x}, [x])


class Logged:
    """An object that holds an open file, and names a gradient of its own in what it does not do."""

    def __init__(self):
        self.log = sys.stderr

    def __call__(self, x):
        return torch.sin(x) if x.ndim == 2 else (Rounded.apply(x), straight(x))


straight = Rounded.apply


def test_what_is_not_called_stands_in_nobody_s_way():
    assert_equal_to_torch(lambda x: Logged()(x), {"x": ("N", "D")}, [np.ones((2, 3))])


def ordered(x):
    if not bool((x[:, 0] <= x[:, 1]).all()):
        raise ValueError("pairs are in order")
    return x[:, 1] - x[:, 0]


def test_a_forward_may_refuse_what_is_no_example():
    x = np.array([[0.1, 0.7], [0.2, 0.4], [-0.3, 0.1]])
    assert_equal_to_torch(ordered, {"x": x}, [x])


class Swish(torch.autograd.Function):
    """Its gradient is that of its forward, which asks the class and switches gradients off."""

    @classmethod
    def gate(cls, x):
        return torch.sigmoid(x)

    @staticmethod
    def forward(ctx, x):
        with torch.no_grad():
            ctx.largest = x.max()
        ctx.save_for_backward(x)
        ctx.mark_non_differentiable(ctx.largest)
        return x * Swish.gate(x)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        gate = torch.sigmoid(x)
        return dy * gate * (1 + x * (1 - gate))


class Cubed(torch.autograd.Function):
    @staticmethod
    def forward(x, scale):
        return scale * x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.scale = inputs[1]

    @staticmethod
    def backward(ctx, dy):
        return 3 * ctx.scale * ctx.saved_tensors[0] ** 2 * dy, None


swish = Swish.apply


def activated(x):
    return swish(x) + Swish.apply(2 * x).detach() * x + Cubed.apply(x, 0.5)


def test_a_gradient_of_its_own_that_is_that_of_its_forward_is_taken():
    x = np.random.default_rng(5).standard_normal((3, 4))
    assert_equal_to_torch(activated, {"x": ("N", "D")}, [x])


def test_another_gradient_than_that_of_its_forward_is_refused():
    with pytest.raises(hg.errors.ArgumentError, match="of its own, which is not that of its"):
        hg.derive(lambda x: straight(x) * torch.sin(x), x=torch.ones(2, 3))


def solved(x):
    square = x @ x.mT + 3 * torch.eye(3, dtype=x.dtype)
    y, info = torch.linalg.solve_ex(square, x)
    return torch.linalg.inv_ex(square).inverse @ y + torch.linalg.cholesky_ex(square).L @ y * info


def halved(x):
    """Pairs are added until one is left: that there is one is found on the way."""
    while x.size(0) > 1:
        x = torch.cat((x[: x.size(0) // 2 * 2 : 2] * x[1::2], x[x.size(0) // 2 * 2 :]))
    return x.squeeze(0)


def paired(x):
    """Places that a loop counts are integers in PyTorch too."""
    return torch.stack([x[:, (k, k + 2)].prod(1) for k in range(2)])


@rows("forward", [solved, halved, paired])
def test_a_result_with_its_source(forward):
    x = np.random.default_rng(5).standard_normal((3, 4))
    assert_equal_to_torch(forward, {"x": x}, [x])
    assert hg.derive(forward, torch.tensor(x)).to("torch")
