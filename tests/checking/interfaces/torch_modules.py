"""Gradients for PyTorch's tensors: functions, objects, and torch.autograd.Function."""

from __future__ import annotations

from tests.checking.interfaces.case import Interface

TORCH = (
    Interface(
        "torch_ctx",
        """
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        return 2 * x * grad_output


TARGET, INPUTS = Square, [torch.tensor(n(4, 3))]
""",
        right=(("2 * x * grad_output", "grad_output.mul(x).mul(2)"),),
        wrong=(("2 * x", "x"), ("2 * x * grad_output", "2 * grad_output")),
    ),
    Interface(
        "torch_setup_context",
        """
import torch


class MulAdd(torch.autograd.Function):
    @staticmethod
    def forward(a, b, c):
        return a * b + c

    @staticmethod
    def setup_context(ctx, inputs, output):
        a, b, c = inputs
        ctx.save_for_backward(a, b)

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad * b, grad * a, grad


TARGET, INPUTS = MulAdd, [n(4, 3), n(4, 3), n(4, 3)]
""",
        right=(("grad * b, ", "b * grad, "),),
        wrong=(("grad * b, ", "grad * a, "), ("grad * a, grad", "grad * a, -grad")),
    ),
    Interface(
        "torch_needs_input_grad",
        """
import torch


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias


TARGET, INPUTS = Linear.apply, [n(5, 3), n(4, 3), n(4)]
""",
        right=(("grad_output.sum(0)", "grad_output.t().sum(1)"),),
        wrong=(
            ("grad_output.sum(0)", "grad_output.mean(0)"),
            ("grad_output.mm(weight)", "grad_output.mm(weight) * 2"),
        ),
    ),
    Interface(
        "torch_numbers_besides",
        """
import torch


class ScaledPower(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, exponent, scale):
        ctx.save_for_backward(x)
        ctx.exponent, ctx.scale = exponent, scale
        return scale * x ** exponent

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * ctx.scale * ctx.exponent * x ** (ctx.exponent - 1), None, None


TARGET, INPUTS = ScaledPower, [n(4, 3), 3, 0.5]
""",
        right=(("g * ctx.scale * ctx.exponent", "ctx.exponent * ctx.scale * g"),),
        wrong=(
            ("g * ctx.scale * ctx.exponent", "g * ctx.exponent"),
            ("(ctx.exponent - 1)", "ctx.exponent"),
        ),
    ),
    Interface(
        "torch_several_outputs",
        """
import torch


class SinCos(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin(), x.cos()

    @staticmethod
    def backward(ctx, gs, gc):
        x, = ctx.saved_tensors
        return gs * x.cos() - gc * x.sin()


TARGET, INPUTS = SinCos, [n(4, 3)]
""",
        right=(("gs * x.cos() - gc * x.sin()", "-(gc * x.sin()) + gs * x.cos()"),),
        wrong=(("- gc * x.sin()", "+ gc * x.sin()"), ("gs * x.cos() - gc", "gs * x.sin() - gc")),
    ),
    Interface(
        "torch_indices_besides",
        """
import torch


class Sort(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        values, order = x.sort(-1)
        ctx.order = order
        ctx.mark_non_differentiable(order)
        return values, order

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g, _):
        return torch.zeros_like(g).scatter_(-1, ctx.order, g)


TARGET, INPUTS = Sort, [n(4, 6)]
""",
        right=(("torch.zeros_like(g).scatter_", "torch.empty_like(g).scatter_"),),
        wrong=(
            ("torch.zeros_like(g).scatter_(-1, ctx.order, g)", "g.gather(-1, ctx.order)"),
            ("scatter_(-1, ctx.order, g)", "scatter_(-1, ctx.order, 2 * g)"),
        ),
    ),
    Interface(
        "torch_pair",
        """
import torch


def forward(x, w):
    h = (x.unsqueeze(-1) * w.unsqueeze(0)).sum(dim=1)
    return torch.relu(h), (x, w, h)


def backward(dy, cache):
    x, w, h = cache
    dh = dy * (h > 0).to(dy.dtype)
    return dh @ w.t(), x.t() @ dh


TARGET, INPUTS = (forward, backward), [torch.tensor(n(5, 3)), torch.tensor(n(3, 4))]
""",
        right=(("x.t() @ dh", "x.t().mm(dh)"),),
        wrong=(("x.t() @ dh", "x.t() @ dy"), ("return dh @ w.t()", "return 2 * dh @ w.t()")),
    ),
    Interface(
        "torch_object",
        """
import torch


class Linear:
    def __init__(self, fan_in, fan_out):
        self.weight, self.bias = torch.tensor(n(fan_in, fan_out)), torch.tensor(n(fan_out))

    def forward(self, x):
        self.x = x
        return x @ self.weight + self.bias

    def backward(self, grad):
        self.dweight = self.x.t() @ grad
        self.dbias = grad.sum(dim=0)
        return grad @ self.weight.t()


TARGET, INPUTS = Linear(3, 4), [torch.tensor(n(5, 3))]
""",
        right=(("grad.sum(dim=0)", "grad.sum(0)"),),
        wrong=(
            ("grad.sum(dim=0)", "grad.mean(dim=0)"),
            ("grad @ self.weight.t()", "-grad @ self.weight.t()"),
        ),
    ),
    Interface(
        "torch_called_layers",
        """
import torch


class Tanh:
    def __call__(self, x):
        self.out = torch.tanh(x)
        return self.out

    def backward(self, dout):
        return dout * (1.0 - self.out ** 2)


TARGET, INPUTS = Tanh(), [torch.tensor(n(5, 3))]
""",
        right=(("self.out ** 2", "self.out.square()"),),
        wrong=(("self.out ** 2", "self.out"), ("return dout *", "return 2 * dout *")),
    ),
    Interface(
        "torch_function_of_apply",
        """
import torch


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        s = torch.sigmoid(x)
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    def backward(ctx, g):
        x, s = ctx.saved_tensors
        return g * (s + x * s * (1 - s))


def swish(x):
    return Swish.apply(x)


TARGET, INPUTS = swish, [torch.tensor(n(5, 3))]
""",
        right=(("s + x * s * (1 - s)", "s * (1 + x * (1 - s))"),),
        wrong=(("s + x * s * (1 - s)", "s + x * s"), ("s + x * s * (1 - s)", "s * (1 - s)")),
    ),
    Interface(
        "torch_loss_and_grads",
        """
import torch


def loss_and_grads(params, x, y):
    pred = x @ params["w"] + params["b"]
    d = pred - y
    loss = (d ** 2).mean()
    d = 2 * d / d.numel()
    return loss, {"w": x.t() @ d, "b": d.sum(0)}


TARGET = loss_and_grads
PARAMS = {"w": torch.tensor(n(3, 2)), "b": torch.tensor(n(2))}
INPUTS = [PARAMS, torch.tensor(n(5, 3)), torch.tensor(n(5, 2))]
""",
        right=(("(d ** 2).mean()", "d.pow(2).mean()"),),
        wrong=(("d.numel()", "len(d)"), ('"b": d.sum(0)', '"b": d.mean(0)')),
    ),
    Interface(
        "torch_module_of_a_function",
        """
import torch


class Clip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, low, high):
        ctx.save_for_backward(x, low, high)
        return torch.minimum(torch.maximum(x, low), high)

    @staticmethod
    def backward(ctx, g):
        x, low, high = ctx.saved_tensors
        inside = (x > low) & (x < high)
        return g * inside, (g * (x <= low)).sum(0), (g * (x >= high)).sum(0)


class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.low = torch.nn.Parameter(torch.full((3,), -0.5, dtype=torch.float64))
        self.high = torch.nn.Parameter(torch.full((3,), 0.6, dtype=torch.float64))

    def forward(self, x):
        return Clip.apply(x, self.low, self.high)


TARGET, INPUTS = Module(), [n(5, 3)]
""",
        right=(("g * inside, ", "torch.where(inside, g, 0), "),),
        wrong=(("g * inside, ", "g, "), ("(g * (x <= low)).sum(0)", "(g * (x < high)).sum(0)")),
    ),
)
