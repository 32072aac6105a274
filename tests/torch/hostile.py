"""Modules whose settings change after they are made: `python -m tests.torch.hostile NAME ...`.

A kernel that reads beyond its arrays can end the interpreter, so this is a program of its own. Each
change is made to PyTorch's module and to ours. Ours gives the same outputs and gradients, or an
error where PyTorch has one; an error of ours in its place has to be one of handgrad's.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import torch

import handgrad.torch as ours
from handgrad.errors import HandgradError
from tests.tolerances import assert_close

#: Modules by name: the arguments of their constructors, and the shape of what they are given.
MODULES: Final[Mapping[str, tuple[tuple[Any, ...], dict[str, Any], tuple[int, ...]]]] = {
    "Linear": ((4, 3), {}, (2, 4)),
    "Conv1d": ((4, 6, 3), {"groups": 2, "padding": 1}, (2, 4, 7)),
    "Conv2d": ((4, 6, (3, 2)), {"groups": 2, "padding": (1, 0)}, (2, 4, 5, 6)),
    "LayerNorm": ((4,), {}, (2, 3, 4)),
    "RMSNorm": ((4,), {}, (2, 3, 4)),
    "GroupNorm": ((2, 4), {}, (2, 4, 3)),
    "LSTM": ((4, 3, 2), {"batch_first": True, "proj_size": 2}, (2, 3, 4)),
    "GRU": ((4, 3), {"bidirectional": True}, (2, 3, 4)),
    "RNN": ((4, 3), {"nonlinearity": "relu"}, (2, 3, 4)),
    "MultiheadAttention": ((4, 2), {"batch_first": True}, (2, 3, 4)),
    "TransformerEncoderLayer": ((4, 2, 6, 0.0), {"batch_first": True}, (2, 3, 4)),
    "CrossEntropyLoss": ((), {"weight": torch.ones(4)}, (3, 4)),
}
NUMBERS: Final = (0, 1, 2, 3, 5, -1, 2**31, 2**62, 1.0, (0, 0), (1, 2), (-1, 1), [1], "same", None)
SHAPES: Final = ((), (0,), (1,), (2,), (4,), (1, 1), (3, 4), (12, 4), (1, 1, 1), (6, 2, 3, 2))


def changes(module: Any) -> Iterator[tuple[str, Callable[[Any], None]]]:
    """All that is done to a module and to its twin: each setting another number, and each weight of
    another shape.
    """
    for path, inner in module.named_modules():
        for name, value in vars(inner).items():
            if not name.startswith("_") and isinstance(value, int | float | tuple | str):
                for number in NUMBERS:
                    yield f"{path}.{name} = {number!r}", partial(_set, path, name, number)
        for name, value in (*inner._parameters.items(), *inner._buffers.items()):
            if value is not None:
                yield f"{path}.{name} is None", partial(_replace, path, name, None)
                for shape in SHAPES:
                    yield f"{path}.{name} of {shape}", partial(_replace, path, name, shape)


def _set(path: str, name: str, number: Any, twin: Any) -> None:
    setattr(twin.get_submodule(path), name, number)


def _replace(path: str, name: str, shape: tuple[int, ...] | None, twin: Any) -> None:
    target = twin.get_submodule(path)
    if shape is None:
        setattr(target, name, None)
        return
    size = math.prod(shape)
    value = torch.linspace(-1, 1, max(1, size))[:size].reshape(shape).double()
    if name in target._buffers:
        target._buffers[name] = value
    else:
        target._parameters[name] = torch.nn.Parameter(value)


def gradients_of(
    module: Any, name: str, shape: tuple[int, ...], layout: Callable[[Any], Any] | None = None
) -> list[Any]:
    """y and the gradients of x and the parameters; `layout` lays x out in another way."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(shape, dtype=torch.float64, generator=generator, requires_grad=True)
    x = x if layout is None else layout(x)
    if name == "CrossEntropyLoss":
        found = module(x, torch.tensor([0, 3, 1]))
    elif name == "MultiheadAttention":
        found = module(x, x, x, need_weights=False)[0]
    else:
        found = module(x)
    y = found[0] if isinstance(found, tuple) else found
    (y * torch.linspace(-1, 1, y.numel(), dtype=y.dtype).reshape(y.shape)).sum().backward()
    return [y.detach(), x.grad, *(each.grad for each in module.parameters())]


def compare(name: str, change: Callable[[Any], None]) -> str:
    """Compare both after one change; in a word how it ended."""
    settings, options, shape = MODULES[name]
    theirs = getattr(torch.nn, name)(*settings, **options).double().train()
    mine = getattr(ours, name)(*settings, **options).double().train()
    mine.load_state_dict(theirs.state_dict())
    try:
        for module in (theirs, mine):
            change(module)
    except Exception:  # PyTorch refuses the change itself
        return "not made"
    try:
        expected = gradients_of(theirs, name, shape)
    except Exception:
        try:
            gradients_of(mine, name, shape)
        except Exception:
            return "refused"
        return "computed where PyTorch refuses"
    try:
        found = gradients_of(mine, name, shape)
    except HandgradError:
        return "refused by handgrad"
    for own, wanted in zip(found, expected, strict=True):
        assert (own is None) == (wanted is None)
        if own is not None:
            assert own.shape == wanted.shape
            assert_close(own.nan_to_num(), wanted.nan_to_num(), "torch float64", name)
    return "same"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    ends: Counter[str] = Counter()
    for name in sys.argv[1:]:
        settings, options, _ = MODULES[name]
        for what, change in changes(getattr(torch.nn, name)(*settings, **options)):
            print("change", name, what, flush=True)
            try:
                end = compare(name, change)
            except Exception as error:
                end = f"otherwise: {type(error).__name__}"
                print("otherwise", name, what, repr(error)[:300], flush=True)
            ends[end] += 1
            if end == "computed where PyTorch refuses":
                print("looser", name, what, flush=True)
    for end, times in ends.items():
        print("ended", times, end)
