"""Tapes: numbers and arrays that carry their gradient, and opaque functions."""

from __future__ import annotations

from tests.checking.interfaces.case import Interface

_VALUE = """
class Value:
    def __init__(self, data, _children=(), _op=""):
        self.data, self.grad = data, 0
        self._backward = lambda: None
        self._prev = set(_children)

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other), "+")

        def _backward():
            self.grad += out.grad
            other.grad += out.grad

        out._backward = _backward
        return out

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other), "*")

        def _backward():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out._backward = _backward
        return out

    def tanh(self):
        t = np.tanh(self.data)
        out = Value(t, (self,), "tanh")

        def _backward():
            self.grad += (1 - t ** 2) * out.grad

        out._backward = _backward
        return out

    def backward(self):
        topo, visited = [], set()

        def build_topo(v):
            if v not in visited:
                visited.add(v)
                for child in v._prev:
                    build_topo(child)
                topo.append(v)

        build_topo(self)
        self.grad = 1
        for v in reversed(topo):
            v._backward()

"""

TAPES = (
    Interface(
        "scalars_on_a_tape",
        _VALUE
        + """
def f(a, b):
    c = a * b + a
    return (c * c + b).tanh()


TARGET, INPUTS = f, [Value(0.3), Value(-0.7)]
""",
        right=(("(1 - t ** 2) * out.grad", "out.grad * (1 - t * t)"),),
        wrong=(("self.grad += other.data", "self.grad = other.data"), ("1 - t ** 2", "1 - t")),
    ),
    Interface(
        "a_neuron_on_a_tape",
        _VALUE
        + """
def neuron(x, w, b):
    total = b
    for wi, xi in zip(w, x):
        total = total + wi * xi
    return total.tanh()


TARGET = neuron
INPUTS = [[Value(0.5), Value(-1.5)], [Value(0.8), Value(0.2)], Value(0.1)]
""",
        right=(("other.data * out.grad", "out.grad * other.data"),),
        wrong=(
            ("self.grad += out.grad", "self.grad += 2 * out.grad"),
            ("self.data * out.grad", "other.data * out.grad"),
        ),
    ),
    Interface(
        "arrays_on_a_tape",
        """
class Tensor:
    def __init__(self, data, parents=()):
        self.data, self.grad, self.parents = np.asarray(data), None, parents

    def dot(self, other):
        parents = (self, lambda g: g @ other.data.T), (other, lambda g: self.data.T @ g)
        return Tensor(self.data @ other.data, parents)

    def relu(self):
        return Tensor(np.maximum(self.data, 0), ((self, lambda g: g * (self.data > 0)),))

    def backward(self, grad=None):
        grad = np.ones_like(self.data) if grad is None else grad
        self.grad = grad if self.grad is None else self.grad + grad
        for parent, vjp in self.parents:
            parent.backward(vjp(grad))


def layer(x, w):
    return x.dot(w).relu()


TARGET, INPUTS = layer, [Tensor(n(5, 3)), Tensor(n(3, 4))]
""",
        right=(("g * (self.data > 0)", "np.where(self.data > 0, g, 0)"),),
        wrong=(("self.data.T @ g", "2 * self.data.T @ g"), ("g * (self.data > 0)", "g")),
    ),
    Interface(
        "variables_with_creators",
        """
class Variable:
    def __init__(self, data):
        self.data, self.grad, self.creator = data, None, None

    def backward(self):
        if self.grad is None:
            self.grad = np.ones_like(self.data)
        funcs = [self.creator]
        while funcs:
            f = funcs.pop()
            if f is None:
                continue
            gx = f.backward(f.output.grad)
            f.input.grad = gx if f.input.grad is None else f.input.grad + gx
            funcs.append(f.input.creator)


class Function:
    def __call__(self, input):
        self.input = input
        self.output = Variable(np.asarray(self.forward(input.data)))
        self.output.creator = self
        return self.output


class Square(Function):
    def forward(self, x):
        return x ** 2

    def backward(self, gy):
        return 2 * self.input.data * gy


class Exp(Function):
    def forward(self, x):
        return np.exp(x)

    def backward(self, gy):
        return np.exp(self.input.data) * gy


TARGET, INPUTS = lambda x: Square()(Exp()(Square()(x))), [Variable(np.array(0.5))]
""",
        right=(("2 * self.input.data * gy", "gy * self.input.data * 2"),),
        wrong=(
            ("2 * self.input.data", "self.input.data"),
            ("np.exp(self.input.data) * gy", "self.input.data * gy"),
        ),
    ),
    Interface(
        "loss_on_a_tape_of_arrays",
        """
class T:
    def __init__(self, value, back=None):
        self.value, self.grad, self.back = value, np.zeros_like(value), back

    def __matmul__(self, o):
        def back(g):
            self.accumulate(g @ o.value.T)
            o.accumulate(self.value.T @ g)
        return T(self.value @ o.value, back)

    def accumulate(self, g):
        self.grad = self.grad + g
        if self.back:
            self.back(g)

    def sum(self):
        return T(np.sum(self.value), lambda g: self.accumulate(g * np.ones_like(self.value)))

    def square(self):
        return T(self.value ** 2, lambda g: self.accumulate(2 * self.value * g))

    def backward(self):
        self.accumulate(1.0)


TARGET, INPUTS = lambda x, w: (x @ w).square().sum(), [T(n(5, 3)), T(n(3, 2))]
""",
        right=(("2 * self.value * g", "g * 2 * self.value"),),
        wrong=(
            ("2 * self.value * g", "self.value * g"),
            ("self.accumulate(g @ o.value.T)", "self.accumulate(-g @ o.value.T)"),
        ),
    ),
    Interface(
        "a_library_in_c",
        """
import ctypes
import ctypes.util

libm = ctypes.CDLL(ctypes.util.find_library("m"))
libm.tanh.restype, libm.tanh.argtypes = ctypes.c_double, [ctypes.c_double]


def forward(x):
    return np.array([libm.tanh(float(v)) for v in x]), x


def backward(dy, x):
    return np.array([d * (1 - libm.tanh(float(v)) ** 2) for d, v in zip(dy, x)])


TARGET, INPUTS = (forward, backward), [n(4)]
""",
        right=(("d * (1 - libm", "(1.0 * d) * (1 - libm"),),
        wrong=(("** 2", ""), ("d * (1", "(1")),
    ),
    Interface(
        "compiled_callables",
        """
class Compiled:
    def __init__(self, py_func):
        self._run = py_func

    @property
    def __signature__(self):
        raise ValueError("no signature found")

    def __call__(self, *args):
        if not all(type(a) is np.ndarray for a in args):
            raise TypeError("only arrays are compiled for")
        return self._run(*args)


forward = Compiled(lambda x, w: (x * w, x, w))
backward = Compiled(lambda dy, x, w: (dy * w, dy * x))
TARGET, INPUTS = (forward, backward), [n(4, 3), n(4, 3)]
""",
        right=(("(dy * w, dy * x)", "(w * dy, x * dy)"),),
        wrong=(
            ("(dy * w, dy * x)", "(dy * x, dy * w)"),
            ("(dy * w, dy * x)", "(2 * dy * w, dy * x)"),
        ),
    ),
    Interface(
        "partial_functions",
        """
from functools import partial


def power_forward(p, x):
    return x ** p, x


def power_backward(p, dy, x):
    return dy * p * x ** (p - 1)


TARGET, INPUTS = (partial(power_forward, 3), partial(power_backward, 3)), [n(4, 3)]
""",
        right=(("dy * p * x ** (p - 1)", "p * dy * x ** (p - 1)"),),
        wrong=(("dy * p * x", "dy * x"), ("(p - 1)", "p")),
    ),
    Interface(
        "mode_in_a_dictionary",
        """
def batchnorm_forward(x, gamma, beta, bn_param):
    mode, eps = bn_param["mode"], bn_param.get("eps", 1e-5)
    running_mean = bn_param.get("running_mean", np.zeros(x.shape[1]))
    mu, var = x.mean(axis=0), x.var(axis=0)
    x_hat = (x - mu) / np.sqrt(var + eps)
    bn_param["running_mean"] = 0.9 * running_mean + 0.1 * mu
    return gamma * x_hat + beta, (x_hat, gamma, var, eps)


def batchnorm_backward(dout, cache):
    x_hat, gamma, var, eps = cache
    dx_hat = dout * gamma
    dx = (dx_hat - dx_hat.mean(axis=0) - x_hat * (dx_hat * x_hat).mean(axis=0)) / np.sqrt(var + eps)
    return dx, (dout * x_hat).sum(axis=0), dout.sum(axis=0)


TARGET, INPUTS = (batchnorm_forward, batchnorm_backward), [n(6, 4), n(4), n(4), {"mode": "train"}]
""",
        right=(("(dout * x_hat).sum(axis=0)", "np.sum(x_hat * dout, 0)"),),
        wrong=(
            ("dx_hat - dx_hat.mean(axis=0)", "dx_hat"),
            ("(dout * x_hat).sum", "(dout * x_hat).mean"),
        ),
    ),
    Interface(
        "sizes_in_a_dictionary",
        """
def conv_forward_naive(x, w, b, conv_param):
    stride, pad = conv_param["stride"], conv_param["pad"]
    xp = np.pad(x, ((0, 0), (0, 0), (pad, pad)))
    K = w.shape[2]
    L = (xp.shape[2] - K) // stride + 1
    out = np.zeros((len(x), len(w), L))
    for i in range(L):
        out[:, :, i] = np.einsum("nck,fck->nf", xp[:, :, i * stride:i * stride + K], w) + b
    return out, (x, w, b, conv_param)


def conv_backward_naive(dout, cache):
    x, w, b, conv_param = cache
    stride, pad = conv_param["stride"], conv_param["pad"]
    xp = np.pad(x, ((0, 0), (0, 0), (pad, pad)))
    dxp, dw, K = np.zeros_like(xp), np.zeros_like(w), w.shape[2]
    for i in range(dout.shape[2]):
        at = slice(i * stride, i * stride + K)
        dxp[:, :, at] += np.einsum("nf,fck->nck", dout[:, :, i], w)
        dw += np.einsum("nf,nck->fck", dout[:, :, i], xp[:, :, at])
    return dxp[:, :, pad:-pad], dw, dout.sum(axis=(0, 2))


TARGET = (conv_forward_naive, conv_backward_naive)
INPUTS = [n(2, 3, 8), n(4, 3, 3), n(4), {"stride": 2, "pad": 1}]
""",
        right=(("dout.sum(axis=(0, 2))", "dout.sum(axis=2).sum(axis=0)"),),
        wrong=(
            ("dxp[:, :, at] +=", "dxp[:, :, at] ="),
            ("dout.sum(axis=(0, 2))", "dout.mean(axis=(0, 2))"),
        ),
    ),
)
