"""The emitter: names never collide, precedence never lies, one program in each library."""

import itertools

import numpy as np
import pytest

import handgrad as hg
from handgrad.program.emit import Emitter
from handgrad.program.libraries import JAX, NUMPY, TORCH
from handgrad.program.naming import Names
from handgrad.program.node import Node, World, build, within
from handgrad.program.primitives.contract import matmul
from handgrad.program.sizes import Size

RNG = np.random.default_rng(0)


def leaf(name, *shape):
    sizes = {"N": 3, "D": 4}
    value = RNG.uniform(0.5, 2, [sizes[x] for x in shape])
    return Node("input", (), {}, tuple(map(Size.of, shape)), "f", value, name)


@pytest.fixture
def world():
    with within(World()) as w:
        w.lengths |= {"N": 3, "D": 4}
        yield w


def written(node, *inputs, library=NUMPY, loose=False):
    emitter = Emitter(library, [n.name for n in inputs], loose=loose)
    for each in inputs:
        emitter.name(each, each.name)
    return emitter.text(node)


OPERATORS = ("add", "subtract", "multiply", "divide", "power", "greater", "maximum")


@pytest.mark.parametrize("outer", OPERATORS)
@pytest.mark.parametrize("inner", OPERATORS)
@pytest.mark.parametrize("place", [0, 1])
def test_expression_has_the_bits_of_its_nodes(world, outer, inner, place):
    a, b, c = (leaf(name, "N", "D") for name in "abc")
    within_it = build(inner, a, b)
    operands = (within_it, c) if place == 0 else (c, within_it)
    node = build(outer, *operands)
    text = written(node, a, b, c)
    with np.errstate(all="ignore"):
        found = eval(text, {"np": np, "a": a.value, "b": b.value, "c": c.value})
    np.testing.assert_array_equal(found, node.value)


def test_product_of_matrices_inside_a_product_keeps_its_brackets(world):
    a, b, c = leaf("a", "N", "D"), leaf("b", "N", "D"), leaf("c", "D", "D")
    node = build("multiply", a, matmul(b, c))
    found = eval(written(node, a, b, c), {"a": a.value, "b": b.value, "c": c.value})
    np.testing.assert_allclose(found, a.value * (b.value @ c.value))


