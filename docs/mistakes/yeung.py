# mypy: ignore-errors
# ruff: noqa: RUF059  (the whole cache is unpacked)
"""E. Yeung: LSTM with cuDNN's conventions, and attention over columns."""

from __future__ import annotations

import numpy as np

import handgrad as hg
from docs.mistakes.functions import no_backward, sigmoid
from docs.mistakes.row import Document, Row, Verdict, checked, measured, normal


def constant_sigmoid(x):
    y = 1 / (1 + np.exp(-np.ones_like(x)))
    return y, hg.ops.sigmoid.forward(x)[1]


def sigmoid_of_x(x):
    return sigmoid(x), hg.ops.sigmoid.forward(x)[1]


# Section 3; gates in the order i, f, c′, o of hg.ops.lstm


def cell_with_f_c(a_i, a_f, a_c, f_c, c_before):
    """f_c is computed nowhere, so it is an input here; a_f is W_f x + R_f h + b_f."""
    i, f, c_new = sigmoid(a_i), sigmoid(a_f), np.tanh(a_c)
    c = f_c * c_before + i * c_new
    return c, (i, f, c_new, c_before)


def shut_gate():
    """Return whether c_t moves when the forget gate goes from open to shut."""
    a_i, a_f, a_c, f_c, c_before = normal(*5 * [(2, 3)])
    c, _ = cell_with_f_c(a_i, a_f, a_c, f_c, c_before)
    c_shut, _ = cell_with_f_c(a_i, a_f - 100, a_c, f_c, c_before)
    moves = not np.array_equal(c, c_shut)
    return Verdict(moves, f"c_t {'moves' if moves else 'does not move'} with f_t")


def cell(a_i, a_f, a_c, c_before):
    i, f, c_new = sigmoid(a_i), sigmoid(a_f), np.tanh(a_c)
    c = f * c_before + i * c_new
    return c, (i, f, c_new, c_before)


def cell_backward(dc, cache):
    i, f, c_new, c_before = cache
    da_i = dc * c_new * i * (1 - i)
    da_f = dc * c_before * f * (1 - f)
    da_c = dc * i * (1 - c_new * c_new)
    return da_i, da_f, da_c, dc * f


def lstm(x, weight_ih, weight_hh, bias_ih, bias_hh, candidate):
    """The six equations of the section, with f_t."""
    h = c = np.zeros((len(x), weight_hh.shape[1]), x.dtype)
    y = []
    for t in range(x.shape[1]):
        a = x[:, t] @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh
        a_i, a_f, a_c, a_o = np.split(a, 4, axis=1)
        c = sigmoid(a_f) * c + sigmoid(a_i) * candidate(a_c)
        h = sigmoid(a_o) * np.tanh(c)
        y.append(h)
    cache = hg.ops.lstm.forward(x, weight_ih, weight_hh, bias_ih, bias_hh)[1]
    return (np.stack(y, axis=1), (h, c)), cache


def cell_with_sigmoid(a_i, a_f, a_c, c_before):
    i, f, c_new = sigmoid(a_i), sigmoid(a_f), sigmoid(a_c)
    c = f * c_before + i * c_new
    return c, (i, f, c_new, c_before)


def candidate_by_sigmoid():
    arrays = normal(*LSTM)
    (y, _), _ = lstm(*arrays, sigmoid)
    same = np.allclose(y, hg.ops.lstm.forward(*arrays)[0][0], rtol=1e-12)
    return Verdict(same, f"y is {'' if same else 'not '}that of hg.ops.lstm")


def candidate_by_tanh(x, weight_ih, weight_hh, bias_ih, bias_hh):
    return lstm(x, weight_ih, weight_hh, bias_ih, bias_hh, np.tanh)


def an_equation():
    (W_hr,) = normal((3, 3))
    solutions = 3 - np.linalg.matrix_rank(np.eye(3) - W_hr)
    text = f"h = W_hr h has {solutions} solutions beside h = 0"
    return Verdict(solutions > 0, text)


