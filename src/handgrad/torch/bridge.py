"""Kernels as operators of PyTorch, `torch.ops.handgrad.<name>`, under its autograd and compiler.

An operator is a forward and a backward on tensors; `as_array` and `as_tensor` take their memory to
a kernel and back without copies. An operator of PyTorch can save tensors only, so what backward
needs beside the inputs, such as gates, are further outputs of forward.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from handgrad import kernels
from handgrad.arrays import Array
from handgrad.dispatch import get_engine, get_precision
from handgrad.dispatch.settings import block
from handgrad.errors import EngineError

Tensors = Sequence[Tensor | None]


def as_array(tensor: Tensor | None) -> Array | None:
    """The tensor's memory as a C-contiguous NumPy array; a copy only where it is not contiguous."""
    return None if tensor is None else tensor.detach().contiguous().numpy()


def as_tensor(array: Array) -> Tensor:
    """The array's memory as a tensor."""
    return torch.from_numpy(array)


def as_set_in_torch(bf16: bool) -> AbstractContextManager[None]:
    """Give the block's kernels as many threads as PyTorch has, and this precision of products."""
    return block(threads=torch.get_num_threads(), precision="bf16" if bf16 else "float32")


def refusal(tensors: Tensors) -> str | None:
    """Why kernels cannot take these tensors, as the part of a sentence; None if they can."""
    dtypes = set()
    for tensor in tensors:
        if tensor is not None:
            if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
                return f"a tensor is on {tensor.device} with layout {tensor.layout}"
            dtypes.add(tensor.dtype)
    if dtypes not in ({torch.float32}, {torch.float64}):
        return f"the tensors are of {', '.join(sorted(map(str, dtypes)))}"
    reason: str | None = _refusal_of_settings()
    return reason


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator, unused-ignore]
def _refusal_of_settings() -> str | None:
    """The same for what surrounds the call; the compiler keeps what it is as it compiles."""
    if kernels.native is None:
        return "no compiled kernels are here"
    if get_engine() == "reference":
        return "the engine is set to 'reference'"
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return "a transform of torch.func, which has no rules for kernels, is at work"
    if torch.autograd.forward_ad._current_level >= 0:
        return "forward-mode derivatives, which kernels have not, are asked for"
    return None


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator, unused-ignore]
def multiplies_bf16(wanted: bool) -> bool:
    """Return whether products are to be in bf16: here, if wanted, or by handgrad's own setting."""
    if kernels.native is None or kernels.native.bf16_unit == "none":
        return False
    return wanted or get_precision() == "bf16"


def hand_over(name: str, reason: str) -> None:
    """Warn that PyTorch's own computes instead; EngineError where kernels are asked for."""
    allowed = (
        "allowed: tensors on the CPU, of float32, float64 or bfloat16 alone, and first derivatives"
    )
    if get_engine() == "kernels":
        raise EngineError(
            f"handgrad.torch.{name}: {reason}, and the engine is set to 'kernels'; {allowed}"
        )
    warnings.warn(
        f"handgrad.torch.{name}: {reason}, so PyTorch's own {name} computes; {allowed}",
        RuntimeWarning,
        stacklevel=3,
    )


