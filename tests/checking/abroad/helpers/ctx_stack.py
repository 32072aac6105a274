import numpy as np


class Tape:
    def __init__(self):
        self.ops = []

    def push(self, fn):
        self.ops.append(fn)

    def unwind(self, grads):
        while self.ops:
            self.ops.pop()(grads)
        return grads


def matmul(tape, a, b, ka, kb, kout, vals):
    vals[kout] = vals[ka] @ vals[kb]

    def back(grads):
        grads[ka] = grads.get(ka, 0) + grads[kout] @ vals[kb].T
        grads[kb] = grads.get(kb, 0) + vals[ka].T @ grads[kout]
    tape.push(back)


def exp(tape, ka, kout, vals):
    vals[kout] = np.exp(vals[ka])
    tape.push(lambda grads: grads.__setitem__(ka, grads.get(ka, 0) + grads[kout] * vals[kout]))


def program(x, w):
    vals = {"x": x, "w": w}
    tape = Tape()
    matmul(tape, x, w, "x", "w", "h", vals)
    exp(tape, "h", "e", vals)
    matmul(tape, None, None, "e", "w", "y", vals)
    return vals["y"], tape


def program_back(dy, tape):
    grads = tape.unwind({"y": dy})
    return grads["x"], grads["w"]


# ---- the case
TARGET = (program, program_back)
def inputs(rng):
    return 0.5 * rng.standard_normal((3, 3)), 0.5 * rng.standard_normal((3, 3))
WRONG = [
    Wrong("grads[kb] = grads.get(kb, 0) + vals", "grads[kb] = vals", "accumulate"),
    Wrong("grads[kout] @ vals[kb].T", "grads[kout] @ vals[kb]", "transpose"),
    Wrong("grads[kout] * vals[kout]))", "grads[kout] * vals[ka]))", "name"),
]
