import torch


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, eps=1e-6):
        r = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(x, w, r)
        return x * r * w

    @staticmethod
    def backward(ctx, dy):
        x, w, r = ctx.saved_tensors
        xhat = x * r
        dw = (dy * xhat).flatten(0, -2).sum(0)
        dxhat = dy * w
        c = (dxhat * xhat).mean(-1, keepdim=True)
        dx = r * (dxhat - xhat * c)
        return dx, dw, None


# ---- the case
TARGET = RMSNorm
def inputs(rng):
    return torch.tensor(rng.standard_normal((2, 3, 4))), torch.tensor(rng.standard_normal(4))
WRONG = [
    Wrong("c = (dxhat * xhat).mean(-1, keepdim=True)", "c = (dxhat * xhat).sum(-1, keepdim=True)", "sum for mean"),
    Wrong("dx = r * (dxhat - xhat * c)", "dx = r * (dxhat - x * c)", "name"),
    (Wrong("c = (dxhat * xhat).mean(-1, keepdim=True)", "c = (dy * xhat).mean(-1, keepdim=True)", "name"), Wrong("dw = (dy * xhat)", "dw = (dy * x)", "name")),
]