def test_names_are_given_out_once():
    names = Names(["x", "T"])
    assert names.fresh("x") == "x_2"
    assert names.fresh("for") == "for_2"
    assert names.letter("T") == "T_2"
    assert names.letter("T") == "T_2"
    assert names.fresh("not a name") == "t"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (Size.of("N") * 2 + 1, "2 * N + 1"),
        ((Size.of("N") + 1) // Size.of(2), "(N + 1) // 2"),
        (Size.of("N") // Size.of(2) * Size.of("D"), "D * (N // 2)"),
        (Size.of(0), "0"),
        (-(-Size.of("N") // 2), "-((-N) // 2)"),
        (-(-Size.of("N") // 2) * 3, "-3 * ((-N) // 2)"),
        (Size.of("N") // 2 * 2, "2 * (N // 2)"),
    ],
)
def test_sizes_are_expressions_of_letters(size, text):
    found, _ = Names().size(size)
    values = {"N": 7, "D": 3}
    assert eval(found, values) == size.at({"N": 7, "D": 3}).constant
    assert sorted(found) == sorted(text)


def test_letter_that_an_argument_has_the_name_of_is_another_variable():
    names = Names(["N"])
    assert names.size(Size.of("N") * 2)[0] == "2 * N_2"


def _shadowing(np, dy, cache, range, math, D):
    y = dy.shape[1] ** 0.5 * np * D
    for _ in "ab":
        y = y * 1.5 + cache
    return y * dy + range + math


def test_arguments_that_have_the_names_of_modules_and_builtins():
    shape = ("N", "D")
    derived = hg.derive(
        _shadowing, np=shape, dy=shape, cache=shape, range=shape, math=shape, D=("D",)
    )
    rng = np.random.default_rng(1)
    arrays = [*(rng.standard_normal((3, 4)) for _ in range(5)), rng.standard_normal(4)]
    y, cache = derived.forward(*arrays)
    np.testing.assert_allclose(y, _shadowing(*arrays))
    g = rng.standard_normal(y.shape)
    ways = [rng.standard_normal(x.shape) for x in arrays]
    exact = sum(np.sum(a * way) for a, way in zip(derived.backward(g, cache), ways, strict=True))
    up, down = (
        _shadowing(*(x + s * 1e-6 * w for x, w in zip(arrays, ways, strict=True))) for s in (1, -1)
    )
    np.testing.assert_allclose(exact, np.sum(g * (up - down)) / 2e-6, rtol=1e-6)


def _stored(x, i):
    y = np.zeros((4, x.shape[1]))
    np.add.at(y, i, x)
    return np.cumsum(y, 0) * y


def test_changes_in_place_are_those_of_the_library():
    derived = hg.derive(_stored, x=np.ones((3, 2)), i=np.array([0, 2, 2]))
    assert "np.add.at(" in derived.forward_source
    torch_source, jax_source = derived.to("torch"), derived.to("jax")
    assert "def add_at(x, index, value):" in torch_source
    assert ".at[i].add(x)" in jax_source
    assert "np." not in torch_source.replace("jnp.", "")


def _recurrent(x, w):
    h = np.zeros(w.shape[0])
    hs = []
    for t in range(x.shape[0]):
        h = np.tanh(x[t] + w @ h)
        hs.append(h)
    return np.stack(hs)


def test_a_loop_of_no_rounds_gives_arrays_of_no_length():
    derived = hg.derive(_recurrent, x=("T", "K"), w=("K", "K"))
    y, cache = derived.forward(np.ones((0, 3)), np.ones((3, 3)))
    assert y.shape == (0, 3)
    dx, dw = derived.backward(np.ones((0, 3)), cache)
    assert dx.shape == (0, 3)
    np.testing.assert_array_equal(dw, np.zeros((3, 3)))


@pytest.mark.parametrize("library", [NUMPY, TORCH, JAX], ids=lambda library: library.name)
def test_numbers_of_sizes_are_numbers_of_python(world, library):
    x = leaf("x", "N", "D")
    root = build("sqrt", Node("size", (), {"size": Size.of("D")}, (), "i", 4))
    assert written(build("divide", x, root), x, library=library) == "x / math.sqrt(D)"


def test_sums_are_put_together_only_where_bits_do_not_matter(world):
    a, b, c = (leaf(name, "N", "D") for name in "abc")
    node = build("add", a, build("add", b, c))
    assert written(node, a, b, c) == "a + (b + c)"
    assert written(node, a, b, c, loose=True) == "a + b + c"


@pytest.mark.parametrize("inner", ["matmul", "floor_divide", "remainder"])
def test_a_factor_is_not_taken_in_by_what_is_cut_off_or_summed(world, inner):
    a, b, c, d = (leaf(name, "N", "N") for name in "abcd")
    first = matmul(b, c) if inner == "matmul" else build(inner, b, c)
    node = build("multiply", a, build("multiply", first, d))
    text = written(node, a, b, c, d, loose=True)
    names = {"np": np, "a": a.value, "b": b.value, "c": c.value, "d": d.value}
    np.testing.assert_allclose(eval(text, names), node.value, rtol=1e-12)


def test_single_precision_stays_single():
    for dtype, index in itertools.product((np.float32, np.float64), (np.int32, np.int64)):

        def forward(x, t):
            return np.where(x > 0, x / np.sqrt(x.shape[0]), 0.5) * t

        derived = hg.derive(forward, x=("N",), t=("N", int))
        y, cache = derived.forward(np.ones(3, dtype), np.arange(3, dtype=index))
        assert y.dtype == dtype
        assert derived.backward(np.ones(3, dtype), cache).dtype == dtype
