import torch


def conv_forward(x, w):
    """x (B, C, L), w (O, C, K), valid"""
    cols = x.unfold(2, w.shape[2], 1)
    return torch.einsum("bclk,ock->bol", cols, w), (x, w, cols)


def conv_backward(dy, saved):
    x, w, cols = saved
    dw = torch.einsum("bol,bclk->ock", dy, cols)
    dx = torch.zeros_like(x)
    L = dy.shape[2]
    for k in range(w.shape[2]):
        dx[:, :, k:k + L] += torch.einsum("bol,oc->bcl", dy, w[:, :, k])
    return dx, dw


# ---- the case
TARGET = (conv_forward, conv_backward)
def inputs(rng):
    return tuple(torch.tensor(rng.standard_normal(s)) for s in ((2, 2, 5), (2, 2, 2)))
WRONG = [
    Wrong("dx[:, :, k:k + L] += torch", "dx[:, :, k:k + L] = torch", "accumulate"),
    Wrong('"bol,oc->bcl", dy, w[:, :, k]', '"bol,co->bcl", dy, w[:, :, k]', "einsum"),
]
