# mypy: ignore-errors
"""Layers as objects, dictionaries and closures, as the cache or behind it."""

from __future__ import annotations

import numpy as np

from tests.checking.right_passes.case import Case, normal


class Linear:
    def __init__(self, w, b):
        self.w, self.b = w, b
        self.dw, self.db = np.zeros_like(w), np.zeros_like(b)

    def forward(self, x):
        self.x = x
        return x @ self.w + self.b

    def backward(self, dy):
        self.dw += self.x.T @ dy
        self.db += dy.sum(0)
        return dy @ self.w.T


class Relu:
    def forward(self, x):
        self.mask = x > 0
        return x * self.mask

    def backward(self, dy):
        return dy * self.mask


def accumulating_layer(x, w, b):
    layer = Linear(w, b)
    return layer.forward(x), layer


def accumulating_layer_back(dy, layer):
    dx = layer.backward(dy)
    return dx, layer.dw, layer.db


class Network:
    def __init__(self, *weights):
        self.layers = []
        for w, b in zip(weights[::2], weights[1::2], strict=True):
            self.layers += [Linear(w, b), Relu()]
        self.layers.pop()

    def forward(self, x):
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def backward(self, dy):
        for layer in reversed(self.layers):
            dy = layer.backward(dy)
        return dy


def network(x, w1, b1, w2, b2):
    net = Network(w1, b1, w2, b2)
    return net.forward(x), net


def network_back(dy, net):
    dx = net.backward(dy)
    first, _, last = net.layers
    return dx, first.dw, first.db, last.dw, last.db


def by_name(x, w):
    return x @ w, {"x": x, "w": w}


def by_name_back(dy, cache):
    return {"dw": cache["x"].T @ dy, "dx": dy @ cache["w"].T}


def by_plain_name(x, w):
    return np.tanh(x @ w), {"x": x, "w": w}


def by_plain_name_back(dy, cache):
    grads = {}
    da = dy * (1 - np.tanh(cache["x"] @ cache["w"]) ** 2)
    grads["x"] = da @ cache["w"].T
    grads["w"] = cache["x"].T @ da
    return grads


def closure(x, w):
    h = np.tanh(x * w)

    def pullback(dy):
        da = dy * (1 - h * h)
        return da * w, da * x

    return h, pullback


def closure_back(dy, pullback):
    return pullback(dy)


def tape(x, y):
    steps = []

    def mul(a, b, da, db):
        steps.append(lambda d: [(da, d * b), (db, d * a)])
        return a * b

    z = mul(x, y, "x", "y")
    u = np.sin(z)
    return u, (steps, z)


def tape_back(du, cache):
    steps, z = cache
    grads = {}
    for name, g in steps[0](du * np.cos(z)):
        grads[name] = grads.get(name, 0) + g
    return grads["x"], grads["y"]


class Value:
    """A number that keeps the operation that made it."""

    def __init__(self, data, parents=(), local=()):
        self.data, self.parents, self.local, self.grad = data, parents, local, 0.0

    def __add__(self, other):
        return Value(self.data + other.data, (self, other), (1.0, 1.0))

    def __mul__(self, other):
        return Value(self.data * other.data, (self, other), (other.data, self.data))

    def relu(self):
        return Value(max(self.data, 0.0), (self,), (float(self.data > 0),))

    def backward(self, d):
        order, seen = [], set()

        def visit(v):
            if id(v) not in seen:
                seen.add(id(v))
                for p in v.parents:
                    visit(p)
                order.append(v)

        visit(self)
        for v in order:
            v.grad = 0.0
        self.grad = d
        for v in reversed(order):
            for p, g in zip(v.parents, v.local, strict=True):
                p.grad += v.grad * g


def micrograd(x, w):
    xs, ws = [Value(v) for v in x], [Value(v) for v in w]
    total = Value(0.0)
    for a, b in zip(xs, ws, strict=True):
        total = total + (a * b).relu() * a
    return total.data, (xs, ws, total)


def micrograd_back(d, cache):
    xs, ws, total = cache
    total.backward(d)
    return np.array([v.grad for v in xs]), np.array([v.grad for v in ws])


PARAMETERS = {"scale": 1.5}


def layer_as_dict(x, w):
    layer = {"w": w, **PARAMETERS}
    layer["x"] = x
    layer["out"] = layer["scale"] * (x @ w)
    return layer["out"], layer


def layer_as_dict_back(dout, layer):
    layer["grad"] = {"w": layer["scale"] * layer["x"].T @ dout}
    return layer["scale"] * dout @ layer["w"].T, layer["grad"]["w"]


def popping_its_list(x):
    saved = []
    for _ in range(3):
        saved.append(x)
        x = np.sin(x)
    return x, tuple(saved)


def popping_its_list_back(dy, saved):
    stack = list(saved)
    while stack:
        dy = dy * np.cos(stack.pop())
    return dy


CASES = (
    Case(
        accumulating_layer,
        accumulating_layer_back,
        normal((4, 3), (3, 2), 2),
        ("dx, layer.dw", "dx, 2 * layer.dw"),
    ),
    Case(
        network,
        network_back,
        normal((4, 3), (3, 5), 5, (5, 2), 2),
        ("first.db, last.dw", "first.db, -last.dw"),
    ),
    Case(by_name, by_name_back, normal((4, 3), (3, 2)), ("dy @", "-dy @")),
    Case(by_plain_name, by_plain_name_back, normal((4, 3), (3, 2)), ("1 - ", "1 + ")),
    Case(closure, closure_back, normal((4, 3), (4, 3)), ("da * w", "da * h"), of=closure),
    Case(tape, tape_back, normal((4, 3), (4, 3)), ("np.cos(z)", "-np.cos(z)")),
    Case(micrograd, micrograd_back, normal(5, 5), ("total.backward(d)", "total.backward(2 * d)")),
    Case(
        layer_as_dict,
        layer_as_dict_back,
        normal((4, 3), (3, 2)),
        ('{"w": layer["scale"] *', '{"w":'),
    ),
    Case(popping_its_list, popping_its_list_back, normal((4, 3)), ("np.cos(stack", "np.sin(stack")),
)
