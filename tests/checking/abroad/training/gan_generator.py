import numpy as np


def gen_step(params, z, real):
    W1, b1, W2, b2 = params["W1"], params["b1"], params["W2"], params["b2"]
    V, c = params["V"], params["c"]
    # generator
    h = z @ W1 + b1
    a = np.where(h > 0, h, 0.2 * h)
    fake = np.tanh(a @ W2 + b2)
    # discriminator on both
    sf = 1 / (1 + np.exp(-(fake @ V + c)))
    sr = 1 / (1 + np.exp(-(real @ V + c)))
    loss = -np.mean(np.log(sr)) - np.mean(np.log(1 - sf))

    n = len(z)
    dsf = sf / n
    dsr = (sr - 1) / n
    dV = fake.T @ dsf + real.T @ dsr
    dc = dsf.sum(0) + dsr.sum(0)
    dfake = dsf @ V.T * (1 - fake ** 2)
    dW2 = a.T @ dfake
    db2 = dfake.sum(0)
    dh = dfake @ W2.T
    dh[h <= 0] *= 0.2
    dW1 = z.T @ dh
    db1 = dh.sum(0)
    return loss, {"W1": dW1, "b1": db1, "W2": dW2, "b2": db2, "V": dV, "c": dc}


# ---- the case
TARGET = gen_step
CALL = "step"
def inputs(rng):
    s = rng.standard_normal
    return {"W1": s((2, 4)), "b1": s(4), "W2": s((4, 3)), "b2": s(3), "V": s((3, 1)), "c": s(1)}, s((5, 2)), s((5, 3))
WRONG = [
    Wrong("dV = fake.T @ dsf + real.T @ dsr", "dV = fake.T @ dsf", "term missing"),
    Wrong("    dh[h <= 0] *= 0.2\n", "    dh[h <= 0] = 0.2\n", "accumulate", (r"\*=|factor|times|0\.2|should|element",)),
    Wrong("dfake = dsf @ V.T * (1 - fake ** 2)", "dfake = dsf @ V.T", "local derivative", (r"1 [−-] fake|factor|derivative",)),
    Wrong("dsr = (sr - 1) / n", "dsr = sr / n", "term missing", (r"1|missing|term",)),
]
