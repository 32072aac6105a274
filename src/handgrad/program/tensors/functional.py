"""torch.nn.functional: activations, normalizations, attention, linear maps."""

from __future__ import annotations

import math
from typing import Any

from handgrad.program.primitives.table import refuse
from handgrad.program.tensors.reductions import norm
from handgrad.program.tensors.table import (
    by_channel,
    enter,
    held,
    is_exactly,
    special,
    times,
    torch_function,
    xp,
)
from handgrad.program.tracer import Tracer


@torch_function()
def softmax(x: Any, dim: Any = None, *_: Any, **__: Any) -> Any:
    return special.softmax(x, axis=_of_softmax(x, dim))


@torch_function()
def log_softmax(x: Any, dim: Any = None, *_: Any, **__: Any) -> Any:
    return special.log_softmax(x, axis=_of_softmax(x, dim))


@torch_function()
def softmin(x: Any, dim: Any = None, *_: Any, **__: Any) -> Any:
    return softmax(-x, dim)


def _of_softmax(x: Any, dim: Any) -> int:
    """The axis that PyTorch takes where none is named."""
    return int(x.ndim not in (0, 1, 3)) if dim is None else dim


@torch_function()
def relu(x: Any, inplace: bool = False) -> Any:
    return xp.maximum(x, 0)


@torch_function()
def relu6(x: Any, inplace: bool = False) -> Any:
    return hardtanh(x, 0.0, 6.0)


@torch_function()
def hardtanh(x: Any, min_val: Any = -1.0, max_val: Any = 1.0, inplace: bool = False) -> Any:
    """On a bound the gradient is 0, other than that of clamp."""
    return xp.where(x <= min_val, min_val, xp.where(x >= max_val, max_val, x))


@torch_function()
def hardsigmoid(x: Any, inplace: bool = False) -> Any:
    return relu6(x + 3.0) / 6.0


@torch_function()
def hardswish(x: Any, inplace: bool = False) -> Any:
    return x * hardsigmoid(x)


@torch_function()
def leaky_relu(x: Any, negative_slope: Any = 0.01, inplace: bool = False) -> Any:
    return xp.where(x > 0, x, negative_slope * x)


@torch_function()
def prelu(x: Any, weight: Any) -> Any:
    if x.ndim > 1 and weight.ndim == 1:
        weight = by_channel(weight, x)
    return xp.where(x > 0, x, weight * x)


@torch_function()
def elu(x: Any, alpha: Any = 1.0, inplace: bool = False) -> Any:
    """At 0 the gradient is that on the left, alpha."""
    return xp.where(x > 0, x, alpha * xp.expm1(xp.where(x > 0, 0.0, x)))


@torch_function()
def celu(x: Any, alpha: Any = 1.0, inplace: bool = False) -> Any:
    return xp.where(x > 0, x, alpha * xp.expm1(xp.where(x > 0, 0.0, x) / alpha))


@torch_function()
def selu(x: Any, inplace: bool = False) -> Any:
    """Klambauer and others, Self-normalizing neural networks (2017)."""
    return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)


@torch_function()
def gelu(x: Any, *, approximate: str = "none") -> Any:
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return 0.5 * x * (1 + xp.tanh(inner))
    return 0.5 * x * (1 + special.erf(x / math.sqrt(2)))


@torch_function()
def silu(x: Any, inplace: bool = False) -> Any:
    return x * special.expit(x)


@torch_function()
def mish(x: Any, inplace: bool = False) -> Any:
    return x * xp.tanh(softplus(x))


@torch_function()
def softplus(x: Any, beta: Any = 1.0, threshold: Any = 20.0) -> Any:
    """log(1 + e^x); x from a threshold on, which at 20 is the same within rounding."""
    scaled = times(beta, x)
    soft = -special.log_expit(-scaled)
    soft = soft if is_exactly(beta, 1) else soft / beta
    return soft if is_exactly(threshold, 20) else xp.where(scaled > threshold, x, soft)


@torch_function("logsigmoid", "log_sigmoid")
def logsigmoid(x: Any) -> Any:
    return special.log_expit(x)


@torch_function()
def softsign(x: Any) -> Any:
    return x / (1 + xp.absolute(x))


@torch_function()
def tanhshrink(x: Any) -> Any:
    return x - xp.tanh(x)


@torch_function()
def softshrink(x: Any, lambd: Any = 0.5) -> Any:
    return xp.where(x > lambd, x - lambd, xp.where(x < -lambd, x + lambd, 0.0))


@torch_function()
def hardshrink(x: Any, lambd: Any = 0.5) -> Any:
    return xp.where((x > lambd) | (x < -lambd), x, 0.0)


@torch_function()
def threshold(x: Any, threshold: Any, value: Any, inplace: bool = False) -> Any:
    return xp.where(x > threshold, x, value)


@torch_function()
def glu(x: Any, dim: int = -1) -> Any:
    a, b = xp.split(x, 2, axis=dim)
    return a * special.expit(b)


@torch_function()
def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    y = x @ xp.swapaxes(weight, -1, -2) if weight.ndim > 1 else x @ weight
    return y if bias is None else y + bias


@torch_function()
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    y = xp.einsum("...i,oij,...j->...o", input1, weight, input2)
    return y if bias is None else y + bias


@torch_function()
def layer_norm(
    x: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: Any = 1e-5
) -> Any:
    count = len(normalized_shape) if isinstance(normalized_shape, tuple | list) else 1
    return _scaled(_standardized(x, tuple(range(-count, 0)), eps), weight, bias)


