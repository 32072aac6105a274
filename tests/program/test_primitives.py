"""The table of primitives, walked: every column of every record on the record's own examples."""

import importlib.util
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

from handgrad.deriving.reverse import gradient
from handgrad.program import primitives  # noqa: F401 (fills the table)
from handgrad.program.emit import Emitter
from handgrad.program.libraries import JAX, NUMPY, TORCH, Library, helper
from handgrad.program.node import PRIMITIVES, Node, Program, World, build, within
from handgrad.program.primitives.table import FUNCTIONS
from handgrad.program.run import run
from handgrad.program.sizes import ONE, Size
from tests.rows import rows

NAMES = [name for name, record in PRIMITIVES.items() if record.domain]
CASES = [(name, k) for name in NAMES for k in range(len(PRIMITIVES[name].cases))]
SEEDS = range(4)
LETTERS = {2: "N", 3: "M", 4: "K", 5: "L"}


def world() -> World:
    """A world with a letter for each length that examples have."""
    w = World()
    w.lengths |= {letter: length for length, letter in LETTERS.items()}
    return w


def leaf(value: Any) -> Node:
    """An input that has a value on the example."""
    value = np.asarray(value)
    shape = tuple(ONE if s == 1 else Size.of(LETTERS[s]) for s in value.shape)
    return Node("input", (), {}, shape, value.dtype.kind, value)


def floats(values: list[Any]) -> list[int]:
    return [i for i, v in enumerate(values) if np.asarray(v).dtype.kind == "f"]


def moved(values: list[Any], directions: dict[int, Any], step: float) -> list[Any]:
    return [v + step * directions[i] if i in directions else v for i, v in enumerate(values)]


def slope(f: Callable[[float], float]) -> float:
    """A central difference of fourth order."""
    h = 1e-3
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


def swept(name: str, case: int, seed: int) -> tuple[Any, ...]:
    """A record on an example: operands, the program of its gradients, and directions."""
    record, rng = PRIMITIVES[name], np.random.default_rng(seed)
    values = record.domain(rng)
    with within(world()) as w:
        xs = [leaf(v) for v in values]
        y = build(name, *xs, **record.cases[case])
        if y.kind != "f":
            pytest.skip("has no derivative")
        at = floats(values)
        dys, grads = gradient(Program(xs, [y]), [xs[i] for i in at])
    directions = {i: rng.standard_normal(np.shape(values[i])) for i in at}
    dy = rng.standard_normal(np.shape(y.value))
    return w, values, xs, dys, grads, at, directions, dy, rng


