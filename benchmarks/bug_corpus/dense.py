# mypy: ignore-errors
"""Linear maps: transposes, biases, buffers, and what happens to dy and to the cache."""

from __future__ import annotations

import numpy as np

from benchmarks.bug_corpus.case import Bug, Exercise, kinds

# y = x Wᵀ + b over any number of leading axes


def linear_forward(x, weight, bias):
    return x @ weight.T + bias, (x, weight)


def linear_backward(dy, cache):
    x, W = cache
    dx = dy @ W
    dW = np.tensordot(dy, x, axes=(range(dy.ndim - 1), range(dy.ndim - 1)))
    db = dy.sum(axis=tuple(range(dy.ndim - 1)))
    return dx, dW, db


def linear_dw_transposed(dy, cache):
    x, W = cache
    dy2, x2 = dy.reshape(-1, dy.shape[-1]), x.reshape(-1, x.shape[-1])
    return dy @ W, x2.T @ dy2, dy2.sum(0)


def linear_bias_mean(dy, cache):
    x, W = cache
    dy2, x2 = dy.reshape(-1, dy.shape[-1]), x.reshape(-1, x.shape[-1])
    return dy @ W, dy2.T @ x2, dy2.mean(0)


def linear_bias_not_summed(dy, cache):
    x, W = cache
    dy2, x2 = dy.reshape(-1, dy.shape[-1]), x.reshape(-1, x.shape[-1])
    return dy @ W, dy2.T @ x2, dy


def linear_bias_over_features(dy, cache):
    x, W = cache
    dy2, x2 = dy.reshape(-1, dy.shape[-1]), x.reshape(-1, x.shape[-1])
    return dy @ W, dy2.T @ x2, dy2.sum(1)


def linear_weight_averaged(dy, cache):
    x, W = cache
    dy2, x2 = dy.reshape(-1, dy.shape[-1]), x.reshape(-1, x.shape[-1])
    return dy @ W, dy2.T @ x2 / len(x2), dy2.sum(0)


def linear_reads_memory_order(dy, cache):
    x, W = cache
    rows = int(np.prod(dy.shape[:-1]))
    dy2 = dy.ravel(order="K").reshape(rows, dy.shape[-1])
    x2 = x.reshape(rows, x.shape[-1])
    return (dy2 @ W).reshape(x.shape), dy2.T @ x2, dy2.sum(0)


def linear_gradients_in_double(dy, cache):
    x, W = cache
    dW = np.zeros(W.shape)
    db = np.zeros(W.shape[0])
    for row, drow in zip(x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1]), strict=True):
        dW += np.outer(drow, row)
        db += drow
    return dy @ W, dW, db


def linear_last_row_only(dy, cache):
    x, W = cache
    dW = np.zeros_like(W)
    for row, drow in zip(x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1]), strict=True):
        dW = np.outer(drow, row)
    return dy @ W, dW, dy.reshape(-1, dy.shape[-1]).sum(0)


def linear_returns_no_bias(dy, cache):
    x, W = cache
    return dy @ W, dy.reshape(-1, dy.shape[-1]).T @ x.reshape(-1, x.shape[-1])


LINEAR = Exercise(
    "linear",
    linear_forward,
    linear_backward,
    lambda rng: (rng.normal(size=(6, 4)), rng.normal(size=(3, 4)), rng.normal(size=3)),
    (
        Bug(
            linear_dw_transposed,
            "xᵀ dy, which is dW transposed",
            kinds("transposed", "operands swapped"),
            ("weight",),
        ),
        Bug(linear_bias_mean, "a mean over the batch", kinds("mean for sum", "scaled"), ("bias",)),
        Bug(linear_bias_not_summed, "db is dy", kinds("not reduced"), ("bias",)),
        Bug(
            linear_bias_over_features,
            "summed over the features instead of the batch",
            kinds("wrong axis", "wrong shape"),
            ("bias",),
        ),
        Bug(
            linear_weight_averaged,
            "1/N, which belongs to the loss, a second time",
            kinds("scaled", "mean for sum", "extra factor"),
            ("weight",),
            ("1/",),
        ),
        Bug(
            linear_reads_memory_order,
            "dy is read in the order of memory, which a transposed one has otherwise",
            kinds("strided cotangent"),
            ("x", "weight", "bias"),
        ),
        Bug(
            linear_gradients_in_double,
            "np.zeros is float64: the gradients of float32 are not float32",
            kinds("wrong type"),
            ("weight", "bias"),
        ),
        Bug(
            linear_last_row_only,
            "= where += belongs: only the last row of the batch counts",
            kinds("term missing"),
            ("weight",),
        ),
        Bug(linear_returns_no_bias, "no gradient of b", kinds("wrong count"), ()),
    ),
    like="linear",
)

