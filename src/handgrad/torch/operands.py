"""Tensors of a module's call as the operators take them, in bfloat16 and under autocast too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from handgrad.torch.bridge import hand_over, is_exported, multiplies_bf16, refusal


class Operands(NamedTuple):
    """The tensors in one float type, the precision of products, and whether y becomes bfloat16."""

    tensors: Sequence[Any]
    bf16: bool
    narrow: bool

    def result(self, y: Tensor) -> Tensor:
        """y in the type that the module gives it."""
        return y.bfloat16() if self.narrow else y


def operands(name: str, *tensors: Any) -> Operands | None:
    """The tensors of a call of handgrad.torch's module `name`; None, with a warning, if it is not
    for kernels, without one while the model is exported to ONNX. A tensor may be None.
    """
    if is_exported():
        return None
    autocasts = torch.is_autocast_enabled("cpu")
    # A mixture is PyTorch's to refuse, as its Linear does, or to compute, as its norms do.
    narrow = not autocasts and {each.dtype for each in tensors if each is not None} == {
        torch.bfloat16
    }
    wanted = narrow or (autocasts and torch.get_autocast_dtype("cpu") is torch.bfloat16)
    if narrow or autocasts:
        tensors = tuple(_widened(each) for each in tensors)
    reason = refusal([each for each in tensors if each is None or each.is_floating_point()])
    if reason is not None:
        hand_over(name, reason)
        return None
    return Operands(tensors, multiplies_bf16(wanted), narrow)


def _widened(tensor: Any) -> Any:
    is_narrow = tensor is not None and tensor.dtype is torch.bfloat16
    return tensor.float() if is_narrow else tensor
