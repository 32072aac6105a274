"""The operator `handgrad::encoder_layer`, one in the place of the twenty of an encoder layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from handgrad.dispatch import SKIP
from handgrad.errors import ArgumentError, ShapeError
from handgrad.kernels.activation import code_of, keeps_input
from handgrad.ops import attention, dense, layer_norm
from handgrad.ops.activation import check_activation
from handgrad.ops.arguments import check_integer
from handgrad.torch import encoder_layer_kernels as kernels
from handgrad.torch.bridge import Tensors, as_array, as_set_in_torch, as_tensor, differentiable
from handgrad.torch.encoder_layer_kernels import Inputs, Outputs

_TENSORS: Final = Inputs._fields[: Inputs._fields.index("heads")]
#: Inputs with a gradient, in the order of the operator's arguments.
LEARNED: Final = _TENSORS[: _TENSORS.index("bias")]
_SCHEMA: Final = (
    "(Tensor x, Tensor in_proj_weight, Tensor? in_proj_bias, Tensor out_proj_weight, "
    "Tensor? out_proj_bias, Tensor linear1_weight, Tensor? linear1_bias, Tensor linear2_weight, "
    "Tensor? linear2_bias, Tensor norm1_weight, Tensor? norm1_bias, Tensor norm2_weight, "
    "Tensor? norm2_bias, Tensor? bias, Tensor? mask, Tensor? seed, int heads, str activation, "
    "str approximate, float dropout, float eps1, float eps2, bool norm_first, bool causal, "
    f"bool bf16) -> ({', '.join(['Tensor'] * len(Outputs._fields))})"
)


def _arrays(inputs: Sequence[Any]) -> Inputs:
    arrays: list[Any] = [as_array(v) if isinstance(v, Tensor) else v for v in inputs]
    return Inputs(*arrays)


def _validate(*inputs: Any) -> None:
    """Each of its ops has the words for its own part."""
    given = Inputs(*inputs)
    x = given.x
    if x.ndim != 3:
        raise ShapeError(f"encoder_layer: x has shape {x.shape}; allowed: (N, T, E)")
    *rows, features = x.shape
    check_integer("encoder_layer", "heads", given.heads, 1, max(features, 1))
    hidden = np.broadcast_to(x.dtype.type(0), (*rows, len(given.linear1_weight)))
    products = (
        ("in_proj", x, 3 * features),
        ("out_proj", x, features),
        ("linear1", x, hidden.shape[2]),
        ("linear2", hidden, features),
    )
    for name, operand, size in products:
        weight, bias = (getattr(given, f"{name}_{part}") for part in ("weight", "bias"))
        dense.validate(operand, weight, bias)
        if len(weight) != size:
            raise ShapeError(
                f"encoder_layer: {name}_weight has shape {weight.shape}; allowed: {size} rows"
            )
    for number in (1, 2):
        gamma, beta = (getattr(given, f"norm{number}_{part}") for part in ("weight", "bias"))
        eps = getattr(given, f"eps{number}")
        layer_norm.validate(x, gamma, gamma if beta is None else beta, eps=eps)
    if features % given.heads != 0:
        raise ArgumentError(
            f"encoder_layer: heads is {given.heads}; allowed: a divisor of the {features} features"
        )
    q = np.broadcast_to(x.dtype.type(0), (rows[0], given.heads, rows[1], features // given.heads))
    attention.validate(
        q, q, q, given.bias, mask=given.mask, dropout_p=given.dropout, rng=np.random.default_rng(0)
    )
    check_activation("encoder_layer", given.activation, given.approximate)


def _forward(*inputs: Any) -> tuple[Tensor, ...]:
    given = _arrays(inputs)
    with as_set_in_torch(given.bf16):
        return tuple(map(as_tensor, kernels.forward(given)))


def _backward(
    doutputs: Tensors, inputs: Sequence[Any], outputs: Tensors, wanted: Sequence[bool]
) -> list[Tensor]:
    given = _arrays(inputs)
    kept = Outputs(*map(as_array, outputs))
    pairs = zip(Inputs._fields, wanted, strict=True)
    at = {name: None if is_wanted else SKIP for name, is_wanted in pairs}
    dy: Any = as_array(doutputs[0])
    with as_set_in_torch(given.bf16):
        found = kernels.backward(dy, given, kept, at)
    return [as_tensor(found[name]) for name in LEARNED if at[name] is None]


def _fake(*inputs: Any) -> tuple[Tensor, ...]:
    given = Inputs(*inputs)
    x = given.x
    batch, steps, features = x.shape
    hidden = given.linear1_weight.shape[0]
    nothing = x.new_empty(0)

    def mask(*shape: Any) -> Tensor:
        return x.new_empty(shape if given.seed is not None else 0, dtype=torch.bool)

    like_x = [torch.empty_like(x, memory_format=torch.contiguous_format) for _ in range(5)]
    keeps = keeps_input(code_of(given.activation, given.approximate))
    return tuple(
        Outputs(
            y=like_x[0],
            qkv=x.new_empty(batch, steps, 3 * features),
            o=like_x[1],
            log_sums=x.new_empty(batch, given.heads, steps),
            sum1=like_x[2],
            normed1=like_x[3],
            statistics1=x.new_empty(batch, steps, 2),
            second=like_x[4],
            statistics2=x.new_empty(batch, steps, 2),
            hidden=x.new_empty(batch, steps, hidden),
            a=x.new_empty(batch, steps, hidden) if keeps else nothing,
            keep_weights=mask(batch, given.heads, steps, steps),
            keep1=mask(batch, steps, features),
            keep_hidden=mask(batch, steps, hidden),
            keep2=mask(batch, steps, features),
        )
    )


def _again(*inputs: Any) -> Tensors:
    """y by PyTorch's own operations, with the same masks of dropout."""
    given = Inputs(*inputs)
    x, p = given.x, given.dropout
    drawn = [None if each is None else as_tensor(each) for each in kernels.drawn_numbers(given)]

    def dropped(z: Tensor, number: int) -> Tensor:
        each = drawn[number]
        return z if each is None else z * (each >= p) * kernels.scale_of(p)

    def norm1(z: Tensor) -> Tensor:
        weights = (given.norm1_weight, given.norm1_bias, given.eps1)
        return functional.layer_norm(z, z.shape[-1:], *weights)

    def norm2(z: Tensor) -> Tensor:
        weights = (given.norm2_weight, given.norm2_bias, given.eps2)
        return functional.layer_norm(z, z.shape[-1:], *weights)

    def attention(z: Tensor) -> Tensor:
        qkv = functional.linear(z, given.in_proj_weight, given.in_proj_bias)
        q, k, v = qkv.unflatten(-1, (3, given.heads, -1)).permute(2, 0, 3, 1, 4)
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if given.bias is not None:
            scores = scores + given.bias
        visible = torch.ones_like(scores, dtype=torch.bool)
        if given.mask is not None:
            visible = visible & given.mask
        if given.causal:
            visible = visible.tril()
        # A query that may look nowhere gives 0, as the kernel does.
        weights = scores.masked_fill(~visible, -torch.inf).softmax(-1).nan_to_num()
        o = (dropped(weights, 0) @ v).transpose(1, 2).flatten(2)
        return dropped(functional.linear(o, given.out_proj_weight, given.out_proj_bias), 1)

    def network(z: Tensor) -> Tensor:
        a = functional.linear(z, given.linear1_weight, given.linear1_bias)
        options = {"approximate": given.approximate} if given.activation == "gelu" else {}
        hidden = dropped(getattr(functional, given.activation)(a, **options), 2)
        return dropped(functional.linear(hidden, given.linear2_weight, given.linear2_bias), 3)

    if given.norm_first:
        sum1 = x + attention(norm1(x))
        return (sum1 + network(norm2(sum1)),)
    normed1 = norm1(x + attention(x))
    return (norm2(normed1 + network(normed1)),)


encoder_layer: Final = differentiable(
    "encoder_layer",
    _SCHEMA,
    validate=_validate,
    forward=_forward,
    backward=_backward,
    fake=_fake,
    again=_again,
    reads=range(1, len(Outputs._fields)),
)
