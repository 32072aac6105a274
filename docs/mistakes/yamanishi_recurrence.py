# mypy: ignore-errors
# ruff: noqa: RUF059  (the whole cache is unpacked)
"""S. Yamanishi, sections 4 and 5: a recurrent network through time, and a step of an LSTM."""

from __future__ import annotations

import numpy as np

import handgrad as hg
from docs.mistakes.functions import sigmoid, softmax
from docs.mistakes.row import Row, Verdict, checked, measured, normal

# Section 4: T = 3 steps, x of 2 values, h of 4, o of 3, classes 0, 2, 1


def rnn(x, U, W, V, b, c):
    """(10), and the cross-entropy of every ŷ."""
    h, h_before, y_hat = [], [np.zeros_like(b)], []
    for t in range(3):
        h.append(np.tanh(b + W @ h_before[t] + U @ x[t]))
        h_before.append(h[t])
        y_hat.append(softmax(c + V @ h[t]))
    onehot = np.eye(3, dtype=x.dtype)[[0, 2, 1]]
    J = -np.sum(onehot * np.log(np.stack(y_hat)))
    return J, (x, U, W, V, h, h_before, np.stack(y_hat), onehot)


def through_time(do, cache):
    """(11) and (12) as corrected, from ∂J/∂o."""
    x, U, W, V, h, h_before, y_hat, onehot = cache
    dx, dU, dW, dV = np.zeros_like(x), np.zeros_like(U), np.zeros_like(W), np.zeros_like(V)
    db, dc, from_later = np.zeros_like(h[0]), np.zeros_like(do[0]), np.zeros_like(h[0])
    for t in (2, 1, 0):
        dh = V.T @ do[t] + from_later
        da = dh * (1 - h[t] * h[t])
        dV, dc = dV + np.outer(do[t], h[t]), dc + do[t]
        dW, dU, db = dW + np.outer(da, h_before[t]), dU + np.outer(da, x[t]), db + da
        dx[t] = U.T @ da
        from_later = W.T @ da
    return dx, dU, dW, dV, db, dc


def onehot_minus_softmax(dJ, cache):
    x, U, W, V, h, h_before, y_hat, onehot = cache
    return through_time(dJ * (onehot - y_hat), cache)


def softmax_minus_onehot(dJ, cache):
    x, U, W, V, h, h_before, y_hat, onehot = cache
    return through_time(dJ * (y_hat - onehot), cache)


def products_without_outer(dJ, cache):
    x, U, W, V, h, h_before, y_hat, onehot = cache
    do = dJ * (y_hat - onehot)
    dx, dU, dW, dV, db, dc = through_time(do, cache)
    dV = sum(do[t] @ h[t] for t in range(3))
    return dx, dU, dW, dV, db, dc


def a_later_step_for_all(dJ, cache):
    x, U, W, V, h, h_before, y_hat, onehot = cache
    do = dJ * (y_hat - onehot)
    dh = [None, None, None]
    for t in (2, 1, 0):
        dh[t] = (dh[t + 1] * (1 - h[t + 1] ** 2)) @ W + do[t] @ V
    return through_time(do, cache)


# (11), its first two lines: 4 scores, one Jacobian for both


def softmax_alone(o):
    s = softmax(o)
    return s, s


def log_softmax(o):
    s = softmax(o)
    return np.log(s), s


def printed_jacobian(dy, s):
    """Row j, column i: δ_ij − softmax(o)_i."""
    jacobian = np.eye(len(s), dtype=s.dtype) - s
    return jacobian.T @ dy


def jacobian_of_softmax(dy, s):
    """Row j, column i: softmax(o)_j (δ_ij − softmax(o)_i)."""
    jacobian = s[:, None] * (np.eye(len(s), dtype=s.dtype) - s)
    return jacobian.T @ dy


# Section 5: leaky units, h of 3 values, 4 steps


def leaky_units(x, U, b, h0, alpha):
    h, gs = h0, []
    for t in range(4):
        g = np.tanh(U @ x[t] + b)
        h = alpha * h + (1 - alpha) * g
        gs.append(g)
    return h, (x, U, alpha, gs)


