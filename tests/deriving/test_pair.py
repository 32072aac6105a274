"""A pair of functions: what is kept, where lengths are read off, and what is refused."""

import numpy as np
import pytest

import handgrad as hg
from handgrad.deriving.defined import unmade
from handgrad.deriving.letters import letters_from
from handgrad.program.sizes import Size


def test_lengths_are_read_off_axes():
    n, d, g = map(Size.of, "NDG")
    arrays = [("x", (n, d * 2 + 1)), ("w", (g * d, n))]
    found = letters_from(arrays, ["N", "D", "G"])
    assert found == {"N": "x.shape[0]", "D": "(x.shape[1] - 1) // 2", "G": "w.shape[0] // D"}


def test_names_that_a_source_reads_before_they_are_made():
    source = """
import numpy as np
table = np.ones(3)
def helper(x, axis=-1):
    with np.errstate(all="ignore"):
        y = x / table
    return y.sum(axis)
def forward(x, *rest, scale):
    if len(rest) > n:
        raise ValueError(f"n is {m}")
    early = late + 1
    late = [helper(part) for part in x]
    for t in range(3):
        late = late + t + scale
    total += late
    return np.where(early, late, (lambda z: z)(total))
class Pair:
    @staticmethod
    def forward(ctx, x):
        y, ctx.cache = forward(x)
        return backward(y)
"""
    assert unmade(source) == ["n", "m", "late", "total", "backward"]


def _transposed(x, w):
    return np.tanh(x @ w.T) * np.sqrt(w.shape[1])


def test_views_and_numbers_are_found_again_and_not_kept():
    derived = hg.derive(_transposed, x=("N", "D"), w=("K", "D"))
    assert all("sqrt" not in name and "transpose" not in name for name in derived.cache)
    assert {"x", "w"} < set(derived.cache)


def _halves(x):
    a, b = np.split(x, 2, axis=-1)
    return a * b


def test_axes_that_are_expressions_are_asked_for():
    derived = hg.derive(_halves, x=("N", "2 * D"))
    x = np.arange(6.0).reshape(1, 6)
    np.testing.assert_array_equal(derived.forward(x)[0], _halves(x))
    with pytest.raises(ValueError, match=r"x.shape\[1\] is 5; allowed: 2 \* D"):
        derived.forward(np.ones((1, 5)))


def _causal(x, causal=True, kind="tanh", scale=2.0):
    y = np.tanh(x) if kind == "tanh" else np.sin(x)
    return np.tril(y) * scale if causal else y


@pytest.mark.parametrize(
    ("setting", "said"),
    [({"causal": False}, "causal is False; allowed: True"), ({"kind": "sin"}, "kind is sin; ")],
)
def test_settings_that_are_no_numbers_are_asked_for(setting, said):
    derived = hg.derive(_causal, x=("N", "N"))
    np.testing.assert_array_equal(derived.forward(np.ones((2, 2)), scale=3.0)[0][0, 1], 0.0)
    with pytest.raises(ValueError, match=said):
        derived.forward(np.ones((2, 2)), **setting)


def _keywords(x, /, w, *more, scale, **named):
    return x @ w * scale + more[0] * named["b"]


def test_every_kind_of_parameter():
    rng = np.random.default_rng(0)
    x, w, m, b = rng.random((2, 3)), rng.random((3, 4)), rng.random(4), rng.random(4)
    derived = hg.derive(_keywords, x, w, m, scale=2.0, b=b)
    y, cache = derived.forward(x, w, m, scale=3.0, b=b)
    np.testing.assert_allclose(y, _keywords(x, w, m, scale=3.0, b=b))
    dy = rng.random((2, 4))
    dx, dw, dm, db = derived.backward(dy, cache)
    np.testing.assert_allclose(dx, 3 * dy @ w.T)
    np.testing.assert_allclose(dw, 3 * x.T @ dy)
    np.testing.assert_allclose(dm, (dy * b).sum(0))
    np.testing.assert_allclose(db, (dy * m).sum(0))


def _two(x, w):
    y = np.tanh(x @ w)
    return y, y.sum(0)


def test_cotangents_of_several_results_come_as_a_tuple():
    derived = hg.derive(_two, x=("N", "D"), w=("D", "K"))
    rng = np.random.default_rng(0)
    x, w = rng.random((2, 3)), rng.random((3, 4))
    (y, _), cache = derived.forward(x, w)
    dy, dz = rng.random((2, 4)), rng.random(4)
    dx, _ = derived.backward((dy, dz), cache)
    np.testing.assert_allclose(dx, ((dy + dz) * (1 - y * y)) @ w.T)


def test_arrays_from_elsewhere_have_one_name_in_both_functions():
    """The backward meets them in another order than the forward."""
    first, second = np.array([0, 1, 2]), np.array([2, 0, 0])

    def forward(x):
        return np.tanh(x[first] - 2 * x[second])

    rng = np.random.default_rng(3)
    x, dy = rng.standard_normal(3), rng.standard_normal(3)
    d = hg.derive(forward, x=(3,))
    slope = dy * (1 - np.tanh(x[first] - 2 * x[second]) ** 2)
    expected = np.zeros(3)
    np.add.at(expected, first, slope)
    np.add.at(expected, second, -2 * slope)
    np.testing.assert_allclose(d.backward(dy, d.forward(x)[1]), expected, rtol=1e-12)
