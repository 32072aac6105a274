import math

import numpy as np


class Value:
    def __init__(self, data, children=()):
        self.data = data
        self.grad = 0.0
        self._prev = children
        self._backward = lambda: None

    def __add__(self, other):
        out = Value(self.data + other.data, (self, other))

        def _backward():
            self.grad += out.grad
            other.grad += out.grad
        out._backward = _backward
        return out

    def __mul__(self, other):
        out = Value(self.data * other.data, (self, other))

        def _backward():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad
        out._backward = _backward
        return out

    def tanh(self):
        t = math.tanh(self.data)
        out = Value(t, (self,))

        def _backward():
            self.grad += (1 - t * t) * out.grad
        out._backward = _backward
        return out

    def run_backward(self, seed):
        topo, seen = [], set()

        def build(v):
            if v not in seen:
                seen.add(v)
                for c in v._prev:
                    build(c)
                topo.append(v)
        build(self)
        for v in topo:
            v.grad = 0.0
        self.grad = seed
        for v in reversed(topo):
            v._backward()


def neuron(x, w):
    xs = [Value(float(v)) for v in x]
    ws = [Value(float(v)) for v in w]
    act = xs[0] * ws[0]
    for a, b in zip(xs[1:], ws[1:]):
        act = act + a * b
    act = act + xs[0] * ws[1]
    out = act.tanh() * act
    return out.data, (xs, ws, out)


def neuron_backward(dy, cache):
    xs, ws, out = cache
    out.run_backward(float(dy))
    return np.array([v.grad for v in xs]), np.array([v.grad for v in ws])


# ---- the case
TARGET = (neuron, neuron_backward)
inputs = normal(3, 3)
WRONG = [
    Wrong("        for v in topo:\n            v.grad = 0.0\n", "", "state", (), "twice"),
    Wrong("self.grad += other.data * out.grad", "self.grad = other.data * out.grad", "accumulate"),
    Wrong("(1 - t * t) * out.grad", "(1 - t) * out.grad", "local derivative"),
    Wrong("for v in reversed(topo):", "for v in topo:", "order"),
]
