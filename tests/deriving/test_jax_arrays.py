"""Forwards on JAX's arrays: the derived gradients against JAX's own."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import handgrad as hg
from handgrad.deriving import modules
from tests.rows import rows

jax = pytest.importorskip("jax")
jnp, jnn, lax = jax.numpy, jax.nn, jax.lax

N, S = ("N", "D"), ("D", "D")
RNG = np.random.default_rng(5)


def assert_equal_to_jax(function, shapes, arrays, tolerance=1e-8):
    derived = hg.derive(function, *shapes)
    floats = [k for k, x in enumerate(arrays) if x.dtype.kind == "f"]
    with jax.enable_x64(True):
        given = [jnp.asarray(x) for x in arrays]

        def of_floats(*values):
            full = list(given)
            for k, value in zip(floats, values, strict=True):
                full[k] = value
            return function(*full)

        y, pulled_back = jax.vjp(of_floats, *(given[k] for k in floats))
        results, tree = jax.tree.flatten(y)
        dys = [RNG.standard_normal(each.shape) for each in results]
        wanted = pulled_back(jax.tree.unflatten(tree, [jnp.asarray(dy) for dy in dys]))
    found, cache = derived.forward(*arrays)
    found = found if isinstance(found, tuple) else (found,)
    for one, other in zip(found, results, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
    gradients = derived.backward(tuple(dys) if len(dys) > 1 else dys[0], cache)
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    for one, other in zip(gradients, wanted, strict=True):
        assert np.shape(one) == other.shape
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def added(x, y):
    total = x
    total += jnp.sin(y)
    return total * x


def written(x):
    y = jnp.zeros_like(x).at[0].set(x[1]).at[1].add(x[0] * 2)
    return y.at[2].multiply(x[0]).at[:, 1].max(x[:, 0])


def without_batches(x, w):
    return lax.dot_general(x, w, (((1,), (0,)), ((), ())))


def with_batches(x, w):
    one, other = x[:, None, :], jnp.stack([w] * 3)[: x.shape[0]]
    return jnp.einsum("nij,nj->ni", one, x) + other.sum() * 0.1


ONE = {
    "functions": lambda x: jnp.tanh(x) * jnp.exp(-jnp.square(x)) + jnp.arctan2(x, x * x + 1),
    "activations": lambda x: jnn.silu(x) + jnn.gelu(x) * jnn.sigmoid(x) + jnn.softplus(x),
    "exact gelu": lambda x: jnn.gelu(x, approximate=False) + jnn.elu(x) + jnn.leaky_relu(x, 0.2),
    "softmax": lambda x: (
        jnn.softmax(x) + jnn.log_softmax(x, axis=0) * jnn.logsumexp(x, -1)[:, None]
    ),
    "scipy": lambda x: jax.scipy.special.erf(x) + jax.scipy.special.logsumexp(x, axis=0),
    "standardized": lambda x: jnn.standardize(x, axis=-1) * x.mean(0) + x.std(),
    "at": written,
    "stopped": lambda x: jnp.exp(x - lax.stop_gradient(x.max(-1, keepdims=True))) * x,
    "jit": jax.jit(lambda x: jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.1 * x)),
    "rows": lambda x: jax.vmap(lambda row: jnp.outer(row, row).sum(0) / jnp.sum(row**2))(x),
    "columns": lambda x: jax.vmap(jnp.cumsum, in_axes=1, out_axes=1)(x),
    "map": lambda x: lax.map(lambda row: jnp.sin(row) * row.sum(), x),
    "rounds": lambda x: lax.fori_loop(0, 3, lambda i, h: h + jnp.sin(h) * x / (i + 1), x),
    "sums so far": lambda x: lax.associative_scan(jnp.add, x) + lax.cumsum(x, axis=1),
    "branch": lambda x: lax.cond(x.sum() > 0, lambda y: y * 2, lambda y: jnp.sin(y), x),
    "slices": lambda x: lax.dynamic_slice_in_dim(x, 1, 2, axis=0) * lax.slice_in_dim(x, 0, 2),
    "updates": lambda x: lax.dynamic_update_slice(x * x, x[:1] + 1, (1, 0)),
    "all of a sum": lambda x: -(x * jnn.log_softmax(x)).sum(-1, where=None),
    "sum of exponentials": lambda x: jnn.logsumexp(x, -1, where=x > 0),
    "best": lambda x: lax.top_k(x, 2)[0].sum(-1) + lax.clamp(-0.5, x, 0.5)[:, 0],
    "windows": lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "VALID"),
    "tree": lambda x: jax.tree.map(lambda a: a * 2, {"x": x, "y": x**2})["y"],
    "precision": lambda x: jnp.matmul(x, x.T, precision="highest") + lax.rsqrt(x @ x.T + 50.0),
}
TWO = {
    "rebound": added,
    "dot_general": without_batches,
    "einsum": with_batches,
    "shared": lambda x, w: jax.vmap(jnp.dot, in_axes=(None, 0))(w, x),
    "pairs": lambda x, w: jax.vmap(
        lambda a: jax.vmap(lambda b: jnp.exp(-jnp.sum((a - b) ** 2)))(w)
    )(x),
}


@rows("name", ONE)
def test_a_function_of_one_array(name):
    assert_equal_to_jax(ONE[name], [N], [RNG.standard_normal((4, 3))])


@rows("name", TWO)
def test_a_function_of_two_arrays(name):
    second = N if name == "rebound" else S
    arrays = [RNG.standard_normal((3, 3)), RNG.standard_normal((3, 3))]
    assert_equal_to_jax(TWO[name], [N, second], arrays)


def attention(q, k, v):
    scores = jnp.einsum("bthd,bshd->bhts", q, k) / jnp.sqrt(q.shape[-1])
    mask = jnp.tril(jnp.ones((q.shape[1], k.shape[1]), dtype=bool))
    scores = jnp.where(mask[None, None], scores, -jnp.inf)
    return jnp.einsum("bhts,bshd->bthd", jnn.softmax(scores, axis=-1), v)


def gated(x, h0, w, u, b):
    def step(h, x_t):
        z = jnn.sigmoid(x_t @ w[0] + h @ u[0] + b[0])
        r = jnn.sigmoid(x_t @ w[1] + h @ u[1] + b[1])
        n = jnp.tanh(x_t @ w[2] + r * (h @ u[2]) + b[2])
        h = (1 - z) * n + z * h
        return h, h

    last, states = lax.scan(step, h0, x)
    return states, last


def from_the_end(x, w):
    def step(carry, x_t):
        carry = {"h": jnp.tanh(carry["h"] @ w + x_t), "n": carry["n"] + 1.0}
        return carry, (carry["h"] * 2, x_t)

    carry, (states, _) = lax.scan(step, {"h": jnp.zeros(w.shape[0]), "n": 0.0}, x, reverse=True)
    return states + carry["h"]


def linear_attention(q, k, v):
    def step(state, given):
        q_t, k_t, v_t = given
        state = state + jnp.outer(k_t, v_t)
        return state, q_t @ state

    return lax.scan(step, jnp.zeros((q.shape[1], v.shape[1])), (q, k, v))[1]


def partition(scores, transitions):
    def step(alpha, score):
        return jnn.logsumexp(alpha[:, None] + transitions, axis=0) + score, None

    return jnn.logsumexp(lax.scan(step, scores[0], scores[1:])[0])


def quantized(z, codes):
    distances = jnp.sum(z**2, 1, keepdims=True) - 2 * z @ codes.T + jnp.sum(codes**2, 1)
    q = codes[jnp.argmin(distances, 1)]
    return z + lax.stop_gradient(q - z), jnp.mean((lax.stop_gradient(z) - q) ** 2)


def gaussian_process(x, y, length):
    k = jnp.exp(-0.5 * (x[:, None] - x[None]) ** 2 / length**2) + 0.1 * jnp.eye(x.shape[0])
    root = jnp.linalg.cholesky(k)
    a = jax.scipy.linalg.solve_triangular(root, y, lower=True)
    return 0.5 * jnp.sum(a**2) + jnp.sum(jnp.log(jnp.diagonal(root)))


def convolved(x, w):
    layout = ("NHWC", "HWIO", "NHWC")
    return jnn.gelu(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=layout))


@partial(jax.jit, static_argnums=1)
def power(x, n):
    return x**n


PUBLISHED = (
    (attention, [("B", "T", "H", "D")] * 3, [(2, 4, 2, 3)] * 3),
    (
        gated,
        [("T", "N", "D"), ("N", "H"), (3, "D", "H"), (3, "H", "H"), (3, "H")],
        [(4, 2, 3), (2, 5), (3, 3, 5), (3, 5, 5), (3, 5)],
    ),
    (from_the_end, [("T", "H"), ("H", "H")], [(4, 3), (3, 3)]),
    (linear_attention, [("T", "D"), ("T", "D"), ("T", "V")], [(5, 3), (5, 3), (5, 2)]),
    (partition, [("T", "K"), ("K", "K")], [(5, 3), (3, 3)]),
    (quantized, [N, ("K", "D")], [(5, 3), (4, 3)]),
    (gaussian_process, [("N",), ("N",), ()], [(5,), (5,), ()]),
    (convolved, [("N", "H", "W", 2), (3, 3, 2, 4)], [(2, 5, 6, 2), (3, 3, 2, 4)]),
    (lambda x: power(x, 3), [N], [(4, 3)]),
)


@rows(("function", "shapes", "sizes"), PUBLISHED)
def test_a_published_forward(function, shapes, sizes):
    arrays = [np.asarray(RNG.standard_normal(each)) for each in sizes]
    assert_equal_to_jax(function, shapes, arrays, 1e-6)


@partial(jnp.vectorize, signature="(n),(m,n)->(m)")
def applied(x, w):
    return jnp.tanh(w @ x)


over_rows = jax.vmap(lambda x, w: jnp.tanh(x @ w), in_axes=(0, None))


def between(x, y):
    dot = jnp.vectorize(lambda a, b: a @ jnp.sin(b), signature="(n),(n)->()")
    return dot(x[:, None], y) * jnp.vectorize(lambda a: a * a)(y[:, 0])


def rotated(decay, angle, x):
    turn = jnp.exp(-jnp.exp(decay) + 1j * angle)

    def step(h, x_t):
        h = turn * h + x_t
        return h, h

    return lax.scan(step, jnp.zeros_like(turn), x)[1].real


MAPPED = [
    (applied, [("N", "D"), ("M", "D")], [(4, 3), (2, 3)]),
    (over_rows, [("N", "D"), ("D", "M")], [(4, 3), (3, 2)]),
    (between, [("N", "D"), ("M", "D")], [(4, 3), (2, 3)]),
    (rotated, [("D",), ("D",), ("T", "D")], [(3,), (3,), (5, 3)]),
]


@rows(("function", "shapes", "sizes"), MAPPED)
def test_functions_that_jax_has_mapped_and_complex_scans(function, shapes, sizes):
    arrays = [np.asarray(RNG.standard_normal(each)) for each in sizes]
    assert_equal_to_jax(function, shapes, arrays, 1e-7)


def cross_entropy(logits, labels):
    chosen = jnp.take_along_axis(jnn.log_softmax(logits), labels[:, None], axis=-1)
    return -jnp.mean(chosen) + jnp.mean(jnn.one_hot(labels, logits.shape[1]) * logits)


def test_labels_are_integers():
    arrays = [RNG.standard_normal((5, 4)), RNG.integers(0, 4, 5)]
    assert_equal_to_jax(cross_entropy, [("N", "C"), ("N", int)], arrays)


def test_arrays_of_jax_are_examples():
    derived = hg.derive(lambda x: x.at[0].set(2.0) * x, jnp.ones((3, 2)))
    x = RNG.standard_normal((3, 2))
    y, cache = derived.forward(x)
    changed = x.copy()
    changed[0] = 2
    np.testing.assert_allclose(y, changed * x)
    dx = derived.backward(np.ones_like(x) * x, cache)
    np.testing.assert_allclose(dx, np.where(np.arange(3)[:, None] == 0, 2 * x, 2 * x * x))


@jax.custom_vjp
def straight_through(x):
    return jnp.round(x)


straight_through.defvjp(lambda x: (jnp.round(x), None), lambda _, dy: (dy,))


@jax.custom_vjp
def length(x):
    return jnp.sqrt(jnp.sum(x * x) + 1e-6)


length.defvjp(lambda x: (length(x), x), lambda x, dy: (dy * x / length(x),))


@jax.custom_jvp
def softplus(x):
    return jnp.logaddexp(x, 0.0)


softplus.defjvps(lambda change, y, x: jnn.sigmoid(x) * change)


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def raised(x, power):
    return x**power


raised.defvjp(lambda x, k: (x**k, x), lambda k, x, dy: (dy * k * x ** (k - 1),))


@rows(
    "function",
    [lambda x: length(x) * x, lambda x: softplus(x).sum(), lambda x: 2 * raised(x, 3)],
)
def test_a_gradient_of_its_own_that_is_the_right_one(function):
    assert_equal_to_jax(function, [N], [RNG.standard_normal((3, 4))])


def test_a_gradient_of_its_own_that_is_another_is_refused():
    said = "straight_through is a custom_vjp with a gradient of its own"
    with pytest.raises(hg.errors.ArgumentError, match=rf"line \d+: .*{said}"):
        hg.derive(lambda x: straight_through(x) * x, x=N)


def test_a_source_for_jax_is_run_in_double_precision_as_well(monkeypatch):
    """The precision of JAX itself is as it was."""
    seen = []
    own = modules._compare
    monkeypatch.setattr(
        modules, "_compare", lambda *a: seen.append((a[-1], jax.config.jax_enable_x64)) or own(*a)
    )
    before = jax.config.jax_enable_x64
    hg.derive(lambda x: jnp.tanh(x) * x, x=N).to("jax")
    assert set(seen) == {("float64", True), ("float32", False)}
    assert jax.config.jax_enable_x64 == before


@rows(
    ("function", "said"),
    [
        (lambda x: x + jax.random.normal(jax.random.key(0), x.shape), "random numbers are drawn"),
        (lambda x: jax.grad(lambda y: jnp.sum(y**3))(x), "jax.grad is not known to derive"),
    ],
)
def test_what_is_not_known_is_refused_with_its_line(function, said):
    with pytest.raises(hg.errors.ArgumentError, match=rf"line \d+: {said}"):
        hg.derive(function, x=N)
