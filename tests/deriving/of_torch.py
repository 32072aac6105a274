"""Derived gradients against PyTorch's, by random cotangents."""

from __future__ import annotations

import numpy as np
import pytest

import handgrad as hg

torch = pytest.importorskip("torch")


class Rounded(torch.autograd.Function):
    """Its gradient of its own goes straight through."""

    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, dy):
        return dy


def gradients(function, arrays, cotangent_seed=3):
    """PyTorch's results, cotangents and gradients."""
    given = [torch.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        y = function(*given)
    finally:
        torch.set_default_dtype(before)
    dy = torch.tensor(np.random.default_rng(cotangent_seed).standard_normal(y.shape))
    wanted = [x for x in given if x.requires_grad]
    return y.detach().numpy(), dy.numpy(), torch.autograd.grad(y, wanted, dy)


def assert_equal_to_torch(function, shapes, arrays, tolerance=3e-8):
    """The gradients that are derived for the shapes, or on example arrays, on other arrays."""
    function.takes_tensors = True
    derived = hg.derive(function, **shapes)
    y, dy, wanted = gradients(function, arrays)
    found, cache = derived.forward(*arrays)
    np.testing.assert_allclose(found, y, rtol=tolerance, atol=tolerance)
    dx = derived.backward(dy, cache)
    for one, other in zip(dx if isinstance(dx, tuple) else (dx,), wanted, strict=True):
        np.testing.assert_allclose(one, other.numpy(), rtol=tolerance, atol=tolerance)
