import numpy as np

RULES = {}


def rule(name):
    def register(fn):
        RULES[name] = fn
        return fn
    return register


@rule("mul")
def _mul(g, a, b):
    return g * b, g * a


@rule("sub")
def _sub(g, a, b):
    return g, -g


@rule("div")
def _div(g, a, b):
    return g / b, -g * a / b**2


def expr(x, y):
    """(x * y - y) / x"""
    m = x * y
    s = m - y
    q = s / x
    return q, [("mul", (x, y)), ("sub", (m, y)), ("div", (s, x))]


def expr_grad(dq, tape):
    ds, dx1 = RULES[tape[2][0]](dq, *tape[2][1])
    dm, dy1 = RULES[tape[1][0]](ds, *tape[1][1])
    dx2, dy2 = RULES[tape[0][0]](dm, *tape[0][1])
    return dx1 + dx2, dy1 + dy2


# ---- the case
TARGET = (expr, expr_grad)
def inputs(rng):
    return 1.0 + rng.random((3, 2)), rng.standard_normal((3, 2))
WRONG = [
    Wrong("return g / b, -g * a / b**2", "return g / b, -g * a / b", "exponent"),
    Wrong("return g, -g\n", "return g, g\n", "sign"),
    Wrong("return dx1 + dx2, dy1 + dy2", "return dx2, dy1 + dy2", "term missing"),
]
