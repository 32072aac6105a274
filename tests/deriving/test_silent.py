"""Nothing that `hg.derive` gives is wrong in silence: it is right elsewhere, too, or refused."""

import numpy as np
import pytest
from typer.testing import CliRunner

import handgrad as hg
from handgrad.cli.app import app

N = ("N",)


def _power(x, p=2.0):
    return (x**p).sum()


def _rounds(x, n=2):
    for _ in range(n):
        x = np.tanh(x) / n
    return x


def _same_by_chance(x, p=2.0):
    return (x * p) ** 2 + p


def _scaled(x, scale=3.0, low=-np.inf):
    return np.maximum(x, low) * scale


@pytest.mark.parametrize(
    ("function", "others"),
    [(_power, {"p": 3.0}), (_rounds, {"n": 3}), (_same_by_chance, {"p": 3.0})],
)
def test_emitted_code_refuses_settings_that_it_is_not_right_for(function, others):
    derived = hg.derive(function, x=N)
    x = np.array([3.0, -1.0])
    np.testing.assert_array_equal(derived.forward(x)[0], function(x))
    ((name, value),) = others.items()
    with pytest.raises(ValueError, match=f"{name} is {value}; allowed: 2"):
        derived.forward(x, **others)


def test_setting_that_code_is_right_for_stays_free():
    derived = hg.derive(_scaled, x=N)
    _, cache = derived.forward(np.ones(2), scale=5.0)
    np.testing.assert_array_equal(derived.backward(np.ones(2), cache), [5.0, 5.0])


def _running_sum(x):
    total = x[0]
    for t in range(1, x.shape[0]):
        total = np.tanh(total + t * x[t])
    return total


def test_emitted_code_refuses_lengths_that_it_is_not_right_for():
    derived = hg.derive(_running_sum, x=("T", "D"))
    length = derived.fixed["T"]
    derived.forward(np.ones((length, 2)))
    with pytest.raises(ValueError, match=rf"x.shape\[0\] is {length + 1}; allowed: {length}"):
        derived.forward(np.ones((length + 1, 2)))


def _shorter(x, w):
    n = min(x.shape[0], w.shape[0])
    return x[:n] * w[:n]


def test_what_is_wrong_at_other_sizes_is_refused():
    with pytest.raises(hg.errors.ArgumentError, match=r"derive: line \d+: .*sizes.*; allowed: "):
        hg.derive(_shorter, x=("N", "D"), w=("M", "D"))


def _on_value(x):
    return x**2 if x.sum() > 100 else x**3


def _on_size(x):
    if x.shape[0] > 2:
        return x * 2
    return x


def _on_length(x):
    n = len(x)
    return x * 2 if not n < 2 else x


def _while_size(x):
    n = x.shape[0]
    while n > 1:
        n = n // 2
    return x * n


def _and(x):
    y = x.max() < 100 and x.shape
    return x * 2 if y else x


def _chain(x):
    return x * 2 if -100 < x.sum() < 100 else x


def _int(x):
    return x * int(abs(x).sum() + 1)


def _float(x):
    return x * float(x.sum())


def _item(x):
    return x * x.sum().item()


def _flag(x):
    return np.where(x.sum() > 100, x, x * x)


def _slice(x):
    return x[: int(x[0] > 100) + 1] * 2


def _range_of_value(x):
    for _ in range(int(x[0] > 100)):
        x = x * 2
    return x * x


def _late(x):
    y = x
    for t in range(x.shape[0]):
        y = np.tanh(y) if t < 50 else y * y
    return y.sum()


def _helper(x):
    return _on_value(x) + 1


@pytest.mark.parametrize(
    "function",
    [
        *(_on_value, _on_size, _on_length, _while_size, _and, _chain, _int, _float, _item, _slice),
        *(_range_of_value, _helper),
    ],
)
def test_branch_on_a_value_or_a_size_is_refused_with_its_line(function):
    with pytest.raises(hg.errors.ArgumentError, match=r"derive: line \d+: .*: "):
        hg.derive(function, x=N)


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_condition_on_a_sum_stays_a_condition(scale):
    derived = hg.derive(_flag, x=N)
    x = np.array([2.0, 3.0]) * scale
    y, cache = derived.forward(x)
    np.testing.assert_array_equal(y, _flag(x))
    np.testing.assert_allclose(derived.backward(np.ones(2), cache), 1 if scale > 1 else 2 * x)


def _unless_empty(x):
    return x * 2 if x.shape[0] > 0 else x


def test_code_behind_a_branch_on_empty_arrays_refuses_them():
    derived = hg.derive(_unless_empty, x=N)
    with pytest.raises(ValueError, match="an array is empty"):
        derived.forward(np.ones(0))


def test_branch_on_the_round_of_a_loop_holds_for_one_length():
    derived = hg.derive(_late, x=N)
    with pytest.raises(ValueError, match="allowed: "):
        derived.forward(np.ones(60))


def _checked(x, w, eps=1e-3):
    if x.shape[1] != w.shape[0] or eps < 0:
        raise ValueError("x and w do not fit")
    assert not np.isnan(x).any()
    return x @ w + eps


def test_checks_that_only_raise_are_no_branches():
    derived = hg.derive(_checked, x=("N", "D"), w=("D", "K"))
    x, w = np.ones((2, 3)), np.ones((3, 4))
    np.testing.assert_array_equal(derived.forward(x, w, eps=2.0)[0], x @ w + 2.0)


