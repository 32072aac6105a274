import numpy as np


def chain_matmul(x, mats):
    """x M1 M2 ... with a stack of what came before."""
    stack = []
    for M in mats:
        stack.append(x)
        x = x @ M
    return x, [mats, stack]


def chain_matmul_grad(g, cache):
    mats, stack = cache
    stack = list(stack)
    dmats = np.empty_like(mats)
    k = len(mats)
    while stack:
        k -= 1
        before = stack.pop()
        dmats[k] = before.T @ g
        g = g @ mats[k].T
    return g, dmats


# ---- the case
TARGET = (chain_matmul, chain_matmul_grad)
inputs = normal((2, 3), (3, 3, 3))
WRONG = [
    Wrong("before = stack.pop()", "before = stack.pop(0)", "order", (r"pop|order|first|last|revers|belongs|step",)),
    Wrong("        dmats[k] = before.T @ g\n        g = g @ mats[k].T\n", "        g = g @ mats[k].T\n        dmats[k] = before.T @ g\n", "order", (r"order|before|after|overwrit|earlier|belongs|stale",)),
]