def projected_after(x, weight_ih, weight_hh, weight_hr):
    """h_t = o_t ∘ tanh c_t, as in the equation above, goes on to the next step."""
    h = c = np.zeros((len(x), weight_hr.shape[1]), x.dtype)
    for t in range(x.shape[1]):
        a = x[:, t] @ weight_ih.T + h @ weight_hh.T
        a_i, a_f, a_c, a_o = np.split(a, 4, axis=1)
        c = sigmoid(a_f) * c + sigmoid(a_i) * np.tanh(a_c)
        h = sigmoid(a_o) * np.tanh(c)
    return h @ weight_hr.T, None


def projected_sequence():
    x, weight_ih, weight_hh, weight_hr = normal(*PROJECTED)
    return x, weight_ih, weight_hh, None, None, weight_hr


def lstm_from(x, weight_ih, weight_hh, c0):
    return hg.ops.lstm.forward(x, weight_ih, weight_hh, c0=c0)


def without_dc0(doutputs, cache):
    dx, dweight_ih, dweight_hh, *_ = hg.ops.lstm.backward(doutputs, cache)
    return dx, dweight_ih, dweight_hh, np.zeros((2, 3))


def with_dc0(doutputs, cache):
    dx, dweight_ih, dweight_hh, *_, dc0 = hg.ops.lstm.backward(doutputs, cache)
    return dx, dweight_ih, dweight_hh, dc0


def zero_by_default():
    x, weight_ih, weight_hh = normal((2, 3, 4), (12, 4), (12, 3))
    given, _ = hg.ops.lstm.forward(x, weight_ih, weight_hh, c0=np.zeros((2, 3)))
    left_out, _ = hg.ops.lstm.forward(x, weight_ih, weight_hh)
    same = np.array_equal(given[0], left_out[0])
    return Verdict(same, f"y without c₋₁ is {'' if same else 'not '}that with c₋₁ = 0")


def outputs_of(z, W):
    o = np.tanh(W @ z)
    return o, (z, W, o)


def jacobian_itself(delta, cache):
    z, W, o = cache
    jacobian = (1 - o * o)[:, None] * W
    dz = jacobian.T
    return dz


def jacobian_times_delta(delta, cache):
    z, W, o = cache
    jacobian = (1 - o * o)[:, None] * W
    dz = jacobian.T @ delta
    return dz


def lstm_of_weights(weight_ih, weight_hh, bias_ih, bias_hh, x):
    return hg.ops.lstm.forward(x, weight_ih, weight_hh, bias_ih, bias_hh)


def y_beside_dw(doutputs, cache):
    """Backward-weights with y among its results, in front of the gradients."""
    *_, steps = hg.ops.lstm.backward_data(doutputs, cache)
    y = cache.h[:, 1:]
    return y, *hg.ops.lstm.backward_weights(steps, cache)[:4]


def dw_alone(doutputs, cache):
    *_, steps = hg.ops.lstm.backward_data(doutputs, cache)
    return hg.ops.lstm.backward_weights(steps, cache)[:4]


def weights_before_x():
    x, *weights = normal(*LSTM)
    return *weights, x


def weights_gradients(*dys):
    """dW_ih for each dy, x and hx being the same."""
    x, *weights = normal(*LSTM)
    _, cache = hg.ops.lstm.forward(x, *weights)
    for dy in dys:
        *_, steps = hg.ops.lstm.backward_data((dy, (None, None)), cache)
        yield hg.ops.lstm.backward_weights(steps, cache)[0]


def dw_of_x_and_hx():
    one, other = weights_gradients(*normal((2, 3, 3), (2, 3, 3)))
    same = np.array_equal(one, other)
    return Verdict(same, f"one x and hx with two dy give {'one dW' if same else 'two dW'}")


# Section 4, in columns: qSize = 5, kSize = 4, qProjSize = kProjSize = 3, six positions


def scores(X_q, X_k, U_q, U_k):
    Q, K = U_q @ X_q, U_k @ X_k
    return K.T @ Q, (X_q, X_k, U_q, U_k, Q, K)


def scores_backward(dZ, cache):
    X_q, X_k, U_q, U_k, Q, K = cache
    dQ, dK = K @ dZ, Q @ dZ.T
    return U_q.T @ dQ, U_k.T @ dK, dQ @ X_q.T, dK @ X_k.T


def attention_layer():
    sizes = {"k_size": 4, "v_size": 4, "q_proj_size": 3, "k_proj_size": 3, "v_proj_size": 2}
    rng = np.random.default_rng(0)
    return hg.MultiHeadAttention(5, heads=2, **sizes, rng=rng, dtype=np.float64)


