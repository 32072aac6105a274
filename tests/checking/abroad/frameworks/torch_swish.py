import torch


class Swish(torch.autograd.Function):
    """Memory-efficient swish: only x is kept."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad):
        x = ctx.saved_tensors[0]
        s = torch.sigmoid(x)
        return grad * (s * (1 + x * (1 - s)))


# ---- the case
TARGET = Swish
def inputs(rng):
    return (torch.tensor(rng.standard_normal((3, 4))),)
WRONG = [
    Wrong("s * (1 + x * (1 - s))", "s * (1 + (1 - s))", "factor missing"),
    Wrong("s * (1 + x * (1 - s))", "s * (x * (1 - s))", "term missing"),
]
