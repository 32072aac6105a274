# mypy: ignore-errors
# ruff: noqa: RUF059  (the whole cache is unpacked)
"""S. Yamanishi: dense, convolutional and recurrent networks, LSTM, attention, transformer."""

from __future__ import annotations

import math

import numpy as np

import handgrad as hg
from docs.mistakes.functions import sigmoid, softmax
from docs.mistakes.row import Document, Row, Verdict, checked, measured, normal

# Section 2: columns; h⁽¹⁾ of 3 values, ŷ of 4


def top_layer(h, W, b):
    a = W @ h + b
    y = np.tanh(a)
    return y, (h, W, y)


def plain_product(delta, cache):
    """∂J/∂ŷ f′ h, vector times vector times vector."""
    h, W, y = cache
    derivative = 1 - y * y
    dW = (delta @ derivative) * h
    da = delta * derivative
    return W.T @ da, dW, da


def outer_product(delta, cache):
    h, W, y = cache
    da = delta * (1 - y * y)
    dW = np.outer(da, h)
    return W.T @ da, dW, da


def softmax_layer(h, W, b):
    y = softmax(W @ h + b)
    return y, (h, W, y)


def elementwise_derivative(delta, cache):
    """f′ as a vector: the diagonal of the Jacobian."""
    h, W, y = cache
    da = delta * y * (1 - y)
    return W.T @ da, np.outer(da, h), da


def full_jacobian(delta, cache):
    h, W, y = cache
    jacobian = np.diag(y) - np.outer(y, y)
    da = jacobian @ delta
    return W.T @ da, np.outer(da, h), da


def two_layers(h0, W1, W2):
    a1 = W1 @ h0
    h1 = np.tanh(a1)
    a2 = W2 @ h1
    return a2, (h0, W1, W2, h1)


def own_weights(da2, cache):
    """i = 1: W⁽ⁱ⁾ = W1."""
    h0, W1, W2, h1 = cache
    da1 = (da2 @ W1) * (1 - h1 * h1)
    return W1.T @ da1, np.outer(da1, h0), np.outer(da2, h1)


def weights_above(da2, cache):
    h0, W1, W2, h1 = cache
    da1 = (da2 @ W2) * (1 - h1 * h1)
    return W1.T @ da1, np.outer(da1, h0), np.outer(da2, h1)


# Section 3: one channel, one axis; a kernel of 3 over a signal of 9


def convolution(V, K, s=2):
    J = (len(V) - len(K)) // s + 1
    Z = np.stack([sum(V[s * j + m] * K[m] for m in range(len(K))) for j in range(J)])
    return Z, (V, K, s)


def kernel_gradient(G, cache):
    V, K, s = cache
    return np.stack([sum(G[j] * V[s * j + m] for j in range(len(G))) for m in range(len(K))])


