import torch


class MaskedScale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mask, keep):
        ctx.mask, ctx.keep = mask, keep
        return x * mask / keep

    @staticmethod
    def backward(ctx, g):
        return g * ctx.mask / ctx.keep, None, None


# ---- the case
TARGET = MaskedScale
def inputs(rng):
    return torch.tensor(rng.standard_normal((4, 5))), torch.tensor(rng.integers(0, 2, (4, 5))), 0.5
WRONG = [
    Wrong("return g * ctx.mask / ctx.keep,", "return g * ctx.mask,", "factor missing"),
    Wrong("return g * ctx.mask / ctx.keep,", "return g / ctx.keep,", "mask", (r"mask|factor|missing",)),
]
