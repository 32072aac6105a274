from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from handgrad import ops
from handgrad.documents.formulas.formula import Number, Symbol
from handgrad.documents.formulas.latex import to_latex
from handgrad.documents.formulas.typst import to_typst
from handgrad.equations.dimensions import Dimensions
from handgrad.equations.equations import derive
from handgrad.equations.subject import Subject
from handgrad.errors import ArgumentError
from handgrad.ops import samples
from tests.documents.formulas import indices, letters

#: Letters of every formula: ∂L, the numbers π and ∞, what a size is called, and words of cases.
ALWAYS = {"partial", "L", "pi", "infinity", "NaN", "if", "at", "otherwise"}


def subject_of(op: str, sample: samples.SampleInput, dy: np.ndarray) -> Subject:
    module = getattr(ops, op)
    options = {
        name: np.random.default_rng(value.number) if isinstance(value, samples.Seed) else value
        for name, value in sample.options.items()
    }
    gradients = samples.gradient_names(op)
    return Subject(op, module.forward, module.backward, sample.arrays, options, dy, gradients)


def small(op: str) -> Subject:
    return subject_of(op, samples.small_example(op), samples.small_cotangent(op))


def every_sample(op: str) -> list[Subject]:
    rng = np.random.default_rng(0)
    found = []
    for sample in samples.sample_inputs(op, rng):
        args, kwargs = samples.forward_arguments(op, sample)
        y, _ = getattr(ops, op).forward.reference(*args, **kwargs)
        found.append(subject_of(op, sample, random_like(y, rng)))
    return found


def random_like(y, rng):
    """Random numbers in the shapes of an output, which may be nested tuples."""
    if isinstance(y, tuple):
        return tuple(random_like(part, rng) for part in y)
    return rng.standard_normal(np.shape(y))


def written(equations: tuple) -> list[str]:
    return [f"{to_latex(each.left)} = {to_latex(each.right)}" for each in equations]


@pytest.mark.slow
@pytest.mark.parametrize("op", ops.OPS)
@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
def test_every_op_is_written_for_every_sample(op):
    for subject in every_sample(op):
        derivation = derive(subject, dimensions=Dimensions())
        equations = (*derivation.forward, *derivation.backward)
        assert derivation.forward
        assert derivation.backward
        known = set().union(*(letters(each.symbol) for each in derivation.symbols))
        for equation in equations:
            for side in (equation.left, equation.right):
                to_latex(side)
                to_typst(side)
                unknown = letters(side) - known - indices(side) - ALWAYS
                assert not unknown, f"{op}: {to_latex(side)}"


@pytest.mark.parametrize("op", ops.OPS)
def test_every_gradient_has_an_equation(op):
    derivation = derive(small(op))
    lefts = [each.left for each in derivation.backward]
    for name in set(samples.gradient_names(op)) & set(samples.small_example(op).arrays):
        whole = derivation.glossary.gradient(name)
        step = derivation.glossary.symbol(f"d{name}", 0, Symbol("t"))
        assert whole in lefts or step in lefts


@pytest.mark.parametrize("op", ops.OPS)
def test_every_shape_has_the_letters_of_the_annotations(op):
    derivation = derive(small(op))
    for equation in (*derivation.forward, *derivation.backward):
        # The windows of a pooling by 2 × 2 have 4 values, whatever the sizes of the image.
        is_windows = equation.name in ("largest", "won")
        fixed = {"1", *({"max_pool1d": "2", "max_pool2d": "4"}.get(op, "") if is_windows else "")}
        # A number beside a letter is half of it, or a few times as much: d / 2, 4 H.
        sizes = to_latex(equation.shape).replace("(", "").replace(")", "").split(",")
        assert {size for size in map(str.strip, sizes) if size.isdigit()} <= fixed, sizes


