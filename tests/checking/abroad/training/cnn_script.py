import numpy as np


def train_loss(params, images, labels):
    K, W, b = params["K"], params["W"], params["b"]
    n, h, w = images.shape
    k = K.shape[1]
    # conv (valid) -> relu -> mean pool over space -> dense -> xent
    oh, ow = h - k + 1, w - k + 1
    a = np.zeros((n, len(K), oh, ow))
    for u in range(k):
        for v in range(k):
            a += K[None, :, u, v, None, None] * images[:, None, u:u + oh, v:v + ow]
    r = np.maximum(a, 0)
    f = r.mean(axis=(2, 3))
    s = f @ W + b
    e = np.exp(s - s.max(1, keepdims=True))
    p = e / e.sum(1, keepdims=True)
    loss = -np.mean(np.log(p[np.arange(n), labels]))

    ds = p.copy()
    ds[np.arange(n), labels] -= 1
    ds /= n
    grads = {"W": f.T @ ds, "b": ds.sum(0)}
    df = ds @ W.T
    dr = np.repeat(np.repeat(df[:, :, None, None], oh, 2), ow, 3) / (oh * ow)
    da = dr * (a > 0)
    dK = np.zeros_like(K)
    for u in range(k):
        for v in range(k):
            dK[:, u, v] = np.einsum("nfij,nij->f", da, images[:, u:u + oh, v:v + ow])
    grads["K"] = dK
    return loss, grads


# ---- the case
TARGET = train_loss
CALL = "step"
def inputs(rng):
    s = rng.standard_normal
    return {"K": s((2, 2, 2)), "W": s((2, 3)), "b": s(3)}, s((4, 4, 4)), rng.integers(0, 3, 4)
WRONG = [
    Wrong(" / (oh * ow)\n", "\n", "factor missing"),
    Wrong("da = dr * (a > 0)", "da = dr", "mask", (r"mask|relu|factor|missing|a > 0",)),
    Wrong("images[:, u:u + oh, v:v + ow])\n    grads", "images[:, v:v + oh, u:u + ow])\n    grads", "swapped", (r"swap|transpos|order|index|belongs",)),
    Wrong('"b": ds.sum(0)', '"b": ds.mean(0)', "sum for mean"),
]
