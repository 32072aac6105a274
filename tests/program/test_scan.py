"""Loops for JAX: one round is compiled where the counter only tells places in arrays."""

import numpy as np
import pytest

import handgrad as hg
from handgrad.program.emit import Emitter
from handgrad.program.libraries import JAX
from handgrad.program.loops import looped
from handgrad.program.node import Loop, Node, Program, World, build, within
from handgrad.program.sizes import Size


def carried(x, w):
    h = np.zeros((x.shape[0], w.shape[0]))
    hs = []
    for t in range(x.shape[1]):
        h = np.tanh(x[:, t] + h @ w)
        hs.append(h)
    return np.stack(hs, axis=1)


def backwards(x, w):
    after = np.zeros(x.shape[2])
    kept = []
    for t in reversed(range(x.shape[1])):
        kept.insert(0, after)
        after = 0.5 * np.sin(after + x[:, t].sum(axis=0)) @ w
    return np.stack(kept) * after


def stored(x, w):
    y = np.zeros(x.shape)
    total = 0.0
    for t in range(x.shape[1]):
        y[:, t] = np.exp(-x[:, t]) @ w
        total = total + (y[:, t] ** 2).sum()
    return y, total


def read_again(x, w):
    y = np.zeros((x.shape[1] + 1, x.shape[0], x.shape[2]))
    for t in range(x.shape[1]):
        y[t + 1] = np.tanh(y[t] @ w + x[:, t])
    return y


def nested(x, w):
    h = np.zeros(x.shape[2])
    for t in range(x.shape[1]):
        for n in range(x.shape[0]):
            h = np.tanh(h @ w + x[n, t])
    return h


def in_turn(x, w):
    a, b = x[:, 0], x[:, 0] * 2
    for x_t in x.swapaxes(0, 1):
        a, b = b @ w, np.sin(a) + x_t
    return a - b


SHAPES = {"x": ("N", "T", "D"), "w": ("D", "D")}
FORWARDS = (carried, backwards, stored, read_again, nested, in_turn)


@pytest.fixture(scope="module", params=FORWARDS, ids=lambda forward: forward.__name__)
def derived(request):
    return hg.derive(request.param, **SHAPES)


def arrays(steps, dtype):
    rng = np.random.default_rng(steps)
    return [rng.normal(size=shape).astype(dtype) for shape in ((3, steps, 4), (4, 4))]


def for_jax(derived):
    names = {"__name__": "derived"}
    exec(compile(derived.to("jax"), "<derived>", "exec"), names)
    return names["forward"], names["backward"]


def cotangent(jax, y):
    rng = np.random.default_rng(5)
    return jax.tree.map(lambda each: rng.normal(size=np.shape(each)).astype(each.dtype), y)


def test_both_ways_are_scans(derived):
    source = derived.to("jax")
    assert source.count("jax.lax.scan(") >= 2
    assert "for " not in source


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_are_those_of_the_loops(derived, dtype):
    jax = pytest.importorskip("jax")
    with jax.enable_x64(dtype == np.float64):
        forward, backward = for_jax(derived)
        x, w = arrays(5, dtype)
        y, cache = derived.forward(x, w)
        found, kept = forward(jax.numpy.asarray(x), jax.numpy.asarray(w))
        dy = cotangent(jax, y)
        pairs = [(found, y), (backward(jax.tree.map(jax.numpy.asarray, dy), kept), None)]
        pairs[1] = pairs[1][0], derived.backward(dy, cache)
    near = 1e-5 if dtype == np.float32 else 1e-12
    for got, right in pairs:
        for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(right), strict=True):
            assert one.dtype == dtype
            np.testing.assert_allclose(one, other, near, near)


def test_more_rounds_are_no_more_code(derived):
    jax = pytest.importorskip("jax")
    forward, backward = for_jax(derived)

    def both(x, w):
        y, cache = forward(x, w)
        return backward(jax.tree.map(jax.numpy.sin, y), cache)

    counts = {
        str(jax.make_jaxpr(both)(*arrays(steps, np.float32))).count(" = ") for steps in (4, 40)
    }
    assert len(counts) == 1


def blocks(x):
    total = 0.0
    for i in range(0, x.shape[0], 2):
        total = total + np.tanh(x[i : i + 2].sum())
    return total


def weighted(x):
    total = 0.0
    for i in range(x.shape[0]):
        total = total + np.sin(x[i].sum()) / (i + 1)
    return total


@pytest.mark.parametrize("reverse", [False, True])
def test_rounds_of_a_number_are_stacked_at_the_end(reverse):
    x = np.random.default_rng(2).normal(size=(2, 12))
    t = Size.of("t0")
    with within(World()) as world:
        world.lengths["t0"] = 2
        outer, inner = (
            Node("input", (), {}, (Size.of(2), Size.of(12)), "f", x, "x") for _ in range(2)
        )
        part = build("getitem", inner, index=(slice(None), slice(4 * t, 4 * t + 4)))
        body = Program([inner], [build("sin", part)])
        (parts,) = looped(Loop(body, "t0", Size.of(3), 1, 0, reverse), [outer])
        emitter = Emitter(JAX, ["x"])
        emitter.name(outer, "x")
        emitter.program(Program([outer], [parts]))
    source = "\n".join(["def of(x):", *emitter.lines, f"    return {emitter.text(parts)}"])
    names = {"jnp": np}
    exec(source, names)
    assert "for " in source
    assert ".at[" not in source
    np.testing.assert_array_equal(names["of"](x), np.sin(x).reshape(2, 3, 4).swapaxes(0, 1))


@pytest.mark.parametrize("forward", [blocks, weighted])
def test_a_counter_that_has_to_be_a_number_leaves_the_loop(forward):
    source = hg.derive(forward, x=("2 * N", "D")).to("jax")
    assert "for " in source
    assert "scan" not in source
