import numpy as np


def cosine_similarity(a, b):
    na = np.linalg.norm(a, axis=1)
    nb = np.linalg.norm(b, axis=1)
    dot = np.einsum("ij,ij->i", a, b)
    sim = dot / (na * nb)
    return sim, (a, b, na, nb, sim)


def cosine_similarity_backward(grad, cache):
    a, b, na, nb, sim = cache
    g = grad[:, None]
    da = g * (b / (na * nb)[:, None] - sim[:, None] * a / (na**2)[:, None])
    db = g * (a / (na * nb)[:, None] - sim[:, None] * b / (nb**2)[:, None])
    return da, db


# ---- the case
TARGET = (cosine_similarity, cosine_similarity_backward)
inputs = normal((5, 3), (5, 3))
WRONG = [
    Wrong("b / (nb**2)[:, None]", "b / (na**2)[:, None]", "name"),
    Wrong("a / (na**2)[:, None]", "a / na[:, None]", "exponent"),
]
