"""Kernels as operators of PyTorch, `torch.ops.handgrad.<name>`, under its autograd and compiler.

An operator is a forward and a backward on tensors; `as_array` and `as_tensor` take their memory to
a kernel and back without copies. An operator of PyTorch can save tensors only, so what backward
needs beside the inputs, such as gates, are further outputs of forward.

Every call of a kernel from PyTorch passes `_Door`, in both directions and whoever calls: a module
whose settings were changed after it was made, or `torch.ops.handgrad` itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from handgrad import kernels
from handgrad.arrays import Array
from handgrad.dispatch import get_engine, get_precision
from handgrad.dispatch.settings import block
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError, EngineError, HandgradError, ShapeError

Tensors = Sequence[Tensor | None]

#: The types of tensors that kernels take, with those of NumPy.
_DTYPES: Final = {
    torch.float32: np.float32,
    torch.float64: np.float64,
    torch.int64: np.int64,
    torch.bool: np.bool_,
}


def as_array(tensor: Tensor | None) -> Any:
    """The tensor's memory as a C-contiguous NumPy array; a copy only where it is not contiguous,
    not aligned, or stands for other numbers than those in memory.
    """
    if tensor is None:
        return None
    tensor = tensor.detach()
    if tensor.is_neg() or tensor._is_zerotensor():
        tensor = tensor.clone()
    array: Array = tensor.contiguous().numpy()
    return array if array.flags.aligned else array.copy()


def as_tensor(array: Any) -> Tensor:
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
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        given = [tensor for tensor in tensors if tensor is not None]
        if any(map(Tensor.is_inference, given)) and any(each.requires_grad for each in given):
            return "a tensor of inference mode, which autograd cannot keep, is used with gradients"
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


def is_exported() -> bool:
    """Return whether an exporter of ONNX follows the call, which has no operators for kernels."""
    followed = torch.jit.is_tracing() or torch.compiler.is_compiling()
    return followed and bool(_in_onnx_export())


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator, unused-ignore]
def _in_onnx_export() -> bool:
    return bool(torch.onnx.is_in_onnx_export())


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


class _Door:
    """The check that every call of one operator's kernels passes.

    `validate` raises for inputs that do not fit together, given as arrays that have shapes and
    types alone; `fake` says what forward makes of them. Both run once for inputs of the same shapes
    and constants.
    """

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        validate: Callable[..., None],
        fake: Callable[..., Any],
        reads: Sequence[int],
    ) -> None:
        self.name, self._reads = name, frozenset(reads)
        self._expected = lru_cache(maxsize=4096)(
            partial(_outputs_of, name, arguments, validate, fake)
        )

    def check_inputs(self, inputs: Sequence[Any]) -> Any:
        """The shapes and types of forward's outputs.

        Raises ShapeError or ArgumentError, or TypeError for a constant of another kind.
        """
        return self._expected(tuple(map(_likeness, inputs)))

    def check_backward(
        self, doutputs: Tensors, inputs: Sequence[Any], outputs: Tensors, wanted: Sequence[bool]
    ) -> Any:
        """As `check_inputs`; raises ShapeError too unless all tensors are like those of forward."""
        expected = self.check_inputs(inputs)
        if (len(doutputs), len(outputs), len(wanted)) != (len(expected),) * 2 + (len(inputs),):
            raise ArgumentError(
                f"{self.name}: backward gets {len(doutputs)} cotangents, {len(outputs)} outputs "
                f"and {len(wanted)} wishes; allowed: {len(expected)}, {len(expected)} and "
                f"{len(inputs)}"
            )
        for number, (doutput, output, like) in enumerate(
            zip(doutputs, outputs, expected, strict=True)
        ):
            read = output if number in self._reads else None
            for what, tensor in (("cotangent", doutput), ("output", read)):
                if tensor is not None and (tensor.shape, tensor.dtype) != like:
                    raise ShapeError(
                        f"{self.name}: {what} {number} is of {tensor.dtype} and has shape "
                        f"{tuple(tensor.shape)}; allowed: {like[1]} and {tuple(like[0])}"
                    )
            if output is None and number in self._reads:
                raise ArgumentError(f"{self.name}: output {number} is None; allowed: a tensor")
        return expected


def _likeness(value: Any) -> Any:
    """All of an input that memory depends on; it can be hashed."""
    if isinstance(value, Tensor):
        return _Like((value.shape, value.dtype))
    return tuple(value) if type(value) is list else value


class _Like(tuple[Any, ...]):
    """The shape and type of a tensor."""

    __slots__ = ()


def _outputs_of(
    name: str,
    arguments: Sequence[str],
    validate: Callable[..., None],
    fake: Callable[..., Any],
    inputs: tuple[Any, ...],
) -> tuple[Any, ...]:
    for argument, value in zip(arguments, inputs, strict=True):
        if argument.startswith("Tensor ") and type(value) is not _Like:
            raise ArgumentError(f"{name}: {argument[7:]} is {shown(value)}; allowed: a tensor")
    tensors = [value for value in inputs if type(value) is _Like]
    types = {dtype for _, dtype in tensors}
    if not types <= _DTYPES.keys() or {torch.float32, torch.float64} <= types:
        raise ArgumentError(
            f"{name}: the tensors are of {', '.join(sorted(map(str, types)))}; allowed: float32 or "
            f"float64 alone, int64 and bool"
        )
    validate(
        *(
            np.broadcast_to(np.zeros((), _DTYPES[value[1]]), value[0])
            if type(value) is _Like
            else value
            for value in inputs
        )
    )
    found = fake(
        *(
            torch.empty(value[0], dtype=value[1], device="meta") if type(value) is _Like else value
            for value in inputs
        )
    )
    outputs = found if isinstance(found, tuple) else (found,)
    return tuple((output.shape, output.dtype) for output in outputs)


def differentiable(
    name: str,
    schema: str,
    *,
    validate: Callable[..., None],
    forward: Callable[..., Any],
    backward: Callable[[Tensors, Sequence[Any], Tensors, Sequence[bool]], list[Tensor]],
    fake: Callable[..., Any],
    again: Callable[..., Tensors],
    reads: Sequence[int],
) -> Callable[..., Any]:
    """Define `torch.ops.handgrad.<name>`, with PyTorch's `schema`; return what calls it.

    It returns the outputs, or None where inputs do not fit together and PyTorch has the words for
    it, or broadcasts; with the engine set to 'kernels' it raises.

    - validate(*inputs): raises ShapeError or ArgumentError unless the inputs fit together. It gets
      arrays for tensors, of which only shape and type are set, and none of the others is reached.
    - forward(*inputs): the outputs, one bare or several as a tuple, none of which shares memory
      with another or with an input.
    - backward(doutputs, inputs, outputs, wanted): the gradients of those inputs for which `wanted`
      is true, in their order. The first cotangent is there, others are None where nothing depends
      on that output.
    - fake(*inputs): forward's outputs by shape and type alone.
    - again(*inputs): the outputs up to the last with a cotangent, by PyTorch's own differentiable
      operations: a derivative of the gradients is theirs.
    - reads: the numbers of the outputs that backward reads; others are None there, so that whoever
      gets them may write over them.

    Inputs are the arguments in the order of the schema, tensors and constants.
    """
    arguments = schema.partition(")")[0].removeprefix("(")
    door = _Door(name, arguments.split(", "), validate, fake, reads)

    def checked_forward(*inputs: Any) -> Any:
        door.check_inputs(inputs)
        return forward(*inputs)

    def checked_backward(
        doutputs: Tensors, outputs: Tensors, wanted: Sequence[bool], *inputs: Any
    ) -> list[Tensor]:
        shape, dtype = door.check_backward(doutputs, inputs, outputs, wanted)[0]
        if 0 in shape:  # sums of nothing, which kernels need not write
            return [
                torch.zeros_like(value, memory_format=torch.contiguous_format)
                for value, is_wanted in zip(inputs, wanted, strict=True)
                if is_wanted
            ]
        first = torch.zeros(shape, dtype=dtype) if doutputs[0] is None else doutputs[0]
        return backward([first, *doutputs[1:]], inputs, outputs, wanted)

    operator = torch.library.custom_op(
        f"handgrad::{name}", checked_forward, mutates_args=(), schema=schema, device_types="cpu"
    )
    operator.register_fake(fake)
    of_backward = torch.library.custom_op(
        f"handgrad::{name}_backward",
        checked_backward,
        mutates_args=(),
        schema=f"(Tensor?[] doutputs, Tensor?[] outputs, bool[] wanted, {arguments}) -> Tensor[]",
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
        kept = [value if number in reads else None for number, value in enumerate(outputs)]
        ctx.save_for_backward(*(v for v in inputs if isinstance(v, Tensor)), *kept)

    def gradients(ctx: Any, *doutputs: Tensor | None) -> tuple[Tensor | None, ...]:
        if all(each is None for each in doutputs):
            return (None,) * len(ctx.constants)
        saved = iter(ctx.saved_tensors)
        inputs = [
            next(saved) if is_tensor else constant
            for is_tensor, constant in zip(ctx.are_tensors, ctx.constants, strict=True)
        ]
        wanted = list(ctx.needs_input_grad)
        if torch.is_grad_enabled():
            hand_over(name, "a derivative of gradients is asked for")
            found = _gradients_of(again, inputs, doutputs, wanted)
        elif _is_traced():
            found = of_backward(list(doutputs), list(saved), wanted, *inputs)
        else:
            found = checked_backward(doutputs, list(saved), wanted, *inputs)
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
        if _is_traced():
            return operator(*inputs)
        try:
            door.check_inputs(inputs)
        except (HandgradError, TypeError, ValueError):
            if get_engine() == "kernels":
                raise
            return None
        return function.apply(*inputs)

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
    again: Callable[..., Tensors],
    inputs: Sequence[Any],
    doutputs: Tensors,
    wanted: Sequence[bool],
) -> Sequence[Tensor]:
    """The same gradients as functions of `inputs` and `doutputs` that can be differentiated."""
    # Views, because a gradient is that of one input, though another be made of it or the same.
    own = [value.view_as(value) if isinstance(value, Tensor) else value for value in inputs]
    reached = [
        (output, cotangent)
        for output, cotangent in zip(again(*own), doutputs, strict=False)
        if cotangent is not None
    ]
    found: Sequence[Tensor] = torch.autograd.grad(
        [output for output, _ in reached],
        [value for value, is_wanted in zip(own, wanted, strict=True) if is_wanted],
        [cotangent for _, cotangent in reached],
        create_graph=True,
        materialize_grads=True,
    )
    return found