def floor_division(G, cache):
    """V[j] gets from every m what stands at ⌊(j − m)/s⌋."""
    V, K, s = cache
    dV = np.zeros_like(V)
    for j in range(len(V)):
        for m in range(len(K)):
            if 0 <= (j - m) // s < len(G):
                dV[j] += K[m] * G[(j - m) // s]
    return dV, kernel_gradient(G, cache)


def where_divisible(G, cache):
    V, K, s = cache
    dV = np.zeros_like(V)
    for j in range(len(V)):
        for m in range(len(K)):
            if (j - m) % s == 0 and 0 <= (j - m) // s < len(G):
                dV[j] += K[m] * G[(j - m) // s]
    return dV, kernel_gradient(G, cache)


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


# Section 6: s of 3 values, h = [h_f; h_b] of 2 · 2


def dot_score(s, h):
    score = h @ s / math.sqrt(len(s))
    return score, (s, h)


def cosine_score(s, h):
    score = h @ s / np.sqrt((h * h).sum(axis=1) * (s @ s))
    return score, (s, h)


def dot_score_backward(dscore, cache):
    s, h = cache
    scale = 1 / math.sqrt(len(s))
    return scale * (dscore @ h), scale * np.outer(dscore, s)


def additive_score(s, h, W, v_t, v_s):
    """(19), second line; v_s, which the list of parameters has, stands nowhere in it."""
    u = np.tanh(W @ np.concatenate([s, h]))
    return np.asarray(v_t @ u), (s, h, W, v_t, u)


def v_s_is_learned(dscore, cache):
    s, h, W, v_t, u = cache
    da = dscore * v_t * (1 - u * u)
    dsh = W.T @ da
    return dsh[:3], dsh[3:], np.outer(da, np.concatenate([s, h])), 0 * u, dscore * u


def v_t_is_learned(dscore, cache):
    s, h, W, v_t, u = cache
    da = dscore * v_t * (1 - u * u)
    dsh = W.T @ da
    return dsh[:3], dsh[3:], np.outer(da, np.concatenate([s, h])), dscore * u, 0 * u


# Section 7


def as_many_keys_as_features(q, K, V):
    """K has the rows k₁ … k_dim_i, V the rows v₁ … v_dim_o."""
    keys = np.stack([K[i] for i in range(K.shape[1])])
    values = np.stack([V[i] for i in range(V.shape[1])])
    return softmax(keys @ q / math.sqrt(len(q))) @ values, None


def l_keys_and_values(q, K, V):
    weights = softmax(K @ q / math.sqrt(len(q)))
    return weights @ V, (q, K, V, weights)


def query_backward(dr, cache):
    q, K, V, weights = cache
    dweights = V @ dr
    dscore = weights * (dweights - weights @ dweights) / math.sqrt(len(q))
    return K.T @ dscore, np.outer(dscore, q), np.outer(weights, dr)


def heads_by_element(X, R_1, R_2):
    """Two heads of d_model/2 features put together element by element, and the skip connection."""
    return X + R_1 * R_2, None


def heads_by_feature(X, R_1, R_2):
    return X + np.concatenate([R_1, R_2], axis=1), ()


def heads_by_feature_backward(dY, cache):
    d = dY.shape[1] // 2
    return dY, dY[:, :d], dY[:, d:]


def reads(y_of_heads):
    """Of how many of two heads every output is made."""
    heads = normal((5, 2), (5, 2))
    moved = [y_of_heads(*(head + (i == j) for j, head in enumerate(heads))) for i in (0, 1)]
    found = sum((y != y_of_heads(*heads)).any(axis=0).astype(int) for y in moved)
    return Verdict(bool((found == 2).all()), f"outputs read {', '.join(map(str, found))} heads")


def without_wo():
    return reads(lambda R_1, R_2: np.concatenate([R_1, R_2], axis=1))


def with_wo():
    (W_O,) = normal((4, 4))
    return reads(lambda R_1, R_2: np.concatenate([R_1, R_2], axis=1) @ W_O)


def with_wo_forward(R_1, R_2, W_O):
    R = np.concatenate([R_1, R_2], axis=1)
    return R @ W_O, (R, W_O)


def with_wo_backward(dY, cache):
    R, W_O = cache
    dR = dY @ W_O.T
    d = R.shape[1] // 2
    return dR[:, :d], dR[:, d:], R.T @ dY


def moved_by(positions, places):
    """Whether what is added to a sequence changes when it stands three places later."""
    (x,) = normal((5, 4))
    moves = not np.allclose(positions(x, 0), positions(x, 3))
    told = f"three places later they {'change' if moves else 'stay'}: they are "
    return Verdict(moves == (places == "absolute"), told + ("absolute" if moves else "relative"))


def sinusoids_as_relative():
    return moved_by(sinusoids, "relative")


def sinusoids_as_absolute():
    return moved_by(sinusoids, "absolute")


def sinusoids(x, offset):
    return hg.ops.positional_encoding.forward(x, offset=offset)[0] - x


DENSE = ((3,), (4, 3), (4,))
RNN = ((3, 2), (4, 2), (4, 4), (3, 4), (4,), (3,))
STEP = ((3,), (3,), (2,), *4 * ((3, 5),))

DOCUMENT = Document(
    "DNN, CNN, RNN, LSTM, Attn, and Transformer",
    "S. Yamanishi",
    (
        Row(
            "(3), (4): ∂J/∂W and ∂J/∂a",
            "W has a row for every value of δ and a column for every value of h: an outer product. "
            "f′ as a vector is the derivative of a function of one value; softmax has a full "
            "Jacobian.",
            (
                checked("∂J/∂W = ∂J/∂ŷ f′ h", (top_layer, plain_product), DENSE),
                checked(
                    "∂J/∂a = ∂J/∂ŷ ⊙ f′, f = softmax",
                    (softmax_layer, elementwise_derivative),
                    DENSE,
                ),
            ),
            (
                checked("∂J/∂W = (∂J/∂ŷ ⊙ f′) hᵀ", (top_layer, outer_product), DENSE),
                checked(
                    "∂J/∂a = (diag ŷ − ŷ ŷᵀ) ∂J/∂ŷ, f = softmax",
                    (softmax_layer, full_jacobian),
                    DENSE,
                ),
            ),
        ),
        Row(
            "(5): which weights carry the gradient down",
            "a⁽ⁱ⁺¹⁾ is made from h⁽ⁱ⁾ by W⁽ⁱ⁺¹⁾. With layers of different widths W⁽ⁱ⁾ does not "
            "even fit.",
            (
                checked(
                    "∂J/∂a⁽ⁱ⁾ = (∂J/∂a⁽ⁱ⁺¹⁾ W⁽ⁱ⁾) f′",
                    (two_layers, own_weights),
                    ((3,), (3, 3), (3, 3)),
                ),
                checked(
                    "the same, layers of 2, 3 and 4",
                    (two_layers, own_weights),
                    ((2,), (3, 2), (4, 3)),
                ),
            ),
            (
                checked(
                    "∂J/∂a⁽ⁱ⁾ = W⁽ⁱ⁺¹⁾ᵀ ∂J/∂a⁽ⁱ⁺¹⁾ ⊙ f′",
                    (two_layers, weights_above),
                    ((2,), (3, 2), (4, 3)),
                ),
            ),
        ),
        Row(
            "Figure 4: the gradient of the input of a strided convolution",
            "V_j is read at (j − m)/s only where that is a whole number, as the sums in (9) say; "
            "rounded down, it is given gradients of places that never read it.",
            (
                checked(
                    "h = Σ_m K_m G_⌊(j−m)/s⌋",
                    (convolution, floor_division),
                    ((9,), (3,)),
                    s=2,
                ),
            ),
            (
                checked(
                    "h = Σ_m K_m G_(j−m)/s where s divides j − m",
                    (convolution, where_divisible),
                    ((9,), (3,)),
                    s=2,
                ),
                checked("the same in two dimensions, as hg.ops.conv2d has it", "conv2d"),
            ),
            (
                checked(
                    "h = Σ_m K_m G_⌊(j−m)/s⌋ with s = 1",
                    (convolution, floor_division),
                    ((9,), (3,)),
                    s=1,
                ),
            ),
        ),
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
        Row(
            "(19): v_t and v_s; scores of vectors of two sizes",
            "The score has v_t, the list of parameters v_s: learned as listed, it never changes. "
            "Cosine and dot product compare s with h = [h_f; h_b], so both have to be of one size.",
            (
                checked(
                    "score = v_tᵀ tanh(W[s; h]), v_s learned",
                    (additive_score, v_s_is_learned),
                    ((3,), (4,), (5, 7), (5,), (5,)),
                ),
                checked(
                    "score = sᵀh/√d, s of 3 values, h of 4",
                    (dot_score, dot_score_backward),
                    ((3,), (6, 4)),
                ),
                checked(
                    "score = cosine(s, h), s of 3 values, h of 4",
                    (cosine_score, no_backward),
                    ((3,), (6, 4)),
                ),
            ),
            (
                checked(
                    "score = vᵀ tanh(W[s; h]), v learned",
                    (additive_score, v_t_is_learned),
                    ((3,), (4,), (5, 7), (5,), (5,)),
                ),
                checked(
                    "score = sᵀh/√d, both of 4 values",
                    (dot_score, dot_score_backward),
                    ((4,), (6, 4)),
                ),
                checked(
                    "with softmax and context: hg.ops.additive_attention", "additive_attention"
                ),
                checked("with softmax and context: hg.ops.cosine_attention", "cosine_attention"),
            ),
        ),
        Row(
            "Section 7: how many keys there are",
            "There are L pairs; K and V are printed with as many rows as columns.",
            (
                checked(
                    "k₁ … k_dim_i, v₁ … v_dim_o",
                    (as_many_keys_as_features, no_backward),
                    ((3,), (6, 3), (6, 2)),
                ),
            ),
            (
                checked(
                    "k₁ … k_L, v₁ … v_L",
                    (l_keys_and_values, query_backward),
                    ((3,), (6, 3), (6, 2)),
                ),
            ),
        ),
        Row(
            "Section 7: how heads are put together",
            "Heads stand side by side along the features; element by element they would be as "
            "narrow as one head. And without W_O no output reads more than one head.",
            (
                checked(
                    "heads concatenated element-wise",
                    (heads_by_element, no_backward),
                    ((5, 4), (5, 2), (5, 2)),
                ),
                measured("R = concat(R₁, R₂)", without_wo),
            ),
            (
                checked(
                    "heads concatenated along the features",
                    (heads_by_feature, heads_by_feature_backward),
                    ((5, 4), (5, 2), (5, 2)),
                ),
                measured("R = concat(R₁, R₂) W_O", with_wo),
                checked("the same", (with_wo_forward, with_wo_backward), ((5, 2), (5, 2), (4, 4))),
            ),
        ),
        Row(
            "Section 7: what kind of positions sinusoids are",
            "They are added by the place itself, not by a distance between places.",
            (
                measured(
                    "cos(θ_word_pos), sin(θ_word_pos) are relative",
                    sinusoids_as_relative,
                ),
            ),
            (
                measured("they are absolute", sinusoids_as_absolute),
                checked("as hg.ops.positional_encoding has them", "positional_encoding"),
            ),
        ),
    ),
)
