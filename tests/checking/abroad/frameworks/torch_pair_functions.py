import torch


def attention_fwd(q, k, v):
    s = torch.einsum("bid,bjd->bij", q, k) * q.shape[-1] ** -0.5
    p = torch.softmax(s, dim=-1)
    return torch.einsum("bij,bjd->bid", p, v), (q, k, v, p)


def attention_bwd(do, ctx):
    q, k, v, p = ctx
    scale = q.shape[-1] ** -0.5
    dv = torch.einsum("bij,bid->bjd", p, do)
    dp = torch.einsum("bid,bjd->bij", do, v)
    ds = p * (dp - (dp * p).sum(-1, keepdim=True)) * scale
    dq = torch.einsum("bij,bjd->bid", ds, k)
    dk = torch.einsum("bij,bid->bjd", ds, q)
    return dq, dk, dv


# ---- the case
TARGET = (attention_fwd, attention_bwd)
def inputs(rng):
    return tuple(torch.tensor(rng.standard_normal((2, 3, 3))) for _ in range(3))
WRONG = [
    Wrong('"bij,bid->bjd", ds, q', '"bji,bid->bjd", ds, q', "einsum"),
    Wrong(" * scale\n    dq", "\n    dq", "factor missing"),
]