def test_layer_norm_reads_like_its_derivation():
    derivation = derive(small("layer_norm"))
    assert written(derivation.forward) == [
        r"\mu = \frac{1}{D} \sum_{d = 1}^{D} x_{d}",
        r"\tilde{x} = x - \mu",
        r"\sigma^{2} = \frac{1}{D} \sum_{d = 1}^{D} {\tilde{x}}_{d}^{2}",
        r"\frac{1}{\sigma_{\varepsilon}} = \frac{1}{\sqrt{\sigma^{2} + \varepsilon}}",
        r"\hat{x} = \frac{\tilde{x}}{\sigma_{\varepsilon}}",
        r"y = \gamma \odot \hat{x} + \beta",
    ]
    assert [to_latex(each.shape) for each in derivation.forward][:2] == ["(N, 1)", "(N, D)"]
    assert written(derivation.backward)[0] == (
        r"\frac{\partial L}{\partial \gamma} = "
        r"\sum_{n = 1}^{N} \frac{\partial L}{\partial y_{n}} \odot {\hat{x}}_{n}"
    )
    assert written(derivation.backward)[-1] == (
        r"\frac{\partial L}{\partial x} = \frac{1}{\sigma_{\varepsilon}} \left( "
        r"\frac{\partial L}{\partial \hat{x}} - "
        r"\left\langle \frac{\partial L}{\partial \hat{x}} \right\rangle - \hat{x} "
        r"\left\langle \frac{\partial L}{\partial \hat{x}} \hat{x} \right\rangle \right)"
    )


def test_a_convolution_is_a_sum_over_kernel_offsets():
    derivation = derive(small("conv2d"))
    assert written(derivation.forward)[1] == (
        r"a = \sum_{m, n} W_{m, n} V_{m d : : s, n d : : s} + b"
    )
    lefts = [to_latex(each.left) for each in derivation.backward]
    assert r"\frac{\partial L}{\partial W_{m, n}}" in lefts
    shapes = {each.name: to_latex(each.shape) for each in derivation.backward}
    assert shapes["dweight"] == "(O, C, K_{H}, K_{W})"
    assert shapes["dbias"] == "(O ,)"


def test_matrices_are_capitals():
    derivation = derive(small("matmul"))
    assert written(derivation.forward) == ["C = A B"]
    assert written(derivation.backward) == [
        r"\frac{\partial L}{\partial A} = \frac{\partial L}{\partial C} B^{\top}",
        r"\frac{\partial L}{\partial B} = A^{\top} \frac{\partial L}{\partial C}",
    ]


def test_a_derivative_that_is_no_gradient_is_primed():
    sample = next(
        each
        for each in samples.sample_inputs("gelu", np.random.default_rng(0))
        if each.options.get("approximate") == "tanh"
    )
    derivation = derive(subject_of("gelu", sample, np.ones_like(sample.arrays["x"])))
    assert r"u^{\prime} = \sqrt{\frac{2}{\pi}} (1 + 3 \cdot 0.044715 x^{2})" in written(
        derivation.backward
    )


def test_a_name_set_anew_has_a_symbol_of_its_own():
    derivation = derive(small("softmax"))
    assert written(derivation.forward)[:2] == [
        r"m = \operatorname*{max}_{i} x_{i}",
        r"m^{\prime} = \begin{cases} 0 & \text{if } \left\lvert m \right\rvert = \infty \wedge "
        r"m < 0 \\ m & \text{otherwise} \end{cases}",
    ]


def test_the_biggest_of_stacked_arrays_is_taken_over_their_index():
    derivation = derive(small("max_pool2d"))
    assert r"y = \operatorname*{max}_{\tau} V_{\tau}" in written(derivation.forward)


def test_words_of_another_language():
    (equation,) = derive(small("relu"), "ro").forward
    assert to_latex(equation.right) == (
        r"\begin{cases} 0 & \text{dacă } x \leq 0 \\ x & \text{altfel} \end{cases}"
    )


# Users' own functions


def affine(x, w, b):
    out = x.reshape(x.shape[0], -1) @ w + b
    cache = (x, w, b)
    return out, cache


def affine_backward(dout, cache):
    x, w, _ = cache
    dx = (dout @ w.T).reshape(x.shape)
    dw = x.reshape(x.shape[0], -1).T.dot(dout)
    db = np.sum(dout, axis=0)
    return dx, dw, db