def size_after_two_layers():
    """X⁽²⁾ = X⁽⁰⁾A⁽¹⁾A⁽²⁾: D = 3, N = 5, M = 2."""
    X, A_1, A_2 = normal((3, 5), (5, 5), (5, 5))
    return (X @ A_1 @ A_2).shape


def d_by_m():
    size = size_after_two_layers()
    return Verdict(size == (3, 2), f"X⁽²⁾ of an X⁽⁰⁾ of 3 × 5 is {size[0]} × {size[1]}")


def d_by_n():
    size = size_after_two_layers()
    return Verdict(size == (3, 5), f"X⁽²⁾ of an X⁽⁰⁾ of 3 × 5 is {size[0]} × {size[1]}")


def columns_from_1_to_n(X, Z):
    N = len(Z)
    E = np.exp(Z)
    A = E / sum(E[n] for n in range(1, N + 1))
    return X @ A, (X, A)


def columns_from_0(X, Z):
    N = len(Z)
    E = np.exp(Z)
    A = E / sum(E[n] for n in range(N))
    return X @ A, (X, A)


def columns_backward(dY, cache):
    X, A = cache
    dA = X.T @ dY
    dZ = A * (dA - (A * dA).sum(axis=0))
    return dY @ A.T, dZ


def as_rows():
    """The column form Y = XA against hg.ops.attention, whose positions are rows."""
    Q, K, V = normal((3, 5), (3, 6), (2, 6))
    Y, _ = columns_from_0(V, K.T @ Q / np.sqrt(3))
    y, _ = hg.ops.attention.forward(Q.T[None, None], K.T[None, None], V.T[None, None])
    same = np.allclose(Y.T, y[0, 0], rtol=1e-12)
    return Verdict(same, f"Yᵀ is {'' if same else 'not '}the y of hg.ops.attention")


