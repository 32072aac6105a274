"""Nothing that `hg.derive` gives is wrong in silence: it is right elsewhere, too, or refused."""

import itertools
import re

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
def test_settings_are_variables_of_the_emitted_code(function, others):
    derived = hg.derive(function, x=N)
    x = np.array([3.0, 1.5])
    for settings in ({}, others):
        np.testing.assert_array_equal(derived.forward(x, **settings)[0], function(x, **settings))
        assert hg.check((derived.forward, derived.backward), x, **settings).ok


def test_setting_that_code_is_right_for_stays_free():
    derived = hg.derive(_scaled, x=N)
    _, cache = derived.forward(np.ones(2), scale=5.0)
    np.testing.assert_array_equal(derived.backward(np.ones(2), cache), [5.0, 5.0])


def _windows(x, kernel):
    n, h, w = x.shape
    rows, columns = kernel
    return np.tanh(x).reshape(n, h // rows, rows, w // columns, columns).mean(axis=(2, 4))


def _windows_by_default(x, kernel=(1, 1)):
    return _windows(x, kernel)


def _windows_by_note(x, kernel: tuple[int, int]):
    return _windows(x, kernel)


@pytest.mark.parametrize("function", [_windows, _windows_by_default, _windows_by_note])
@pytest.mark.parametrize("kernel", [(2, 2), (3, 2)])
def test_tuple_of_numbers_that_is_no_shape_is_a_setting(function, kernel):
    derived = hg.derive(function, x=("N", "6 * H", "2 * W"), kernel=kernel)
    x = np.random.default_rng(0).normal(size=(2, 12, 6))
    assert hg.check((derived.forward, derived.backward), x, kernel=kernel).ok
    with pytest.raises(ValueError, match=r"kernel is \(6, 1\); allowed: "):
        derived.forward(x, kernel=(6, 1))


def _product(x, w):
    return x * w


def _strided(x, stride=2):
    return np.tanh(x[: (len(x) - 1) // stride + 1]) * stride


def _graph(pos, rest, edges, k=2.0, steps=2):
    """Springs, whose ends drawn at random may be one node, and a mask of what is far apart."""
    i, j = edges[:, 0], edges[:, 1]
    for _ in range(steps):
        d = pos[j] - pos[i]
        length = np.sqrt((d**2).sum(1))
        near = ((pos[:, None] - pos[None]) ** 2).sum(-1) + 0.1
        near[near > 0] = near[near > 0] ** -1.5
        pos = pos * near.sum(1)[:, None]
        np.add.at(pos, i, (k * (length - rest) / length)[:, None] * d)
    return pos


def test_a_setting_of_the_example_stays_free():
    derived = hg.derive(_strided, x := np.random.default_rng(0).standard_normal(7))
    assert derived.fixed == {}
    y, _ = derived.forward(x, stride=3)
    np.testing.assert_allclose(y, _strided(x, stride=3))


def test_rounds_that_select_by_masks_of_their_own_are_as_many_as_on_the_example():
    """Two masks that select as many elements here may select others of another example."""
    rng = np.random.default_rng(0)
    given = [
        rng.standard_normal((5, 2)),
        rng.standard_normal(3),
        np.array([[0, 1], [1, 2], [3, 4]]),
    ]
    derived = hg.derive(_graph, *given)
    assert derived.fixed == {"steps": 2}
    y, _ = derived.forward(*given, k=3.0)
    np.testing.assert_allclose(y, _graph(*given, k=3.0))
    with pytest.raises(ValueError, match="steps is 3; allowed: 2"):
        derived.forward(*given, steps=3)


def _length_of_squashed(x):
    """The root's slope at 0 is infinite, that of the whole is none."""
    n = (x**2).sum(-1, keepdims=True)
    squashed = n / (1 + n) * x / np.sqrt(n + 1)
    return np.sqrt((squashed**2).sum(-1))


def test_root_that_is_smooth_at_zero_has_a_slope_there():
    derived = hg.derive(_length_of_squashed, x=("N", "D"))
    x = np.array([[0.0, 0.0], [0.5, -1.0]])
    assert hg.check((derived.forward, derived.backward), x[1:]).ok
    dx = derived.backward(np.ones(2), derived.forward(x)[1])
    np.testing.assert_array_equal(dx[0], 0)
    assert np.all(dx[1] != 0)


def test_tuples_of_numbers_alone_are_shapes():
    derived = hg.derive(_product, x=(3, 4), w=(4,))
    dx, dw = derived.backward(np.ones((3, 4)), derived.forward(np.ones((3, 4)), np.ones(4))[1])
    assert dx.shape == (3, 4)
    assert dw.shape == (4,)
    with pytest.raises(hg.errors.ArgumentError, match="fails on its example"):
        hg.derive(_product, x=(3, 4), w=(5,))


def _running_sum(x):
    total = x[0]
    for t in range(1, x.shape[0]):
        total = np.tanh(total + t * x[t])
    return total


def test_loop_whose_rounds_ask_for_their_number_is_one_for_all_lengths():
    derived = hg.derive(_running_sum, x=("T", "D"))
    for length in (1, 2, 9):
        assert hg.check((derived.forward, derived.backward), 0.1 * np.ones((length, 2))).ok


def _shorter(x, w):
    n = min(x.shape[0], w.shape[0])
    return x[:n] * w[:n]


def test_shorter_of_two_lengths_is_asked_for():
    derived = hg.derive(_shorter, x=("N", "D"), w=("M", "D"))
    arrays = np.ones((5, 2)), np.ones((3, 2))
    np.testing.assert_array_equal(derived.forward(*arrays)[0], _shorter(*arrays))
    with pytest.raises(ValueError, match=r"allowed: (N|M) "):
        derived.forward(*arrays[::-1])


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


def _unless_empty(x):
    return x * 2 if x.shape[0] > 0 else x


def _helper(x):
    return _on_value(x) + 1


@pytest.mark.parametrize(
    "function",
    [
        *(_on_value, _on_size, _on_length, _while_size, _and, _chain, _int, _float, _item, _slice),
        *(_range_of_value, _helper, _late, _unless_empty),
    ],
)
def test_branch_on_a_value_or_a_size_is_asked_for_or_refused_with_its_line(function):
    try:
        derived = hg.derive(function, x=N)
    except hg.errors.ArgumentError as error:
        if re.match(r"derive: line \d+: .*; allowed: ", str(error)):
            return
        raise
    refused = 0
    for length, scale in itertools.product((0, 1, 2, 3, 7, 60), (-1.0, 0.1, 1.0, 60.0)):
        x = scale * (1 + np.arange(length) / 8)
        try:
            wanted = function(x)
        except (ValueError, IndexError):  # of no elements
            continue
        try:
            y, cache = derived.forward(x)
        except ValueError as error:
            if "; allowed: " not in str(error):
                raise
            refused += 1
            continue
        np.testing.assert_allclose(y, wanted, rtol=1e-12)
        dy = np.random.default_rng(0).standard_normal(np.shape(y))
        slopes = np.array(
            [np.sum(dy * (function(x + h) - function(x - h))) / 2e-6 for h in 1e-6 * np.eye(length)]
        )
        if np.all(np.isfinite(slopes)):
            scale = max(1.0, float(np.max(np.abs(slopes), initial=0.0)))
            np.testing.assert_allclose(derived.backward(dy, cache), slopes, atol=1e-5 * scale)
    if function in (_float, _item):  # no branch
        assert refused == 0
    elif function is not _while_size:
        assert refused < 24


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_condition_on_a_sum_stays_a_condition(scale):
    derived = hg.derive(_flag, x=N)
    x = np.array([2.0, 3.0]) * scale
    y, cache = derived.forward(x)
    np.testing.assert_array_equal(y, _flag(x))
    np.testing.assert_allclose(derived.backward(np.ones(2), cache), 1 if scale > 1 else 2 * x)


def test_code_behind_a_branch_on_empty_arrays_refuses_them():
    derived = hg.derive(_unless_empty, x=N)
    with pytest.raises(ValueError, match="N is 0; allowed: N > 0"):
        derived.forward(np.ones(0))


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


def test_code_behind_a_branch_on_a_setting_refuses_values_of_the_other_way():
    derived = hg.derive(_by_setting, x=N)
    np.testing.assert_array_equal(derived.forward(2 * np.ones(2), p=3)[0], 36 * np.ones(2))
    with pytest.raises(ValueError, match="p is 1; allowed: p > 2"):
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
    ("function", "arguments", "sizes"),
    [
        (_variable_dw, {"w": N, "v": N}, [(3,), (3,)]),
        (_of_the_module, {"x": ("N", 3)}, [(4, 3)]),
        (_new_axis, {"x": ("N", "T", "D"), "a": ("N", "T")}, [(2, 4, 3), (2, 4)]),
        (_two, {"x": (2, "T", "d")}, [(2, 4, 3)]),
    ],
)
def test_names_constants_and_new_axes_are_taken_as_they_are(function, arguments, sizes):
    derived = hg.derive(function, **arguments)
    rng = np.random.default_rng(0)
    report = hg.check((derived.forward, derived.backward), *map(rng.standard_normal, sizes))
    assert not [row for row in report.gradients if row.verdict != "right"], report


def test_arrays_in_a_dict_are_arguments():
    derived = hg.derive(_of_a_dict, x=np.ones((5, 3)), p={"w": np.ones((3, 2))})
    rng = np.random.default_rng(0)
    x, w, dy = map(rng.standard_normal, ((4, 6), (6, 2), (4, 2)))
    y, cache = derived.forward(x, {"w": w})
    np.testing.assert_array_equal(y, x @ w)
    dx, dw = derived.backward(dy, cache)
    np.testing.assert_allclose(dx, dy @ w.T)
    np.testing.assert_allclose(dw, x.T @ dy)


def _squares(x):
    total = x[0]
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            for k in range(x.shape[0]):
                total = total * x[i] + x[j] + k
    return total


def test_nested_loops_stay_loops():
    derived = hg.derive(_squares, x=N)
    assert derived.backward_source.count("for ") >= 3
    x = 0.1 * np.random.default_rng(0).standard_normal(4)
    assert hg.check((derived.forward, derived.backward), x).ok


def test_op_without_a_derivative_ends_in_a_sentence(tmp_path):
    (tmp_path / "mine.py").write_text("import numpy as np\ndef f(x):\n    return np.unwrap(x)\n")
    result = CliRunner().invoke(app, ["derive", f"{tmp_path}/mine.py:f", "--shape", "x=N"])
    assert result.exit_code == 2
    assert result.output.startswith("handgrad: derive: line 3: ")
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


def test_length_that_a_setting_decides_is_asked_for():
    derived = hg.derive(_tied, x=np.ones((4, 3)))
    x = np.random.default_rng(0).standard_normal((5, 4))
    np.testing.assert_array_equal(derived.forward(x, width=4)[0], _tied(x, width=4))
    with pytest.raises(ValueError, match=r"x.shape\[1\] is 6; allowed: width"):
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
def test_source_for_pytorch_is_right_where_numpy_differs(function, shape):
    torch = pytest.importorskip("torch")
    names: dict = {}
    exec(hg.derive(function, x=shape).to("torch"), names)
    made = next(x for x in names.values() if isinstance(x, type))
    x = np.random.default_rng(0).standard_normal([5, 4][: len(shape)])
    tensor = torch.tensor(x, requires_grad=True)
    np.testing.assert_allclose(made.apply(tensor).detach(), function(x), rtol=1e-12)
    assert torch.autograd.gradcheck(made.apply, tensor)
    single = made.apply(torch.tensor(x, dtype=torch.float32, requires_grad=True))
    assert single.dtype == torch.float32


def _of_one_kind(x, kinds):
    """Pairs of one kind, found in an array of integers."""
    one, other = np.nonzero((kinds[:, None] == kinds[None, :]).astype(int))
    scores = (x @ x.T)[one, other]
    return np.logaddexp.reduce(scores[:, None] - scores[None, :], -1).sum() / len(one)


def _sums_of_kinds(x, kinds):
    """A sum for each kind, of which the kinds themselves are never read."""
    place = np.unique(kinds, return_inverse=True)[1]
    count = len(np.unique(kinds))
    sums = np.zeros((count, x.shape[1]))
    np.add.at(sums, place, x)
    return (sums * sums).sum() / count + (np.arange(count) @ sums).sum()


@pytest.mark.parametrize("forward", [_of_one_kind, _sums_of_kinds])
def test_number_of_what_is_found_is_counted_anew(forward):
    rng = np.random.default_rng(0)
    kinds = np.array([0, 0, 1, 1, 2, 2])
    derived = hg.derive(forward, x=rng.standard_normal((6, 3)), kinds=kinds)
    x, others = rng.standard_normal((6, 3)), np.array([4, 7, 7, 7, 4, 4])
    y, cache = derived.forward(x, others)
    np.testing.assert_allclose(y, forward(x, others), rtol=1e-12)
    direction, h, dy = rng.standard_normal(x.shape), 1e-6, 1.7
    rise = (forward(x + h * direction, others) - forward(x - h * direction, others)) / (2 * h)
    found = np.vdot(derived.backward(dy, cache), direction)
    np.testing.assert_allclose(found, dy * rise, rtol=1e-7)
