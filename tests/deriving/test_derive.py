"""`hg.derive`: what it derives is right, closed where a closed form is known, and runs anywhere."""

from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pytest

import handgrad as hg
from handgrad.deriving.notation import FUNCTIONS, NOTATIONS
from handgrad.deriving.story import everything
from handgrad.documents.document import Equation, Table, opened
from handgrad.documents.formulas.formula import Cases, Operator, Script, Text
from handgrad.documents.formulas.latex import to_latex
from handgrad.errors import ArgumentError
from handgrad.ops import OPS
from tests.deriving import forwards
from tests.deriving.forwards import CASES, LOOPS, ND
from tests.rows import rows

#: The last lines of backwards that the literature has, without the statements before them.
CLOSED = {
    "softmax": "dx = (dy - (y * dy).sum(-1, keepdims=True)) * y",
    "layer_norm": "dx = (dx_hat - mean_x_hat_dx_hat * x_hat - dx_hat.mean(-1, keepdims=True)) "
    "* inv_std",
    "cross_entropy": "dx = (p - q) * (dy / N)",
    "sigmoid": "dx = y * dy * (1 - y)",
    "label_smoothing": "dx = (exp_z / sum_exp_z - t) * (dy / N)",
}
CACHES = {
    "softmax": ("y",),
    "sigmoid": ("y",),
    "layer_norm": ("gamma", "inv_std", "x_hat"),
    "attention": ("a", "k", "q", "v"),
    "dense_tanh": ("w", "x", "y"),
}
LENGTHS = dict(zip("NDHCTSEKGMW", (4, 6, 3, 5, 2, 7, 3, 2, 3, 4, 5), strict=True))


def arrays_for(function, shapes, rng):
    """Arrays of other sizes than those that it was derived at."""
    import inspect

    for name in inspect.signature(function).parameters:
        shape = shapes.get(name)
        if not isinstance(shape, tuple):
            continue
        kind = shape[-1] if isinstance(shape[-1], type) else float
        axes = [axis for axis in shape if not isinstance(axis, type)]
        sizes = tuple(int(eval(axis, {}, LENGTHS)) for axis in axes)
        array = rng.standard_normal(sizes) if kind is float else rng.random(sizes) < 0.7
        if name == "q" and "assume" in shapes:
            array = np.abs(array) / np.abs(array).sum(-1, keepdims=True)
        if kind is bool:
            array[:, 0] = True
        yield array


@pytest.mark.parametrize(
    ("function", "shapes"), [*CASES, *LOOPS], ids=lambda case: getattr(case, "__name__", "")
)
def test_derived_backward_is_the_gradient_at_other_sizes(function, shapes):
    derived = hg.derive(function, **shapes)
    rng = np.random.default_rng(7)
    arrays = list(arrays_for(function, shapes, rng))
    settings = {"groups": LENGTHS["G"]} if "groups" in shapes else {}
    report = hg.check(
        (derived.forward, derived.backward), *arrays, wrt=shapes.get("wrt"), **settings
    )
    wrong = [row for row in report.gradients if row.verdict != "right"]
    assert not wrong, report


@rows(("function", "shapes"), CASES, ids=lambda case: getattr(case, "__name__", ""))
def test_closed_form_and_cache_are_those_of_the_literature(function, shapes):
    name = function.__name__
    if name not in CLOSED and name not in CACHES:
        pytest.skip("no form is stated")
    derived = hg.derive(function, **shapes)
    lines = [line.strip() for line in derived.backward_source.splitlines()]
    assert name not in CLOSED or CLOSED[name] in lines
    assert tuple(sorted(derived.cache)) == CACHES.get(name, tuple(sorted(derived.cache)))


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("layer_norm", [(4, 6), (6,), (6,)]),
        ("rms_norm", [(4, 6), (6,)]),
        ("softmax", [(4, 6)]),
        ("dense", [(4, 6), (3, 6)]),
        ("attention", [(2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 7)]),
    ],
)
def test_op_is_derived_from_its_forward(name, sizes):
    op = getattr(hg.ops, name)
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(size) for size in sizes]
    derived = (
        hg.derive(name)
        if name != "attention"
        else hg.derive(op, q=("N", "H", "T", "D"), k=("N", "H", "S", "D"), v=("N", "H", "S", "E"))
    )
    y, cache = derived.forward(*arrays)
    wanted, own = op.forward(*arrays)
    np.testing.assert_allclose(y, wanted, rtol=1e-12)
    dy = rng.standard_normal(y.shape)
    found, expected = (
        x if isinstance(x, tuple) else (x,)
        for x in (derived.backward(dy, cache), op.backward(dy, own))
    )
    for one, two in zip(found, expected, strict=False):
        np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-12)


