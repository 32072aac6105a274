import numpy as np


def lookup(table, ids):
    return table[ids] * 2.0, (ids, table.shape)


def lookup_grad(dy, saved):
    ids, shape = saved
    dt = np.zeros(shape)
    np.add.at(dt, ids, 2.0 * dy)
    return dt


# ---- the case
TARGET = (lookup, lookup_grad)
OPTIONS = {"wrt": ("table",)}
def inputs(rng):
    return rng.standard_normal((6, 2)), np.array([[0, 5], [3, 2]])
def repeated(rng):
    return rng.standard_normal((6, 2)), np.array([[0, 5], [5, 2]])
WRONG = [
    Wrong("np.add.at(dt, ids, 2.0 * dy)", "dt[ids] += 2.0 * dy", "duplicates", (), "repeated"),
    Wrong("np.add.at(dt, ids, 2.0 * dy)", "np.add.at(dt, ids, dy)", "factor missing"),
]
