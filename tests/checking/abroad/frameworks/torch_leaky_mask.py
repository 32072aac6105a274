import torch


class LeakyReLU2(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, negative_slope):
        ctx.slope = negative_slope
        ctx.save_for_backward(input)
        out = input.clone()
        out[input < 0] *= negative_slope
        return out

    @staticmethod
    def backward(ctx, grad_output):
        input, = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[input < 0] *= ctx.slope
        return grad_input, None


# ---- the case
TARGET = LeakyReLU2
def inputs(rng):
    return torch.tensor(rng.standard_normal((3, 5))), 0.2
WRONG = [
    Wrong("grad_input[input < 0] *= ctx.slope", "grad_input[input < 0] = 0", "mask", (r"slope|factor|zero|right except|negative|term",)),
    Wrong("grad_input = grad_output.clone()", "grad_input = torch.ones_like(grad_output)", "factor missing", (r"grad_output|cotangent|factor|missing",)),
    Wrong("grad_input[input < 0] *= ctx.slope", "grad_input[input > 0] *= ctx.slope", "mask"),
]
