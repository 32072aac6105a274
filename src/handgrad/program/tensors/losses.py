"""Losses of torch.nn.functional, with PyTorch's reductions."""

from __future__ import annotations

from typing import Any

from handgrad.program.primitives.table import refuse
from handgrad.program.tensors.elementwise import clamp_min
from handgrad.program.tensors.functional import cosine_similarity, pairwise_distance
from handgrad.program.tensors.table import (
    by_channel,
    held,
    is_exactly,
    special,
    torch_function,
    torch_refused,
    xp,
)


def _whole(loss: Any, reduction: str) -> Any:
    match reduction:
        case "mean":
            return xp.mean(loss)
        case "sum":
            return xp.sum(loss)
        case "none":
            return loss
    return refuse(f"reduction is {reduction!r}; mean, sum and none are known")


@torch_function()
def mse_loss(x: Any, target: Any, *_: Any, reduction: str = "mean", **__: Any) -> Any:
    return _whole((x - target) ** 2, reduction)


@torch_function()
def l1_loss(x: Any, target: Any, *_: Any, reduction: str = "mean", **__: Any) -> Any:
    return _whole(xp.absolute(x - target), reduction)


@torch_function()
def smooth_l1_loss(
    x: Any, target: Any, *_: Any, reduction: str = "mean", beta: Any = 1.0, **__: Any
) -> Any:
    e = xp.absolute(x - target)
    if is_exactly(beta, 0):
        return _whole(e, reduction)
    return _whole(xp.where(e < beta, 0.5 * e * e / beta, e - 0.5 * beta), reduction)


@torch_function()
def huber_loss(
    x: Any, target: Any, reduction: str = "mean", delta: Any = 1.0, weight: Any = None
) -> Any:
    e = xp.absolute(x - target)
    return _whole(xp.where(e <= delta, 0.5 * e * e, delta * (e - 0.5 * delta)), reduction)


def _floored(logarithm: Any, x: Any, end: float) -> Any:
    """A logarithm of at least −100; at its end without the quotient 1/0 of its gradient."""
    inside = x > end
    return xp.where(inside, xp.maximum(logarithm(xp.where(inside, x, end + 1.0)), -100.0), -100.0)


@torch_function()
def binary_cross_entropy(
    x: Any, target: Any, weight: Any = None, *_: Any, reduction: str = "mean", **__: Any
) -> Any:
    """The logarithms are at least −100, and the gradient there is 0, which a sigmoid keeps.

    PyTorch's is (x − t)/1e-12 where x(1 − x) is less than 1e-12.
    """
    loss = -(target * _floored(xp.log, x, 0.0) + (1 - target) * _floored(xp.log1p, -x, -1.0))
    return _whole(loss if weight is None else loss * weight, reduction)


@torch_function()
def binary_cross_entropy_with_logits(
    x: Any,
    target: Any,
    weight: Any = None,
    *_: Any,
    reduction: str = "mean",
    pos_weight: Any = None,
    **__: Any,
) -> Any:
    positive = target * special.log_expit(x)
    if pos_weight is not None:
        positive = pos_weight * positive
    loss = -(positive + (1 - target) * special.log_expit(-x))
    return _whole(loss if weight is None else loss * weight, reduction)


@torch_function()
def kl_div(
    x: Any, target: Any, *_: Any, reduction: str = "mean", log_target: bool = False, **__: Any
) -> Any:
    """x is a logarithm; a target of 0 adds nothing."""
    loss = (
        xp.exp(target) * (target - x) if log_target else special.xlogy(target, target) - target * x
    )
    if reduction == "batchmean":
        return xp.sum(loss) / x.shape[0]
    return _whole(loss, reduction)


@torch_function()
def poisson_nll_loss(
    x: Any, target: Any, log_input: bool = True, *_: Any, reduction: str = "mean", **o: Any
) -> Any:
    if o.get("full"):
        refuse("poisson_nll_loss with full=True is not known")
    eps = o.get("eps", 1e-8)
    loss = xp.exp(x) - target * x if log_input else x - target * xp.log(x + eps)
    return _whole(loss, reduction)


@torch_function()
def gaussian_nll_loss(
    x: Any, target: Any, var: Any, full: bool = False, eps: Any = 1e-6, reduction: str = "mean"
) -> Any:
    variance = var + held(xp.maximum(var, eps) - var)  # which passes the gradient at the bound
    loss = 0.5 * (xp.log(variance) + (x - target) ** 2 / variance)
    return _whole(loss + 0.9189385332046727 if full else loss, reduction)


def _weighted(target: Any, weight: Any, ignore_index: int) -> tuple[Any, Any]:
    """The classes, 0 where one is ignored, and the weight of each, which is 0 there."""
    kept = target != ignore_index
    at = xp.where(kept, target, 0)
    return at, xp.where(kept, 1.0 if weight is None else weight[at], 0.0)


