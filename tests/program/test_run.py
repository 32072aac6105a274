"""The interpreter: programs on other values and at other lengths, loops both ways."""

import numpy as np
import pytest

from handgrad.program import primitives  # noqa: F401 (fills the tables)
from handgrad.program.loop_records import looped
from handgrad.program.node import Loop, Node, Program, World, build, within
from handgrad.program.run import run
from handgrad.program.sizes import Size

N, D = map(Size.of, "ND")


@pytest.fixture(name="world")
def _world():
    w = World()
    w.lengths |= {"N": 3, "D": 2}
    with within(w):
        yield w


def leaf(*shape, name="x"):
    lengths = {"N": 3, "D": 2}
    value = np.random.default_rng(len(name)).standard_normal([s.number(lengths) for s in shape])
    return Node("input", (), {}, shape, "f", value, name)


def test_other_values_at_other_lengths(world):
    x = leaf(N, D)
    y = build("sum", x * build("exp", x), axis=(1,), keepdims=False) / N
    value = np.random.default_rng(1).standard_normal((5, 4))
    (got,) = run(Program([x], [y]), [value], {"N": 5, "D": 4})
    np.testing.assert_allclose(got, (value * np.exp(value)).sum(1) / 5)


def test_inputs_constants_and_sizes_are_outputs(world):
    x = leaf(N)
    outputs = [x, build("add", x, 0), build("multiply", N, 2)]
    value = np.arange(4.0)
    got = run(Program([x], outputs), [value], {"N": 4})
    assert got[0] is value
    assert got[2] == 8


@pytest.mark.parametrize("reverse", [False, True])
def test_loop(world, reverse):
    x, h = leaf(N, D), leaf(D, name="h")
    inside = leaf(N, D), leaf(D, name="h")
    world.lengths["t"] = 2
    row = build("getitem", inside[0], index=(Size.of("t"), slice(None)))
    following = build("tanh", row + 2 * inside[1])
    body = Program(list(inside), [following, following * row])
    last, stack = looped(Loop(body, "t", N, 1, 1, reverse), [x, h])
    assert stack.shape == (N, D)
    rng = np.random.default_rng(2)
    xs, want = rng.standard_normal((6, 3)), rng.standard_normal(3)
    start, rows = want, {}
    for t in reversed(range(6)) if reverse else range(6):
        want = np.tanh(xs[t] + 2 * want)
        rows[t] = want * xs[t]
    got = run(Program([x, h], [last, stack]), [xs, start], {"N": 6, "D": 3})
    np.testing.assert_allclose(got[0], want)
    np.testing.assert_allclose(got[1], [rows[t] for t in range(6)])


def test_missing_length_is_an_error(world):
    x = leaf(N)
    with pytest.raises(KeyError):
        run(Program([x], [x * N]), [np.ones(3)], {})


def test_loops_are_one_where_their_bodies_are(world):
    """Their text is the same: what they do in a round tells them apart, and the way they run."""
    h = leaf(D, name="h")

    def body(operation):
        inside = leaf(D, name="h")
        return Program([inside], [build(operation, inside)])

    sine, cosine = body("sin"), body("cos")
    first, again, other, back = (
        build("loop", h, loop=Loop(program, "t", N, 0, 1, reverse))
        for program, reverse in ((sine, False), (sine, False), (cosine, False), (sine, True))
    )
    assert again is first
    assert other is not first
    assert back is not first
