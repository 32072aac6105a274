import numpy as np


def relu(z):
    return np.maximum(z, 0)


def L_layer(params, X, Y):
    """Any depth; linear output, half squared error."""
    L = len(params) // 2
    A, caches = X, []
    for l in range(1, L + 1):
        Z = params["W%d" % l] @ A + params["b%d" % l]
        caches.append((A, Z))
        A = relu(Z) if l < L else Z
    m = X.shape[1]
    cost = 0.5 * np.sum((A - Y) ** 2) / m
    grads = {}
    dA = (A - Y) / m
    for l in range(L, 0, -1):
        A_prev, Z = caches[l - 1]
        dZ = dA if l == L else dA * (Z > 0)
        grads["dW%d" % l] = dZ @ A_prev.T
        grads["db%d" % l] = dZ.sum(axis=1, keepdims=True)
        dA = params["W%d" % l].T @ dZ
    return cost, grads


# ---- the case
TARGET = L_layer
CALL = "step"
def inputs(rng):
    s = rng.standard_normal
    return {"W1": s((4, 3)), "b1": s((4, 1)), "W2": s((4, 4)), "b2": s((4, 1)), "W3": s((2, 4)), "b3": s((2, 1))}, s((3, 5)), s((2, 5))
WRONG = [
    Wrong("dA if l == L else dA * (Z > 0)", "dA", "mask", (r"mask|relu|missing|factor|Z > 0|derivative",)),
    Wrong("@ dZ\n    return cost", "@ dA\n    return cost", "name"),
    Wrong('"db%d" % l] = dZ.sum(axis=1, keepdims=True)', '"db%d" % l] = dA.sum(axis=1, keepdims=True)', "name"),
]
