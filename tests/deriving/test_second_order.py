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


def predators(y, rates):
    """Two stages of a Runge-Kutta method, whose rates read the state's elements several times."""

    def rhs(y):
        meetings = y[0] * y[1]
        return np.array([rates[0] * y[0] - rates[1] * meetings, rates[2] * meetings - y[1]])

    states = [y]
    for _ in range(4):
        k = rhs(states[-1])
        states.append(states[-1] + 0.1 * k + 0.2 * rhs(states[-1] + 0.3 * k))
    return np.asarray(states)


def transport(costs, a, b, eps=0.5, rounds=6):
    """Two potentials that rounds find from each other, where the largest term is taken out."""

    def log_sum(terms, axis):
        largest = terms.max(axis)
        shifted = terms - np.expand_dims(largest, axis)
        return largest + np.log(np.exp(shifted).sum(axis))

    f, g = np.zeros_like(a), np.zeros_like(b)
    for _ in range(rounds):
        f = -eps * log_sum((g[None] - costs) / eps + np.log(b)[None], 1)
        g = -0.9 * eps * log_sum((f[:, None] - costs) / eps + np.log(a)[:, None], 0)
    return (np.exp((f[:, None] + g[None] - costs) / eps) * costs).sum()


def assert_hvp_of_differences(derived, arrays, tolerance=1e-6):
    rng = np.random.default_rng(4)
    vectors = [rng.standard_normal(np.shape(a)) for a in arrays]
    dy = rng.standard_normal(np.shape(derived.forward(*arrays)[0]))
    steps = [[a + h * v for a, v in zip(arrays, vectors, strict=True)] for h in (1e-5, -1e-5)]
    ends = [derived.backward(dy, derived.forward(*at)[1]) for at in steps]
    for found, up, down in zip(derived.hvp(tuple(vectors), dy, *arrays), *ends, strict=True):
        np.testing.assert_allclose(found, (up - down) / 2e-5, rtol=tolerance, atol=tolerance)


def test_a_carried_value_is_read_before_its_next_takes_its_variable():
    """Also where what reads it is short, and written where it is used."""
    derived = hg.derive(predators, y=(2,), rates=(3,))
    assert_hvp_of_differences(derived, [np.array([1.0, 0.7]), np.array([0.9, 1.1, 0.6])])


def test_what_a_loop_hands_on_unchanged_is_no_array_of_its_own():
    derived = hg.derive(transport, costs=("N", "M"), a=("N",), b=("M",))
    rng = np.random.default_rng(5)
    arrays = [rng.random(shape) + 0.5 for shape in ((4, 3), (4,), (3,))]
    assert_hvp_of_differences(derived, arrays)


def test_a_hessian_runs_the_loop_of_the_forward_once():
    source = hg.derive(transport, costs=("N", "M"), a=("N",), b=("M",)).hvp_source
    assert source.count("for t in range(rounds)") == 2  # the forward, and the tangent's


def routed(x, w, experts):
    """Experts in a loop of loops, and a loss of how they are chosen beside the result."""
    shares = np.exp(x @ w)
    places = np.argsort(-shares, axis=1)[:, :2]
    gates = np.take_along_axis(shares, places, 1)
    y = np.zeros_like(x)
    for e in range(len(experts)):
        for j in range(2):
            y += np.where((places[:, j] == e)[:, None], gates[:, j : j + 1] * (x @ experts[e]), 0.0)
    return y, shares.mean(0)


def test_a_product_reads_no_cotangent_that_a_loop_carries_beside():
    derived = hg.derive(routed, x=("N", "D"), w=("D", "E"), experts=("E", "D", "D"))
    rng = np.random.default_rng(6)
    arrays = [rng.standard_normal(shape) for shape in ((5, 3), (3, 4), (4, 3, 3))]
    vectors = [rng.standard_normal(a.shape) for a in arrays]
    for k, found in enumerate(derived.jvp(tuple(vectors), *arrays)):
        wanted = along(lambda *given: routed(*given)[k], arrays, vectors)  # noqa: B023
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8)


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


def stopped(x):
    """A target that no gradient goes through, and one in each round of a loop."""
    y = x
    for _ in range(3):
        y = torch.sin(y * x) + y.detach() * x
    return (y - y.detach() ** 2) ** 2


def test_what_is_detached_is_constant_in_a_hessian():
    derived = hg.derive(stopped, torch.ones(3, 2))
    x, v, dy = np.random.default_rng(8).standard_normal((3, 3, 2))
    tensor = torch.tensor(x, requires_grad=True)
    first = torch.autograd.grad(stopped(tensor), tensor, torch.tensor(dy), create_graph=True)
    (wanted,) = torch.autograd.grad(first, tensor, torch.tensor(v))
    np.testing.assert_allclose(derived.hvp(v, dy, x), wanted, rtol=1e-10)


def test_a_wrong_hessian_is_refused_where_something_is_detached(monkeypatch):
    derived = hg.derive(stopped, torch.ones(3, 2))
    own = Second.function
    wrong = cached_property(lambda self: lambda *a: 1.01 * own.func(self)(*a))
    wrong.__set_name__(Second, "function")
    monkeypatch.setattr(Second, "function", wrong)
    with pytest.raises(hg.errors.ArgumentError, match="Hessian differs from differences"):
        derived.hvp(*np.ones((3, 3, 2)))


@pytest.mark.parametrize("name", ["jvp", "hvp"])
def test_a_wrong_product_is_refused(name, monkeypatch):
    derived = hg.derive(lambda x: np.tanh(x).sum(), x=("N",))
    written = Second.function.func
    wrong = cached_property(lambda self: lambda *given: 1.01 * written(self)(*given))
    monkeypatch.setattr(Second, "function", wrong)
    wrong.__set_name__(Second, "function")
    with pytest.raises(hg.errors.ArgumentError, match="the product with the"):
        getattr(derived, name)


def _rounds_in_rounds(x, w):
    h = np.zeros(x.shape[1])
    for t in range(len(x)):
        for k in range(len(w)):
            h = np.tanh(h * w[k] + x[t])
    return h


def test_loops_in_loops_carry_what_is_read_of_them():
    derived = hg.derive(_rounds_in_rounds, x=("T", "D"), w=("K", "D"))
    assert "dw" not in derived.jvp_source
    assert "dx_before" not in derived.hvp_source
    rng = np.random.default_rng(0)
    arrays, along = ([rng.standard_normal(s) for s in ((4, 3), (5, 3))] for _ in range(2))
    ahead, behind = ([a + h * b for a, b in zip(arrays, along, strict=True)] for h in (1e-6, -1e-6))
    change = (_rounds_in_rounds(*ahead) - _rounds_in_rounds(*behind)) / 2e-6
    np.testing.assert_allclose(derived.jvp(tuple(along), *arrays), change, atol=1e-8)
    dy = rng.standard_normal(3)
    one, two = (derived.backward(dy, derived.forward(*each)[1]) for each in (ahead, behind))
    for found, up, down in zip(derived.hvp(tuple(along), dy, *arrays), one, two, strict=True):
        np.testing.assert_allclose(found, (up - down) / 2e-6, atol=1e-8)
