"""Derivatives of derivatives beside PyTorch's double backward, loops included."""

import numpy as np
import pytest

import handgrad as hg

torch = pytest.importorskip("torch")


def rnn(x, w, u):
    h = np.zeros((x.shape[0], u.shape[0]))
    for t in range(x.shape[1]):
        h = np.tanh(x[:, t] @ w + h @ u)
    return h


def torch_rnn(x, w, u):
    h = x.new_zeros(x.shape[0], u.shape[0])
    for t in range(x.shape[1]):
        h = torch.tanh(x[:, t] @ w + h @ u)
    return h


def test_rnn():
    derived = hg.derive(rnn, x=("N", "T", "D"), w=("D", "H"), u=("H", "H"))
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape) for shape in ((2, 5, 3), (3, 4), (4, 4))]
    vectors = [rng.standard_normal(x.shape) for x in arrays]
    dy = rng.standard_normal((2, 4))
    tensors = [torch.tensor(x, requires_grad=True) for x in arrays]
    first = torch.autograd.grad(torch_rnn(*tensors), tensors, torch.tensor(dy), create_graph=True)
    second = torch.autograd.grad(first, tensors, [torch.tensor(v) for v in vectors])
    for found, wanted in zip(derived.hvp(tuple(vectors), dy, *arrays), second, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-11)
    wanted = torch.autograd.functional.jvp(
        torch_rnn, tuple(tensors), tuple(torch.tensor(v) for v in vectors)
    )[1]
    np.testing.assert_allclose(derived.jvp(tuple(vectors), *arrays), wanted, rtol=1e-10)


def kinked(x):
    h = np.zeros(x.shape[0])
    for t in range(x.shape[1]):
        z = x[:, t] + h
        e = np.exp(-np.abs(z))
        h = np.where(z >= 0, 1, e) * e * x[:, t] + h
    return h


def test_arrays_of_zeros_that_loops_change_are_none_that_others_read():
    derived = hg.derive(kinked, x=("N", "T"))
    rng = np.random.default_rng(3)
    x, v = rng.standard_normal((2, 2, 4))
    dy = rng.standard_normal(2)
    ends = [derived.backward(dy, derived.forward(x + step * v)[1]) for step in (1e-5, -1e-5)]
    wanted = (ends[0] - ends[1]) / 2e-5
    np.testing.assert_allclose(derived.hvp(v, dy, x), wanted, rtol=1e-7, atol=1e-7)
