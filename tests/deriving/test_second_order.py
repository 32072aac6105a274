"""A derived backward is a program: swept again it is PyTorch's double backward, loops included."""

import numpy as np
import pytest

import handgrad.deriving.pair as pair
from handgrad.deriving.deriving import derive
from handgrad.deriving.reverse import gradient
from handgrad.program.node import Program, within
from handgrad.program.run import run

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


def test_rnn(monkeypatch):
    seen = []
    assemble = pair.assemble
    monkeypatch.setattr(pair, "assemble", lambda *args: seen.append(args) or assemble(*args))
    derive(rnn, x=("N", "T", "D"), w=("D", "H"), u=("H", "H"))
    program, chosen, dys, grads, *_, world = seen[0]
    with within(world):
        first = Program([*program.inputs, *dys], grads)
        vs, second = gradient(first, chosen)
        got = run(
            Program([*first.inputs, *vs], second),
            [n.value for n in [*first.inputs, *vs]],
            world.lengths,
        )
    xs = [torch.tensor(n.value, requires_grad=True) for n in program.inputs]
    g = torch.autograd.grad(torch_rnn(*xs), xs, torch.tensor(dys[0].value), create_graph=True)
    want = torch.autograd.grad(g, xs, [torch.tensor(v.value) for v in vs])
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-11)
