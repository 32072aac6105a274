import torch


class Rational(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, a, b):
        num = a[0] + a[1] * x + a[2] * x ** 2
        den = 1 + (b * x) ** 2
        ctx.save_for_backward(x, a, b, num, den)
        return num / den

    @staticmethod
    def backward(ctx, g):
        x, a, b, num, den = ctx.saved_tensors
        dnum = g / den
        dden = -g * num / den ** 2
        dx = dnum * (a[1] + 2 * a[2] * x) + dden * 2 * b ** 2 * x
        da = torch.stack([dnum.sum(), (dnum * x).sum(), (dnum * x ** 2).sum()])
        db = (dden * 2 * b * x ** 2).sum()
        return dx, da, db


# ---- the case
TARGET = Rational
def inputs(rng):
    return torch.tensor(rng.standard_normal((4, 3))), torch.tensor(rng.standard_normal(3)), torch.tensor(0.7, dtype=torch.float64)
WRONG = [
    Wrong("dden = -g * num / den ** 2", "dden = -g * num / den", "exponent"),
    Wrong("dx = dnum * (a[1] + 2 * a[2] * x) +", "dx = dnum * (a[1] + a[2] * x) +", "factor missing"),
    Wrong("db = (dden * 2 * b * x ** 2).sum()", "db = (dden * 2 * b * x).sum()", "exponent"),
]
