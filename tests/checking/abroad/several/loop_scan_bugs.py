import numpy as np


def ssm(u, A, B, C):
    s = np.zeros(A.shape[0])
    states, ys = [s], []
    for x in u:
        s = A @ s + B @ x
        states.append(s)
        ys.append(C @ np.tanh(s))
    return np.array(ys), (u, A, B, C, states)


def ssm_grad(dy, cache):
    u, A, B, C, states = cache
    du, dA, dB, dC = map(np.zeros_like, (u, A, B, C))
    ds = np.zeros(A.shape[0])
    for t in range(len(u) - 1, -1, -1):
        h = np.tanh(states[t + 1])
        dC += np.outer(dy[t], h)
        ds = ds + (C.T @ dy[t]) * (1 - h**2)
        dA += np.outer(ds, states[t])
        dB += np.outer(ds, u[t])
        du[t] = B.T @ ds
        ds = A.T @ ds
    return du, dA, dB, dC


# ---- the case
TARGET = (ssm, ssm_grad)
inputs = normal((4, 2), (3, 3), (3, 2), (2, 3))
WRONG = [
    (Wrong("ds = ds + (C.T", "ds = (C.T", "carry"), Wrong("dC += np.outer(dy[t], h)", "dC += np.outer(dy[t], states[t + 1])", "name")),
    (Wrong("ds = A.T @ ds", "ds = A @ ds", "transpose"), Wrong("dB += np.outer(ds, u[t])", "dB = np.outer(ds, u[t])", "accumulate")),
]