def _by_setting(x, p=4):
    y = x * p
    return y * y if p > 2 else y


def test_code_behind_a_branch_on_a_setting_refuses_other_values_of_it():
    derived = hg.derive(_by_setting, x=N)
    derived.forward(np.ones(2), p=4)
    with pytest.raises(ValueError, match="p is 1; allowed: 4"):
        derived.forward(np.ones(2), p=1)


def _variable_dw(w, v):
    dw = np.tanh(w)
    return dw * v


def _of_the_module(x):
    return x * SCALE


SCALE = np.ones(3)


def _new_axis(x, a):
    h = x[:, 0]
    for t in range(x.shape[1]):
        h = a[:, t, None] * h + x[:, t]
    return h


def _of_a_dict(x, p):
    return x @ p["w"]


def _eigenvalues(x):
    return np.linalg.eigh(x.T @ x)[0]


def _two(x):
    e = np.exp(x @ x.swapaxes(-1, -2))
    return e / e.sum(-1, keepdims=True) @ x


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (_variable_dw, {"w": N, "v": N}),
        (_of_the_module, {"x": ("N", 3)}),
        (_new_axis, {"x": ("N", "T", "D"), "a": ("N", "T")}),
        (_of_a_dict, {"x": np.ones((5, 3)), "p": {"w": np.ones((3, 2))}}),
        (_eigenvalues, {"x": ("N", "D")}),
        (_two, {"x": (2, "T", "d")}),
    ],
)
def test_what_no_part_expects_is_refused_with_a_line(function, arguments):
    with pytest.raises(hg.errors.ArgumentError, match=r"derive: line \d+: .*; allowed: "):
        hg.derive(function, **arguments)


def _squares(x):
    total = x[0]
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            for k in range(x.shape[0]):
                total = total * x[i] + x[j] + k
    return total


def test_long_loop_is_refused_at_once():
    with pytest.raises(hg.errors.ArgumentError, match=r"derive: line \d+: .*; allowed: "):
        hg.derive(_squares, x=N)


def test_transposed_convolution_ends_in_a_sentence():
    result = CliRunner().invoke(app, ["derive", "conv_transpose2d"])
    assert result.exit_code == 2
    assert result.output.startswith("handgrad: derive: line ")
    assert result.output.count("\n") == 1


def _scores(q, k):
    return q @ k.T / np.sqrt(q.shape[1])


def _pooled(x):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).mean(axis=(3, 5))


def _halves(a, c):
    h = c.shape[1]
    return np.tanh(a[:, :h]) * c + a[:, h:]


def _tied(x, width=3):
    return np.tanh(x.reshape(-1, width)) * x


@pytest.mark.parametrize(
    ("function", "shapes", "others"),
    [
        (_scores, [(3, 3), (3, 3)], [(6, 4), (5, 4)]),
        (_pooled, [(2, 3, 4, 6)], [(5, 3, 4, 2)]),
        (_pooled, [(4, 4, 4, 4)], [(5, 3, 4, 2)]),
        (_halves, [(4, 4), (4, 2)], [(3, 10), (3, 5)]),
        (_halves, [(2, 4), (2, 2)], [(3, 10), (3, 5)]),
    ],
)
def test_lengths_of_an_example_that_agree_by_chance_are_told_apart(function, shapes, others):
    rng = np.random.default_rng(0)
    derived = hg.derive(function, *map(rng.standard_normal, shapes))
    assert not derived.fixed
    arrays = [rng.standard_normal(shape) for shape in others]
    np.testing.assert_allclose(derived.forward(*arrays)[0], function(*arrays), rtol=1e-12)
    report = hg.check((derived.forward, derived.backward), *arrays)
    assert not [row for row in report.gradients if row.verdict != "right"], report


def test_op_is_right_where_the_batch_differs_from_the_heads():
    derived = hg.derive("attention")
    rng = np.random.default_rng(0)
    q, k, v, bias = map(
        rng.standard_normal, ((2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 7), (2, 3, 4, 6))
    )
    y, cache = derived.forward(q, k, v, bias)
    own, own_cache = hg.ops.attention.forward(q, k, v, bias)
    np.testing.assert_allclose(y, own, rtol=1e-12)
    dy = rng.standard_normal(y.shape)
    for one, two in zip(
        derived.backward(dy, cache), hg.ops.attention.backward(dy, own_cache), strict=False
    ):
        np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-12)


def test_length_that_the_forward_cannot_do_without_is_fixed():
    derived = hg.derive(_tied, x=np.ones((4, 3)))
    assert list(derived.fixed.values()) == [3]
    with pytest.raises(ValueError, match=r"x.shape\[1\] is 6; allowed: 3"):
        derived.forward(np.ones((4, 6)))


def _over_std(x):
    return x / x.std(-1, keepdims=True)


def _relu(x):
    return np.maximum(x, 0)


def _over_root(x):
    return x / np.sqrt(x.shape[0])


@pytest.mark.parametrize(
    ("function", "shape"), [(_over_std, ("N", "D")), (_relu, N), (_over_root, ("n",))]
)
def test_source_that_is_not_right_in_its_library_is_refused(function, shape):
    pytest.importorskip("torch")
    derived = hg.derive(function, x=shape)
    with pytest.raises(hg.errors.ArgumentError, match=r"derive: line \d+: .*torch.*; allowed: "):
        derived.to("torch")
    assert "import numpy" in derived.to("numpy")
