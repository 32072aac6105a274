"""The modules of a model of PyTorch on handgrad's kernels, where there are such modules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import nn

from handgrad import kernels
from handgrad.errors import ArgumentError
from handgrad.torch.alterations import own_function_of
from handgrad.torch.attention import MultiheadAttention, attention_without_kernel
from handgrad.torch.encoder_layer import (
    TransformerEncoderLayer,
    alteration_of_parts,
    without_operator,
)
from handgrad.torch.modules import (
    Conv1d,
    Conv2d,
    CrossEntropyLoss,
    GroupNorm,
    LayerNorm,
    Linear,
    RMSNorm,
)
from handgrad.torch.recurrent import GRU, LSTM, RNN

#: Ours by PyTorch's, of which they are derived; they differ in forward alone.
_OURS: Final[Mapping[Any, Any]] = {
    nn.Conv1d: Conv1d,
    nn.Conv2d: Conv2d,
    nn.GRU: GRU,
    nn.LSTM: LSTM,
    nn.Linear: Linear,
    nn.MultiheadAttention: MultiheadAttention,
    nn.RMSNorm: RMSNorm,
    nn.RNN: RNN,
    nn.TransformerEncoderLayer: TransformerEncoderLayer,
}
#: Modules that gain nothing alone, because PyTorch's kernels of them are fused too.
_AS_FAST: Final = (nn.CrossEntropyLoss, nn.GroupNorm, nn.LayerNorm)
#: PyTorch's by ours, those too that only a model's own program can have put there.
_THEIRS: Final[Mapping[Any, Any]] = {
    **{ours: theirs for theirs, ours in _OURS.items()},
    CrossEntropyLoss: nn.CrossEntropyLoss,
    GroupNorm: nn.GroupNorm,
    LayerNorm: nn.LayerNorm,
}
#: Modules that compute with their children's parameters, and never call these.
_WHOLE: Final = (MultiheadAttention, TransformerEncoderLayer)
_TYPES: Final = (torch.float32, torch.float64, torch.bfloat16)
#: Below so many weights a product takes less time than the way to its kernel and back.
_FEWEST_WEIGHTS: Final = 65536


@dataclass(frozen=True)
class Acceleration:
    """Modules that were replaced, their classes by path, and those that were left, with reasons."""

    replaced: Mapping[str, str]
    left: Mapping[str, str]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        counts = sorted(Counter(self.replaced.values()).items())
        kinds = ", ".join(f"{count} {kind}" for kind, count in counts) or "nothing"
        yield f"replaced: {kinds}"
        by_reason: dict[str, list[str]] = {}
        for path, reason in self.left.items():
            by_reason.setdefault(reason, []).append(path or "the module itself")
        for reason, paths in by_reason.items():
            more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
            yield f"left: {', '.join(paths[:3])}{more}: {reason}"


def accelerate(module: torch.nn.Module) -> Acceleration:
    """Make the modules in a model those of handgrad.torch, in place, and report what was done.

        print(handgrad.torch.accelerate(model))

    Modules stay the objects that they are, with their parameters, buffers, hooks and mode: what
    changes is their class, to one that is derived from it. So an optimizer made before goes on, as
    do parameters that several modules share. What computes at each call is the kernel where it
    can, and PyTorch otherwise. Modules with parameters that no class of handgrad.torch stands for
    are left, as are products too small to gain, and modules that compute otherwise than their class
    says: those with parametrizations or a forward of their own, and an encoder layer or attention
    with parts that have hooks or are of another class, because it never calls them. Such an encoder
    layer is left whole, with all its parts, so that what looks into it sees the bits of before.

    Raises ArgumentError for anything but a torch.nn.Module.
    """
    _check_module("accelerate", module)
    replaced: dict[str, str] = {}
    left: dict[str, str] = {}
    _replace(module, "", replaced, left)
    return Acceleration(replaced, left)


def restore(module: nn.Module) -> Acceleration:
    """Make the modules of handgrad.torch in a model PyTorch's own again, in place; report it.

    It undoes `accelerate`: modules stay the objects that they are, with their parameters, buffers,
    hooks and mode, and their class is the one of before. So the model computes PyTorch's bits, is
    saved and exported as PyTorch's, and needs no handgrad to be loaded. Modules of classes that are
    derived from those of handgrad.torch, as parametrizations make them, are left.

    Raises ArgumentError for anything but a torch.nn.Module.
    """
    _check_module("restore", module)
    replaced: dict[str, str] = {}
    left: dict[str, str] = {}
    for path, each in module.named_modules():
        if type(each) in _THEIRS:
            each.__class__ = _THEIRS[type(each)]
            replaced[path] = type(each).__name__
        elif isinstance(each, tuple(_THEIRS)):
            left[path] = f"it is of the class {type(each).__name__}"
    return Acceleration(replaced, left)


def _check_module(function: str, module: Any) -> None:
    if not isinstance(module, nn.Module):
        raise ArgumentError(
            f"{function}: a {type(module).__name__} is given; allowed: a torch.nn.Module"
        )


def _replace(module: Any, path: str, replaced: dict[str, str], left: dict[str, str]) -> None:
    """Replace this module, or else those in it."""
    reason = _refusal(module)
    if reason is None:
        module.__class__ = _OURS[type(module)]
        replaced[path] = type(module).__name__
    elif reason:
        left[path] = reason
    if not isinstance(module, _WHOLE) and not _is_altered(module):
        for name, child in module.named_children():
            if name != "parametrizations":
                _replace(child, f"{path}.{name}" if path else name, replaced, left)


def _is_altered(module: Any) -> bool:
    """Return whether this is an encoder layer some part of which is changed."""
    known = type(module) is nn.TransformerEncoderLayer
    return known and alteration_of_parts(module) is not None


def _refusal(module: Any) -> str | None:
    """Why this very module stays as it is, "" where it has nothing to gain; None if it does not."""
    parameters = list(module.parameters(recurse=False))
    name = type(module).__name__
    if type(module) in _OURS.values():
        return ""
    altered = own_function_of(module)
    if altered is not None:
        return f"it has {altered}"
    if type(module) in _AS_FAST:
        return f"PyTorch's own {name} is as fast"
    if type(module) not in _OURS:
        return f"no module of handgrad.torch stands for {name}" if parameters else ""
    if kernels.native is None:
        return "no compiled kernels are here"
    for parameter in module.parameters():
        if parameter.device.type != "cpu" or parameter.dtype not in _TYPES:
            kind = str(parameter.dtype).removeprefix("torch.")
            return f"its parameters are {kind} on {parameter.device}"
    if type(module) is nn.TransformerEncoderLayer:
        return without_operator(module)
    if type(module) is nn.MultiheadAttention:
        return attention_without_kernel(module)
    if isinstance(module, nn.Linear | nn.Conv1d | nn.Conv2d):
        if isinstance(module, nn.Linear) and module.weight.numel() < _FEWEST_WEIGHTS:
            return f"a product with fewer than {_FEWEST_WEIGHTS} weights gains nothing"
        if getattr(module, "padding_mode", "zeros") != "zeros":
            return f"its padding_mode is {module.padding_mode!r}"
    return None