def test_every_step_was_evaluated_on_both_sides():
    derived = hg.derive(forwards.layer_norm, x=ND, gamma=("D",), beta=("D",))
    assert derived.steps
    assert all(0 <= each < 1e-8 for step in derived.steps for each in step.differences)
    assert any("Σ centred = 0" in step.why for step in derived.steps)
    assert r"Σ $\tilde{x}$ = 0, because Σ($x$ − $\mu$) = 0" in derived.notes().to_markdown()


@pytest.mark.parametrize(
    ("function", "shapes"), LOOPS, ids=lambda case: getattr(case, "__name__", "")
)
def test_loop_over_time_runs_in_reverse(function, shapes):
    derived = hg.derive(function, **shapes)
    assert not derived.fixed
    assert "for t in reversed(range(T)):" in derived.backward_source
    assert derived.forward_source.count("for t in range(T):") == 1
    assert r"For $t = T - 1, \cdots, 0$:" in derived.notes().to_markdown()


@pytest.mark.parametrize("name", ["rnn", "leaky_rnn", "gru", "lstm"])
def test_recurrent_op_is_derived_through_time(name):
    derived = hg.derive(name)
    assert not derived.fixed
    assert "in reversed(range(" in derived.backward_source


def _drawing(x):
    return x * np.random.default_rng().random(x.shape)


def _unknown(x):
    return np.unwrap(x)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (_drawing, "draws other numbers in each call"),
        (_unknown, "no derivative of unwrap is known"),
    ],
)
def test_what_cannot_be_derived_is_refused_with_its_line(function, said):
    with pytest.raises(hg.errors.ArgumentError) as caught:
        hg.derive(function, x=ND)
    assert str(caught.value).startswith("derive: line ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "missing a required argument: 'x'"),
        ({"x": ND, "z": ND}, "unexpected keyword argument 'z'"),
        ({"x": 3}, "no array is given"),
        ({"x": ND, "wrt": ["y"]}, "wrt is ['y']"),
        ({"x": ND, "assume": {"x > 0": 1}}, "assume has 'x > 0'"),
        ({"x": ND, "assume": {"sum(y, 0)": 1}}, "y is no array"),
    ],
)
def test_wrong_arguments_end_in_a_sentence(arguments, said):
    with pytest.raises(hg.errors.ArgumentError, match="derive: ") as caught:
        hg.derive(forwards.softmax, **arguments)
    assert said in str(caught.value)


@pytest.mark.parametrize("name", ["layer_norm", "attention", "swiglu", "rnn_last", "gru"])
def test_second_derivatives_meet_differences(name):
    function, shapes = next(case for case in [*CASES, *LOOPS] if case[0].__name__ == name)
    derived = hg.derive(function, **shapes)
    rng = np.random.default_rng(0)
    arrays = [0.5 * x for x in arrays_for(function, shapes, rng)]
    ways = tuple(rng.standard_normal(x.shape) for x in arrays)
    ends = [[x + s * 1e-6 * way for x, way in zip(arrays, ways, strict=True)] for s in (1, -1)]
    up, down = (function(*each) for each in ends)
    np.testing.assert_allclose(derived.jvp(ways, *arrays), (up - down) / 2e-6, atol=1e-7)
    dy = rng.standard_normal(np.shape(up))
    up, down = (derived.backward(dy, derived.forward(*each)[1]) for each in ends)
    for found, one, other in zip(derived.hvp(ways, dy, *arrays), up, down, strict=True):
        np.testing.assert_allclose(found, (one - other) / 2e-6, atol=1e-6)


def test_derived_backward_is_derived_again():
    derived = hg.derive(forwards.softmax, x=ND)
    again = hg.derive(derived.backward)
    rng = np.random.default_rng(0)
    y, dy = rng.random((3, 4)), rng.standard_normal((3, 4))
    dx, cache = again.forward(dy, (y,))
    np.testing.assert_array_equal(dx, derived.backward(dy, (y,)))
    ddx = rng.standard_normal((3, 4))
    ddy, _ = again.backward(ddx, cache)
    np.testing.assert_allclose(ddy, y * (ddx - (y * ddx).sum(-1, keepdims=True)))


