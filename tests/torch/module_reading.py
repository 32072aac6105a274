"""Inputs of PyTorch's tests of its modules, on what `hg.from_torch` makes of the modules.

`python -m tests.torch.module_reading` prints, for each module that is read, the number of inputs on
which values and gradients are the same. It is a program of its own for the reason of module_inputs.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.testing._internal.common_modules import module_db

import handgrad as hg
from handgrad.errors import ArgumentError, ShapeError
from tests.tolerances import assert_close

F64 = torch.float64
Case = tuple[Any, tuple[Any, ...], dict[str, Any]]
#: Masks are other arguments there, and attention has weights too; test_conversion compares those.
SEVERAL = (nn.MultiheadAttention, nn.TransformerEncoder, nn.TransformerEncoderLayer)
MASKED = (*SEVERAL, nn.TransformerDecoderLayer)


def cases(info: Any, training: bool) -> Iterator[Case]:
    """The modules that are read, with the arguments of their call."""
    for given in info.module_inputs_func(
        info, device="cpu", dtype=F64, requires_grad=True, training=training
    ):
        made, called = given.constructor_input, given.forward_input
        module = info.module_cls(*made.args, **made.kwargs).to(F64).train(training)
        if "Lazy" in info.module_cls.__name__:
            module(*called.args, **called.kwargs)
        for each in module.modules():
            if isinstance(each, nn.Dropout | nn.RNNBase | nn.MultiheadAttention):
                setattr(each, "p" if isinstance(each, nn.Dropout) else "dropout", 0.0)
        yield module, called.args, called.kwargs


def arrays(values: Any) -> list[Any]:
    return [None if each is None else each.detach().numpy() for each in values]


def gradients_of(module: Any, y: Any, inputs: list[Any]) -> tuple[Any, list[Any]]:
    """A random cotangent of y, and the gradients of the inputs and the parameters for it."""
    dy = np.random.default_rng(1).standard_normal(tuple(y.shape))
    sources = [*inputs, *module.parameters()]
    if not sources or not y.requires_grad:
        return dy, [None] * len(sources)
    return dy, arrays(torch.autograd.grad(y, sources, torch.tensor(dy), allow_unused=True))


def compare_loss(loss: Any, module: Any, args: tuple[Any, ...]) -> bool:
    if isinstance(module, nn.CTCLoss):
        return compare_ctc(loss, module, args)
    y, target = args
    if isinstance(module, nn.CrossEntropyLoss) and y.ndim == 1:  # there is always a batch here
        if module.reduction == "none":
            return False
        y, target = y[None], target[None]
    y = y.detach().requires_grad_()
    value = module(y, target)
    dvalue, (expected,) = gradients_of(nn.Identity(), value, [y])
    if value.isnan().any():  # where PyTorch has 0/0, ours has the 0 of its documentation
        return False
    found, cache = loss.forward(y.detach().numpy(), target.detach().numpy())
    assert_close(found, value.detach().numpy(), "torch float64", "value")
    if np.isfinite(found).all():
        assert_close(loss.backward(cache, np.asarray(dvalue)), expected, "torch float64", "dy")
    return True


def compare_ctc(loss: Any, module: Any, args: tuple[Any, ...]) -> bool:
    """Scores are (T, N, C) there and (N, T, C) here, and targets one row for each example."""
    scores, targets, steps, labels = args
    scores, steps, labels = scores.detach(), torch.as_tensor(steps), torch.as_tensor(labels)
    if scores.ndim == 2:
        scores, steps, labels = scores[:, None], steps.reshape(1), labels.reshape(1)
        targets = targets.reshape(1, -1)
    if targets.ndim == 1:
        rows = torch.split(targets, labels.tolist())
        targets = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=1)
    scores.requires_grad_()
    value = module(scores, targets, steps, labels)
    dvalue, (expected,) = gradients_of(nn.Identity(), value, [scores])
    given = [each.numpy() for each in (targets, steps, labels)]
    found, cache = loss.forward(scores.detach().transpose(0, 1).numpy(), *given)
    assert_close(found, value.detach().numpy(), "torch float64", "value")
    dscores = loss.backward(cache, np.asarray(dvalue)).transpose(1, 0, 2)
    assert_close(dscores, expected, "torch float64", "dy")
    return True


def compare_layer(layer: Any, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Compare a layer of one array, or of several, with its module; False where it takes others."""
    given = [each for each in args if torch.is_tensor(each)]
    masked = isinstance(module, MASKED) and any(torch.is_tensor(v) for v in kwargs.values())
    if masked or not given or isinstance(given[0], nn.utils.rnn.PackedSequence):
        return False
    if isinstance(module, nn.Softmax) and given[0].ndim == 0:  # which has no axis here
        return False
    inputs = [each.detach() for each in given]
    inputs = [each.requires_grad_() if each.is_floating_point() else each for each in inputs]
    if isinstance(module, (nn.RNNBase, nn.RNNCellBase, *SEVERAL)):
        inputs = inputs[:3] if isinstance(module, nn.MultiheadAttention) else inputs[:1]
    result = module(*inputs)
    y = result[0] if isinstance(result, tuple) else result
    floats = [each for each in inputs if each.requires_grad]
    dy, expected = gradients_of(module, y, floats)
    own = [each.detach().numpy() for each in inputs]
    found, cache = forward(layer, own, isinstance(module, nn.RNNCellBase), module.training)
    assert_close(found.reshape(y.shape), y.detach().numpy(), "torch float64", "y")
    dx, gradients = layer.backward_y(np.asarray(dy).reshape(found.shape), cache)
    several = dx if isinstance(dx, tuple) else (dx,)
    for each, wanted in zip([d for d in several if d is not None], expected, strict=False):
        if wanted is not None:
            assert_close(each.reshape(wanted.shape), wanted, "torch float64", "dx")
    check_parameters(module, gradients, expected[len(floats) :])
    return True


def forward(layer: Any, inputs: list[Any], is_cell: bool, training: bool) -> Any:
    """The layer's forward, with the axes of steps and of the batch that a layer always has."""
    if is_cell:
        inputs = [each[..., None, :] for each in inputs]
    try:
        return layer.forward_y(*inputs, training=training)
    except ShapeError:
        return layer.forward_y(*(each[None] for each in inputs), training=training)


def check_parameters(module: Any, gradients: Any, expected: list[Any]) -> None:
    """Compare the gradients under the names that the arrays of a twin of the module have."""
    for parameter, gradient in zip(module.parameters(), expected, strict=True):
        parameter.data = torch.zeros_like(parameter) if gradient is None else torch.tensor(gradient)
    for name, wanted in hg.from_torch(module).parameters.items():
        assert_close(gradients[name], wanted, "torch float64", name)


def count(info: Any) -> tuple[int, int]:
    """The inputs on which both are the same, and those of modules that are read."""
    same = read = 0
    for training in (True, False):
        for module, args, kwargs in cases(info, training):
            try:
                ours = hg.from_torch(module)
            except ArgumentError:
                continue
            read += 1
            if isinstance(ours, hg.losses.Loss):
                same += compare_loss(ours, module, args)
            else:
                same += compare_layer(ours, module, args, kwargs)
    return same, read


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for info in module_db:
        same, read = count(info)
        if read:
            print(info.module_cls.__name__, same, read)
