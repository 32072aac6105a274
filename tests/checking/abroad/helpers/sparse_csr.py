import numpy as np


def csr_matvec(data, indices, indptr, x):
    """Rows of a sparse matrix times a dense vector; indices and indptr are ints."""
    y = np.zeros(len(indptr) - 1)
    for r in range(len(y)):
        lo, hi = indptr[r], indptr[r + 1]
        y[r] = data[lo:hi] @ x[indices[lo:hi]]
    return y, (data, indices, indptr, x)


def csr_matvec_grad(dy, cache):
    data, indices, indptr, x = cache
    rows = np.repeat(np.arange(len(dy)), np.diff(indptr))
    ddata = dy[rows] * x[indices]
    dx = np.zeros_like(x)
    np.add.at(dx, indices, data * dy[rows])
    return ddata, dx


# ---- the case
TARGET = (csr_matvec, csr_matvec_grad)
OPTIONS = {"wrt": ("data", "x")}
def inputs(rng):
    return rng.standard_normal(6), np.array([0, 2, 1, 0, 2, 3]), np.array([0, 2, 3, 3, 6]), rng.standard_normal(4)
WRONG = [
    Wrong("np.add.at(dx, indices, data * dy[rows])", "dx[indices] += data * dy[rows]", "duplicates"),
    Wrong("np.add.at(dx, indices, data * dy[rows])", "np.add.at(dx, indices, dy[rows])", "factor missing"),
    Wrong("ddata = dy[rows] * x[indices]", "ddata = dy[rows] * x[rows]", "name", (r"indices|index|belongs|should",)),
]
