import numpy as np


class Graph:
    def __init__(self):
        self.nodes = []

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False

    def add(self, kind, out, *ins):
        self.nodes.append((kind, out, ins))
        return out


def compute(x, w):
    vals = {"x": x, "w": w}
    with Graph() as g:
        vals["h"] = vals["x"] * vals["w"]
        g.add("mul", "h", "x", "w")
        vals["s"] = np.sin(vals["h"])
        g.add("sin", "s", "h")
        vals["y"] = vals["s"] * vals["h"]
        g.add("mul", "y", "s", "h")
    return vals["y"], (vals, g.nodes)


def compute_grad(dy, cache):
    vals, nodes = cache
    grads = {k: np.zeros_like(v) for k, v in vals.items()}
    grads["y"] = grads["y"] + dy
    for kind, out, ins in reversed(nodes):
        g = grads[out]
        if kind == "mul":
            a, b = ins
            grads[a] += g * vals[b]
            grads[b] += g * vals[a]
        elif kind == "sin":
            (a,) = ins
            grads[a] += g * np.cos(vals[a])
    return grads["x"], grads["w"]


# ---- the case
TARGET = (compute, compute_grad)
inputs = normal((3, 4), (3, 4))
WRONG = [
    Wrong("grads[a] += g * np.cos(vals[a])", "grads[a] = g * np.cos(vals[a])", "accumulate"),
    Wrong("grads[b] += g * vals[a]", "grads[b] += g * vals[b]", "name"),
    Wrong("g * np.cos(vals[a])", "g * np.cos(vals[out])", "name"),
]