# The same on square matrices, with other names: the wrong transpose keeps the shape


def square_forward(x, W, b):
    return np.dot(x, W) + b, {"x": x, "W": W}


def square_backward(dout, cache):
    x, W = cache["x"], cache["W"]
    return np.dot(dout, W.T), np.dot(x.T, dout), np.sum(dout, axis=0)


def square_without_transpose(dout, cache):
    x, W = cache["x"], cache["W"]
    return np.dot(dout, W), np.dot(x.T, dout), np.sum(dout, axis=0)


def square_dw_transposed(dout, cache):
    x, W = cache["x"], cache["W"]
    return np.dot(dout, W.T), np.dot(dout.T, x), np.sum(dout, axis=0)


def square_swapped(dout, cache):
    x, W = cache["x"], cache["W"]
    dx = np.dot(dout, W.T)
    dW = np.dot(x.T, dout)
    return dW, dx, np.sum(dout, axis=0)


def square_keepdims(dout, cache):
    x, W = cache["x"], cache["W"]
    return np.dot(dout, W.T), np.dot(x.T, dout), np.sum(dout, axis=0, keepdims=True)


SQUARE = Exercise(
    "square dense layer",
    square_forward,
    square_backward,
    lambda rng: (rng.normal(size=(5, 5)), rng.normal(size=(5, 5)), rng.normal(size=5)),
    (
        Bug(
            square_without_transpose,
            "dy W where dy Wᵀ belongs",
            kinds("transpose missing"),
            ("x",),
            ("W",),
        ),
        Bug(
            square_dw_transposed,
            "dyᵀ x where xᵀ dy belongs",
            kinds("transposed", "operands swapped"),
            ("W",),
        ),
        Bug(
            square_swapped,
            "dx and dW come back in each other's place",
            kinds("gradients swapped"),
            ("x", "W"),
        ),
        Bug(square_keepdims, "db has shape (1, D)", kinds("wrong shape"), ("b",)),
    ),
)

# A layer with state, as in many courses: buffers for the gradients live on the object


class Dense:
    def __init__(self, W, b):
        self.W, self.b = W, b
        self.dW, self.db = np.zeros_like(W), np.zeros_like(b)

    def forward(self, x):
        self.x = x
        self.z = x @ self.W + self.b
        return np.maximum(self.z, 0)

    def backward(self, dout):
        dz = dout * (self.z > 0)
        self.dW = self.x.T @ dz
        self.db = dz.sum(axis=0)
        return dz @ self.W.T


class DenseAccumulating(Dense):
    def backward(self, dout):
        dz = dout * (self.z > 0)
        self.dW += self.x.T @ dz
        self.db += dz.sum(axis=0)
        return dz @ self.W.T


class DenseWithoutMask(Dense):
    def backward(self, dout):
        self.dW = self.x.T @ dout
        self.db = dout.sum(axis=0)
        return dout @ self.W.T


class DenseMaskInDxOnly(Dense):
    def backward(self, dout):
        self.dW = self.x.T @ dout
        self.db = dout.sum(axis=0)
        dout = dout * (self.z > 0)
        return dout @ self.W.T


class DenseInPlace(Dense):
    def backward(self, dout):
        dout *= self.z > 0
        self.dW = self.x.T @ dout
        self.db = dout.sum(axis=0)
        return dout @ self.W.T


class DenseScalingX(Dense):
    def backward(self, dout):
        dz = dout * (self.z > 0)
        self.dW = self.x.T @ dz
        self.db = dz.sum(axis=0)
        self.x *= 0
        return dz @ self.W.T


def forward_of(layer):
    def forward(x, W, b):
        this = layer(W, b)
        return this.forward(x), this

    return forward


