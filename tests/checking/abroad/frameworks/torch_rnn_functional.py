import torch


def rnn(x, W, U):
    h = torch.zeros(x.shape[1], U.shape[0], dtype=x.dtype)
    hs = [h]
    for xt in x:
        h = torch.tanh(xt @ W + h @ U)
        hs.append(h)
    return torch.stack(hs[1:]), (x, W, U, hs)


def rnn_backward(dhs, cache):
    x, W, U, hs = cache
    dx, dW, dU = torch.zeros_like(x), torch.zeros_like(W), torch.zeros_like(U)
    carry = torch.zeros_like(hs[0])
    for t in range(len(x) - 1, -1, -1):
        dz = (dhs[t] + carry) * (1 - hs[t + 1].pow(2))
        dx[t] = dz @ W.T
        dW += x[t].T @ dz
        dU += hs[t].T @ dz
        carry = dz @ U.T
    return dx, dW, dU


# ---- the case
TARGET = (rnn, rnn_backward)
def inputs(rng):
    return tuple(torch.tensor(rng.standard_normal(s)) for s in ((3, 2, 2), (2, 3), (3, 3)))
WRONG = [
    Wrong("(dhs[t] + carry)", "dhs[t]", "carry"),
    Wrong("dU += hs[t].T @ dz", "dU += hs[t + 1].T @ dz", "index"),
    Wrong("carry = dz @ U.T", "carry = dz @ U", "transpose"),
]
