"""Inputs of PyTorch's tests of its modules, on ours: `python -m tests.torch.module_inputs NAME …`.

`torch.testing._internal` reads the command line and changes global settings as it is imported, so
this is a program of its own.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import Any

NAMES = sys.argv[1:]
sys.argv = sys.argv[:1]

import torch  # noqa: E402
from torch.testing._internal.common_modules import module_db  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

import handgrad.torch as ours  # noqa: E402
from tests.tolerances import assert_close  # noqa: E402

PRECISE = {torch.float32: "float32 functions, saturated", torch.float64: "torch float64"}


def tensors(tree: Any) -> list[Any]:
    """The tensors of floats in what a module takes or returns."""
    return [
        leaf for leaf in tree_leaves(tree) if torch.is_tensor(leaf) and leaf.is_floating_point()
    ]


def cases(name: str) -> Iterator[tuple[Any, Any]]:
    """Each input of PyTorch's tests with the type of its numbers and the mode of the module."""
    (info,) = (info for info in module_db if info.module_cls is getattr(torch.nn, name))
    for dtype in PRECISE:
        for training in (True, False):
            yield from (
                (given, (dtype, training))
                for given in info.module_inputs_func(
                    info, device="cpu", dtype=dtype, requires_grad=True, training=training
                )
            )


def results(module: Any, given: Any) -> list[Any]:
    arguments = (given.forward_input.args, given.forward_input.kwargs)
    outputs = tensors(module(*arguments[0], **arguments[1]))
    generator = torch.Generator().manual_seed(1)
    cotangents = [torch.randn(y.shape, dtype=y.dtype, generator=generator) for y in outputs]
    inputs = [leaf for leaf in tensors(arguments) if leaf.requires_grad]
    return [*outputs, *torch.autograd.grad(outputs, [*inputs, *module.parameters()], cotangents)]


def compare(name: str) -> int:
    """The number of inputs on which outputs and gradients of both modules are the same."""
    count = 0
    for given, (dtype, training) in cases(name):
        made = given.constructor_input
        theirs, mine = (
            getattr(library, name)(*made.args, **made.kwargs).to(dtype).train(training)
            for library in (torch.nn, ours)
        )
        mine.load_state_dict(theirs.state_dict())
        for own, expected in zip(results(mine, given), results(theirs, given), strict=True):
            assert_close(own.detach(), expected.detach(), PRECISE[dtype], f"{name}: {given.desc}")
        count += 1
    return count


if __name__ == "__main__":
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", "LSTM with projections is not supported with oneDNN")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for name in NAMES:
        print(name, compare(name))
