import torch


class GatedUnit(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, v):
        a, b = x @ w, x @ v
        s = torch.sigmoid(b)
        ctx.save_for_backward(x, w, v, a, s)
        return a * s

    @staticmethod
    def backward(ctx, g):
        x, w, v, a, s = ctx.saved_tensors
        da = g * s
        db = g * a * s * (1 - s)
        dw = x.T @ da
        dv = x.T @ db
        dx = da @ w.T + db @ v.T
        return dx, dw, dv


# ---- the case
TARGET = GatedUnit
def inputs(rng):
    return tuple(torch.tensor(rng.standard_normal((3, 3))) for _ in range(3))
WRONG = [
    (Wrong("db = g * a * s * (1 - s)", "db = g * s * (1 - s)", "factor missing"), Wrong("dw = x.T @ da", "dw = x @ da", "transpose")),
    (Wrong("dv = x.T @ db", "dv = -x.T @ db", "sign"), Wrong("dx = da @ w.T + db @ v.T", "dx = da @ w.T", "term missing")),
]
