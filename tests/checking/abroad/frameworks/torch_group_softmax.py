import torch


class TemperatureSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, temperature):
        p = torch.softmax(logits / temperature, dim=-1)
        ctx.save_for_backward(p, logits, temperature)
        return p

    @staticmethod
    def backward(ctx, dp):
        p, logits, temperature = ctx.saved_tensors
        dz = p * (dp - (p * dp).sum(-1, keepdim=True))
        dlogits = dz / temperature
        dtemp = -(dz * logits).sum() / temperature**2
        return dlogits, dtemp


# ---- the case
TARGET = TemperatureSoftmax
def inputs(rng):
    return torch.tensor(rng.standard_normal((4, 3))), torch.tensor(1.5, dtype=torch.float64)
WRONG = [
    Wrong("/ temperature**2", "/ temperature", "exponent"),
    Wrong("dlogits = dz / temperature", "dlogits = dz", "factor missing"),
    Wrong("dtemp = -(dz", "dtemp = (dz", "sign"),
]