def _with_cache(x, w):
    y = np.tanh(x @ w)
    return y, (x, w, y)


def test_cache_of_the_forward_is_no_further_result():
    derived = hg.derive(_with_cache, x=("N", "D"), w=("D", "K"))
    x, w = np.ones((2, 3)), np.ones((3, 4))
    y, cache = derived.forward(x, w)
    np.testing.assert_array_equal(y, np.tanh(x @ w))
    np.testing.assert_allclose(derived.backward(np.ones((2, 4)), cache)[0], (1 - y * y) @ w.T)


def _lookup(table, tokens):
    return np.tanh(table[tokens])


def test_integers_have_letters():
    derived = hg.derive(_lookup, table=("V", "D"), tokens=("B", "T", int))
    rng = np.random.default_rng(0)
    table, tokens, dy = rng.random((6, 3)), rng.integers(0, 6, (2, 4)), rng.random((2, 4, 3))
    y, cache = derived.forward(table, tokens)
    wanted = np.zeros_like(table)
    np.add.at(wanted, tokens, dy * (1 - y * y))
    np.testing.assert_allclose(derived.backward(dy, cache), wanted)


def test_arrays_are_examples():
    rng = np.random.default_rng(0)
    derived = hg.derive(forwards.rms_norm, rng.random((2, 3)), rng.random(3))
    assert not derived.fixed
    assert hg.check(derived, rng.random((5, 4)), rng.random(4)).ok


class Layer(NamedTuple):
    w: Any
    b: Any


def _layers(x, layers):
    for layer in layers:
        x = np.tanh(x @ layer.w + layer.b)
    return x


def test_named_tuples_in_a_list_are_arguments():
    rng = np.random.default_rng(0)
    layers = [Layer(rng.standard_normal((n, 4)), rng.standard_normal(4)) for n in (3, 4)]
    x = rng.standard_normal((2, 3))
    derived = hg.derive(_layers, x=x, layers=layers)
    y, cache = derived.forward(x, layers)
    np.testing.assert_allclose(y, _layers(x, layers))
    assert [d.shape for d in derived.backward(y, cache)] == [(2, 3), (3, 4), (4,), (4, 4), (4,)]


@pytest.mark.parametrize(
    ("function", "examples", "others"),
    [
        (lambda x: np.tanh(x) * 2, [(0, 2)], [(3, 5)]),
        (
            lambda a, b: np.einsum("...ij,...jk", a, b),
            [(0, 2, 3), (0, 3, 4)],
            [(2, 5, 6), (2, 6, 3)],
        ),
        (lambda x, w: (x[:, ::2] @ w) * (x[:, 1::2] @ w), [(4, 4), (2, 3)], [(3, 6), (3, 5)]),
        (lambda x: np.linalg.svd(x, full_matrices=False)[0], [(4, 4)], [(3, 5)]),
        (lambda x: np.trace(x, offset=9), [(10, 11)], [(4, 13)]),
        (lambda x: {"same": x}, [(3,)], [(5,)]),
    ],
    ids=["empty", "einsum", "halves", "square", "corner", "nothing"],
)
def test_examples_of_special_lengths_tell_no_more_than_their_axes(function, examples, others):
    derived = hg.derive(function, **_named(function, examples, 1))
    given = _named(function, others, 2)
    assert hg.check((derived.forward, derived.backward), *given.values()).ok


def _named(function, shapes, seed):
    rng = np.random.default_rng(seed)
    names = function.__code__.co_varnames
    return {name: rng.standard_normal(shape) for name, shape in zip(names, shapes, strict=False)}


def test_pages_show_the_steps(tmp_path):
    derived = hg.derive(forwards.softmax, x=ND)
    page = derived.notes(tmp_path / "softmax.md").to_markdown()
    assert (tmp_path / "softmax.md").read_text() == page
    assert "The chain rule, line by line" in page
    assert derived.backward_source.strip() in page
    assert derived.notes().to_html().count("<math") > 7
    assert r"\begin{verbatim}" in derived.notes().to_latex()


@pytest.mark.parametrize("name", ["layer_norm", "attention", "lstm_cell", "rnn", "lstm"])
def test_source_for_pytorch_is_an_autograd_function(name, tmp_path):
    torch = pytest.importorskip("torch")
    function, shapes = next(case for case in [*CASES, *LOOPS] if case[0].__name__ == name)
    path = tmp_path / "derived.py"
    hg.derive(function, **shapes).to("torch", path)
    names: dict = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    made = next(x for x in names.values() if isinstance(x, type))
    rng = np.random.default_rng(0)
    arrays = [torch.tensor(a, requires_grad=True) for a in arrays_for(function, shapes, rng)]
    assert torch.autograd.gradcheck(made.apply, arrays)


