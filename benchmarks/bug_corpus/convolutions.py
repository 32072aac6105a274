# mypy: ignore-errors
# ruff: noqa: RUF059  (people unpack the whole cache)
"""Convolutions: loops over output positions, over kernel offsets, windows and einsum."""

from __future__ import annotations

import numpy as np

from benchmarks.bug_corpus.case import Bug, Exercise, kinds

# 2-D, loops over output positions


def conv_forward(x, w, b, stride=1, pad=0):
    N, C, H, W = x.shape
    F, _, HH, WW = w.shape
    xp = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    HO, WO = (H + 2 * pad - HH) // stride + 1, (W + 2 * pad - WW) // stride + 1
    out = np.zeros((N, F, HO, WO), dtype=x.dtype)
    for i in range(HO):
        for j in range(WO):
            patch = xp[:, :, i * stride : i * stride + HH, j * stride : j * stride + WW]
            out[:, :, i, j] = np.tensordot(patch, w, axes=([1, 2, 3], [1, 2, 3])) + b
    return out, (xp, x.shape, w, stride, pad)


def strided_forward(x, w, b):
    return conv_forward(x, w, b, stride=2, pad=1)


def conv_gradients(dout, cache, *, step=None, add=True):
    """The part that the right backward and most wrong ones have in common: dxp, dw and db."""
    xp, _, w, stride, _ = cache
    step = stride if step is None else step
    HH, WW = w.shape[2:]
    dxp, dw = np.zeros_like(xp), np.zeros_like(w)
    for i in range(dout.shape[2]):
        for j in range(dout.shape[3]):
            rows, cols = i * stride, j * stride
            patch = xp[:, :, rows : rows + HH, cols : cols + WW]
            dw += np.tensordot(dout[:, :, i, j], patch, axes=([0], [0]))
            rows, cols = i * step, j * step
            back = np.tensordot(dout[:, :, i, j], w, axes=([1], [0]))
            if add:
                dxp[:, :, rows : rows + HH, cols : cols + WW] += back
            else:
                dxp[:, :, rows : rows + HH, cols : cols + WW] = back
    return dxp, dw, dout.sum(axis=(0, 2, 3))


def conv_backward(dout, cache):
    _, (N, C, H, W), _, _, pad = cache
    dxp, dw, db = conv_gradients(dout, cache)
    return dxp[:, :, pad : pad + H, pad : pad + W], dw, db


def conv_padding_not_cropped(dout, cache):
    return conv_gradients(dout, cache)


def conv_cropped_at_the_corner(dout, cache):
    _, (N, C, H, W), _, _, pad = cache
    dxp, dw, db = conv_gradients(dout, cache)
    return dxp[:, :, :H, :W], dw, db


def conv_stride_forgotten(dout, cache):
    _, (N, C, H, W), _, _, pad = cache
    dxp, dw, db = conv_gradients(dout, cache, step=1)
    return dxp[:, :, pad : pad + H, pad : pad + W], dw, db


def conv_overlap_overwritten(dout, cache):
    _, (N, C, H, W), _, _, pad = cache
    dxp, dw, db = conv_gradients(dout, cache, add=False)
    return dxp[:, :, pad : pad + H, pad : pad + W], dw, db


def conv_bias_not_over_positions(dout, cache):
    _, (N, C, H, W), _, _, pad = cache
    dxp, dw, _ = conv_gradients(dout, cache)
    return dxp[:, :, pad : pad + H, pad : pad + W], dw, dout.sum(axis=0)


CONV_STRIDED = Exercise(
    "2-D convolution with stride 2 and padding 1",
    strided_forward,
    conv_backward,
    lambda rng: (rng.normal(size=(2, 3, 7, 5)), rng.normal(size=(4, 3, 3, 3)), rng.normal(size=4)),
    (
        Bug(
            conv_padding_not_cropped,
            "dx still has the padding",
            kinds("wrong shape"),
            ("x",),
        ),
        Bug(
            conv_cropped_at_the_corner,
            "the padding is cut off on the wrong side: dx is shifted by one",
            kinds("shifted"),
            ("x",),
        ),
        Bug(
            conv_stride_forgotten,
            "dx is scattered without the stride",
            kinds("scale missing", "factor missing"),
            ("x",),
        ),
        Bug(
            conv_overlap_overwritten,
            "= where += belongs: where windows overlap, only the last counts",
            kinds("term missing", "some rows"),
            ("x",),
        ),
        Bug(
            conv_bias_not_over_positions,
            "db is summed over the batch but not over the positions",
            kinds("not reduced"),
            ("b",),
        ),
    ),
)

# Stride 1, no padding, windows and einsum; the input gradient as a convolution of the padded dy