@torch_function()
def nll_loss(
    x: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """Minus the logarithm at each target's class; those of `ignore_index` add nothing."""
    logs = xp.moveaxis(x, 1, -1) if x.ndim > 1 else x
    at, weights = _weighted(target, weight, ignore_index)
    loss = -weights * xp.take_along_axis(logs, at[..., None], axis=-1)[..., 0]
    return xp.sum(loss) / xp.sum(weights) if reduction == "mean" else _whole(loss, reduction)


@torch_function()
def cross_entropy(
    x: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: Any = 0.0,
) -> Any:
    """The targets are classes, or probabilities in the shape of x."""
    axis = 1 if x.ndim > 1 else 0
    logs = special.log_softmax(x, axis=axis)
    smooth = not is_exactly(label_smoothing, 0)
    weights = 1.0 if weight is None else by_channel(weight, x)
    if target.node.kind == "f":
        if smooth:
            target = target * (1 - label_smoothing) + label_smoothing / x.shape[axis]
        return _whole(-xp.sum(weights * target * logs, axis=axis), reduction)
    plain = nll_loss(logs, target, weight, None, ignore_index, None, reduction)
    if not smooth:
        return plain
    spread = xp.where(target != ignore_index, -xp.sum(weights * logs, axis=axis), 0.0)
    if reduction == "mean":
        spread = xp.sum(spread) / xp.sum(_weighted(target, weight, ignore_index)[1])
    else:
        spread = _whole(spread, reduction)
    return (1 - label_smoothing) * plain + label_smoothing / x.shape[axis] * spread


@torch_function()
def margin_ranking_loss(
    input1: Any,
    input2: Any,
    target: Any,
    margin: Any = 0,
    *_: Any,
    reduction: str = "mean",
    **__: Any,
) -> Any:
    return _whole(clamp_min(-target * (input1 - input2) + margin, 0), reduction)


@torch_function()
def hinge_embedding_loss(
    x: Any, target: Any, margin: Any = 1.0, *_: Any, reduction: str = "mean", **__: Any
) -> Any:
    loss = xp.where(target == 1, x, xp.where(target == -1, clamp_min(margin - x, 0), 0.0))
    return _whole(loss, reduction)


@torch_function()
def soft_margin_loss(x: Any, target: Any, *_: Any, reduction: str = "mean", **__: Any) -> Any:
    return _whole(-special.log_expit(target * x), reduction)


@torch_function()
def cosine_embedding_loss(
    input1: Any,
    input2: Any,
    target: Any,
    margin: Any = 0,
    *_: Any,
    reduction: str = "mean",
    **__: Any,
) -> Any:
    cosine = cosine_similarity(input1, input2, -1)
    loss = xp.where(target == 1, 1 - cosine, clamp_min(cosine - margin, 0))
    return _whole(loss, reduction)


@torch_function()
def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: Any = 1.0,
    p: Any = 2,
    eps: Any = 1e-6,
    swap: bool = False,
    *_: Any,
    reduction: str = "mean",
    **__: Any,
) -> Any:
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = xp.minimum(far, pairwise_distance(positive, negative, p, eps))
    return _whole(clamp_min(near - far + margin, 0), reduction)


@torch_function()
def triplet_margin_with_distance_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    *,
    distance_function: Any = None,
    margin: Any = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Any:
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = xp.minimum(far, distance(positive, negative))
    return _whole(clamp_min(near - far + margin, 0), reduction)


@torch_function()
def multi_margin_loss(
    x: Any,
    target: Any,
    p: Any = 1,
    margin: Any = 1.0,
    weight: Any = None,
    *_: Any,
    reduction: str = "mean",
    **__: Any,
) -> Any:
    """Of every class but the target's by how much it comes near, over the number of classes."""
    own = xp.take_along_axis(x, target[..., None], axis=-1)
    over = margin - own + x
    near = xp.where(over > 0, over**p, 0.0)
    if weight is not None:
        near = near * weight[target][..., None]
    others = xp.arange(x.shape[-1]) != target[..., None]
    return _whole(xp.sum(xp.where(others, near, 0.0), axis=-1) / x.shape[-1], reduction)


@torch_function()
def multilabel_soft_margin_loss(
    x: Any, target: Any, weight: Any = None, *_: Any, reduction: str = "mean", **__: Any
) -> Any:
    loss = -(target * special.log_expit(x) + (1 - target) * special.log_expit(-x))
    loss = loss if weight is None else loss * weight
    return _whole(xp.mean(loss, axis=-1), reduction)


torch_refused(
    "{name} of PyTorch is not known to derive; write its sum by logsumexp",
    *("ctc_loss", "multilabel_margin_loss", "linear_cross_entropy"),
)