@pytest.mark.parametrize("name", ["layer_norm", "attention", "lstm_cell", "rnn", "lstm"])
def test_source_for_jax_is_a_custom_vjp(name, tmp_path):
    pytest.importorskip("jax")
    function, shapes = next(case for case in [*CASES, *LOOPS] if case[0].__name__ == name)
    path = tmp_path / "derived.py"
    hg.derive(function, **shapes).to("jax", path)
    names: dict = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    rng = np.random.default_rng(0)
    report = hg.check(names[name], *arrays_for(function, shapes, rng))
    assert not [row for row in report.gradients if row.verdict != "right"], report


def test_unknown_library_and_unwritable_file_end_in_a_sentence(tmp_path):
    derived = hg.derive(forwards.softmax, x=ND)
    with pytest.raises(hg.errors.ArgumentError, match="allowed: numpy, torch, jax"):
        derived.to("keras")
    with pytest.raises(hg.errors.ArgumentError, match="cannot be written"):
        derived.to("numpy", tmp_path / "none" / "x.py")


#: Words that stand beside symbols, and not in the place of one.
BESIDE = {"if ", "otherwise", "at "}


def words_of(formula):
    """The words of a formula but for those below a symbol, as in W_ih."""
    match formula:
        case Text(text):
            yield text
        case Operator(name):
            yield name
        case Script(base, _, sup):
            yield from words_of(base)
            yield from words_of(sup)
        case Cases(lines):
            yield from (word for line in lines for part in line for word in words_of(part))
        case tuple():
            yield from (word for part in formula for word in words_of(part))
        case _ if hasattr(formula, "__dataclass_fields__"):
            yield from words_of(tuple(getattr(formula, name) for name in formula.__slots__))


def assert_symbols(derived):
    """Every value has a symbol of its own, and every function its notation."""
    page = derived.notes().document
    formulas = [block.formula for block in opened(page.blocks) if isinstance(block, Equation)]
    assert not set(words_of(tuple(formulas))) - BESIDE - FUNCTIONS, derived.name
    programs = (derived.pair.traced.program, derived.pair.backward)
    nodes = everything([node for each in programs for node in each.body])
    unknown = {node.op for node in nodes} - NOTATIONS.keys() - {"input", "part", "loop"}
    assert not unknown, (derived.name, unknown)
    lefts = [block.rows for block in page.blocks if isinstance(block, Table)]
    symbols = [symbol for symbol, _ in lefts[-1]] if len(lefts) > 1 else []
    assert len(set(symbols)) == len(symbols), derived.name


@rows(("function", "shapes"), [*CASES, *LOOPS])
def test_no_word_stands_in_the_place_of_a_symbol(function, shapes):
    assert_symbols(hg.derive(function, **shapes))


@pytest.mark.slow
@rows("op", OPS)
def test_no_word_stands_in_the_page_of_an_op(op):
    try:
        derived = hg.derive(op)
    except ArgumentError:  # a refusal is an answer; what is refused is tested elsewhere
        return
    assert_symbols(derived)


def twice_each(x, w):
    """No value within has a name; the digits repeat no pattern, so that no loop is made of them."""
    digits = map(int, "314159265358979323846264")
    return reduce(lambda a, k: np.maximum(np.sin(w**k) * a, a - k), digits, x)


def test_a_long_value_is_written_once_and_named_where_it_is_used():
    derived = hg.derive(twice_each, x=("N", "D"), w=("D",))
    page = derived.notes().document
    lines = [to_latex(b.formula) for b in opened(page.blocks) if isinstance(b, Equation)]
    assert len(lines) < 400
    assert max(map(len, lines)) < 400
    assert_symbols(derived)


def test_a_page_is_written_as_on_paper():
    shapes = {"q": ("N", "D"), "k": ("M", "D"), "v": ("M", "D")}
    page = hg.derive(forwards.attention, **shapes).notes().document
    lines = [to_latex(b.formula) for b in page.blocks if isinstance(b, Equation)]
    assert r"d v = a^{\top} \thinspace d y" in lines
    assert r"d a = d y \thinspace v^{\top}" in lines
