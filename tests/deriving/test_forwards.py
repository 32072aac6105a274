"""Forwards in many forms: derived, emitted, run at other sizes, compared with differences."""

import numpy as np
import pytest

from handgrad.deriving.arguments import size_of as parse
from handgrad.deriving.deriving import derive

CASES = {}


def case(name, forward, sizes, **given):
    CASES[name] = forward, sizes, given


def norm(x, g, b, eps=1e-5):
    m = x.mean(-1, keepdims=True)
    v = ((x - m) ** 2).mean(-1, keepdims=True)
    return (x - m) / np.sqrt(v + eps) * g + b


case("norm", norm, [{"N": 3, "D": 6}, {"N": 2, "D": 9}], x=("N", "D"), g=("D",), b=("D",))


def soft(q, k, v):
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


case(
    "attention",
    soft,
    [{"B": 2, "T": 5, "S": 6, "D": 3, "E": 4}],
    q=("B", "T", "D"),
    k=("B", "S", "D"),
    v=("B", "S", "E"),
)


def rnn(x, w, u):
    h = np.zeros((x.shape[0], u.shape[0]))
    for t in range(x.shape[1]):
        h = np.tanh(x[:, t] @ w + h @ u)
    return h


case(
    "rnn",
    rnn,
    [{"N": 2, "T": 5, "D": 3, "H": 4}, {"N": 3, "T": 8, "D": 2, "H": 5}],
    x=("N", "T", "D"),
    w=("D", "H"),
    u=("H", "H"),
)


def rnn2(x, w, u):
    h = np.zeros((x.shape[0], u.shape[0]))
    hs = []
    for t in range(x.shape[1]):
        h = np.tanh(x[:, t] @ w + h @ u)
        hs.append(h)
    return np.stack(hs, 1)


case(
    "rnn all",
    rnn2,
    [{"N": 2, "T": 5, "D": 3, "H": 4}, {"N": 3, "T": 8, "D": 2, "H": 5}],
    x=("N", "T", "D"),
    w=("D", "H"),
    u=("H", "H"),
)


def rnn3(x, w, u):
    N, T, _ = x.shape
    H = u.shape[0]
    y = np.zeros((N, T, H))
    h = np.zeros((N, H))
    for t in range(T):
        h = np.tanh(x[:, t] @ w + h @ u)
        y[:, t] = h
    return y


case(
    "rnn store",
    rnn3,
    [{"N": 2, "T": 5, "D": 3, "H": 4}, {"N": 3, "T": 8, "D": 2, "H": 5}],
    x=("N", "T", "D"),
    w=("D", "H"),
    u=("H", "H"),
)


