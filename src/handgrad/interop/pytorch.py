"""PyTorch's hand-written gradients, and its modules, on NumPy arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import Any

import numpy as np

from handgrad.forward_backward import ForwardBackward, Nested
from handgrad.interop.arguments import FunctionArguments, bare, leaves, nested, takes_float64


def from_function(
    function: Any,
    arrays: Sequence[Any],
    name: str | None = None,
    *,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> ForwardBackward:
    """A subclass of `torch.autograd.Function`, applied to these arguments.

    Float arrays are differentiable, other arrays are inputs without a gradient, and everything else
    is a constant, such as the arguments that `options` gives by name. The code of the function
    shares the memory of the inputs and of dy, with their strides, so that what it writes can be
    seen; that holds for read-only arrays too, because torch cannot protect memory. Only an array
    with a negative stride is copied: torch has none.

    A gradient is what autograd makes of the function's own: cast to the input's dtype, and summed
    over axes that broadcast to it. None stays None.

    Raises ArgumentError where forward cannot take so many arguments, or returns something other
    than tensors and tuples of them; what torch and the function raise passes through.
    """
    torch: Any = import_module("torch")
    name = name or function.__name__
    signature_of = function.forward
    if function.setup_context is torch.autograd.Function.setup_context:
        signature_of = partial(function.forward, None)  # ctx
    arguments = FunctionArguments.of(
        name, signature_of, [_plain(value) for value in arrays], options
    )

    def call(*tensors: Any) -> Any:
        return function.apply(*arguments.filled(tensors))

    differentiable = [array.dtype.kind == "f" for array in arguments.arrays]
    forward = partial(_forward, name, call, differentiable)
    return ForwardBackward(
        name=name,
        inputs=arguments.names,
        gradients=_chosen(arguments.names, differentiable),
        forward=forward,
        backward=_backward,
        none_is_constant=True,
        takes_float64=takes_float64(forward, arguments.arrays),
    )


def from_module(
    module: Any,
    arrays: Sequence[Any],
    name: str | None = None,
    *,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> ForwardBackward:
    """A `torch.nn.Module`, called with these arguments, in the mode (train or eval) that it is in.

    The inputs are those of the module's forward, as in `from_function`, then its parameters by
    their names in `named_parameters()`; an input that has a parameter's name is `input.<name>`. A
    parameter that does not require a gradient has none. The module itself is not changed: it runs
    on the parameters given and on copies of its buffers, in the float type of the inputs, on the
    CPU. Every forward draws the same random numbers, and torch's generator is left as it was.

    Raises as `from_function` does.
    """
    torch: Any = import_module("torch")
    name = name or type(module).__name__
    arguments = FunctionArguments.of(
        name, module.forward, [_plain(value) for value in arrays], options
    )
    count = len(arguments.names)
    own = dict(module.named_parameters())
    parameters = {key: to_array(parameter).copy() for key, parameter in own.items()}
    names = [f"input.{key}" if key in own else key for key in arguments.names] + list(own)
    differentiable = [array.dtype.kind == "f" for array in arguments.arrays]
    differentiable += [parameter.requires_grad for parameter in own.values()]

    def call(*tensors: Any) -> Any:
        dtype = next((t.dtype for t in tensors if t.is_floating_point()), None)
        state = dict(zip(own, tensors[count:], strict=True))
        for key, buffer in module.named_buffers():
            copy = buffer.detach().cpu().clone()
            state[key] = copy.to(dtype) if copy.is_floating_point() else copy
        inputs = arguments.filled(tensors[:count])
        return torch.func.functional_call(module, state, tuple(inputs))

    forward = partial(_forward, name, call, differentiable)
    return ForwardBackward(
        name=name,
        inputs=tuple(names),
        gradients=_chosen(names, differentiable),
        forward=forward,
        backward=_backward,
        parameters=parameters,
        takes_float64=takes_float64(forward, [*arguments.arrays, *parameters.values()]),
    )


def from_callable(
    function: Callable[..., Any], arrays: Sequence[Any], name: str
) -> ForwardBackward:
    """A function on tensors in which autograd finds its way back, on these arrays."""
    differentiable = [array.dtype.kind == "f" for array in arrays]
    names = tuple(f"input{i}" for i in range(len(arrays)))
    forward = partial(_forward, name, function, differentiable)
    return ForwardBackward(
        name=name,
        inputs=names,
        gradients=_chosen(names, differentiable),
        forward=forward,
        backward=_backward,
        none_is_constant=True,
        takes_float64=takes_float64(forward, arrays),
    )


def _forward(
    name: str, call: Callable[..., Any], differentiable: Sequence[bool], *arrays: Any
) -> tuple[Nested, Any]:
    torch: Any = import_module("torch")
    tensors = [to_tensor(array) for array in arrays]
    sources = [t for t, wanted in zip(tensors, differentiable, strict=True) if wanted]
    for tensor in sources:
        tensor.requires_grad_()
    with torch.enable_grad(), _same_draws():
        y = nested(name, call(*tensors), torch.is_tensor, lambda tensor: tensor)
    return nested(name, y, torch.is_tensor, to_array), (sources, list(leaves(y)))


def _backward(dy: Nested, cache: Any) -> Any:
    torch: Any = import_module("torch")
    sources, outputs = cache
    # Integer outputs, and those marked as not differentiable, pass no gradient back.
    connected = [
        (output, to_tensor(cotangent))
        for output, cotangent in zip(outputs, leaves(dy), strict=True)
        if output.requires_grad
    ]
    if not connected:
        return bare([None] * len(sources))
    gradients = torch.autograd.grad(
        [output for output, _ in connected],
        sources,
        [cotangent for _, cotangent in connected],
        retain_graph=True,  # backward may be called again
        allow_unused=True,
    )
    return bare([None if gradient is None else to_array(gradient) for gradient in gradients])


def _chosen(names: Sequence[str], differentiable: Sequence[bool]) -> tuple[str, ...]:
    return tuple(key for key, wanted in zip(names, differentiable, strict=True) if wanted)


@contextmanager
def _same_draws() -> Iterator[None]:
    """Seed the CPU's generator for the block, and restore it afterwards."""
    torch: Any = import_module("torch")
    with torch.random.fork_rng(devices=()):
        torch.default_generator.manual_seed(0)
        yield


def _plain(value: Any) -> Any:
    """The same argument, with a tensor as an array."""
    torch: Any = import_module("torch")
    return to_array(value) if torch.is_tensor(value) else value


def to_array(tensor: Any) -> Any:
    torch: Any = import_module("torch")
    if tensor.dtype == torch.bfloat16:  # which NumPy does not have
        tensor = tensor.float()
    return tensor.detach().to_dense().numpy(force=True)


def to_tensor(array: Any) -> Any:
    torch: Any = import_module("torch")
    array = np.asarray(array)
    if any(stride < 0 for stride in array.strides):
        array = array.copy()
    if array.flags.writeable:
        return torch.from_numpy(array)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)
