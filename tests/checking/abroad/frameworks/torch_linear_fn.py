import torch


class LinearFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, weight, bias):
        ctx.save_for_backward(input, weight)
        return input.mm(weight.t()) + bias

    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        grad_input = grad_output.mm(weight)
        grad_weight = grad_output.t().mm(input)
        grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias


# ---- the case
TARGET = LinearFunction
def inputs(rng):
    return tuple(torch.tensor(rng.standard_normal(s)) for s in ((5, 4), (3, 4), 3))
WRONG = [
    Wrong("grad_bias = grad_output.sum(0)", "grad_bias = grad_output.mean(0)", "sum for mean"),
    Wrong("grad_weight = grad_output.t().mm(input)", "grad_weight = 2 * grad_output.t().mm(input)", "factor extra"),
]