def past_no_product(dh, cache):
    """h⁽ᵗ⁻¹⁾ goes into h⁽ᵗ⁾ without a product, so dh passes every step as it is."""
    x, U, alpha, gs = cache
    dx, dU, db = np.zeros_like(x), np.zeros_like(U), np.zeros_like(dh)
    for t in (3, 2, 1, 0):
        da = (1 - alpha) * dh * (1 - gs[t] * gs[t])
        dx[t] = U.T @ da
        dU, db = dU + np.outer(da, x[t]), db + da
    return dx, dU, db, dh


def past_alpha(dh, cache):
    x, U, alpha, gs = cache
    dx, dU, db = np.zeros_like(x), np.zeros_like(U), np.zeros_like(dh)
    for t in (3, 2, 1, 0):
        da = (1 - alpha) * dh * (1 - gs[t] * gs[t])
        dx[t] = U.T @ da
        dU, db = dU + np.outer(da, x[t]), db + da
        dh = alpha * dh
    return dx, dU, db, dh


def leaky_inputs():
    return *normal((4, 2), (3, 2), (3,), (3,)), np.array([0.5, 0.7, 0.9])


def left_after_100_steps():
    """Return dh0 of a loss that is the last of 100 states, for α = 0.9, by hg.ops.leaky_rnn."""
    x, weight, h0 = np.zeros((1, 100, 1)), np.ones((1, 1)), np.zeros((1, 1))
    _, cache = hg.ops.leaky_rnn.forward(x, weight, None, h0, alpha=0.9)
    *_, dh0 = hg.ops.leaky_rnn.backward((np.zeros((1, 100, 1)), np.ones((1, 1))), cache)
    return dh0[0, 0]


def as_by(expected):
    found = left_after_100_steps()
    good = np.isclose(found, expected, rtol=1e-9)
    text = f"for α = 0.9, {found:.2g} of a gradient is left 100 steps back, not {expected:.2g}"
    return Verdict(bool(good), text.partition(", not" if good else "; ")[0])


def a_plain_sum():
    return as_by(1.0)


def a_power_of_alpha():
    return as_by(0.9**100)


# Section 5: one step of an LSTM, h and c of 3 values, x of 2


def lstm_step(h_before, c_before, x, W_c, W_i, W_f, W_o, product):
    """(13) to (15); `product` is what stands between a gate and what it controls."""
    hx = np.concatenate([h_before, x])
    i, f, o = sigmoid(W_i @ hx), sigmoid(W_f @ hx), sigmoid(W_o @ hx)
    c = product(i, np.tanh(W_c @ hx)) + product(f, c_before)
    h = product(o, np.tanh(c))
    return h, c


def step_by_product(h_before, c_before, x, W_c, W_i, W_f, W_o):
    return lstm_step(h_before, c_before, x, W_c, W_i, W_f, W_o, np.matmul), None


def step_by_hadamard(h_before, c_before, x, W_c, W_i, W_f, W_o):
    h, c = lstm_step(h_before, c_before, x, W_c, W_i, W_f, W_o, np.multiply)
    W = np.concatenate([W_i, W_f, W_c, W_o])
    state = {"h0": h_before[None], "c0": c_before[None]}
    cache = hg.ops.lstm.forward(x[None, None], W[:, 3:], W[:, :3], **state)[1]
    return (h, c), cache


def step_backward(doutputs, cache):
    dh, dc = doutputs
    outputs = (np.zeros_like(dh)[None, None], (dh[None], dc[None]))
    dx, dW_x, dW_h, *_, dh0, dc0 = hg.ops.lstm.backward(outputs, cache)
    dW_i, dW_f, dW_c, dW_o = np.split(np.concatenate([dW_h, dW_x], axis=1), 4)
    return dh0[0], dc0[0], dx[0, 0], dW_c, dW_i, dW_f, dW_o


def no_backward(doutputs, cache):
    """Forward does not come that far."""


