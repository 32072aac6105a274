import torch
from torch.autograd import Function


class LinearScan(Function):
    """h_t = a_t h_{t-1} + b_t with the loop inside the Function."""

    @staticmethod
    def forward(ctx, a, b):
        h = torch.zeros_like(b)
        prev = torch.zeros_like(b[0])
        for t in range(len(b)):
            prev = a[t] * prev + b[t]
            h[t] = prev
        ctx.save_for_backward(a, h)
        return h

    @staticmethod
    def backward(ctx, dh):
        a, h = ctx.saved_tensors
        da, db = torch.zeros_like(a), torch.zeros_like(h)
        acc = torch.zeros_like(h[0])
        for t in reversed(range(len(h))):
            acc = acc + dh[t]
            db[t] = acc
            if t > 0:
                da[t] = acc * h[t - 1]
            acc = acc * a[t]
        return da, db


# ---- the case
TARGET = LinearScan
def inputs(rng):
    return tuple(torch.tensor(rng.standard_normal((4, 3))) for _ in range(2))
WRONG = [
    Wrong("acc = acc + dh[t]", "acc = dh[t].clone()", "carry"),
    Wrong("da[t] = acc * h[t - 1]", "da[t] = acc * h[t]", "index"),
    Wrong("            acc = acc * a[t]\n", "", "factor missing"),
]
