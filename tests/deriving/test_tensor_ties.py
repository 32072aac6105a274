"""Where pieces of PyTorch's functions meet: gradients at ties, on bounds and of 0 are its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.deriving.of_torch import assert_equal_to_torch
from tests.rows import rows

torch = pytest.importorskip("torch")
F = torch.nn.functional

STEPS = [-2.0, -1.0, 0.0, 1.0, 2.0]
TIED = [2.0, 2.0, 1.0, 2.0]
SAME = [[2.0, 2.0, 2.0], [1.0, 2.0, 4.0]]
SHOWN = torch.tensor([[True, True, False], [False, False, False], [True, False, True]])
#: A function, and the arrays on which it is compared; it is derived for arrays of their shapes.
ONE: dict[str, tuple[Any, Any]] = {
    "clamp": (lambda x: x.clamp(-1, 1) + torch.clip(x, max=0.0), STEPS),
    "clamp_min": (lambda x: x.clamp_min(-1) * 2 + torch.clamp(x, min=0), STEPS),
    "clamp_max": (lambda x: x.clamp_max(1) + x.clamp(max=-1), STEPS),
    "hardtanh": (lambda x: F.hardtanh(x) + F.hardtanh(x, -2.0, 0.0), STEPS),
    "relu6": (lambda x: F.relu6(x * 3) + F.hardswish(3 * x), STEPS),
    "elu": (lambda x: F.elu(x, 2.0) + F.selu(x), STEPS),
    "celu": (lambda x: F.celu(x, 2.0) + F.elu(x), STEPS),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.3) + F.relu(x), STEPS),
    "shrink": (lambda x: F.softshrink(x, 1.0) + F.hardshrink(x, 1.0), STEPS),
    "threshold": (lambda x: F.threshold(x, 1.0, 0.5) + x.abs(), STEPS),
    "softsign": (lambda x: F.softsign(x) + F.logsigmoid(x), STEPS),
    "std": (lambda x: x.std(-1) + torch.std_mean(x, -1)[0], SAME),
    "norm": (lambda x: x.norm(dim=-1) + x.norm(3, -1) + x.norm(1.5, -1), [[0.0, 0.0], [0.0, 2.0]]),
    "norm of 1": (lambda x: x.norm(1, -1) + x.norm(float("inf"), -1), [[2.0, 2.0], [0.0, 2.0]]),
    "normalize": (lambda x: F.normalize(x, dim=-1, eps=0.1), [[0.0, 0.0], [1.0, 2.0]]),
    "cosine": (lambda x: F.cosine_similarity(x, x + 1, -1, 0.1), [[0.0, 0.0], [1.0, 2.0]]),
    "max": (lambda x: x.max() + x.max(0).values * 3, TIED),
    "min": (lambda x: x.min() + (-x).min(0)[0] * 3, TIED),
    "amax": (lambda x: x.amax(0) + x.aminmax().min + torch.aminmax(x, dim=0).max * 2, TIED),
    "cummax": (lambda x: torch.cummax(x, 0).values * x, TIED),
    "cummin": (lambda x: torch.cummin(-x, 0)[0] * x, TIED),
    "median": (lambda x: x.median(), [1.0, 1.0, 2.0, 2.0, 1.0, 2.0]),
    "sort": (lambda x: x.sort(descending=True).values * x + torch.msort(x), TIED),
    "max_pool1d": (lambda x: F.max_pool1d(x, 2, 1), [[2.0, 2.0, 1.0, 2.0, 2.0]]),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2, 1), [[[2.0, 2.0, 2.0], [2.0, 2.0, 2.0]]]),
    "adaptive_max": (lambda x: F.adaptive_max_pool1d(x, 2), [[2.0, 2.0, 2.0, 2.0]]),
    "prod": (lambda x: x.prod() + x.cumprod(0), [0.0, 2.0, 3.0]),
    "huber": (lambda x: F.huber_loss(x, torch.zeros(5), reduction="none"), STEPS),
    "smooth_l1": (lambda x: F.smooth_l1_loss(x, torch.zeros(5), reduction="none"), STEPS),
    "smooth_l1 of beta 0": (lambda x: F.smooth_l1_loss(x, torch.zeros(5), beta=0.0), STEPS),
    "hinge": (lambda x: F.hinge_embedding_loss(x, -torch.ones(5), reduction="none"), STEPS),
    "logit": (lambda x: torch.logit(x, 0.1), [0.05, 0.1, 0.5, 0.9]),
    "layer_norm": (lambda x: F.layer_norm(x, (3,)) + F.rms_norm(x, (3,), eps=1e-6), SAME),
    "saturated": (
        lambda x: F.binary_cross_entropy(x.sigmoid(), (x > 0).double(), reduction="none"),
        [50.0, 800.0, -50.0, -800.0, 0.5],
    ),
    "saturated and wrong": (
        lambda x: F.binary_cross_entropy(x.sigmoid(), (x < 0).double(), reduction="none"),
        [50.0, 800.0, -800.0, 0.5],
    ),
}
TWO: dict[str, tuple[Any, Any, Any]] = {
    "clamp": (lambda x, y: torch.clamp(x, y, y + 2), STEPS, [-1.0] * 5),
    "clamp min": (lambda x, y: torch.clamp(x, min=y) * x, STEPS, [-1.0] * 5),
    "clamp max": (lambda x, y: torch.clamp_max(x, y) * x, STEPS, [1.0] * 5),
    "maximum": (lambda x, y: torch.maximum(x, y) + torch.fmax(x, y) * 3, STEPS, [-1.0] * 5),
    "minimum": (lambda x, y: torch.min(x, y) + torch.fmin(x, y) * 3, STEPS, [1.0] * 5),
    "cdist": (lambda x, y: torch.cdist(x, y), [[0.0, 1.0], [2.0, 1.0]], [[0.0, 1.0]]),
    "dist": (lambda x, y: torch.dist(x, y), [1.0, 1.0], [1.0, 1.0]),
    "pairwise": (lambda x, y: F.pairwise_distance(x, y, eps=0.0), [[0.0, 1.0]], [[0.0, 1.0]]),
    "margin": (lambda x, y: F.margin_ranking_loss(x, y, torch.ones(5)), STEPS, STEPS),
    "atan2": (lambda x, y: torch.atan2(x, y), [0.0, 1.0], [0.0, 0.0]),
    "remainder": (lambda x, y: torch.remainder(x, y) + torch.fmod(x, y), [1.5, -1.7], [0.5, 0.5]),
    "prelu": (lambda x, y: F.prelu(x, y), [[0.0], [1.0]], [0.3]),
    "extremes put": (
        lambda x, y: x.scatter_reduce(0, torch.tensor([0, 0, 1]), y, "amax"),
        [4.0, 2.0],
        [4.0, 4.0, 2.0],
    ),
    "cosine loss": (
        lambda x, y: F.cosine_embedding_loss(x, y, -torch.ones(1)),
        [[1.0, 0.0]],
        [[0.0, 1.0]],
    ),
}


def drawn(arrays):
    """Example arrays without ties, of the shapes of others."""
    rng = np.random.default_rng(2)
    return [np.exp(0.3 * rng.standard_normal(np.shape(a))) / 3 for a in arrays]


@rows("name", ONE)
def test_the_gradient_of_one_array(name):
    function, x = ONE[name]
    (example,) = drawn([x])
    assert_equal_to_torch(function, {"x": example}, [np.asarray(x)])


@rows("name", TWO)
def test_the_gradients_of_two_arrays(name):
    function, *arrays = TWO[name]
    x, y = drawn(arrays)
    assert_equal_to_torch(function, {"x": x, "y": y}, list(map(np.asarray, arrays)))


@pytest.mark.parametrize("is_sum", [False, True])
def test_a_query_that_sees_no_key_has_the_value_0(is_sum):
    mask = torch.zeros(3, 3).masked_fill(~SHOWN, -torch.inf) if is_sum else SHOWN

    def attention(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    q, k, v = np.random.default_rng(0).standard_normal((3, 2, 3, 4))
    assert_equal_to_torch(attention, {"q": q, "k": k, "v": v}, [k, v, q])