def plain_forward(x, weight, bias):
    windows = np.lib.stride_tricks.sliding_window_view(x, weight.shape[2:], axis=(2, 3))
    y = np.einsum("ncijhw,fchw->nfij", windows, weight) + bias[:, None, None]
    return y, (x, weight)


def plain_backward(dy, cache):
    x, w = cache
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    dw = np.einsum("nfij,ncijhw->fchw", dy, windows)
    h, k = w.shape[2] - 1, w.shape[3] - 1
    padded = np.pad(dy, ((0, 0), (0, 0), (h, h), (k, k)))
    dwindows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[2:], axis=(2, 3))
    dx = np.einsum("nfijhw,fchw->ncij", dwindows, w[:, :, ::-1, ::-1])
    return dx, dw, dy.sum((0, 2, 3))


def plain_without_flip(dy, cache):
    x, w = cache
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    dw = np.einsum("nfij,ncijhw->fchw", dy, windows)
    h, k = w.shape[2] - 1, w.shape[3] - 1
    padded = np.pad(dy, ((0, 0), (0, 0), (h, h), (k, k)))
    dwindows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[2:], axis=(2, 3))
    dx = np.einsum("nfijhw,fchw->ncij", dwindows, w)
    return dx, dw, dy.sum((0, 2, 3))


def plain_dw_flipped(dy, cache):
    dx, dw, db = plain_backward(dy, cache)
    return dx, dw[:, :, ::-1, ::-1], db


def plain_bias_over_batch_twice(dy, cache):
    dx, dw, db = plain_backward(dy, cache)
    return dx, dw, dy.mean(axis=(2, 3)).sum(0)


CONV_PLAIN = Exercise(
    "2-D convolution by windows and einsum",
    plain_forward,
    plain_backward,
    lambda rng: (rng.normal(size=(2, 3, 5, 6)), rng.normal(size=(4, 3, 3, 2)), rng.normal(size=4)),
    (
        Bug(
            plain_without_flip,
            "the kernel is not turned around in dx",
            kinds("flipped"),
            ("x",),
        ),
        Bug(
            plain_dw_flipped,
            "dW comes back turned around, as of a true convolution",
            kinds("flipped"),
            ("weight",),
        ),
        Bug(
            plain_bias_over_batch_twice,
            "db is a mean over the positions",
            kinds("mean for sum", "scaled"),
            ("bias",),
        ),
    ),
    like="conv2d",
)

# 1-D, loop over the taps


def conv1d_forward(x, weight, bias):
    K = weight.shape[2]
    T = x.shape[2] - K + 1
    y = sum(np.einsum("nct,oc->not", x[:, :, k : k + T], weight[:, :, k]) for k in range(K))
    return y + bias[None, :, None], (x, weight)


def conv1d_backward(dy, cache):
    x, weight = cache
    T = dy.shape[2]
    dx, dw = np.zeros_like(x), np.zeros_like(weight)
    for k in range(weight.shape[2]):
        dx[:, :, k : k + T] += np.einsum("not,oc->nct", dy, weight[:, :, k])
        dw[:, :, k] = np.einsum("not,nct->oc", dy, x[:, :, k : k + T])
    return dx, dw, dy.sum((0, 2))


def conv1d_taps_reversed(dy, cache):
    x, weight = cache
    T, K = dy.shape[2], weight.shape[2]
    dx, dw = np.zeros_like(x), np.zeros_like(weight)
    for k in range(K):
        dx[:, :, k : k + T] += np.einsum("not,oc->nct", dy, weight[:, :, K - 1 - k])
        dw[:, :, k] = np.einsum("not,nct->oc", dy, x[:, :, k : k + T])
    return dx, dw, dy.sum((0, 2))


def conv1d_first_tap_left_out(dy, cache):
    x, weight = cache
    T = dy.shape[2]
    dx, dw = np.zeros_like(x), np.zeros_like(weight)
    for k in range(1, weight.shape[2]):
        dx[:, :, k : k + T] += np.einsum("not,oc->nct", dy, weight[:, :, k])
        dw[:, :, k] = np.einsum("not,nct->oc", dy, x[:, :, k : k + T])
    return dx, dw, dy.sum((0, 2))


CONV1D = Exercise(
    "1-D convolution, tap by tap",
    conv1d_forward,
    conv1d_backward,
    lambda rng: (rng.normal(size=(2, 3, 8)), rng.normal(size=(4, 3, 3)), rng.normal(size=4)),
    (
        Bug(
            conv1d_taps_reversed,
            "the taps of the kernel are taken from the other end",
            kinds("flipped"),
            ("x",),
        ),
        Bug(
            conv1d_first_tap_left_out,
            "the loop starts at tap 1",
            kinds("term missing", "some rows", "shifted"),
            ("x", "weight"),
        ),
    ),
    like="conv1d",
)

EXERCISES = (CONV_STRIDED, CONV_PLAIN, CONV1D)
