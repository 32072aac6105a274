"""Comparisons for several models: the same network in PyTorch, and their own forward."""

from __future__ import annotations

from typing import Any

import numpy as np

from handgrad.data.tokens import END, PAD, START, UNKNOWN
from handgrad.layers import Layer
from handgrad.models.decoding import greedy
from tests.tolerances import assert_close


def assert_equals_torch(torch: Any, ours: Layer, theirs: Any, x: np.ndarray) -> None:
    """Scores and every gradient, in training, with the same weights in the same order."""
    y, cache = ours.forward(x, training=True)
    dy = np.random.default_rng(2).standard_normal(y.shape)
    dx, gradients = ours.backward(dy, cache)
    their_x = torch.tensor(x, requires_grad=True)
    their_y = theirs(their_x)
    assert_close(y, their_y.detach(), "torch float64", "scores")
    inputs = [their_x, *theirs.parameters()]
    expected = torch.autograd.grad(their_y, inputs, torch.tensor(dy))
    for found, right in zip([dx, *gradients.values()], expected, strict=True):
        assert_close(found, right, "torch float64", "gradients")


def assert_greedy_is_forward(model: Any, sources: np.ndarray, lengths: np.ndarray) -> None:
    """Decoding step by step writes the tokens that are most probable by the whole forward."""
    found = greedy(model, sources, lengths, longest=6)
    for n, written in enumerate(found):
        inputs = np.concatenate([[START], written])[None]
        logits, _ = model.forward(sources[n : n + 1], lengths[n : n + 1], inputs)
        logits[..., [PAD, START, UNKNOWN]] = -np.inf
        best = np.argmax(logits[0], axis=1)
        np.testing.assert_array_equal(best[: len(written)], written)
        assert len(written) == 6 or best[-1] == END
