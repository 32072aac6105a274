"""Pairs in C: compiled without a warning, they have the values of those for NumPy."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import handgrad as hg
from handgrad.deriving import in_c
from tests.deriving.published import PAIRS

ND = ("N", "D")
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
ROWS = (
    *("layer_norm", "rms_norm", "residual + rms_norm", "batch_norm", "l2_normalise"),
    *("cosine_similarity", "softmax", "log_softmax + cross-entropy", "label smoothing"),
    *("sigmoid BCE with logits", "focal loss", "gelu", "gelu (tanh)", "swiglu"),
)


def called(d, lengths, inputs, dys):
    """What the functions in C make of arrays by name: results, and gradients."""
    pair = d.pair
    found = in_c.functions(pair, "f")
    values = {id(n): inputs[n.name] for n in pair.traced.program.inputs}
    values |= {id(n): dy for n, dy in zip(pair.cotangents, dys, strict=True)}
    precision = "float32" if in_c.real_of(pair) == "float" else "float64"
    with in_c.built("cc", in_c.module(pair, found)) as library:
        for function in found:
            in_c.run(library, function, lengths, values, precision)
    outputs = pair.forward.outputs, pair.backward.outputs
    return [[values[id(n)] for n in each] for each in outputs]


@needs_compiler
@pytest.mark.parametrize("name", ROWS)
def test_the_published_backwards_agree(name):
    pair, rng = PAIRS[name], np.random.default_rng(1)
    shapes = {k: v for k, v in pair.given.items() if k != "wrt"}
    d = hg.derive(pair.forward, assume=pair.assume, **pair.given)
    assert d.to("c").startswith("#include <math.h>\n#include <stddef.h>\n")
    lengths = {"N": 7, "D": 9, "C": 5}
    inputs = {
        k: rng.standard_normal([lengths[x] for x in shape if x in lengths])
        for k, shape in shapes.items()
    }
    if name == "focal loss":
        inputs["z"] = inputs["z"] > 0
    if pair.assume:
        inputs["q"] = np.exp(inputs["q"]) / np.exp(inputs["q"]).sum(-1, keepdims=True)
    numbers = d.pair.traced.numbers
    values = {s.path: s.value for s in d.pair.traced.arguments.settings}
    settings = {n.name: values[path] for path, n in numbers.items()}
    ys = pair.forward(**inputs)
    ys = ys if isinstance(ys, tuple) else (ys,)
    dys = [rng.standard_normal(np.shape(y)) for y in ys]
    found, gradients = called(d, lengths, inputs | settings, dys)
    for y, own in zip(ys, found, strict=True):
        np.testing.assert_allclose(own, y, 1e-12, 1e-13)
    wanted = pair.backward(dys[0] if len(dys) == 1 else dys, *pair.kept(**inputs))
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for one, two in zip(gradients, wanted, strict=True):
        np.testing.assert_allclose(one, two, 1e-11, 1e-12)


def layer_norm(x, gamma, beta, eps=1e-5):
    centred = x - x.mean(-1, keepdims=True)
    x_hat = centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + eps)
    return gamma * x_hat + beta


@needs_compiler
@pytest.mark.parametrize("lengths", [(0, 4), (3, 1), (1, 1)], ids=str)
def test_sizes_of_0_and_1(lengths):
    d = hg.derive(layer_norm, x=ND, gamma=("D",), beta=("D",))
    N, D = lengths
    rng = np.random.default_rng(2)
    arrays = {"x": rng.standard_normal((N, D)), "gamma": np.ones(D) * 2, "beta": np.ones(D)}
    dy = rng.standard_normal((N, D))
    (y,), gradients = called(d, {"N": N, "D": D}, arrays | {"eps": 1e-5}, [dy])
    own, cache = d.forward(*arrays.values())
    np.testing.assert_allclose(y, own, 1e-12, 1e-12)
    for one, two in zip(gradients, d.backward(dy, cache), strict=True):
        np.testing.assert_allclose(one, two, 1e-12, 1e-12)


@needs_compiler
def test_a_number_that_is_kept_is_filled_without_rows():
    d = hg.derive(lambda x, p=0.1: x / (1 - p), x=ND)
    (y,), (dx,) = called(d, {"N": 0, "D": 3}, {"x": np.ones((0, 3)), "p": 0.1}, [np.ones((0, 3))])
    assert y.shape == dx.shape == (0, 3)
    assert "*scale" not in d.to("c").partition("for (")[2].partition("}")[0]


def cases():
    def along_the_middle(x, b):
        return (x * b[:, None, :]).sum(1)

    def softmax_by_columns(x):
        e = np.exp(x - x.max(0))
        return e / e.sum(0)

    def with_a_bias(x, bias):
        s = x + bias
        e = np.exp(s - s.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def batch_norm(x, gamma, beta, eps=1e-5):
        m = x.mean((0, 2), keepdims=True)
        v = ((x - m) ** 2).mean((0, 2), keepdims=True)
        return gamma[:, None] * (x - m) / np.sqrt(v + eps) + beta[:, None]

    def dropout(x, mask, p=0.1):
        return x * mask / (1 - p)

    def sums(x):
        return x.sum(), (x * x).sum(0), x.max(1)

    def masked_mean(x, mask):
        return (x * mask).sum(-1) / mask.sum(-1)

    def labels(z, y):
        s = z - z.max(-1, keepdims=True)
        log_p = s - np.log(np.exp(s).sum(-1, keepdims=True))
        return -np.take_along_axis(log_p, y[:, None], -1).mean()

    def indexed(z, y):
        m = z.max(-1, keepdims=True)
        total = m[:, 0] + np.log(np.exp(z - m).sum(-1))
        return (total - z[np.arange(len(z)), y]).mean()

    def signs(a, b):
        return -(0 - a) - (-b) - (a - b) - (-(a * b)) - -2.5 * a

    def scales(x, k=3):
        return x * k / (k + 1) + x**k

    def functions(x):
        return (
            np.clip(x, -1, 1) * np.arctan2(x, 2.0)
            + np.sign(x) * np.log1p(x * x)
            + np.cbrt(2 + x * x)
        )

    def the_same_twice(x):
        return x, x

    def numbers(x, y):
        return np.sin(x) * y

    truths = ("N", "D", bool)
    return [
        (along_the_middle, {"x": ("N", "T", "D"), "b": ND}),
        (softmax_by_columns, {"x": ND}),
        (with_a_bias, {"x": ("B", "H", "T", "S"), "bias": ("T", "S")}),
        (batch_norm, {"x": ("N", "C", "L"), "gamma": ("C",), "beta": ("C",)}),
        (dropout, {"x": ND, "mask": truths}),
        (sums, {"x": ND}),
        (masked_mean, {"x": ND, "mask": truths}),
        (labels, {"z": ("N", "C"), "y": ("N", int)}),
        (indexed, {"z": ("N", "C"), "y": ("N", int)}),
        (signs, {"a": ND, "b": ND}),
        (scales, {"x": ND}),
        (functions, {"x": ND}),
        (the_same_twice, {"x": ND}),
        (numbers, {"x": (), "y": ()}),
    ]


@pytest.mark.parametrize(("forward", "shapes"), cases(), ids=lambda x: getattr(x, "__name__", ""))
def test_it_is_proved_in_both_precisions(forward, shapes):
    d = hg.derive(forward, **shapes)
    assert "double" in d.to("c")
    rng, sampler = np.random.default_rng(0), d.proof.sampler
    lengths = {x: n + 2 for n, x in enumerate(sampler.lengths())}
    values = sampler.draw(rng, lengths)
    single = {k: v.astype(np.float32) if _is_float(v) else v for k, v in values.items()}
    if forward.__name__ not in ("labels", "indexed"):  # whose lengths have letters of their own
        source = hg.derive(forward, **single).to("c")
        assert "double" not in source
        assert "exp(" not in source
        assert "log1p(" not in source


def _is_float(value):
    return getattr(value, "dtype", None) == np.float64


@needs_compiler
def test_labels_from_the_end():
    forward, shapes = next(each for each in cases() if each[0].__name__ == "indexed")
    d, rng = hg.derive(forward, **shapes), np.random.default_rng(3)
    z, y = rng.standard_normal((4, 5)), np.array([0, -1, 4, -5])
    (found,), (dz,) = called(d, {"N": 4, "C": 5}, {"z": z, "y": y}, [np.array(1.0)])
    own, cache = d.forward(z, y)
    np.testing.assert_allclose(found, own, 1e-12)
    np.testing.assert_allclose(dz, d.backward(1.0, cache), 1e-12, 1e-15)


def test_names_of_c_and_of_greek():
    def forward(double, restrict, exp, y1, σ):
        return np.exp(double * restrict) + exp * y1 - σ

    source = hg.derive(forward, double=ND, restrict=ND, exp=("D",), y1=("D",), σ=ND).to("c")
    assert "const double *restrict double_2" in source
    assert "const double *restrict sigma" in source
    assert source.isascii()


@pytest.mark.parametrize(
    ("forward", "shapes", "what"),
    [
        (lambda x, w: x @ w, {"x": ND, "w": ("D", "K")}, "a product of matrices"),
        (lambda x: x + x.T, {"x": ("N", "N")}, "an array beside itself"),
        (lambda w, t: w[t], {"w": ("V", "D"), "t": ("N", int)}, "a part of an array by an index"),
        (lambda x: np.cumsum(x, -1), {"x": ND}, "cumsum"),
        (lambda x: np.fft.rfft(x).real, {"x": ND}, "rfft"),
        (lambda x: x.reshape(-1, 2), {"x": ("N", "2*D")}, "reshape to other axes"),
        (lambda x: x * np.array([1.0, 2.0]), {"x": ("N", 2)}, "an array from elsewhere"),
        (lambda x: x / x.sum(0) / x.sum(1, keepdims=True), {"x": ND}, "a sum along an axis"),
        (lambda x: np.stack([x[t] * 2 for t in range(len(x))]), {"x": ND}, "a loop"),
    ],
)
def test_what_it_has_no_rows_for_is_refused(forward, shapes, what):
    d = hg.derive(forward, **shapes)
    with pytest.raises(ValueError, match=f"derive: line .*{what}") as told:
        d.to("c")
    assert "is not written for C; allowed: functions of elements" in str(told.value)
    assert "numpy, torch or jax" in str(told.value)


def test_without_a_compiler_it_is_not_run(monkeypatch):
    d = hg.derive(lambda x: np.tanh(x), x=ND)
    found = in_c.functions(d.pair, d.name)
    source = in_c.module(d.pair, found)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert in_c.prove(d.proof, found, source) == "not run: no C compiler is installed"
    assert d.to("c") == source


@needs_compiler
def test_what_does_not_compile_is_told():
    d = hg.derive(lambda x: np.tanh(x), x=ND)
    found = in_c.functions(d.pair, d.name)
    with pytest.raises(in_c.UnprovedError, match="does not compile"):
        in_c.prove(d.proof, found, "void f(void) { int unused; }\n")


@needs_compiler
def test_other_values_are_told():
    d = hg.derive(lambda x: np.tanh(x), x=ND)
    found = in_c.functions(d.pair, d.name)
    source = in_c.module(d.pair, found).replace("tanh(", "sin(")
    with pytest.raises(in_c.UnprovedError, match="other values"):
        in_c.prove(d.proof, found, source)


def test_helpers_of_c_take_no_names_elsewhere():
    def signed(x):
        sign = np.sign(x)
        maximum = x.max(-1, keepdims=True)
        return sign * x * x / maximum

    before = hg.derive(signed, x=("N", "D"))
    source = before.to("numpy")
    assert " sign = " in source
    before.to("c")
    assert hg.derive(signed, x=("N", "D")).to("numpy") == source
