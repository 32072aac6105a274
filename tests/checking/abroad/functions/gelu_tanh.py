import numpy as np

C = np.sqrt(2.0 / np.pi)


def gelu(x):
    u = C * (x + 0.044715 * x**3)
    t = np.tanh(u)
    return 0.5 * x * (1 + t), (x, t)


def dgelu(dy, cache):
    x, t = cache
    du = C * (1 + 3 * 0.044715 * x**2)
    return dy * (0.5 * (1 + t) + 0.5 * x * (1 - t**2) * du)


# ---- the case
TARGET = (gelu, dgelu)
inputs = normal((3, 5))
WRONG = [
    Wrong("3 * 0.044715 * x**2", "0.044715 * x**2", "factor missing"),
    Wrong("(1 - t**2) * du", "(1 - t) * du", "local derivative"),
]