def attention(Q, K, V):
    d = Q.shape[-1]
    S = Q @ K.T / np.sqrt(d)
    A = np.exp(S - S.max(axis=-1, keepdims=True))
    A = A / A.sum(axis=-1, keepdims=True)
    return A @ V, (Q, K, V, A)


def attention_backward(dY, cache):
    Q, K, V, A = cache
    d = Q.shape[-1]
    dV = A.T @ dY
    dA = dY @ V.T
    dS = A * (dA - (dA * A).sum(axis=-1, keepdims=True))
    return dS @ K / np.sqrt(d), dS.T @ Q / np.sqrt(d), dV


def recurrence(x, h0, W):
    h = h0
    hs = [h0]
    for t in range(x.shape[0]):
        h = np.tanh(x[t] + h @ W)
        hs = [*hs, h]
    return h, (hs, W)


def recurrence_backward(dh, cache):
    hs, W = cache
    dW = np.zeros_like(W)
    for t in reversed(range(len(hs) - 1)):
        da = dh * (1 - hs[t + 1] ** 2)
        dW = dW + np.outer(hs[t], da)
        dh = da @ W.T
    return None, dh, dW


def arrays(**shapes):
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal(shape) for name, shape in shapes.items()}


def test_functions_as_courses_write_them():
    inputs = arrays(x=(2, 3), w=(3, 4), b=(4,))
    derivation = derive(Subject("affine", affine, affine_backward, inputs, {}, np.ones((2, 4))))
    assert written(derivation.forward) == ["y = x W + b"]
    assert written(derivation.backward) == [
        r"\frac{\partial L}{\partial x} = \frac{\partial L}{\partial y} W^{\top}",
        r"\frac{\partial L}{\partial W} = x^{\top} \frac{\partial L}{\partial y}",
        r"\frac{\partial L}{\partial b} = "
        r"\sum_{i = 1}^{2} \frac{\partial L}{\partial y_{i}}",
    ]
    assert list(derivation.gradients) == ["x", "w", "b"]


def test_the_gradient_of_a_name_set_anew_is_that_of_its_last_value():
    inputs = arrays(Q=(2, 3), K=(4, 3), V=(4, 5))
    subject = Subject("attention", attention, attention_backward, inputs, {}, np.ones((2, 5)))
    derivation = derive(subject)
    assert written(derivation.forward)[-1] == r"Y = A^{\prime} V"
    assert (
        r"\frac{\partial L}{\partial A^{\prime}} = \frac{\partial L}{\partial Y} V^{\top}"
        in written(derivation.backward)
    )
    assert r"\frac{\partial L}{\partial K} =" in written(derivation.backward)[-1]


def test_a_loop_over_steps_is_written_for_step_t():
    inputs = arrays(x=(3, 2), h0=(2,), W=(2, 2))
    subject = Subject("rnn", recurrence, recurrence_backward, inputs, {}, np.ones(2))
    derivation = derive(subject)
    once = [each for each in derivation.forward if not each.again]
    assert written(tuple(once)) == [r"h_{0} = h_{0}", r"h_{t} = \tanh (x_{t} + h_{t - 1} W)"]
    assert to_latex(once[1].loop) == r"t = 1, \cdots, 3"
    assert len(derivation.forward) == 4
    steps = [each for each in derivation.backward if each.loop is not None and not each.again]
    assert to_latex(steps[0].loop) == r"t = 3, \cdots, 1"
    gradient = r"\frac{\partial L}{\partial %s}"
    assert written(tuple(steps)) == [
        gradient % "a_{t}" + " = " + gradient % "h_{t}" + r" \odot (1 - h_{t}^{2})",
        rf"{gradient % 'W'} = {gradient % 'W'} + h_{{t - 1}} "
        rf"{{\left( {gradient % 'a_{t}'} \right)}}^{{\top}}",
        gradient % "h_{t - 1}" + " = " + gradient % "a_{t}" + r" W^{\top}",
    ]
    assert [each.updates for each in steps] == [False, True, False]
    assert derivation.incoming[0][0] == derivation.glossary.symbol("dh", 0, Number("3"))


