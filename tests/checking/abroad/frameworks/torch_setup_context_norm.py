import torch
from torch.autograd import Function


class L2Norm(Function):
    @staticmethod
    def forward(x, eps):
        return x / (x.norm(dim=1, keepdim=True) + eps)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, eps = inputs
        ctx.save_for_backward(x)
        ctx.eps = eps

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        n = x.norm(dim=1, keepdim=True)
        d = n + ctx.eps
        dot = (g * x).sum(dim=1, keepdim=True)
        return g / d - x * dot / (n * d * d), None


# ---- the case
TARGET = L2Norm
def inputs(rng):
    return torch.tensor(rng.standard_normal((4, 3))), 0.1
WRONG = [
    Wrong("x * dot / (n * d * d)", "x * dot / (d * d)", "factor missing"),
    Wrong("(g * x).sum(dim=1, keepdim=True)", "(g * x).sum()", "axis"),
]