LSTM = ((2, 3, 4), (12, 4), (12, 3), (12,), (12,))
WEIGHTS = {"wrt": ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
PROJECTED = ((2, 3, 4), (12, 4), (12, 2), (2, 3))

DOCUMENT = Document(
    "The Deep Learning Dump",
    "E. Yeung",
    (
        Row(
            "Section 3, (2): the sigmoid",
            "Without x on the right it is one number, 0.73.",
            (
                checked(
                    "σ(x) = 1/(1 + exp(−1))",
                    (constant_sigmoid, hg.ops.sigmoid.backward),
                    ((5, 4),),
                    like="sigmoid",
                ),
            ),
            (
                checked(
                    "σ(x) = 1/(1 + exp(−x))",
                    (sigmoid_of_x, hg.ops.sigmoid.backward),
                    ((5, 4),),
                    like="sigmoid",
                ),
            ),
        ),
        Row(
            "Section 3, (1): the forget gate in c_t",
            "f_c is defined nowhere, and f_t would be used nowhere: its weights would have "
            "gradient 0.",
            (measured("c_t = f_c ∘ c_{t−1} + i_t ∘ c′_t", shut_gate),),
            (
                checked(
                    "c_t = f_t ∘ c_{t−1} + i_t ∘ c′_t",
                    (cell, cell_backward),
                    4 * ((2, 3),),
                ),
            ),
        ),
        Row(
            "Section 3, (3): the arrow to c′_t",
            "All four arrows carry σ; the equation of c′_t further up has tanh.",
            (
                checked(
                    "c′_t = σ(W_c x_t + R_c h_{t−1} + b), backward of the equation",
                    (cell_with_sigmoid, cell_backward),
                    4 * ((2, 3),),
                ),
                measured("c′_t = σ(…), as a layer", candidate_by_sigmoid),
            ),
            (
                checked(
                    "c′_t = tanh(W_c x_t + R_c h_{t−1} + b)",
                    (candidate_by_tanh, hg.ops.lstm.backward),
                    LSTM,
                    like="lstm",
                ),
            ),
        ),
        Row(
            "Section 3: the projection",
            "h_t stands on both sides. As an equation it has no solution but 0. Taken as a step "
            "after h_t = o_t ∘ tanh(c_t), it leaves open which of the two goes on to R; R is "
            "4H × P, and takes the projected one.",
            (
                measured("h_t = W_hr h_t, an equation", an_equation),
                checked(
                    "h_t = W_hr h_t, a step after the recurrence",
                    (projected_after, no_backward),
                    PROJECTED,
                ),
            ),
            (
                checked(
                    "h_t = W_hr (o_t ∘ tanh(c_t)), as hg.ops.lstm has it",
                    "lstm",
                    projected_sequence,
                ),
            ),
        ),
        Row(
            "Section 3: the first cell state",
            "The notes ask what c₋₁ is. It is an input like x, 0 where it is not given, and has a "
            "gradient, so that it can be learned.",
            (
                checked(
                    "c₋₁ left open: a constant",
                    (lstm_from, without_dc0),
                    ((2, 3, 4), (12, 4), (12, 3), (2, 3)),
                ),
            ),
            (
                checked(
                    "c₋₁ an input with gradient",
                    (lstm_from, with_dc0),
                    ((2, 3, 4), (12, 4), (12, 3), (2, 3)),
                ),
                measured("c₋₁ = 0 where it is not given", zero_by_default),
            ),
        ),
        Row(
            "Section 3.1: the result of backward-data",
            "The transposed Jacobian is a matrix; the gradient is its product with δ, which the "
            "line above has.",
            (
                checked(
                    "dz = (∂o/∂z)ᵀ",
                    (outputs_of, jacobian_itself),
                    ((3,), (4, 3)),
                    wrt=("z",),
                ),
            ),
            (
                checked(
                    "dz = (∂o/∂z)ᵀ δ",
                    (outputs_of, jacobian_times_delta),
                    ((3,), (4, 3)),
                    wrt=("z",),
                ),
            ),
        ),
        Row(
            "Section 3.1: what backward on W takes and returns",
            "y stands to the right of the arrow. Forward has computed it; backward on W reads it, "
            "with x and hx, and what dy has left behind on its way through the steps. dW alone "
            "comes back.",
            (
                checked(
                    "x, hx ↦ backward on W ↦ y, dW",
                    (lstm_of_weights, y_beside_dw),
                    weights_before_x,
                    **WEIGHTS,
                ),
                measured("the same: nothing of dy goes in", dw_of_x_and_hx),
            ),
            (
                checked(
                    "x, hx, y and δ of every step ↦ backward on W ↦ dW",
                    (lstm_of_weights, dw_alone),
                    weights_before_x,
                    **WEIGHTS,
                ),
            ),
        ),
        Row(
            "Section 4.1, 4.2: the size of X⁽ᴹ⁾, and the positions summed over",
            "Every layer leaves D × N as it is; M counts layers. Positions run from 0 to N − 1.",
            (
                measured("X⁽ᴹ⁾ is D × M", d_by_m),
                checked(
                    "Σ A_n′n = 1 over n′ = 1 … N",
                    (columns_from_1_to_n, columns_backward),
                    ((3, 5), (5, 5)),
                ),
            ),
            (
                measured("X⁽ᴹ⁾ is D × N", d_by_n),
                checked(
                    "Σ A_n′n = 1 over n′ = 0 … N − 1",
                    (columns_from_0, columns_backward),
                    ((3, 5), (5, 5)),
                ),
                measured("the same, transposed", as_rows),
            ),
        ),
        Row(
            "Section 4.3: the size of U_q",
            "In cuDNN's descriptor qSize is what goes into the projection, and qProjSize what "
            "comes out; a query as long as qSize could meet no key as long as kSize.",
            (
                checked(
                    "U_q ∈ F^(qSize × D), U_k ∈ F^(kSize × D)",
                    (scores, scores_backward),
                    ((5, 6), (4, 6), (5, 5), (4, 4)),
                ),
            ),
            (
                checked(
                    "U_q ∈ F^(qProjSize × qSize), U_k ∈ F^(kProjSize × kSize)",
                    (scores, scores_backward),
                    ((5, 6), (4, 6), (3, 5), (3, 4)),
                ),
                checked(
                    "the same, as the layer hg.MultiHeadAttention has it",
                    attention_layer,
                    ((1, 6, 5), (1, 6, 4)),
                ),
            ),
        ),
    ),
)
