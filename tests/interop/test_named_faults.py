"""Faults in functions of PyTorch and JAX have the names that they have in functions of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import handgrad as hg


def normal(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def product(xp, x, w):
    return x * w, (x, w)


def twice(xp, dy, x, w):
    return 2 * dy * w, (dy * x).sum(0)


def averaged(xp, dy, x, w):
    return dy * w, (dy * x).mean(0)


def centred(xp, x):
    return x - xp.mean(x, -1, keepdims=True), ()


def with_plus(xp, dy):
    return (dy + xp.mean(dy, -1, keepdims=True),)


def cubed(xp, x):
    c = x - xp.mean(x, -1, keepdims=True)
    return c**3, (c,)


def without_mean(xp, dy, c):
    return (3 * c**2 * dy,)


def cumulated(xp, x):
    return xp.cumsum(x, 0), ()


def from_the_same_end(xp, dy):
    return (xp.cumsum(dy, 0),)


def squared_softmax(xp, x):
    e = xp.exp(x)
    p = e / xp.sum(e, -1, keepdims=True)
    return p**2, (p,)


def diagonal(xp, dy, p):
    dp = 2 * p * dy
    return (dp * p * (1 - p),)


def relu(xp, x):
    return xp.where(x > 0, 2 * x, 0 * x), (x,)


def exchanged(xp, dy, x):
    return (xp.where(x > 0, 0 * dy, 2 * dy),)


#: A forward and a wrong backward of the array library xp, shapes of inputs, and the fault.
CASES = [
    (product, twice, [(5, 4), (4,)], "extra factor", "the factor 2 is too many"),
    (product, averaged, [(5, 4), (4,)], "mean for sum", "mean(dy x) should be a sum"),
    (centred, with_plus, [(4, 5)], "wrong sign", "term mean(dy) has the wrong sign"),
    (cubed, without_mean, [(4, 5)], "term missing", "the term −mean(3 c² dy) is missing"),
    (cumulated, from_the_same_end, [(4, 5)], "flipped", "cumsum(dy, 0) should be flipped"),
    (squared_softmax, diagonal, [(4, 5)], "other derivative", "−p sum(p dp) of softmax's"),
    (relu, exchanged, [(4, 5)], "wrong branch", "another condition belongs there: x < 0 for x > 0"),
]


def named(report, kind, phrase):
    (fault,) = report.faults
    assert (report.verdict, fault.kind) == ("wrong", kind), fault.message
    assert phrase in fault.message


def of_numpy(forward, backward):
    def only(dy, cache):
        found = backward(np, dy, *cache)
        return found if len(found) > 1 else found[0]

    return lambda *arrays: forward(np, *arrays), only


#: Functions that live on, as a library may hold them: their code is that of later ones.
_KEPT = []


def of_closures(forward, backward):
    def first(*arrays):
        return forward(np, *arrays)

    def second(dy, cache):
        found = backward(np, dy, *cache)
        return found if len(found) > 1 else found[0]

    _KEPT.append((first, second))
    return first, second


def of_torch(forward, backward):
    torch = pytest.importorskip("torch")

    class Named(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *tensors):
            y, saved = forward(torch, *tensors)
            ctx.save_for_backward(*saved)
            return y

        @staticmethod
        def backward(ctx, dy):
            return backward(torch, dy, *ctx.saved_tensors)

    return Named


def of_jax(forward, backward):
    jax = pytest.importorskip("jax")

    def first(*arrays):
        return forward(jax.numpy, *arrays)

    def second(saved, dy):
        return backward(jax.numpy, dy, *saved)

    function = jax.custom_vjp(lambda *arrays: first(*arrays)[0])
    function.defvjp(first, second)
    return function


@pytest.mark.parametrize("library", [of_numpy, of_closures, of_torch, of_jax])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[1].__name__)
def test_a_fault_has_the_same_name_in_every_library(case, library):
    forward, backward, shapes, *fault = case
    inputs = [normal(*shape) for shape in shapes]
    named(hg.check(library(forward, backward), *inputs), *fault)


def test_values_stored_at_one_index_twice_are_named_in_a_function_of_torch():
    torch = pytest.importorskip("torch")

    class Rows(torch.autograd.Function):
        @staticmethod
        def forward(ctx, table, index):
            ctx.save_for_backward(index)
            ctx.shape = table.shape
            return table[index]

        @staticmethod
        def backward(ctx, dy):
            (index,) = ctx.saved_tensors
            dtable = torch.zeros(ctx.shape, dtype=dy.dtype)
            dtable[index] = dy
            return dtable, None

    report = hg.check(Rows, normal(4, 5), np.array([1, 2, 1, 3]))
    named(report, "term missing", "dtable[index] is overwritten where a sum belongs")
