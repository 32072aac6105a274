"""What a forward of PyTorch reaches without computing with it, and what it refuses itself."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tests.deriving.of_torch import assert_equal_to_torch

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
        return torch.sin(x) if x.ndim == 2 else (Straight.apply(x), straight(x))


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, dy):
        return dy


straight = Straight.apply


def test_what_is_not_called_stands_in_nobody_s_way():
    assert_equal_to_torch(lambda x: Logged()(x), {"x": ("N", "D")}, [np.ones((2, 3))])


def ordered(x):
    if not bool((x[:, 0] <= x[:, 1]).all()):
        raise ValueError("pairs are in order")
    return x[:, 1] - x[:, 0]


def test_a_forward_may_refuse_what_is_no_example():
    x = np.array([[0.1, 0.7], [0.2, 0.4], [-0.3, 0.1]])
    assert_equal_to_torch(ordered, {"x": x}, [x])
