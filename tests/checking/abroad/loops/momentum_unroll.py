import numpy as np


def unrolled_gd(w, A, lr):
    """Three steps of gradient descent on 0.5 w'Aw, differentiated through."""
    ws = [w]
    for _ in range(3):
        ws.append(ws[-1] - lr * (A @ ws[-1]))
    return ws[-1], (ws, A, lr)


def unrolled_gd_vjp(g, cache):
    ws, A, lr = cache
    gA = np.zeros_like(A)
    glr = 0.0
    for w in reversed(ws[:-1]):
        glr -= g @ (A @ w)
        gA -= lr * np.outer(g, w)
        g = g - lr * (A.T @ g)
    return g, gA, glr


# ---- the case
TARGET = (unrolled_gd, unrolled_gd_vjp)
def inputs(rng):
    return rng.standard_normal(4), rng.standard_normal((4, 4)), 0.3
WRONG = [
    Wrong("reversed(ws[:-1])", "reversed(ws[1:])", "index"),
    Wrong("g - lr * (A.T @ g)", "g - lr * (A @ g)", "transpose"),
    Wrong("gA -= lr * np.outer(g, w)", "gA -= lr * np.outer(w, g)", "swapped", (r"swap|transpos|order",)),
]
