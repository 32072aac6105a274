"""Nothing that `hg.derive` gives is wrong in silence: it is right elsewhere, too, or refused."""

import numpy as np
import pytest

import handgrad as hg

N = ("N",)


def _power(x, p=2.0):
    return (x**p).sum()


def _rounds(x, n=2):
    for _ in range(n):
        x = np.tanh(x) / n
    return x


def _same_by_chance(x, p=2.0):
    return (x * p) ** 2 + p


def _scaled(x, scale=3.0, low=-np.inf):
    return np.maximum(x, low) * scale


@pytest.mark.parametrize(
    ("function", "others"),
    [(_power, {"p": 3.0}), (_rounds, {"n": 3}), (_same_by_chance, {"p": 3.0})],
)
def test_emitted_code_refuses_settings_that_it_is_not_right_for(function, others):
    derived = hg.derive(function, x=N)
    x = np.array([3.0, -1.0])
    np.testing.assert_array_equal(derived.forward(x)[0], function(x))
    ((name, value),) = others.items()
    with pytest.raises(ValueError, match=f"{name} is {value}; allowed: 2"):
        derived.forward(x, **others)


def test_setting_that_code_is_right_for_stays_free():
    derived = hg.derive(_scaled, x=N)
    _, cache = derived.forward(np.ones(2), scale=5.0)
    np.testing.assert_array_equal(derived.backward(np.ones(2), cache), [5.0, 5.0])


def _running_sum(x):
    total = x[0]
    for t in range(1, x.shape[0]):
        total = np.tanh(total + t * x[t])
    return total


def test_emitted_code_refuses_lengths_that_it_is_not_right_for():
    derived = hg.derive(_running_sum, x=("T", "D"))
    length = derived.fixed["T"]
    derived.forward(np.ones((length, 2)))
    with pytest.raises(ValueError, match=rf"x.shape\[0\] is {length + 1}; allowed: {length}"):
        derived.forward(np.ones((length + 1, 2)))


def _shorter(x, w):
    n = min(x.shape[0], w.shape[0])
    return x[:n] * w[:n]


def test_what_is_wrong_at_other_sizes_is_refused():
    with pytest.raises(hg.errors.ArgumentError, match=r"derive: .*sizes.*; allowed: "):
        hg.derive(_shorter, x=("N", "D"), w=("M", "D"))
