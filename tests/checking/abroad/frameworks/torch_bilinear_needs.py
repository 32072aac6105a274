import torch
from torch.autograd import Function


class Bilinear(Function):
    """x W y per row, saving only what is needed."""

    @staticmethod
    def forward(ctx, x, W, y):
        ctx.save_for_backward(x, W, y)
        return torch.einsum("ni,ij,nj->n", x, W, y)

    @staticmethod
    def backward(ctx, g):
        x, W, y = ctx.saved_tensors
        gx = gW = gy = None
        if ctx.needs_input_grad[0]:
            gx = g[:, None] * (y @ W.t())
        if ctx.needs_input_grad[1]:
            gW = torch.einsum("n,ni,nj->ij", g, x, y)
        if ctx.needs_input_grad[2]:
            gy = g[:, None] * (x @ W)
        return gx, gW, gy


# ---- the case
TARGET = Bilinear
def inputs(rng):
    return tuple(torch.tensor(rng.standard_normal(s)) for s in ((4, 3), (3, 3), (4, 3)))
WRONG = [
    Wrong("(y @ W.t())", "(y @ W)", "transpose"),
    Wrong('"n,ni,nj->ij"', '"n,ni,nj->ji"', "einsum"),
    Wrong("return gx, gW, gy", "return gy, gW, gx", "swapped"),
]