def differentiable(
    name: str,
    schema: str,
    *,
    forward: Callable[..., Any],
    backward: Callable[[Tensors, Sequence[Any], Tensors, Sequence[bool]], list[Tensor]],
    fake: Callable[..., Any],
    again: Callable[..., Tensors],
) -> Callable[..., Any]:
    """Define `torch.ops.handgrad.<name>`, with PyTorch's `schema`; return what calls it.

    - forward(*inputs): the outputs, one bare or several as a tuple, none of which shares memory
      with another or with an input.
    - backward(doutputs, inputs, outputs, wanted): the gradients of those inputs for which `wanted`
      is true, in their order. A cotangent is None where nothing depends on that output.
    - fake(*inputs): forward's outputs by shape and type alone.
    - again(*inputs): the outputs up to the last with a cotangent, by PyTorch's own differentiable
      operations: a derivative of the gradients is theirs.

    Inputs are the arguments in the order of the schema, tensors and constants.
    """
    arguments = schema.partition(")")[0].removeprefix("(")
    operator = torch.library.custom_op(
        f"handgrad::{name}", forward, mutates_args=(), schema=schema, device_types="cpu"
    )
    operator.register_fake(fake)
    of_backward = torch.library.custom_op(
        f"handgrad::{name}_backward",
        lambda doutputs, outputs, wanted, *inputs: backward(doutputs, inputs, outputs, wanted),
        mutates_args=(),
        schema=f"(Tensor?[] doutputs, Tensor[] outputs, bool[] wanted, {arguments}) -> Tensor[]",
        device_types="cpu",
    )

    def fake_backward(
        doutputs: Tensors, outputs: Tensors, wanted: Sequence[bool], *inputs: Any
    ) -> list[Tensor]:
        return [
            torch.empty_like(value, memory_format=torch.contiguous_format)
            for value, is_wanted in zip(inputs, wanted, strict=True)
            if is_wanted
        ]

    of_backward.register_fake(fake_backward)

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.set_materialize_grads(False)
        ctx.are_tensors = [isinstance(value, Tensor) for value in inputs]
        ctx.constants = [None if isinstance(value, Tensor) else value for value in inputs]
        outputs = output if isinstance(output, tuple) else (output,)
        ctx.save_for_backward(*(v for v in inputs if isinstance(v, Tensor)), *outputs)

    def gradients(ctx: Any, *doutputs: Tensor | None) -> tuple[Tensor | None, ...]:
        saved = iter(ctx.saved_tensors)
        inputs = [
            next(saved) if is_tensor else constant
            for is_tensor, constant in zip(ctx.are_tensors, ctx.constants, strict=True)
        ]
        wanted = list(ctx.needs_input_grad)
        if torch.is_grad_enabled():
            hand_over(name, "a derivative of gradients is asked for")
            found = _gradients_of(again(*inputs), inputs, doutputs, wanted)
        elif _is_traced():
            found = of_backward(list(doutputs), list(saved), wanted, *inputs)
        else:
            found = backward(doutputs, inputs, list(saved), wanted)
        by_input = iter(found)
        return tuple(next(by_input) if is_wanted else None for is_wanted in wanted)

    operator.register_autograd(gradients, setup_context=setup_context)

    # PyTorch binds the arguments by their signature at each call of a function that has a
    # setup_context of its own, which takes as long as the rest of a small call.
    def forward_and_context(ctx: Any, *inputs: Any) -> Any:
        output = forward(*inputs)
        setup_context(ctx, inputs, output)
        return output

    functions = {
        "forward": staticmethod(forward_and_context),
        "backward": staticmethod(gradients),
    }
    function: Any = type(f"Handgrad_{name}", (torch.autograd.Function,), functions)

    def call(*inputs: Any) -> Any:
        return (operator if _is_traced() else function.apply)(*inputs)

    return call


def _is_traced() -> bool:
    """Return whether a compiler or a mode of PyTorch looks on, and has to see the operators.

    Otherwise they are left out: their dispatch takes longer than a step of a small network.
    """
    return (
        torch.compiler.is_compiling()
        or torch._C._len_torch_dispatch_stack() > 0
        or torch._C._get_tracing_state() is not None
    )


def _gradients_of(
    outputs: Tensors, inputs: Sequence[Any], doutputs: Tensors, wanted: Sequence[bool]
) -> Sequence[Tensor]:
    """The same gradients as functions of `inputs` and `doutputs` that can be differentiated."""
    reached = [
        (output, cotangent)
        for output, cotangent in zip(outputs, doutputs, strict=False)
        if cotangent is not None
    ]
    found: Sequence[Tensor] = torch.autograd.grad(
        [output for output, _ in reached],
        [value for value, is_wanted in zip(inputs, wanted, strict=True) if is_wanted],
        [cotangent for _, cotangent in reached],
        create_graph=True,
        materialize_grads=True,
    )
    return found
