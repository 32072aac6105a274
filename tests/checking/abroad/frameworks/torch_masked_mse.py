import torch


class MaskedMSE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pred, target, mask):
        diff = (pred - target) * mask
        n = mask.sum().clamp(min=1)
        ctx.save_for_backward(diff, n)
        return (diff * diff).sum() / n

    @staticmethod
    def backward(ctx, grad_out):
        diff, n = ctx.saved_tensors
        g = 2.0 * diff / n * grad_out
        return g, -g, None


# ---- the case
TARGET = MaskedMSE
def inputs(rng):
    return torch.tensor(rng.standard_normal((4, 3))), torch.tensor(rng.standard_normal((4, 3))), torch.tensor(rng.integers(0, 2, (4, 3)))
WRONG = [
    Wrong("return g, -g, None", "return g, g, None", "sign"),
    Wrong("g = 2.0 * diff / n * grad_out", "g = 2.0 * diff / diff.numel() * grad_out", "factor wrong", (r"factor|n\b|times|divid|scale|belongs|instead",)),
]
