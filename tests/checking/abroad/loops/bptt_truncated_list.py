import numpy as np


def forward(x_seq, U, V, W):
    s_prev = np.zeros(U.shape[0])
    states, outs = [s_prev], []
    for x in x_seq:
        s_prev = np.tanh(U.dot(x) + W.dot(s_prev))
        states.append(s_prev)
        outs.append(V.dot(s_prev))
    return np.array(outs), (x_seq, U, V, W, states)


def backward(douts, cache):
    x_seq, U, V, W, states = cache
    dU, dV, dW = np.zeros(U.shape), np.zeros(V.shape), np.zeros(W.shape)
    dx = np.zeros_like(x_seq)
    T = len(x_seq)
    for t in np.arange(T)[::-1]:
        dV += np.outer(douts[t], states[t + 1])
        delta = V.T.dot(douts[t]) * (1 - states[t + 1] ** 2)
        # walk back from t to 0
        for step in np.arange(0, t + 1)[::-1]:
            dW += np.outer(delta, states[step])
            dU += np.outer(delta, x_seq[step])
            dx[step] += U.T.dot(delta)
            delta = W.T.dot(delta) * (1 - states[step] ** 2)
    return dx, dU, dV, dW


# ---- the case
TARGET = (forward, backward)
inputs = normal((4, 2), (3, 2), (2, 3), (3, 3))
WRONG = [
    Wrong("W.T.dot(delta) * (1 - states[step] ** 2)", "W.T.dot(delta) * (1 - states[step + 1] ** 2)", "index", (r"step|index|belongs|shift|derivative",)),
    Wrong("np.arange(0, t + 1)[::-1]", "np.arange(max(0, t - 1), t + 1)[::-1]", "index", (r"step|trunc|range|loop|earl|missing|index",)),
    Wrong("dx[step] += U.T.dot(delta)", "dx[step] = U.T.dot(delta)", "accumulate"),
]
