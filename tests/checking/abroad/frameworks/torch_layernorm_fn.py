import torch


class LayerNormFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gamma, beta, eps=1e-5):
        mu = x.mean(-1, keepdim=True)
        var = ((x - mu) ** 2).mean(-1, keepdim=True)
        inv = (var + eps).rsqrt()
        xhat = (x - mu) * inv
        ctx.save_for_backward(xhat, inv, gamma)
        return gamma * xhat + beta

    @staticmethod
    def backward(ctx, dy):
        xhat, inv, gamma = ctx.saved_tensors
        D = xhat.shape[-1]
        dgamma = (dy * xhat).sum(0)
        dbeta = dy.sum(0)
        dxhat = dy * gamma
        dx = (1.0 / D) * inv * (D * dxhat - dxhat.sum(-1, keepdim=True) - xhat * (dxhat * xhat).sum(-1, keepdim=True))
        return dx, dgamma, dbeta, None


# ---- the case
TARGET = LayerNormFn
def inputs(rng):
    return tuple(torch.tensor(rng.standard_normal(s)) for s in ((4, 5), 5, 5))
WRONG = [
    Wrong("(D * dxhat - dxhat.sum", "(dxhat - dxhat.sum", "factor missing"),
    Wrong("dxhat = dy * gamma", "dxhat = dy", "factor missing"),
    Wrong("dgamma = (dy * xhat).sum(0)", "dgamma = (dy * xhat).mean(0)", "sum for mean"),
]