@pytest.mark.parametrize("seed", SEEDS)
@rows(("name", "case"), CASES)
def test_vjp_meets_differences(name: str, case: int, seed: int) -> None:
    w, values, xs, dys, grads, at, directions, dy, _ = swept(name, case, seed)
    got = run(Program([*xs, *dys], grads), [*values, dy], w.lengths)
    for g, i in zip(got, at, strict=True):
        assert np.shape(g) == np.shape(values[i])

    def contracted(h: float) -> float:
        with within(world()):
            inputs = map(leaf, moved(values, directions, h))
            y = build(name, *inputs, **PRIMITIVES[name].cases[case]).value
        return float((dy * y).sum())

    found = sum((g * directions[i]).sum() for g, i in zip(got, at, strict=True))
    np.testing.assert_allclose(found, slope(contracted), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
@rows(("name", "case"), CASES)
def test_vjp_of_vjp_meets_differences(name: str, case: int, seed: int) -> None:
    if not PRIMITIVES[name].smooth:
        pytest.skip("has no second derivative")
    w, values, xs, dys, grads, at, directions, dy, rng = swept(name, case, seed)
    first = Program([*xs, *dys], grads)
    with within(w):
        w.known = {}
        cotangents, second = gradient(first, [xs[i] for i in at])
    c = [rng.standard_normal(np.shape(values[i])) for i in at]
    got = run(Program([*xs, *dys, *cotangents], second), [*values, dy, *c], w.lengths)

    def contracted(h: float) -> float:
        out = run(first, [*moved(values, directions, h), dy], w.lengths)
        return float(sum((a * b).sum() for a, b in zip(out, c, strict=True)))

    found = sum((g * directions[i]).sum() for g, i in zip(got, at, strict=True))
    np.testing.assert_allclose(found, slope(contracted), rtol=1e-6, atol=1e-7)


def spelled(node: Node, library: Library) -> tuple[str, Emitter, list[Node]]:
    """A node's source in a library, what wrote it, and its operands but constants."""
    operands = [a for a in node.args if a.op != "const"]
    e = Emitter(library, [f"x{k}" for k in range(len(operands))])
    for k, a in enumerate(operands):
        e.name(a, f"x{k}")
    return e.text(node), e, operands


def evaluated(node: Node, library: Library, module: Any, convert: Callable[[Any], Any]) -> Any:
    """The value of a node's source, run in a library."""
    text, e, operands = spelled(node, library)
    scope: dict[str, Any] = {"scipy": scipy, "math": math, **e.tables}
    scope |= {library.name: importlib.import_module(library.name), library.alias: module}
    for h in e.helpers:
        exec(helper(h, library).replace("np.", f"{library.alias}."), scope)
    scope |= {f"x{k}": convert(a.value) for k, a in enumerate(operands)}
    return eval(text, scope)


def nodes(name: str, case: int) -> list[Node]:
    """A record on examples, and with a number for each operand in turn."""
    record = PRIMITIVES[name]
    out = []
    for seed in SEEDS:
        values = record.domain(np.random.default_rng(seed))
        out.append(build(name, *map(leaf, values), **record.cases[case]))
        if len(values) == 2 and {} in record.cases and out[0].kind == "f" and name != "like":
            for k in (0, 1):
                number = float(np.asarray(values[k]).flat[0])
                args = [number if i == k else leaf(v) for i, v in enumerate(values)]
                out.append(build(name, *args))
    return [n for n in out if n.op == name]


@rows(("name", "case"), CASES)
def test_numpy_spelling_gives_what_the_record_evaluates(name: str, case: int) -> None:
    with within(world()):
        for n in nodes(name, case):
            got = evaluated(n, NUMPY, np, lambda v: v)
            np.testing.assert_array_equal(got, n.value)
            assert np.asarray(got).dtype == np.asarray(n.value).dtype


@rows(("name", "case"), CASES)
def test_torch_spelling_gives_what_numpy_gives(name: str, case: int) -> None:
    torch = pytest.importorskip("torch")
    with within(world()):
        for n in nodes(name, case):
            got = evaluated(n, TORCH, torch, lambda v: torch.as_tensor(np.array(v)))
            if name == "argpartition":  # sorted wholly, which is a partition as well
                got, want = np.sort(got, n.attrs["axis"]), np.sort(n.value, n.attrs["axis"])
            else:
                want = n.value
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-7, atol=1e-10)


@rows(("name", "case"), CASES)
def test_jax_spelling_gives_what_numpy_gives(name: str, case: int) -> None:
    if not importlib.util.find_spec("jax"):
        pytest.skip("needs jax")
    import jax

    with within(world()), jax.enable_x64(True):
        for n in nodes(name, case):
            scope = jax.numpy.asarray
            got = evaluated(n, JAX, jax.numpy, scope)
            np.testing.assert_allclose(np.asarray(got), n.value, rtol=1e-6, atol=1e-8)


WITHOUT_DERIVATIVE = {
    *("bitwise_count", "gcd", "lcm", "frexp", "nextafter", "spacing", "isnat"),
}
OF_OTHER_FAMILIES = {"matmul", "vecdot", "matvec", "vecmat"}


def test_every_ufunc_of_numpy_is_known() -> None:
    ufuncs = {f.__name__: f for f in vars(np).values() if isinstance(f, np.ufunc)}
    unknown = {name for name, f in ufuncs.items() if f not in FUNCTIONS}
    assert unknown - OF_OTHER_FAMILIES <= WITHOUT_DERIVATIVE
