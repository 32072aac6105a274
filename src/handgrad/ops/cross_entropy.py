"""Cross-entropy with its softmax fused: class scores and a target to a loss.

log p is a score less log Σ exp x, and not the logarithm of a softmax, because a small probability
may be rounded to 0, whose logarithm is −∞: the loss would be lost, and its gradient with it. Taken
together the two have the gradient p − q, in which nothing is divided by p.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from array_api_compat import array_namespace, device

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.errors import ArgumentError, ShapeError
from handgrad.ops.arguments import check_axis, check_choice, check_vector

if TYPE_CHECKING:
    from jaxtyping import Float, Int

REDUCTIONS: Final = ("mean", "sum", "none")


class Cache(NamedTuple):
    """Probabilities p and weighted targets q, of which the gradient is the difference.

    `total` is what the sum is divided by: for "mean" the weight of all targets, otherwise 1.
    """

    p: Array
    q: Array
    total: Array | float
    reduction: str


def _class_axis(x: Array) -> int:
    return 0 if len(x.shape) == 1 else 1


def validate(
    x: Array,
    target: Array,
    *,
    weight: Array | None = None,
    label_smoothing: float = 0.0,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> None:
    if len(x.shape) == 0:
        raise ShapeError("cross_entropy: x has shape (); allowed: (C,), (N, C) or (N, C, d1, ...)")
    axis = _class_axis(x)
    check_axis("cross_entropy", axis, x)
    shape = tuple(x.shape)
    classes = shape[axis]
    without_classes = shape[:axis] + shape[axis + 1 :]
    if tuple(target.shape) not in (without_classes, shape):
        raise ShapeError(
            f"cross_entropy: target has shape {tuple(target.shape)}; allowed: {without_classes} "
            f"for class indices or {shape} for probabilities, because x has shape {shape}"
        )
    if isinstance(target, np.ndarray):
        has_indices = len(target.shape) < len(shape)
        kind, meaning = ("i", "class indices") if has_indices else ("f", "probabilities")
        if target.dtype.kind != kind:
            raise ArgumentError(
                f"cross_entropy: target is of {target.dtype}; allowed: "
                f"{'integers' if has_indices else 'floats'}, because its shape is that of {meaning}"
            )
    if weight is not None:
        check_vector("cross_entropy", "weight", weight, classes)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ArgumentError(
            f"cross_entropy: label_smoothing is {label_smoothing!r}; allowed: 0 to 1"
        )
    check_choice("cross_entropy", "reduction", reduction, REDUCTIONS)


def validate_values(
    x: Array,
    target: Array,
    *,
    weight: Array | None = None,
    label_smoothing: float = 0.0,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> None:
    if not isinstance(target, (np.ndarray, np.generic)) or len(target.shape) == len(x.shape):
        return
    classes = x.shape[_class_axis(x)]
    found = np.ravel(target)
    wrong = found[(found != ignore_index) & ((found < 0) | (found >= classes))]
    if wrong.size > 0:
        raise ArgumentError(
            f"cross_entropy: target holds class {wrong[0]}; "
            f"allowed: 0 to {classes - 1}, or ignore_index = {ignore_index}"
        )


@operation
def forward(
    x: Float[Array, "C"] | Float[Array, "N C *size"],
    target: Int[Array, ""] | Int[Array, "N *size"] | Float[Array, "C"] | Float[Array, "N C *size"],
    *,
    weight: Float[Array, "C"] | None = None,
    label_smoothing: float = 0.0,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> tuple[Float[Array, ""] | Float[Array, "N *size"], Cache]:
    """Cross-entropy between softmax(x) and a target: class indices, or one probability per class.

    Forward:  log p = x − max x − log Σ exp(x − max x)
              q_c = w_c ((1 − s) t_c + s/C),  l = −Σ_c q_c log p_c
              t the target's probabilities, or 1 at its index and 0 elsewhere; w the class weights
              (1 if absent); s the label smoothing; q = 0 where the target is ignore_index
    Backward: dl/dx = p Σ_c q_c − q
    Reduced:  "sum"; "none"; "mean": Σ l divided by Σ w[target] over the targets not ignored, or,
              with probabilities, by their number whatever the weights, as in PyTorch

    If all targets are ignored, or there are none, loss and gradient are 0 (PyTorch: NaN). A class
    with q = 0 adds nothing even if its score is −∞. The target and the weights have no gradient.

    Shapes: x (C,), (N, C) or (N, C, d1, ..., dK); target that of x without C (indices) or that of x
    (probabilities); weight (C,); loss (), or with "none" that of x without C.
    Raises ShapeError where these do not fit, ArgumentError for an index that is no class, for
    label_smoothing outside 0 to 1, or for another reduction (targets are looked at only if they
    are a NumPy array).
    Source: Yeung, The Deep Learning Dump (2023), section 1; Yamanishi, DNN, CNN, RNN, LSTM, Attn,
    and Transformer (2020), equation 11, whose sign is turned; Gulino, Neural Network Simplified
    Mathematics (2025), losses; Blanchard, Higham, Higham, Accurately computing the log-sum-exp and
    softmax functions (2021), for log Σ exp.
    """
    xp = array_namespace(x)
    axis = _class_axis(x)
    classes = x.shape[axis]
    along_classes = tuple(classes if i == axis else 1 for i in range(len(x.shape)))
    shifted = x - xp.max(x, axis=axis, keepdims=True)
    log_p = shifted - xp.log(xp.sum(xp.exp(shifted), axis=axis, keepdims=True))

    if len(target.shape) < len(x.shape):
        index = xp.expand_dims(target, axis=axis)
        class_index = xp.arange(classes, dtype=target.dtype, device=device(x))
        counts = xp.astype(index != ignore_index, x.dtype)
        t = counts * xp.astype(index == xp.reshape(class_index, along_classes), x.dtype)
        smooth = counts * (label_smoothing / classes)
        q = (1.0 - label_smoothing) * t + smooth
        if weight is not None:
            t = xp.reshape(weight, along_classes) * t
            q = xp.reshape(weight, along_classes) * q
        total = xp.sum(t)
        total = xp.where(total == 0, xp.ones_like(total), total)
    else:
        q = (1.0 - label_smoothing) * target + label_smoothing / classes
        if weight is not None:
            q = xp.reshape(weight, along_classes) * q
        total = max(math.prod(x.shape) // classes, 1)

    log_p_of_targets = xp.where(q == 0, xp.zeros_like(log_p), log_p)
    losses = -xp.sum(q * log_p_of_targets, axis=axis)
    p = xp.exp(log_p)
    if reduction == "mean":
        return xp.sum(losses) / total, Cache(p, q, total, reduction)
    if reduction == "sum":
        return xp.sum(losses), Cache(p, q, 1.0, reduction)
    return losses, Cache(p, q, 1.0, reduction)


@operation
def backward(
    dloss: Float[Array, ""] | Float[Array, "N *size"], cache: Cache
) -> Float[Array, "C"] | Float[Array, "N C *size"]:
    """dx = dloss (p Σ_c q_c − q)/total."""
    p, q, total, reduction = cache
    xp = array_namespace(p)
    axis = _class_axis(p)
    dlosses = xp.expand_dims(dloss, axis=axis) if reduction == "none" else dloss / total
    q_sum = xp.sum(q, axis=axis, keepdims=True)
    dx = dlosses * (p * q_sum - q)
    return dx
