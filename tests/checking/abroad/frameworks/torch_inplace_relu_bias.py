import torch


class BiasReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias):
        y = x + bias
        y.clamp_(min=0)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        y, = ctx.saved_tensors
        dx = dy.masked_fill(y == 0, 0)
        return dx, dx.sum(dim=0)


# ---- the case
TARGET = BiasReLU
def inputs(rng):
    return torch.tensor(rng.standard_normal((4, 3))), torch.tensor(rng.standard_normal(3))
WRONG = [
    Wrong("dx.sum(dim=0)", "dy.sum(dim=0)", "name", (r"dx|mask|belongs|instead|right except",)),
    Wrong("dx = dy.masked_fill(y == 0, 0)", "dx = dy * y", "name", (r"mask|y > 0|factor|derivative|should",)),
]