def no_cache(x):
    return x


def one_argument(dy):
    return dy


def fails(dy, cache):
    return dy @ dy


@pytest.mark.parametrize(
    ("forward", "backward", "message"),
    [
        (no_cache, fails, r"no_cache returns a ndarray; allowed: two things, y and a cache"),
        (affine, one_argument, r"one_argument takes 1 arguments; allowed: two"),
        (affine, fails, r"fails fails on these inputs: ValueError: "),
    ],
)
def test_functions_that_are_no_pair_are_refused(forward, backward, message):
    inputs = arrays(x=(2, 3)) if forward is no_cache else arrays(x=(2, 3), w=(3, 4), b=(4,))
    with pytest.raises(ArgumentError, match=message):
        derive(Subject("pair", forward, backward, inputs, {}, np.ones((2, 4))))


def test_letters_taken_by_others_are_no_indices():
    usual = derive(small("cross_entropy"))
    other = derive(small("cross_entropy"), letters=frozenset("n"))
    assert r"\sum_{n = 1}^{N}" in written(usual.forward)[-1]
    assert r"\sum_{n = 1}^{N}" not in written(other.forward)[-1]


class Affine:
    def __init__(self):
        self.W = np.ones((3, 4))

    def forward(self, x):
        y = np.tanh(x @ self.W)
        return y, (x, y)

    def backward(self, dy, cache):
        _, y = cache
        da = dy * (1 - y**2)
        return da @ self.W.T


def test_methods_know_what_their_object_has():
    layer = Affine()
    subject = Subject("a", layer.forward, layer.backward, arrays(x=(2, 3)), {}, np.ones((2, 4)))
    derivation = derive(subject)
    assert written(derivation.forward) == [r"y = \tanh (x W)"]
    assert written(derivation.backward)[-1] == (
        r"\frac{\partial L}{\partial x} = \frac{\partial L}{\partial a} W^{\top}"
    )


def test_a_class_will_do():
    pair = SimpleNamespace(forward=affine, backward=affine_backward)
    inputs = arrays(x=(2, 3), w=(3, 4), b=(4,))
    derivation = derive(Subject("pair", pair.forward, pair.backward, inputs, {}, np.ones((2, 4))))
    assert len(derivation.backward) == 3


# Ways of writing that courses use


def stores(x, h0, Wx, Wh):
    N, T, _ = x.shape
    h = np.zeros((N, T, h0.shape[1]))
    state = h0
    for t in range(T):
        state = np.tanh(x[:, t, :] @ Wx + state @ Wh)
        h[:, t, :] = state
    return h, (x, h0, Wx, Wh, h)


def stores_backward(dh, cache):
    x, h0, Wx, Wh, h = cache
    dx, dWx, dWh = np.zeros_like(x), np.zeros_like(Wx), np.zeros_like(Wh)
    dstate = np.zeros_like(h0)
    for t in reversed(range(x.shape[1])):
        da = (dh[:, t] + dstate) * (1 - h[:, t] ** 2)
        before = h[:, t - 1] if t > 0 else h0
        dWx += x[:, t].T @ da
        dWh += before.T @ da
        dx[:, t] = da @ Wx.T
        dstate = da @ Wh.T
    return dx, dstate, dWx, dWh


def test_steps_that_are_written_into_an_array_are_a_sequence():
    inputs = arrays(x=(2, 3, 4), h0=(2, 5), Wx=(4, 5), Wh=(5, 5))
    subject = Subject("rnn", stores, stores_backward, inputs, {}, np.ones((2, 3, 5)))
    derivation = derive(subject)
    once = written(tuple(each for each in derivation.forward if not each.again))
    assert once == [
        r"s_{0} = h_{0}",
        r"s_{t} = \tanh (x_{t} W_{x} + s_{t - 1} W_{h})",
        r"h_{t} = s_{t}",
    ]
    backward = written(tuple(each for each in derivation.backward if not each.again))
    gradient = r"\frac{\partial L}{\partial %s}"
    both = gradient % "h_{t}" + " + " + gradient % "s_{t}"
    assert (rf"{gradient % 'a_{t}'} = \left( {both} \right) \odot (1 - h_{{t}}^{{2}})") in backward
    assert rf"{gradient % 'x_{t}'} = {gradient % 'a_{t}'} W_{{x}}^{{\top}}" in backward


