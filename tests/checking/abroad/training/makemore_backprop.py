import numpy as np


def loss_and_grads(params, Xb, Yb):
    C, W1, bngain, bnbias, W2, b2 = (params[k] for k in ("C", "W1", "bngain", "bnbias", "W2", "b2"))
    n = Xb.shape[0]
    emb = C[Xb]
    embcat = emb.reshape(n, -1)
    hprebn = embcat @ W1
    bnmeani = hprebn.mean(0, keepdims=True)
    bndiff = hprebn - bnmeani
    bnvar = (bndiff**2).sum(0, keepdims=True) / (n - 1)
    bnvar_inv = (bnvar + 1e-5) ** -0.5
    bnraw = bndiff * bnvar_inv
    h = np.tanh(bngain * bnraw + bnbias)
    logits = h @ W2 + b2
    norm_logits = logits - logits.max(1, keepdims=True)
    probs = np.exp(norm_logits) / np.exp(norm_logits).sum(1, keepdims=True)
    loss = -np.log(probs[range(n), Yb]).mean()

    dlogits = probs.copy()
    dlogits[range(n), Yb] -= 1
    dlogits /= n
    dh = dlogits @ W2.T
    dW2 = h.T @ dlogits
    db2 = dlogits.sum(0)
    dhpreact = (1.0 - h**2) * dh
    dbngain = (bnraw * dhpreact).sum(0, keepdims=True)
    dbnbias = dhpreact.sum(0, keepdims=True)
    dhprebn = bngain * bnvar_inv / n * (n * dhpreact - dhpreact.sum(0) - n / (n - 1) * bnraw * (dhpreact * bnraw).sum(0))
    dW1 = embcat.T @ dhprebn
    demb = (dhprebn @ W1.T).reshape(emb.shape)
    dC = np.zeros_like(C)
    for k in range(Xb.shape[0]):
        for j in range(Xb.shape[1]):
            dC[Xb[k, j]] += demb[k, j]
    return loss, dict(C=dC, W1=dW1, bngain=dbngain, bnbias=dbnbias, W2=dW2, b2=db2)


# ---- the case
TARGET = loss_and_grads
CALL = "step"
def inputs(rng):
    s = rng.standard_normal
    return dict(C=s((5, 2)), W1=s((6, 4)), bngain=s((1, 4)), bnbias=s((1, 4)), W2=s((4, 5)), b2=s(5)), rng.integers(0, 5, (6, 3)), rng.integers(0, 5, 6)
WRONG = [
    Wrong(" - n / (n - 1) * bnraw", " - bnraw", "factor missing"),
    Wrong("dC[Xb[k, j]] += demb[k, j]", "dC[Xb[k, j]] = demb[k, j]", "accumulate"),
    Wrong("dhpreact = (1.0 - h**2) * dh", "dhpreact = (1.0 - h) * dh", "local derivative"),
    Wrong("dbngain = (bnraw * dhpreact)", "dbngain = (bndiff * dhpreact)", "name"),
]