def layer_backward(dout, layer):
    dx = layer.backward(dout)
    return dx, layer.dW, layer.db


def accumulating(dout, layer):
    return layer_backward(dout, layer)


def without_mask(dout, layer):
    return layer_backward(dout, layer)


def mask_in_dx_only(dout, layer):
    return layer_backward(dout, layer)


def dout_in_place(dout, layer):
    return layer_backward(dout, layer)


def x_cleared(dout, layer):
    return layer_backward(dout, layer)


DENSE_LAYER = Exercise(
    "dense layer with ReLU as an object",
    forward_of(Dense),
    layer_backward,
    lambda rng: (rng.normal(size=(6, 4)), rng.normal(size=(4, 5)), rng.normal(size=5)),
    (
        Bug(
            accumulating,
            "dW and db are added to what an earlier call left",
            kinds("not repeatable"),
            ("W", "b"),
            forward=forward_of(DenseAccumulating),
        ),
        Bug(
            without_mask,
            "the mask of ReLU is forgotten",
            kinds("mask forgotten", "activation derivative forgotten", "factor missing"),
            ("x", "W", "b"),
            forward=forward_of(DenseWithoutMask),
        ),
        Bug(
            mask_in_dx_only,
            "dW and db are computed before the mask is applied",
            kinds("mask forgotten", "activation derivative forgotten", "factor missing"),
            ("W", "b"),
            forward=forward_of(DenseMaskInDxOnly),
        ),
        Bug(
            dout_in_place,
            "dy is multiplied in place",
            kinds("written to"),
            (),
            ("dy",),
            forward=forward_of(DenseInPlace),
        ),
        Bug(
            x_cleared,
            "x, which belongs to the caller, is overwritten",
            kinds("written to"),
            (),
            ("x",),
            forward=forward_of(DenseScalingX),
        ),
    ),
)

# Broadcasting


def batched_matmul_forward(a, b):
    return a @ b, (a, b)


def batched_matmul_backward(dc, cache):
    a, b = cache
    return dc @ b.T, np.einsum("nij,nik->jk", a, dc)


def batched_matmul_not_summed(dc, cache):
    a, b = cache
    return dc @ b.T, np.swapaxes(a, 1, 2) @ dc


BATCHED_MATMUL = Exercise(
    "a batch of matrices times one matrix",
    batched_matmul_forward,
    batched_matmul_backward,
    lambda rng: (rng.normal(size=(3, 4, 5)), rng.normal(size=(5, 2))),
    (
        Bug(
            batched_matmul_not_summed,
            "dB is not summed over the batch that shares B",
            kinds("not reduced"),
            ("b",),
            ("0",),
        ),
    ),
)


def scale_shift_forward(x, scale, shift):
    return x * scale[:, None, None] + shift[:, None, None], (x, scale)


def scale_shift_backward(dy, cache):
    x, scale = cache
    return (
        np.einsum("nchw,c->nchw", dy, scale),
        np.einsum("nchw,nchw->c", dy, x),
        np.einsum("nchw->c", dy),
    )


def scale_shift_batch_only(dy, cache):
    x, scale = cache
    return (
        dy * scale[:, None, None],
        np.einsum("nchw,nchw->c", dy, x),
        np.sum(dy, axis=0),
    )


def scale_shift_last_axis(dy, cache):
    x, scale = cache
    return dy * scale, np.einsum("nchw,nchw->c", dy, x), np.einsum("nchw->c", dy)


SCALE_SHIFT = Exercise(
    "scale and shift per channel",
    scale_shift_forward,
    scale_shift_backward,
    lambda rng: (rng.normal(size=(3, 4, 4, 4)), rng.normal(size=4), rng.normal(size=4)),
    (
        Bug(
            scale_shift_batch_only,
            "the shift's gradient is summed over the batch but not over the image",
            kinds("not reduced"),
            ("shift",),
        ),
        Bug(
            scale_shift_last_axis,
            "the scale is broadcast along the last axis, not along the channels",
            kinds("wrong axis", "axes permuted", "transposed"),
            ("x",),
        ),
    ),
)

EXERCISES = (LINEAR, SQUARE, DENSE_LAYER, BATCHED_MATMUL, SCALE_SHIFT)
