import numpy as np


def pool_forward(x):
    # 2x2, stride 2, by reshaping
    N, C, H, W = x.shape
    xr = x.reshape(N, C, H // 2, 2, W // 2, 2)
    out = xr.max(axis=3).max(axis=4)
    return out, (x, xr, out)


def pool_backward(dout, cache):
    x, xr, out = cache
    dxr = np.zeros_like(xr)
    mask = xr == out[:, :, :, None, :, None]
    d, _ = np.broadcast_arrays(dout[:, :, :, None, :, None], dxr)
    dxr[mask] = d[mask]
    dxr /= mask.sum(axis=(3, 5), keepdims=True)
    return dxr.reshape(x.shape)


# ---- the case
TARGET = (pool_forward, pool_backward)
def inputs(rng):
    return (np.round(rng.standard_normal((2, 2, 4, 4)), 1),)
KINK = True
WRONG = [
    Wrong("    dxr /= mask.sum(axis=(3, 5), keepdims=True)\n", "", "duplicates", (r"tie|max|kink|share|equal",), "ties"),
    Wrong("d[mask]\n", "d[mask] * 2\n", "factor extra"),
]
def ties(rng):
    return (np.ones((1, 1, 4, 4)),)
