"""Modules of PyTorch that hide later steps themselves, as layers made with causal=True do."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import nn

#: The name of the mask of x, and its position among the arguments of forward.
_MASKS: Final = {
    nn.TransformerEncoderLayer: ("src_mask", 1),
    nn.TransformerEncoder: ("mask", 1),
    nn.TransformerDecoderLayer: ("tgt_mask", 2),
    nn.TransformerDecoder: ("tgt_mask", 2),
}


def add_causal_mask(module: Any) -> Any:
    """The module, which from now on adds the mask of later steps to the one it is called with."""
    module.register_forward_pre_hook(hide_later_steps, with_kwargs=True)
    return module


def is_causal(module: Any) -> bool:
    """Return whether `add_causal_mask` was called with this module."""
    return hide_later_steps in module._forward_pre_hooks.values()


def hide_later_steps(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The arguments of a call with the causal mask among them: a hook before forward."""
    name, position = next(_MASKS[kind] for kind in type(module).__mro__ if kind in _MASKS)
    x = args[0] if args else next(kwargs[own] for own in ("src", "tgt") if own in kwargs)
    steps = x.shape[-2]
    later = torch.ones(steps, steps, dtype=torch.bool, device=x.device).triu(1)
    given = args[position] if len(args) > position else kwargs.get(name)
    if given is None:
        mask = later
    elif given.dtype == torch.bool:
        mask = given | later
    else:
        mask = given.masked_fill(later, float("-inf"))
    if len(args) > position:
        return (*args[:position], mask, *args[position + 1 :]), kwargs
    return args, kwargs | {name: mask}
