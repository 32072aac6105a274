"""NumPy's and SciPy's signatures: values as theirs, gradients by differences."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

from handgrad.deriving.reverse import gradient
from handgrad.program import primitives  # noqa: F401 (fills the table)
from handgrad.program.node import Node, Program, Refused, World, build, within
from handgrad.program.primitives.table import signature_of
from handgrad.program.run import run
from tests.program.test_primitives import leaf, slope, world
from tests.rows import rows

RNG = np.random.default_rng(5)
X = RNG.standard_normal((3, 2, 4))
P = RNG.uniform(0.5, 2, (3, 4))
V = RNG.standard_normal(5)
MASK = RNG.random((3, 2, 4)) < 0.7
MASK[:, 0] = True
NAN = np.where(MASK, X, np.nan)
Call = Callable[..., Any]

CALLS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {}


def call(function: Any, *args: Any, **keywords: Any) -> None:
    """A case: floats with axes are differentiated, all else is as the user writes it."""
    name = function if isinstance(function, tuple) else (function,)
    words = ".".join(getattr(f, "__name__", str(f)) for f in name)
    CALLS[f"{len(CALLS)}-{words}"] = function, args, keywords


for _f in (np.sum, np.mean, np.var, np.std, np.max, np.min, np.prod, np.ptp, np.any, np.all):
    for _axis in (None, 1, -1, (0, 2), (-1, 0)):
        call(_f, X, axis=_axis)
    call(_f, X, axis=-2, keepdims=True)
for _f in (np.sum, np.prod, np.max, np.min):
    call(_f, X, axis=1, initial=0.3)
    call(_f, X, axis=1, where=MASK, initial=0.3)
for _f in (np.sum, np.mean, np.var, np.std, np.prod):
    call(_f, X, axis=(0, 2), where=MASK)
    call(_f, X, axis=0, where=MASK, keepdims=True)
for _f in (np.var, np.std):
    call(_f, X, axis=0, ddof=1)
    call(_f, X, ddof=1.5, keepdims=True)
    call(_f, X, axis=-1, correction=1)
call(np.var, X, axis=0, where=MASK[..., :1], ddof=1)
for _f in (np.nansum, np.nanmean, np.nanvar, np.nanstd, np.nanprod, np.nanmax, np.nanmin):
    call(_f, NAN, axis=1)
call(np.nancumsum, NAN, axis=0)
for _ufunc in (np.add, np.multiply, np.maximum, np.minimum, np.logaddexp):
    call((_ufunc, "reduce"), X)
    call((_ufunc, "reduce"), X, axis=-1, keepdims=True)
    call((_ufunc, "accumulate"), X)
    call((_ufunc, "accumulate"), X, axis=2)
call((np.maximum, "reduce"), X, initial=0.1)
for _f in (np.cumsum, np.cumprod):
    call(_f, X)
    call(_f, X, axis=-2)
if hasattr(np, "cumulative_sum"):
    call(np.cumulative_sum, V, include_initial=True)
    call(np.cumulative_prod, X, axis=1, include_initial=True)
for _ord in (None, 1, 2, 3, 1.5, -1, 0, np.inf, -np.inf):
    call(np.linalg.norm, V, _ord)
    call(np.linalg.norm, X, _ord, axis=1, keepdims=True)
for _ord in (None, "fro", 1, -1, np.inf, -np.inf):
    call(np.linalg.norm, P, _ord)
    call(np.linalg.norm, X, _ord, axis=(2, 0))
call(np.linalg.norm, X)
call(np.linalg.vector_norm, X, axis=(0, 1), ord=3)
call(np.linalg.matrix_norm, X, keepdims=True)
call(np.average, X, axis=1)
call(np.average, P, weights=P * 2)
call(np.average, X, axis=2, weights=P[0])
call(np.average, X, axis=(2, 0), weights=P.T)
call(np.average, X, axis=2, weights=P[0], keepdims=True, returned=True)
call(np.diff, X)
call(np.diff, X, 2, axis=0)
call(np.diff, V, prepend=0.0, append=V[:2])
call(np.trapezoid, X)
call(np.trapezoid, X, dx=0.1, axis=0)
call(np.trapezoid, X, np.sort(V)[:3], axis=0)
call(np.trapezoid, X, np.sort(X, 1), axis=1)
for _axis in (-1, 0, 1, None):
    call(np.sort, X, axis=_axis)
    call(np.argsort, X, axis=_axis)
    call(np.argmax, X, axis=_axis)
    call(np.argmin, X, axis=_axis, keepdims=True)
    call(np.median, X, axis=_axis)
    call(np.partition, X, 1, axis=_axis)
call(np.median, V)
call(np.median, X, axis=(0, 2), keepdims=True)
for _q in (0.0, 0.3, 1.0, [0.2, 0.9]):
    call(np.quantile, X, _q)
    call(np.quantile, X, _q, axis=1, keepdims=True)
    call(np.percentile, X, np.multiply(_q, 100), axis=(0, -1))
for _method in ("lower", "higher", "nearest", "midpoint", "hazen", "weibull", "median_unbiased"):
    call(np.quantile, V, 0.37, method=_method)
call(np.searchsorted, np.sort(V), X)
call(np.digitize, X, np.array([-0.5, 0.0, 0.5]))
call(np.count_nonzero, X > 0, axis=1)
call(np.clip, X, -0.5, 0.5)
call(np.clip, X, None, 0.5)
call(np.clip, X, min=0.1)
call(np.clip, X, X - 1, X[0] + 1)
call(np.where, MASK, X, 0.0)
call(np.select, [X > 1, X > 0], [X, 2 * X], -1.0)
call(np.power, P, 3)
call(np.power, 2.0, P)
call(np.power, X, 2)
call(np.float_power, P, 1.5)
call(np.remainder, X, 0.7)
call(np.fmod, X, 0.7)
call(np.divmod, X, 0.7)
call(np.modf, X)
call(np.maximum, X, X[:, ::-1])
call(np.fmax, X, 0.1)
call(np.fmin, X[0] + 0.1, X)
call(np.hypot, P, X[:, 0])
call(np.copysign, X, -1.0)
call(np.heaviside, X, 0.5)
call(np.nan_to_num, NAN)
call(np.nan_to_num, NAN, nan=2.0)
call(np.round, X)
call(np.ldexp, X, 2)
call(np.reciprocal, P)
call(np.i0, X)
call(np.sinc, X)
call(np.isclose, X, X + 1e-6)
call(np.conjugate, X)
call(np.real, X)
call(np.imag, X)
for _f in (sp.softmax, sp.log_softmax, sp.logsumexp):
    for _axis in (None, -1, (0, 1)):
        call(_f, X, axis=_axis)
call(sp.logsumexp, X, axis=0, keepdims=True, b=MASK + 0.5)
call(sp.logsumexp, X, axis=0, b=np.where(MASK, -1.0, 0.1), return_sign=True)
for _f in (sp.expit, sp.log_expit, sp.erf, sp.erfc, sp.ndtr, sp.log_ndtr, sp.i0, sp.i1, sp.j0):
    call(_f, X)
for _f in (sp.j1, sp.expm1, sp.exp2, sp.exp10, sp.cbrt):
    call(_f, X)
for _f in (sp.gammaln, sp.digamma, sp.gamma, sp.entr, sp.log1p):
    call(_f, P)
call(sp.polygamma, 2, P)
for _f in (sp.xlogy, sp.xlog1py, sp.rel_entr, sp.kl_div, sp.betaln, sp.beta, sp.huber):
    call(_f, P, P[:1] * 1.1)
call(sp.pseudo_huber, 0.7, X)
call(sp.erfinv, np.tanh(X))
call(sp.logit, 1 / (1 + np.exp(-X)))
call(sp.multigammaln, P + 2, 3)


def theirs(function: Any, args: Any, keywords: Any) -> tuple[Any, ...]:
    f = getattr(*function) if isinstance(function, tuple) else function
    out = f(*args, **keywords)
    return tuple(out) if isinstance(out, tuple) else (out,)


def active(a: Any) -> bool:
    return isinstance(a, np.ndarray) and a.dtype.kind == "f"


@rows("name", CALLS)
def test_signature(name: str) -> None:
    function, args, keywords = CALLS[name]
    want = theirs(function, args, keywords)
    with within(world()) as w:
        given = [leaf(a) if active(a) else a for a in args]
        result = signature_of(function)(*given, **keywords)
        outputs = list(result) if isinstance(result, tuple) else [result]
        for y, v in zip(outputs, want, strict=True):
            assert isinstance(y, Node)
            np.testing.assert_allclose(y.value, v, rtol=1e-12, atol=1e-13)
            assert np.asarray(v).dtype.kind == y.kind
        xs = [x for x in given if isinstance(x, Node)]
        outputs = [y for y in outputs if y.kind == "f"]
        if not outputs:
            return
        dys, grads = gradient(Program(xs, outputs), xs)
        rng = np.random.default_rng(9)
        c = [rng.standard_normal(np.shape(y.value)) for y in outputs]
        got = run(Program([*xs, *dys], grads), [*(x.value for x in xs), *c], w.lengths)
    directions = [rng.standard_normal(x.value.shape) for x in xs]

    def contracted(h: float) -> float:
        steps = iter(directions)
        at = [a + h * next(steps) if active(a) else a for a in args]
        out = [v for v in theirs(function, at, keywords) if np.asarray(v).dtype.kind == "f"]
        return float(sum((a * b).sum() for a, b in zip(c, out, strict=True)))

    found = sum((g * d).sum() for g, d in zip(got, directions, strict=True) if g is not None)
    np.testing.assert_allclose(np.nansum(found), slope(contracted), rtol=1e-6, atol=1e-7)


def refusal(function: Any, *args: Any, **keywords: Any) -> str:
    with within(World()), pytest.raises(Refused) as caught:
        signature_of(function)(*args, **keywords)
    return str(caught.value)


def test_random_numbers_are_an_input() -> None:
    assert refusal(np.random.rand, 3) == (
        "np.random.rand draws other numbers in each call; "
        "write an input for the numbers, drawn by the caller"
    )
    assert "default_rng" in refusal(np.random.default_rng, 0)


REFUSED: dict[str, tuple[Callable[..., Any], str]] = {
    "where of a ufunc": (
        lambda f, x: f(np.exp, x, where=x),
        "np.exp with where= leaves the other elements undefined; write np.where",
    ),
    "out of a reduction": (
        lambda f, x: f(np.sum, x, out=x),
        "a reduction with out= is not known; write the result to a name",
    ),
    "out of a running sum": (
        lambda f, x: f(np.cumsum, x, out=x),
        "a running reduction with out= is not known; write the result to a name",
    ),
    "sorter": (
        lambda f, x: f(np.searchsorted, x, x, sorter=x),
        "np.searchsorted with sorter= is not known; write np.searchsorted(x[sorter], values)",
    ),
    "method": (
        lambda f, x: f(np.quantile, x, 0.5, method="inverted_cdf"),
        "np.quantile by inverted_cdf is not known; write method='linear'",
    ),
    "equal_nan": (
        lambda f, x: f(np.isclose, x, x, equal_nan=True),
        "np.isclose with equal_nan= is not known",
    ),
    "keys": (
        lambda f, x: f(np.lexsort, x),
        "np.lexsort of several keys is not known; write np.argsort, last key first",
    ),
    "median of numbers": (
        lambda f, x: f(np.nanmedian, x),
        "np.nanmedian goes over as many elements as the values say; "
        "write the same of the elements that are numbers, chosen before",
    ),
    "histogram": (
        lambda f, x: f(np.histogram, x),
        "np.histogram counts, which has no derivative; write the counts as an input",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_line_and_what_to_write(name: str) -> None:
    f, sentence = REFUSED[name]
    with within(world()) as w:
        w.line = 7
        with pytest.raises(Refused) as caught:
            f(lambda function, *args, **k: signature_of(function)(*args, **k), leaf(V))
    assert str(caught.value) == f"line 7: {sentence}"


Z = X + 1j * RNG.standard_normal(X.shape)
COMPLEX: dict[str, Callable[..., Any]] = {
    "product": lambda f, z: f(np.multiply, z, np.conj(Z[::-1])),
    "product with a real": lambda f, z: f(np.multiply, f(np.real, z), z),
    "quotient": lambda f, z: f(np.divide, f(np.real, z), z),
    "power": lambda f, z: f(np.power, z, 3),
    "exp": lambda f, z: f(np.exp, z),
    "tanh": lambda f, z: f(np.tanh, z),
    "logistic": lambda f, z: f(np.divide, 1, f(np.add, 1, f(np.exp, f(np.negative, z)))),
    "size": lambda f, z: f(np.abs, z),
    "sum": lambda f, z: f(np.sum, z, axis=0),
    "mean": lambda f, z: f(np.mean, z, axis=(0, 1)),
    "product of all": lambda f, z: f(np.prod, z, axis=1),
    "running sum": lambda f, z: f(np.cumsum, z, axis=1),
    "norm": lambda f, z: f(np.linalg.norm, z, axis=2),
    "variance": lambda f, z: f(np.var, z, axis=2),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_operands(name: str) -> None:
    """The gradient of a + ib is ∂L/∂a + i ∂L/∂b, so a step d changes L by Re Σ conj(g) d."""
    f, rng = COMPLEX[name], np.random.default_rng(3)
    with within(world()) as w:
        z = leaf(Z)
        y = f(lambda function, *args, **k: signature_of(function)(*args, **k), z)
        want = f(lambda function, *args, **k: function(*args, **k), Z)
        np.testing.assert_allclose(y.value, want, rtol=1e-12)
        assert y.kind == want.dtype.kind
        parts = [build("real", y), build("imag", y)] if y.kind == "c" else [y]
        dys, (dz,) = gradient(Program([z], parts), [z])
        c = [rng.standard_normal(want.shape) for _ in parts]
        (g,) = run(Program([z, *dys], [dz]), [Z, *c], w.lengths)
    d = rng.standard_normal(Z.shape) + 1j * rng.standard_normal(Z.shape)

    def contracted(h: float) -> float:
        out = f(lambda function, *args, **k: function(*args, **k), Z + h * d)
        return float(sum((a * b).sum() for a, b in zip(c, (out.real, out.imag), strict=False)))

    np.testing.assert_allclose((np.conj(g) * d).sum().real, slope(contracted), rtol=1e-7)
