"""`hg.derive(d.backward)` where what a forward keeps is compared, selected or of one sign."""

import numpy as np
import pytest

import handgrad as hg

RNG = np.random.default_rng(7)


def top(x, w, values):
    """The largest scores put in their places among zeros, which a load counts."""
    scores = x @ w
    places = np.argsort(-scores, axis=-1)[:, :2]
    chosen = np.take_along_axis(scores, places, -1)
    gates = np.zeros_like(scores)
    np.put_along_axis(gates, places, np.exp(chosen - chosen.max(-1, keepdims=True)), axis=-1)
    return gates @ values, ((gates > 0).mean(0) * scores.mean(0)).sum()


def clipped(log_ratio, advantage, low=0.8, high=1.2):
    """The smaller of a product and the same where a factor is clipped: equal inside of the clip."""
    ratio = np.exp(log_ratio)
    return np.minimum(ratio * advantage, np.clip(ratio, low, high) * advantage).mean()


def paired(x, scale):
    """Pairs of points, as many as a mask of the number of points has."""
    first, second = np.triu_indices(len(x), k=1)
    d2 = ((x[first] - x[second]) ** 2).sum(-1)
    return (scale / d2).sum()


def odds(log_p):
    """Logarithms of probabilities, which are never above 0."""
    return (log_p - np.log1p(-np.exp(log_p))).sum()


@pytest.mark.parametrize(
    ("function", "arrays"),
    [
        (top, [RNG.standard_normal(s) for s in ((4, 3), (3, 5), (5, 2))]),
        (clipped, [RNG.standard_normal((3, 4)) / 3, RNG.standard_normal((3, 1))]),
        (paired, [RNG.standard_normal((5, 3)), np.array(0.7)]),
        (odds, [-RNG.random((4, 3)) - 0.1]),
    ],
)
def test_a_derived_backward_is_derived(function, arrays):
    first = hg.derive(function, *arrays)
    second = hg.derive(first.backward)
    y, cache = first.forward(*arrays)
    dys = [RNG.standard_normal(np.shape(each)) for each in (y if isinstance(y, tuple) else (y,))]
    found, again = second.forward(tuple(dys) if len(dys) > 1 else dys[0], cache)
    several = found if isinstance(found, tuple) else (found,)
    vectors = tuple(RNG.standard_normal(np.shape(each)) for each in several)
    pulled = second.backward(vectors if len(several) > 1 else vectors[0], again)
    # A backward is linear in dy: its gradient there, times dy, is itself.
    wanted = sum(map(np.vdot, vectors, several))
    np.testing.assert_allclose(sum(map(np.vdot, pulled, dys)), wanted)


def _embedded(x, t, w):
    """What is kept has two columns for each of half as many frequencies."""
    turned = t[:, None] * np.exp(-np.arange(w.shape[0] // 2))[None]
    return np.tanh(x + np.hstack((np.sin(turned), np.cos(turned))) @ w)


def test_a_length_that_the_cache_does_not_tell_is_not_asked_for():
    derived = hg.derive(_embedded, x=("N", "D"), t=("N",), w=("C", "D"), wrt=["x", "w"])
    assert "def backward" in hg.derive(derived.backward).backward_source
