"""Derivatives at extremes, kinks and ties: PyTorch's where it has one."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

from handgrad.deriving.reverse import gradient
from handgrad.program import primitives  # noqa: F401 (fills the table)
from handgrad.program.node import Program, as_node, build, within
from handgrad.program.primitives.table import signature_of
from handgrad.program.run import run
from tests.program.test_primitives import leaf, world
from tests.rows import rows

INF = np.inf


def gradients(f: Callable[..., Any], *values: Any, ties: str = "first") -> list[Any]:
    """The result of f and the gradients of its operands by an output gradient of 1, 2, 3 …"""
    with within(world()) as w, np.errstate(all="ignore"):
        w.ties = ties
        xs = [leaf(np.asarray(v, float)) for v in values]
        y = f(*xs)
        dys, grads = gradient(Program(xs, [y]), xs)
        g = 1.0 + np.arange(np.size(y.value)).reshape(np.shape(y.value))
        return run(Program([*xs, *dys], [y, *grads]), [*(x.value for x in xs), g], w.lengths)


def np_(function: Any, **keywords: Any) -> Callable[..., Any]:
    return lambda *args: signature_of(function)(*args, **keywords)


AXIS = {"axis": -1}
TORCH: dict[str, tuple[Callable[..., Any], Callable[..., Any], list[Any]]] = {
    "sigmoid": (
        lambda x: 1 / (1 + build("exp", -x)),
        lambda t, x: t.sigmoid(x),
        [[-800.0, 0.0, 800.0, -INF, INF]],
    ),
    "expit": (np_(sp.expit), lambda t, x: t.sigmoid(x), [[-800.0, 0.0, 800.0, 30.0]]),
    "silu": (
        lambda x: x / (1 + build("exp", -x)),
        lambda t, x: t.nn.functional.silu(x),
        [[-800.0, 0.0, 800.0]],
    ),
    "softplus": (
        lambda x: build("log", 1 + build("exp", x)),
        lambda t, x: -t.nn.functional.logsigmoid(-x),
        [[-800.0, 0.0, 800.0]],
    ),
    "softplus by log1p": (
        lambda x: build("log1p", build("exp", x)),
        lambda t, x: -t.nn.functional.logsigmoid(-x),
        [[-800.0, 0.0, 800.0]],
    ),
    "softplus in halves": (
        lambda x: build("maximum", x, 0) + build("log1p", build("exp", -build("abs", x))),
        lambda t, x: -t.nn.functional.logsigmoid(-x),
        [[-800.0, 0.0, 800.0]],
    ),
    "log-sigmoid in halves": (
        lambda x: build("minimum", x, 0) - build("log1p", build("exp", -build("abs", x))),
        lambda t, x: t.nn.functional.logsigmoid(x),
        [[-800.0, 0.0, 800.0]],
    ),
    "cross-entropy in halves": (
        lambda x, z: (
            build("maximum", x, 0) - x * z + build("log1p", build("exp", -build("abs", x)))
        ),
        lambda t, x, z: t.nn.functional.binary_cross_entropy_with_logits(x, z, reduction="none"),
        [[-800.0, 0.0, 800.0], [0.3, 1.0, 0.0]],
    ),
    "logarithm of sigmoid": (
        lambda x: build("log", 1 / (1 + build("exp", -x))),
        lambda t, x: t.nn.functional.logsigmoid(x),
        [[-800.0, 0.0, 800.0]],
    ),
    "tanh": (np_(np.tanh), lambda t, x: t.tanh(x), [[-800.0, 0.0, 800.0]]),
    "logsumexp": (
        np_(sp.logsumexp, **AXIS),
        lambda t, x: t.logsumexp(x, -1),
        [[[-800.0, 800.0], [1e300, 0.0], [-INF, 1.0]]],
    ),
    "softmax": (
        np_(sp.softmax, **AXIS),
        lambda t, x: t.softmax(x, -1),
        [[[-800.0, 800.0], [1e300, 0.0], [-INF, 1.0]]],
    ),
    "log_softmax": (
        np_(sp.log_softmax, **AXIS),
        lambda t, x: t.log_softmax(x, -1),
        [[[-800.0, 800.0], [1e3, 0.0], [2.0, 1.0]]],
    ),
    "logaddexp": (
        np_(np.logaddexp),
        lambda t, a, b: t.logaddexp(a, b),
        [[-800.0, 800.0, -INF, 3.0], [800.0, -800.0, 2.0, 3.0]],
    ),
    "norm at 0": (
        np_(np.linalg.norm, **AXIS),
        lambda t, x: t.linalg.vector_norm(x, dim=-1),
        [[[0.0, 0.0], [3.0, -4.0]]],
    ),
    **{
        f"norm {p}": (
            np_(np.linalg.norm, ord=p, **AXIS),
            lambda t, x, p=p: t.linalg.vector_norm(x, p, dim=-1),
            [[[0.0, 0.0, 0.0], [0.0, 2.0, -2.0]]],
        )
        for p in (0.5, 1, 1.5, 3, INF, -INF)
    },
    "std of equal": (
        np_(np.std, ddof=1, **AXIS),
        lambda t, x: t.std(x, -1),
        [[[1.0, 1.0, 1.0], [1.0, 2.0, 4.0]]],
    ),
    "var of equal": (
        np_(np.var, **AXIS),
        lambda t, x: t.var(x, -1, correction=0),
        [[[1.0, 1.0, 1.0], [1.0, 2.0, 4.0]]],
    ),
    "power of both": (
        lambda x, p: x**p,
        lambda t, x, p: x**p,
        [[0.0, 0.0, 0.0, -2.0, 2.0], [0.0, 2.0, 0.5, 2.0, 0.0]],
    ),
    "power 0": (lambda x: x**0 + x, lambda t, x: x**0 + x, [[0.0, 2.0]]),
    "square by power": (lambda x: x**2.0, lambda t, x: x**2.0, [[0.0, -2.0]]),
    "abs, sign": (
        lambda x: build("abs", x) + build("sign", x),
        lambda t, x: x.abs() + x.sign(),
        [[0.0, -1.0]],
    ),
    "maximum": (np_(np.maximum), lambda t, a, b: t.maximum(a, b), [[0.0, 1.0], [0.0, 2.0]]),
    "minimum": (np_(np.minimum), lambda t, a, b: t.minimum(a, b), [[0.0, 1.0], [0.0, 2.0]]),
    "fmax": (
        np_(np.fmax),
        lambda t, a, b: t.fmax(a, b),
        [[0.0, 1.0, np.nan, 1.0], [0.0, 2.0, 1.0, np.nan]],
    ),
    "fmin": (
        np_(np.fmin),
        lambda t, a, b: t.fmin(a, b),
        [[0.0, 1.0, np.nan, 1.0], [0.0, 2.0, 1.0, np.nan]],
    ),
    "relu": (lambda x: build("maximum", x, 0), lambda t, x: t.relu(x), [[0.0, 1.0, -1.0]]),
    "clip": (
        lambda x: signature_of(np.clip)(x, 0.0, 1.0),
        lambda t, x: x.clamp(0, 1),
        [[0.0, 1.0, 0.5, 2.0, -1.0]],
    ),
    "max": (np_(np.max, **AXIS), lambda t, x: t.amax(x, -1), [[[2.0, 2.0, 1.0], [1.0, 3.0, 2.0]]]),
    "prod": (
        np_(np.prod, **AXIS),
        lambda t, x: t.prod(x, -1),
        [[[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [1.0, 2.0, 3.0]]],
    ),
    "cumprod": (
        np_(np.cumprod, **AXIS),
        lambda t, x: t.cumprod(x, -1),
        [[[0.0, 2.0, 3.0, 0.0], [2.0, 0.0, 0.0, 3.0], [1.0, 2.0, 3.0, 4.0]]],
    ),
    "running maximum": (
        lambda x: signature_of((np.maximum, "accumulate"))(x, -1),
        lambda t, x: t.cummax(x, -1)[0],
        [[[1.0, 1.0, 0.0], [0.0, 2.0, 1.0]]],
    ),
    "running logsumexp": (
        lambda x: signature_of((np.logaddexp, "accumulate"))(x, -1),
        lambda t, x: t.logcumsumexp(x, -1),
        [[[800.0, -800.0, 801.0], [-800.0, -INF, 3.0]]],
    ),
    "arctan2 at 0": (
        np_(np.arctan2),
        lambda t, a, b: t.atan2(a, b),
        [[0.0, 1.0, 0.0], [0.0, 0.0, -1.0]],
    ),
    "sinc": (np_(np.sinc), lambda t, x: t.sinc(x), [[0.0, 1.0, 0.3]]),
    "xlogy": (np_(sp.xlogy), lambda t, a, b: t.xlogy(a, b), [[0.0, 0.0, 2.0], [0.0, 1.0, 3.0]]),
    "log_ndtr": (np_(sp.log_ndtr), lambda t, x: t.special.log_ndtr(x), [[-40.0, 0.0, 40.0]]),
    "nan_to_num": (
        np_(np.nan_to_num),
        lambda t, x: t.nan_to_num(x),
        [[np.nan, INF, -INF, 1.0]],
    ),
    "copysign": (
        np_(np.copysign),
        lambda t, a, b: t.copysign(a, b),
        [[0.0, 1.0, -1.0], [1.0, -1.0, -1.0]],
    ),
}


@rows("name", TORCH)
def test_as_in_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs, values = TORCH[name]
    y, *found = gradients(ours, *values)
    xs = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in values]
    out = theirs(torch, *xs)
    (out * torch.arange(1.0, out.numel() + 1).reshape(out.shape)).sum().backward()
    np.testing.assert_allclose(y, out.detach().numpy(), rtol=1e-12, equal_nan=True)
    for g, x in zip(found, xs, strict=True):
        np.testing.assert_allclose(g, np.zeros(g.shape) if x.grad is None else x.grad, rtol=1e-10)


def test_sums_of_nothing_but_0_have_gradient_0() -> None:
    """PyTorch gives NaN for the logarithm of a sum whose terms are all 0."""
    rows = [[-INF, -INF], [0.0, 0.0]]
    y, dx = gradients(np_(sp.logsumexp, axis=-1), rows)
    np.testing.assert_array_equal(y, [-INF, np.log(2)])
    np.testing.assert_array_equal(dx, [[0, 0], [1, 1]])
    for f in (np.logaddexp, np.logaddexp2):
        _, da, db = gradients(np_(f), [-INF, -INF], [-INF, 0.0])
        np.testing.assert_array_equal([da, db], [[0, 0], [0, 2]])
    _, dx = gradients(np_((np.logaddexp, "accumulate"), axis=-1), [[-INF, -INF, 1.0]])
    np.testing.assert_array_equal(dx, [[0, 0, 3]])


def test_hypot_has_slope_0_at_0() -> None:
    """A length, as PyTorch's norm; its hypot gives NaN."""
    _, da, db = gradients(np_(np.hypot), [0.0, 3.0], [0.0, 4.0])
    np.testing.assert_allclose([da, db], [[0, 1.2], [0, 1.6]])


