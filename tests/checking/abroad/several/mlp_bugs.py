import numpy as np


def forward(x, W1, b1, W2, b2):
    z1 = x @ W1 + b1
    h = 1 / (1 + np.exp(-z1))
    return h @ W2 + b2, dict(x=x, h=h, W1=W1, W2=W2)


def backward(dout, c):
    g = {}
    g["W2"] = c["h"].T @ dout
    g["b2"] = dout.sum(0)
    dh = dout @ c["W2"].T
    dz = dh * c["h"] * (1 - c["h"])
    g["W1"] = c["x"].T @ dz
    g["b1"] = dz.sum(0)
    g["x"] = dz @ c["W1"].T
    return g


# ---- the case
TARGET = (forward, backward)
inputs = normal((5, 3), (3, 4), 4, (4, 2), 2)
WRONG = [
    (Wrong('* (1 - c["h"])', '* (1 + c["h"])', "sign"), Wrong('g["b2"] = dout.sum(0)', 'g["b2"] = dout.mean(0)', "sum for mean")),
    (Wrong('g["W1"] = c["x"].T @ dz', 'g["W1"] = c["x"].T @ dh', "name"), Wrong('g["W2"] = c["h"].T @ dout', 'g["W2"] = -c["h"].T @ dout', "sign")),
]
