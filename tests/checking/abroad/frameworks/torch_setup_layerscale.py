import torch


class LayerScaleTanh(torch.autograd.Function):
    @staticmethod
    def forward(x, s):
        t = torch.tanh(s * x)
        return t, t * t

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, s = inputs
        t, _ = output
        ctx.save_for_backward(x, s, t)

    @staticmethod
    def backward(ctx, gt, gsq):
        x, s, t = ctx.saved_tensors
        g = gt + 2 * t * gsq
        d = g * (1 - t * t)
        return d * s, (d * x).sum(0)


# ---- the case
TARGET = LayerScaleTanh
def inputs(rng):
    return torch.tensor(rng.standard_normal((4, 3))), torch.tensor(rng.standard_normal(3))
WRONG = [
    Wrong("g = gt + 2 * t * gsq", "g = gt", "term missing"),
    Wrong("g = gt + 2 * t * gsq", "g = gt + t * gsq", "factor missing"),
    Wrong("(d * x).sum(0)", "(g * x).sum(0)", "name"),
]