def test_gradients_of_extremes_keep_float32() -> None:
    for f in (np.max, np.min, np.std, np.var, np.mean):
        with within(world()) as w:
            x = leaf(np.array([[1.0, 2.0, 4.0], [3.0, 1.0, 2.0]], np.float32))
            y = signature_of(f)(x, axis=-1)
            dys, (dx,) = gradient(Program([x], [y]), [x])
            g = np.ones(np.shape(y.value), np.float32)
            assert y.value.dtype == np.float32
            assert run(Program([x, *dys], [dx]), [x.value, g], w.lengths)[0].dtype == np.float32


def test_constants_fold_and_sizes_stay() -> None:
    with within(world()):
        assert (as_node(2) + as_node(3)).attrs["value"] == 5
        x = leaf(np.ones(3))
        n = as_node(x.shape[0])
        assert str((n * 2 - n).attrs["size"]) == "M"
        assert build("negative", build("negative", x)) is x
        assert x + 0 is x
        assert x * 1 is x
        assert x / 1 is x
        assert x**1 is x
        assert (x**-1).op == "divide"
        assert (x**0.5).op == "sqrt"


RELU = lambda x: build("maximum", x, 0)  # noqa: E731
PIECES = lambda x: build("where", build("greater", x, 0), x, 0)  # noqa: E731


@pytest.mark.parametrize(
    ("ties", "slopes"), [("first", (0, 0, 0)), ("half", (0.5, 0.5, 0)), ("right", (1, 0, 1))]
)
def test_slopes_where_pieces_meet(ties: str, slopes: tuple[float, ...]) -> None:
    for f, slope in zip((RELU, PIECES, lambda x: build("abs", x)), slopes, strict=True):
        _, dx = gradients(f, [0.0, 2.0], ties=ties)
        np.testing.assert_array_equal(dx, [slope, 2])


@pytest.mark.parametrize("function", [sp.i1, sp.i1e, sp.j1])
def test_bessel_functions_of_order_one_rise_by_a_half_at_0(function: Any) -> None:
    _, slope = gradients(np_(function), [0.0, 1.0])
    h = 1e-7  # i1e is x / 2 · (1 − |x|) near 0
    near = (function(np.array([h, 1 + h])) - function(np.array([-h, 1 - h]))) / (2 * h)
    np.testing.assert_allclose(slope, near * [1, 2], rtol=1e-6)
