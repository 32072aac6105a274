import torch


class WeightNormLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, v, g):
        norm = v.norm(dim=1, keepdim=True)
        w = g[:, None] * v / norm
        ctx.save_for_backward(x, v, g, norm, w)
        return x @ w.t()

    @staticmethod
    def backward(ctx, dy):
        x, v, g, norm, w = ctx.saved_tensors
        dw = dy.t() @ x
        u = v / norm
        dg = (dw * u).sum(1)
        dv = (g[:, None] / norm) * (dw - dg[:, None] * u)
        return dy @ w, dv, dg


# ---- the case
TARGET = WeightNormLinear
def inputs(rng):
    return tuple(torch.tensor(rng.standard_normal(s)) for s in ((4, 3), (2, 3), 2))
WRONG = [
    Wrong("(dw - dg[:, None] * u)", "dw", "term missing"),
    Wrong("(g[:, None] / norm) *", "g[:, None] *", "factor missing"),
    Wrong("dg = (dw * u).sum(1)", "dg = (dw * v).sum(1)", "name"),
]