def heads(x, w, h=2):
    B, T, D = x.shape
    q = (x @ w).reshape(B, T, h, D // h).transpose(0, 2, 1, 3)
    return (q * q).sum(-1)


case(
    "heads",
    heads,
    [{"B": 2, "T": 3, "D": 4}, {"B": 3, "T": 2, "D": 6}],
    x=("B", "T", "2 * D"),
    w=("2 * D", "2 * D"),
)


def nested(x, w):
    h = np.zeros(w.shape[0])
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            h = np.tanh(w @ h + x[i, j])
    return h


case(
    "nested",
    nested,
    [{"N": 2, "T": 5, "H": 4}, {"N": 4, "T": 3, "H": 2}],
    x=("N", "T", "H"),
    w=("H", "H"),
)


def mat(a, b):
    y = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                y[i, j] += a[i, k] * b[k, j]
    return y


case(
    "matmul by loops",
    mat,
    [{"N": 2, "K": 3, "M": 2}, {"N": 3, "K": 2, "M": 4}],
    a=("N", "K"),
    b=("K", "M"),
)


def blocks(x, w, block=2):
    s = 0.0
    for i in range(0, x.shape[0], block):
        s = s + np.tanh(x[i : i + block] @ w).sum()
    return s


case(
    "blocks",
    blocks,
    [{"N": 2, "D": 3, "K": 2}, {"N": 3, "D": 2, "K": 4}],
    x=("2 * N", "D"),
    w=("D", "K"),
)


def first(x):
    for t in range(x.shape[0]):
        if t == 0:
            h = x[t]
        else:
            h = h * x[t] + np.sin(h)
    return h


case("first differs", first, [{"N": 4, "D": 3}, {"N": 7, "D": 2}], x=("N", "D"))


def lag(x):
    a, b = x[0], x[1]
    for t in range(2, x.shape[0]):
        a, b = b, a * b + x[t]
    return b


case("two carried", lag, [{"N": 5, "D": 3}, {"N": 7, "D": 2}], x=("N", "D"))


def over(x, h, w):
    for x_t in x:
        h = np.tanh(x_t @ w + h)
    return h


case(
    "over",
    over,
    [{"T": 5, "D": 3, "K": 2}, {"T": 7, "D": 2, "K": 3}],
    x=("T", "D"),
    h=("K",),
    w=("D", "K"),
)


def comp(x, w):
    return np.stack([np.tanh(v @ w) for v in x])


case(
    "comprehension",
    comp,
    [{"T": 5, "D": 3, "K": 2}, {"T": 7, "D": 2, "K": 3}],
    x=("T", "D"),
    w=("D", "K"),
)


def rev(x, w):
    hs, h = [], np.zeros(w.shape[0])
    for t in reversed(range(len(x))):
        h = np.tanh(w @ h + x[t])
        hs.append(h)
    return np.stack(hs[::-1])


case("reversed", rev, [{"T": 5, "K": 2}, {"T": 7, "K": 3}], x=("T", "K"), w=("K", "K"))


@pytest.mark.parametrize("name", CASES)
def test_gradients_meet_differences_at_other_sizes(name):
    forward, sizes, given = CASES[name]
    d = derive(forward, **given)
    rng = np.random.default_rng(0)
    for lengths in sizes:
        args = {k: rng.random([parse(s).at(lengths).constant for s in v]) for k, v in given.items()}
        y, cache = d.forward(**args)
        np.testing.assert_allclose(y, forward(**args), rtol=1e-12)
        dy = rng.standard_normal(np.shape(y))
        grads = d.backward(dy, cache)
        grads = grads if isinstance(grads, tuple) else (grads,)
        for (k, v), g in zip(args.items(), grads, strict=True):
            u = rng.standard_normal(v.shape)
            h = 1e-6
            change = (
                dy * (forward(**{**args, k: v + h * u}) - forward(**{**args, k: v - h * u}))
            ).sum() / (2 * h)
            np.testing.assert_allclose((g * u).sum(), change, rtol=1e-5, atol=1e-7)


def layered(x, w, u):
    """Two layers in each step, whose states a list holds."""
    states = [np.zeros((x.shape[1], u.shape[0])) for _ in range(2)]
    results = []
    for t in range(x.shape[0]):
        below = x[t]
        for layer in range(2):
            states[layer] = np.tanh(below @ w + states[layer] @ u)
            below = states[layer]
        results.append(below)
    return np.stack(results), np.stack(states)


def test_layers_in_a_list_hold_for_any_number_of_steps():
    derived = derive(layered, x=("T", "N", "D"), w=("D", "D"), u=("D", "D"))
    assert not derived.fixed
    rng = np.random.default_rng(8)
    x, w, u = (rng.standard_normal(shape) for shape in ((7, 2, 3), (3, 3), (3, 3)))
    results, cache = derived.forward(x, w, u)
    for one, other in zip(results, layered(x, w, u), strict=True):
        np.testing.assert_allclose(one, other)
    dys = tuple(rng.standard_normal(each.shape) for each in results)
    way = rng.standard_normal(u.shape)
    ends = [layered(x, w, u + step * way) for step in (1e-5, -1e-5)]
    slope = sum(np.vdot(dy, a - b) for dy, a, b in zip(dys, *ends, strict=True)) / 2e-5
    np.testing.assert_allclose(np.vdot(derived.backward(dys, cache)[2], way), slope, rtol=1e-6)
