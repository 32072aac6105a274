"""Derivatives of derivatives beside PyTorch's double backward, loops included."""

from functools import cached_property

import numpy as np
import pytest

import handgrad as hg
from handgrad.deriving.second import Second

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


def along(function, arrays, vectors, h=1e-6):
    """Differences of a function along vectors."""
    ends = [
        function(*(a + step * v for a, v in zip(arrays, vectors, strict=True))) for step in (h, -h)
    ]
    return (ends[0] - ends[1]) / (2 * h)


def assert_jvp_of_differences(function, shapes, arrays):
    derived = hg.derive(function, **shapes)
    rng = np.random.default_rng(7)
    vectors = [rng.standard_normal(np.shape(a)) for a in arrays]
    found = derived.jvp(tuple(vectors) if len(vectors) > 1 else vectors[0], *arrays)
    np.testing.assert_allclose(found, along(function, arrays, vectors), rtol=1e-6, atol=1e-8)


def posterior(x, y, xs, ls, var):
    def kernel(a, b):
        sq = np.add.outer((a**2).sum(1), (b**2).sum(1)) - 2 * a @ b.T
        return var**2 * np.exp(-0.5 * sq / ls**2)

    chol = np.linalg.cholesky(kernel(x, x) + 1.1 * np.identity(len(x)))
    alpha = np.linalg.solve(chol.T, np.linalg.solve(chol, y))
    return kernel(x, xs).T @ alpha


def test_a_square_array_is_not_its_transpose_where_that_is_near():
    """Far points have a kernel that is the identity but for few digits."""
    rng = np.random.default_rng(1)
    shapes = {"x": ("N", "D"), "y": ("N",), "xs": ("M", "D"), "ls": (), "var": ()}
    arrays = [rng.standard_normal(shape) for shape in ((4, 2), (4,), (3, 2))]
    assert_jvp_of_differences(posterior, shapes, [*arrays, np.array(1.5), np.array(0.8)])


def distances(x):
    i, j = np.triu_indices(len(x), 1)
    d = np.linalg.norm(x[i] - x[j], axis=1)
    return d / d.mean()


def test_what_a_mask_selects_is_counted():
    x = np.random.default_rng(2).standard_normal((5, 3))
    assert_jvp_of_differences(distances, {"x": ("N", "D")}, [x])


def scaled(x):
    largest = np.abs(x).max()
    return np.tanh(x) if largest < 1e6 else x / largest


def test_a_branch_on_values_is_guarded():
    derived = hg.derive(scaled, x=("N",))
    x, v = np.random.default_rng(2).standard_normal((2, 4))
    np.testing.assert_allclose(derived.jvp(v, x), along(scaled, [x], [v]), rtol=1e-6)
    with pytest.raises(ValueError, match="allowed: True"):
        derived.jvp(v, 1e7 * x)


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


def nearest(x, codes):
    """Distances to the nearest codes, whose places are integers that the backward is given."""
    d = ((x[:, None] - codes) ** 2).sum(-1)
    places = d.argmin(1)
    return np.log(d[np.arange(len(x)), places]), codes[places]


def test_a_derived_backward_is_tried_on_what_its_forward_keeps():
    first = hg.derive(nearest, x=("N", "D"), codes=("K", "D"))
    second = hg.derive(first.backward)
    rng = np.random.default_rng(4)
    y, cache = first.forward(rng.standard_normal((4, 3)), rng.standard_normal((5, 3)))
    dy, other = ([rng.standard_normal(each.shape) for each in y] for _ in range(2))
    found, again = second.forward(tuple(dy), cache)
    cotangents = tuple(rng.standard_normal(each.shape) for each in found)
    moved = first.backward(tuple(other), cache)  # which is linear in dy
    wanted = sum(np.vdot(c, each) for c, each in zip(cotangents, moved, strict=True))
    pulled = second.backward(cotangents, again)[:2]
    np.testing.assert_allclose(sum(map(np.vdot, pulled, other)), wanted)


def apart(a, b):
    """The distance of each point to the nearest one of the others, both ways."""
    d = ((a[:, None] - b) ** 2).sum(-1)
    return d.min(0).mean() + d.min(1).mean()


def aligned(d):
    """The least cost of a path, of which each step takes the least of three."""
    r = np.zeros_like(d)
    r[0] = np.cumsum(d[0])
    for i in range(1, d.shape[0]):
        above = np.minimum(r[i - 1], np.roll(r[i - 1], 1))
        r[i] = np.exp(-d[i]) + above.min(keepdims=True) * above
    return r[-1].sum()


@pytest.mark.parametrize(
    ("function", "shapes"), [(apart, {"a": (4, 3), "b": (5, 3)}), (aligned, {"d": (4, 5)})]
)
def test_what_a_forward_keeps_is_compared_as_it_was(function, shapes):
    """Apart from each other a minimum and the values it is one of have no ties."""
    letters = {"a": ("N", "D"), "b": ("M", "D"), "d": ("N", "M")}
    first = hg.derive(function, **{name: letters[name] for name in shapes})
    second = hg.derive(first.backward)
    rng = np.random.default_rng(5)
    arrays = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    _, cache = first.forward(**arrays)
    found, again = second.forward(np.float64(1.0), cache)
    several = found if isinstance(found, tuple) else (found,)
    vectors = tuple(rng.standard_normal(each.shape) for each in several)
    ddy, *_ = second.backward(vectors if len(several) > 1 else vectors[0], again)
    np.testing.assert_allclose(ddy, sum(map(np.vdot, vectors, several)))


def films(n, d):
    """Products of complex matrices, of which some elements are real."""
    m = np.eye(2, dtype=complex)
    for k in range(len(d)):
        c, s = np.cos(n[k] * d[k]), np.sin(n[k] * d[k])
        m = m @ np.array([[c, 1j * s / n[k]], [1j * n[k] * s, c]])
    return np.abs(m) ** 2


def test_complex_values_are_put_among_real_ones():
    arrays = [np.random.default_rng(3).random(4) + 0.5 for _ in range(2)]
    assert_jvp_of_differences(films, {"n": ("N",), "d": ("N",)}, arrays)


@pytest.mark.parametrize("name", ["jvp", "hvp"])
def test_a_wrong_product_is_refused(name, monkeypatch):
    derived = hg.derive(lambda x: np.tanh(x).sum(), x=("N",))
    written = Second.function.func
    wrong = cached_property(lambda self: lambda *given: 1.01 * written(self)(*given))
    monkeypatch.setattr(Second, "function", wrong)
    wrong.__set_name__(Second, "function")
    with pytest.raises(hg.errors.ArgumentError, match="the product with the"):
        getattr(derived, name)