def clipped(x):
    out = x.copy()
    out[out < 0] = 0
    return out, x


def clipped_backward(dout, x):
    dx = dout.copy()
    dx[x < 0] = 0
    return dx


def test_elements_that_a_mask_replaces():
    inputs = arrays(x=(2, 3))
    derivation = derive(Subject("clip", clipped, clipped_backward, inputs, {}, np.ones((2, 3))))
    (gradient,) = derivation.backward
    assert r"0 & \text{at } [x < 0]" in to_latex(gradient.right)


def scores(q, k):
    s = np.einsum("bqd,bkd->bqk", q, k)
    return s, (q, k)


def scores_backward(ds, cache):
    q, k = cache
    return np.einsum("bqk,bkd->bqd", ds, k), np.einsum("bqk,bqd->bkd", ds, q)


def test_einsum_is_a_sum_over_its_indices():
    inputs = arrays(q=(2, 3, 4), k=(2, 5, 4))
    derivation = derive(Subject("s", scores, scores_backward, inputs, {}, np.ones((2, 3, 5))))
    assert written(derivation.forward) == [r"s_{i, j, l} = \sum_{r} q_{i, j, r} k_{i, l, r}"]
    assert all(r"\sum" in each for each in written(derivation.backward))


def windows(x):
    out = np.zeros((2, 2))
    for i in range(2):
        for j in range(2):
            out[i, j] = x[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].sum()
    return out, x


def windows_backward(dout, x):
    dx = np.zeros_like(x)
    for i in range(2):
        for j in range(2):
            dx[2 * i : 2 * i + 2, 2 * j : 2 * j + 2] += dout[i, j]
    return dx


def test_loops_in_loops_name_both_counters():
    inputs = arrays(x=(4, 4))
    derivation = derive(Subject("sums", windows, windows_backward, inputs, {}, np.ones((2, 2))))
    loops = {to_latex(each.loop) for each in derivation.forward if each.loop is not None}
    assert loops == {r"i = 0, \cdots, 1 ; j = 0, \cdots, 1"}
    last = derivation.backward[-1]
    assert r"x_{2 i \cdots 2 i + 1, 2 j \cdots 2 j + 1}" in to_latex(last.right)
    assert last.updates


def states_in_a_dict(x, h0, params):
    h = {-1: h0}
    for t in range(len(x)):
        h[t] = np.tanh(x[t] @ params["U"] + h[t - 1] @ params["W"])
    return h[len(x) - 1], (x, h, params)


def states_in_a_dict_backward(dy, cache):
    x, h, params = cache
    dx = []
    for t in reversed(range(len(x))):
        da = dy * (1 - h[t] ** 2)
        dx.insert(0, params["U"] @ da)
        dy = params["W"] @ da
    return np.array(dx), dy


def test_states_in_a_dict_and_lists_that_grow():
    rng = np.random.default_rng(0)
    inputs: dict = {**arrays(x=(3, 4), h0=(2,))}
    inputs["params"] = {"U": rng.standard_normal((4, 2)), "W": rng.standard_normal((2, 2))}
    subject = Subject("rnn", states_in_a_dict, states_in_a_dict_backward, inputs, {}, np.ones(2))
    derivation = derive(subject)
    once = written(tuple(each for each in derivation.forward if not each.again))
    assert r"h_{t} = \tanh (x_{t} U + h_{t - 1} W)" in once
    backward = written(tuple(each for each in derivation.backward if not each.again))
    assert any(each.startswith(r"\text{dx}") or "x_{t}" in each for each in backward)
