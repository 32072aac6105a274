"""Cosine attention: PyTorch's cosine, no matter how long the states are, and none of zeros."""

from __future__ import annotations

import numpy as np
import pytest

from handgrad.ops import cosine_attention
from tests.tolerances import assert_close


def _inputs() -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(51).standard_normal
    return draw((2, 3, 4)), draw((2, 5, 4))


def test_the_score_is_pytorchs_cosine() -> None:
    torch = pytest.importorskip("torch")
    s, h = _inputs()
    c, cache = cosine_attention.forward(s, h, eps=0.0)
    dc = np.random.default_rng(52).standard_normal(c.shape)
    both = [torch.tensor(array, requires_grad=True) for array in (s, h)]
    F = torch.nn.functional
    score = F.cosine_similarity(both[0][:, :, None], both[1][:, None], dim=-1)
    expected = F.softmax(score, dim=-1) @ both[1]
    assert_close(c, expected.detach().numpy(), "torch float64", "c")
    gradients = torch.autograd.grad(expected, both, torch.tensor(dc))
    for found, there in zip(cosine_attention.backward(dc, cache), gradients, strict=True):
        assert_close(found, there.numpy(), "torch float64")


def test_the_length_of_a_query_does_not_count() -> None:
    s, h = _inputs()
    c, cache = cosine_attention.forward(s, h, eps=0.0)
    longer, _ = cosine_attention.forward(8.0 * s, h, eps=0.0)
    assert_close(longer, c, "float64")
    ds, _ = cosine_attention.backward(np.random.default_rng(52).standard_normal(c.shape), cache)
    assert_close(np.sum(ds * s, axis=-1), np.zeros((2, 3)), "float64")


def test_a_state_of_zeros_looks_everywhere_alike() -> None:
    s, h = _inputs()
    s[0, 1] = 0.0
    c, cache = cosine_attention.forward(s, h)
    np.testing.assert_allclose(c[0, 1], h[0].mean(axis=0), rtol=1e-14)
    for gradient in cosine_attention.backward(np.ones_like(c) + s, cache):
        assert np.all(np.isfinite(gradient))
