"""The sweep: adjoints of loops, derivatives of derivatives, and forward mode by two sweeps."""

from dataclasses import replace

import numpy as np
import pytest

from handgrad.deriving.reverse import gradient, tangents
from handgrad.program.node import PRIMITIVES, Node, Program, Refused, World, build, within
from handgrad.program.run import run
from handgrad.program.sizes import Size
from tests.program import test_trace  # noqa: F401 (fills the table)
from tests.program.tracing import Forward
from tests.program.written.cases import CASES

SMOOTH = [
    *("lstm", "gru", "mamba", "gla", "delta_rule", "crf", "rk4", "causal_rows", "two_layers"),
    *("flash", "sinkhorn", "averages", "groupnorm", "interior", "edges", "reshape_star", "pool"),
]


def random_like(rng, nodes, lengths):
    return [rng.standard_normal([s.number(lengths) for s in n.shape]) for n in nodes]


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_of_derivatives_meet_differences(name):
    """Differences of the derived gradient along a direction are the second sweep's product."""
    case = CASES[name]
    f = Forward(case.forward, **case.given)
    lengths = f.world.lengths
    chosen = [n for n in f.inputs if n.kind == "f"]
    with within(f.world):
        dys, grads = gradient(f.program, chosen)
        first = Program([*f.program.inputs, *dys], grads)
        vs, second = gradient(first, chosen)
    rng = np.random.default_rng(0)
    values = f.values(f.lengths[0], 3)
    dy, v, u = (random_like(rng, n, lengths) for n in (dys, vs, chosen))
    got = run(Program([*first.inputs, *vs], second), [*values, *dy, *v], lengths)
    place = {id(n): i for i, n in enumerate(f.program.inputs)}
    ends = []
    h = 1e-6
    for sign in (1, -1):
        moved = list(values)
        for n, d in zip(chosen, u, strict=True):
            moved[place[id(n)]] = moved[place[id(n)]] + sign * h * d
        found = run(first, [*moved, *dy], lengths)
        ends.append(sum(float((g * w).sum()) for g, w in zip(found, v, strict=True)))
    slope = (ends[0] - ends[1]) / (2 * h)
    exact = sum(float((g * d).sum()) for g, d in zip(got, u, strict=True))
    size = sum(float(np.abs(g * d).sum()) for g, d in zip(got, u, strict=True))
    assert abs(exact - slope) < 1e-5 * (size + 1e-3)


@pytest.mark.parametrize("name", [*SMOOTH, "nested_params", "deep", "masks"])
def test_forward_mode_is_two_sweeps(name):
    case = CASES[name]
    f = Forward(case.forward, **case.given)
    lengths = {**f.world.lengths, **f.lengths[1]}
    chosen = [n for n in f.inputs if n.kind == "f"]
    with within(f.world):
        directions, derivatives = tangents(f.program, chosen)
    rng = np.random.default_rng(1)
    values = f.values(f.lengths[1], 4)
    us = random_like(rng, directions, lengths)
    # A backward is linear in its cotangents, so what they are makes no difference.
    unused = [n for n in Program([], derivatives).body if n.op == "input"]
    others = [n for n in unused if id(n) not in {id(m) for m in [*f.program.inputs, *directions]}]
    assert others == []
    got = run(Program([*f.program.inputs, *directions], derivatives), [*values, *us], lengths)
    place = {id(n): i for i, n in enumerate(f.program.inputs)}
    h = 1e-6
    ends = []
    for sign in (1, -1):
        moved = list(values)
        for n, u in zip(chosen, us, strict=True):
            moved[place[id(n)]] = moved[place[id(n)]] + sign * h * u
        ends.append(f.itself(moved))
    for g, up, down in zip(got, *ends, strict=True):
        want = np.subtract(up, down, dtype=float) / (2 * h)
        np.testing.assert_allclose(g, want, rtol=1e-5, atol=1e-7)


def test_names_of_adjoints():
    w = World()
    w.lengths["N"] = 3
    with within(w):
        x = Node("input", (), {}, (Size.of("N"),), "f", np.ones(3), "x")
        y = build("exp", x)
        y.name = "y"
        dys, (dx,) = gradient(Program([x], [y, build("sin", y)]), [x])
    assert [g.name for g in dys] == ["dy1", "dy2"]
    assert dx.name == "dx"


def test_input_without_influence_has_a_gradient_of_zeros():
    f = Forward(lambda x, y: x * 2, x=("N",), y=("N", "D"))
    with within(f.world):
        dys, grads = gradient(f.program, f.inputs)
    got = run(
        Program([*f.inputs, *dys], grads), [*f.values(f.lengths[0], 0), np.ones(5)], f.world.lengths
    )
    np.testing.assert_array_equal(got[1], np.zeros((5, 6)))


def test_missing_derivative_names_the_line(monkeypatch):
    monkeypatch.setitem(PRIMITIVES, "exp", replace(PRIMITIVES["exp"], vjp=None))
    w = World()
    w.lengths["N"] = 3
    with within(w):
        x = Node("input", (), {}, (Size.of("N"),), "f", np.ones(3), "x")
        w.line = 12
        y = build("exp", x)
        with pytest.raises(Refused, match="line 12: no derivative of exp is known"):
            gradient(Program([x], [y]), [x])


@pytest.mark.parametrize(
    "forward",
    [
        lambda x: np.abs(np.exp(1j * x) * x),
        lambda x: np.real(np.conj(1j * x) * (1j * x)),
        lambda x: np.imag(1j * x * x),
    ],
)
def test_complex_numbers_between_real_ones(forward):
    f = Forward(forward, x=("N",))
    f.check(f.lengths[0])
