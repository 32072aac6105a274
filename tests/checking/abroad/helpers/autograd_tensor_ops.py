import numpy as np


class Tensor:
    def __init__(self, data, parents=()):
        self.data = np.asarray(data, dtype=float)
        self.parents = parents  # pairs (tensor, vjp)
        self.grad = None

    def __matmul__(self, o):
        return Tensor(self.data @ o.data, ((self, lambda g: g @ o.data.T), (o, lambda g: self.data.T @ g)))

    def __add__(self, o):
        return Tensor(self.data + o.data, ((self, lambda g: g), (o, lambda g: _match(g, o.data))))

    def __mul__(self, o):
        return Tensor(self.data * o.data, ((self, lambda g: g * o.data), (o, lambda g: g * self.data)))

    def exp(self):
        e = np.exp(self.data)
        return Tensor(e, ((self, lambda g: g * e),))


def _match(g, like):
    return g.sum(axis=0) if g.ndim > like.ndim else g


def topo(root):
    order, done = [], set()

    def go(t):
        if id(t) in done:
            return
        done.add(id(t))
        for p, _ in t.parents:
            go(p)
        order.append(t)
    go(root)
    return order


def sweep(root, seed):
    nodes = topo(root)
    for t in nodes:
        t.grad = np.zeros_like(t.data)
    root.grad = root.grad + seed
    for t in reversed(nodes):
        for p, vjp in t.parents:
            p.grad = p.grad + vjp(t.grad)


def f(x, w, b):
    X, W, B = Tensor(x), Tensor(w), Tensor(b)
    h = X @ W + B
    y = h * h.exp()
    return y.data, (X, W, B, y)


def f_back(dy, cache):
    X, W, B, y = cache
    sweep(y, dy)
    return X.grad, W.grad, B.grad


# ---- the case
TARGET = (f, f_back)
def inputs(rng):
    return 0.6 * rng.standard_normal((4, 3)), 0.6 * rng.standard_normal((3, 2)), rng.standard_normal(2)
WRONG = [
    Wrong("p.grad = p.grad + vjp(t.grad)", "p.grad = vjp(t.grad)", "accumulate"),
    Wrong("(o, lambda g: self.data.T @ g)))", "(o, lambda g: -self.data.T @ g)))", "sign"),
    Wrong("lambda g: g * e),))", "lambda g: g * self.data),))", "name"),
    Wrong("return g.sum(axis=0) if", "return g.mean(axis=0) if", "sum for mean"),
]
