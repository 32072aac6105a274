import numpy as np


def scan_reset(u, decay, starts):
    """A leaky sum that starts anew where starts is true."""
    s = np.zeros(u.shape[1])
    out = []
    for t in range(len(u)):
        if starts[t]:
            s = np.zeros_like(s)
        s = decay * s + u[t]
        out.append(s)
    return np.array(out), (decay, starts, np.array(out))


def scan_reset_grad(dout, cache):
    decay, starts, out = cache
    du = np.zeros_like(dout)
    ddecay = np.zeros_like(decay)
    carry = np.zeros(dout.shape[1])
    for t in range(len(dout) - 1, -1, -1):
        g = dout[t] + carry
        du[t] = g
        if starts[t] or t == 0:
            carry = np.zeros_like(carry)
        else:
            ddecay += g * out[t - 1]
            carry = decay * g
    return du, ddecay


# ---- the case
TARGET = (scan_reset, scan_reset_grad)
OPTIONS = {"wrt": ("u", "decay")}
def inputs(rng):
    return rng.standard_normal((5, 2)), rng.random(2), np.array([True, False, False, True, False])
WRONG = [
    Wrong("        if starts[t] or t == 0:", "        if t == 0:", "mask", (r"start|condition|mask|reset|if\b|step",)),
    Wrong("carry = decay * g", "carry = g", "factor missing"),
]