@torch_function()
def rms_norm(x: Any, normalized_shape: Any, weight: Any = None, eps: Any = None) -> Any:
    axis = tuple(range(-len(normalized_shape), 0))
    added = 2.220446049250313e-16 if eps is None else eps
    y = x / xp.sqrt(xp.mean(x * x, axis=axis, keepdims=True) + added)
    return _scaled(y, weight, None)


@torch_function()
def group_norm(
    x: Any, num_groups: Any, weight: Any = None, bias: Any = None, eps: Any = 1e-5
) -> Any:
    n, c, *rest = x.shape
    groups = xp.reshape(x, (n, num_groups, c // num_groups, *rest))
    y = xp.reshape(_standardized(groups, tuple(range(2, groups.ndim)), eps), x.shape)
    return _scaled(y, by_channel(weight, x), by_channel(bias, x))


@torch_function()
def instance_norm(
    x: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: Any = 0.1,
    eps: Any = 1e-5,
) -> Any:
    if not use_input_stats:
        return batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
    y = _standardized(x, tuple(range(2, x.ndim)), eps)
    return _scaled(y, by_channel(weight, x), by_channel(bias, x))


@torch_function()
def batch_norm(
    x: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: Any = 0.1,
    eps: Any = 1e-5,
) -> Any:
    """In training the running statistics change as in PyTorch, and nothing else depends on them."""
    if training:
        _follow(x, running_mean, running_var, momentum)
        y = _standardized(x, (0, *range(2, x.ndim)), eps)
    else:
        mean, variance = (by_channel(each, x) for each in (running_mean, running_var))
        y = (x - mean) / xp.sqrt(variance + eps)
    return _scaled(y, by_channel(weight, x), by_channel(bias, x))


def _follow(x: Any, running_mean: Any, running_var: Any, momentum: Any) -> None:
    """The running statistics, moved towards those of a batch where they are traced arrays."""
    axis = (0, *range(2, x.ndim))
    for running, of_batch in ((running_mean, xp.mean), (running_var, _unbiased)):
        if type(running) is Tracer:
            running.assign((1 - momentum) * running + momentum * held(of_batch(x, axis=axis)))


def _unbiased(x: Any, axis: tuple[int, ...]) -> Any:
    return xp.var(x, axis=axis, ddof=1)


def _standardized(x: Any, axis: tuple[int, ...], eps: Any) -> Any:
    centered = x - xp.mean(x, axis=axis, keepdims=True)
    variance = xp.mean(centered * centered, axis=axis, keepdims=True)
    return centered / xp.sqrt(variance + eps)


def _scaled(y: Any, weight: Any, bias: Any) -> Any:
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


@torch_function()
def normalize(x: Any, p: Any = 2.0, dim: int = 1, eps: Any = 1e-12) -> Any:
    return x / xp.maximum(norm(x, p, dim, True), eps)


@torch_function()
def norm_except_dim(v: Any, pow: Any = 2, dim: int = 0) -> Any:
    if dim == -1:
        return norm(v, pow)
    return norm(v, pow, tuple(k for k in range(v.ndim) if k != dim % v.ndim), True)


@torch_function("_weight_norm")
def weight_norm(v: Any, g: Any, dim: int = 0) -> Any:
    """Salimans and Kingma, Weight normalization (2016)."""
    return v * (g / norm_except_dim(v, 2, dim))


@torch_function()
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: Any = 1e-8) -> Any:
    """PyTorch bounds each norm from below."""
    first, second = (xp.maximum(norm(x, 2, dim), eps) for x in (x1, x2))
    return xp.sum(x1 * x2, axis=dim) / (first * second)


@torch_function()
def pairwise_distance(
    x1: Any, x2: Any, p: Any = 2.0, eps: Any = 1e-6, keepdim: bool = False
) -> Any:
    return norm(x1 - x2 + eps, p, -1, keepdim)


@torch_function(
    *("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout"),
    *("feature_alpha_dropout", "feature_dropout"),
)
def dropout(x: Any, p: Any = 0.5, training: bool = True, inplace: bool = False) -> Any:
    if training and not is_exactly(p, 0):
        refuse("dropout draws another mask in each run; give the mask as an argument")
    return x


@torch_function()
def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: Any = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Any:
    """Vaswani and others, Attention is all you need (2017), equation 1."""
    dropout(query, dropout_p)
    if enable_gqa:
        count = query.shape[-3] // key.shape[-3]
        key, value = (xp.repeat(each, count, axis=-3) for each in (key, value))
    factor = 1 / xp.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ xp.swapaxes(key, -1, -2) * factor
    if is_causal:
        shown = xp.tril(xp.ones((query.shape[-2], key.shape[-2]), dtype=bool))
        scores = xp.where(shown, scores, -xp.inf)
    if attn_mask is None:
        return special.softmax(scores, axis=-1) @ value
    is_mask = attn_mask.dtype == bool
    shown = attn_mask if is_mask else attn_mask > -xp.inf
    scores = xp.where(attn_mask, scores, -xp.inf) if is_mask else scores + attn_mask
    # A query to which no key is shown has the value 0, not the softmax of nothing.
    seen = xp.any(shown, axis=-1, keepdims=True)
    weights = special.softmax(xp.where(seen, scores, 0.0), axis=-1)
    return xp.where(seen, weights, 0.0) @ value


def _in_place(function: Any) -> Any:
    def changing(x: Any, *args: Any) -> Any:
        x.assign(function(x, *args))
        return x

    return changing


for _function in (relu, elu, selu, celu, leaky_relu, hardtanh, threshold):
    enter(f"{_function.__name__}_", _in_place(_function))