RNN = ((3, 2), (4, 2), (4, 4), (3, 4), (4,), (3,))
LEAKY = {"wrt": ("x", "U", "b", "h0")}
STEP = ((3,), (3,), (2,), *4 * ((3, 5),))
ROWS = (
    Row(
        "(11): the sign of ∂J/∂o",
        "J has a minus sign before the logarithm. What is printed is its negative, and every "
        "gradient of the network is turned round with it.",
        (
            checked(
                "∂J/∂o = δ_ij − softmax(o)",
                (rnn, onehot_minus_softmax),
                RNN,
            ),
        ),
        (checked("∂J/∂o = softmax(o) − δ_ij", (rnn, softmax_minus_onehot), RNN),),
    ),
    Row(
        "(11): the derivative of softmax",
        "δ_ij − softmax(o) is the derivative of the logarithm of softmax. That of softmax itself, "
        "which the line above names, has softmax as a factor.",
        (
            checked(
                "∂softmax(o)_j/∂o_i = δ_ij − softmax(o)_i",
                (softmax_alone, printed_jacobian),
                ((4,),),
            ),
        ),
        (
            checked(
                "∂ log softmax(o)_j/∂o_i = δ_ij − softmax(o)_i",
                (log_softmax, printed_jacobian),
                ((4,),),
            ),
            checked(
                "∂softmax(o)_j/∂o_i = softmax(o)_j (δ_ij − softmax(o)_i)",
                (softmax_alone, jacobian_of_softmax),
                ((4,),),
            ),
        ),
    ),
    Row(
        "(11), (12): ∂J/∂V, ∂J/∂W and ∂J/∂U; the last step",
        "Products of two vectors stand where outer products belong. And ∂J/∂h is given for "
        "every t with a term from t + 1, which the last step has not.",
        (
            checked(
                "∂J/∂V = Σ_t ∂J/∂o h, W and U likewise",
                (rnn, products_without_outer),
                RNN,
            ),
            checked(
                "∂J/∂h⁽ᵗ⁾ = ∂J/∂h⁽ᵗ⁺¹⁾ diag(tanh′) W + ∂J/∂o⁽ᵗ⁾ V, every t",
                (rnn, a_later_step_for_all),
                RNN,
            ),
        ),
        (
            checked(
                "∂J/∂V = Σ_t ∂J/∂o hᵀ, …, without a term t + 1 at the last step",
                (rnn, softmax_minus_onehot),
                RNN,
            ),
        ),
    ),
    Row(
        "Section 5: what the recursion of leaky units does",
        "No matrix multiplies h⁽ᵗ⁻¹⁾, which is what the section is about, but α does. A moving "
        "average forgets: a gradient shrinks by α with every step back.",
        (
            checked(
                "h⁽ᵗ⁻¹⁾ is not multiplied: ∂J/∂h⁽ᵗ⁻¹⁾ = ∂J/∂h⁽ᵗ⁾",
                (leaky_units, past_no_product),
                leaky_inputs,
                **LEAKY,
            ),
            measured("the same, through 100 steps", a_plain_sum),
        ),
        (
            checked(
                "h⁽ᵗ⁻¹⁾ is multiplied by α: ∂J/∂h⁽ᵗ⁻¹⁾ = α ∂J/∂h⁽ᵗ⁾",
                (leaky_units, past_alpha),
                leaky_inputs,
                **LEAKY,
            ),
            measured("the same, through 100 steps", a_power_of_alpha),
        ),
    ),
    Row(
        "(13) to (15): gates",
        "A gate has one value for every value of the cell and multiplies each by its own; the "
        "product of the two vectors would leave one number for the whole cell.",
        (
            checked(
                "c = α_i tanh(…) + α_f c, h = α_o tanh(c)",
                (step_by_product, no_backward),
                STEP,
            ),
        ),
        (
            checked(
                "c = α_i ∘ tanh(…) + α_f ∘ c, h = α_o ∘ tanh(c), backward of hg.ops.lstm",
                (step_by_hadamard, step_backward),
                STEP,
            ),
        ),
    ),
)
