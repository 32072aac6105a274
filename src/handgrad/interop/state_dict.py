"""PyTorch's names of weights and ours: a state_dict as `update_parameters` takes it.

Recurrent layers, Dense and the convolutions have PyTorch's own names; what is renamed here are the
parts of attention and transformers. PyTorch itself is not needed: arrays in, arrays out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import ArgumentError, ShapeError
from handgrad.layers.flat import numbers

#: The parts of a transformer layer; None for a level that we have not.
_PARTS: Final = {
    "layers": None,
    "self_attn": "attention.inner",
    "multihead_attn": "cross_attention.inner",
    "linear1": "feed_forward.inner.linear1",
    "linear2": "feed_forward.inner.linear2",
    "out_proj": "o_proj",
}
#: The norms of one layer, by their number.
_NORMS: Final = ("norm1", "norm2", "norm3")
_NORM_ARRAYS: Final = {"weight": "gamma", "bias": "beta"}
#: The axes that each of them normalises.
_PARTS_OF_ENCODER: Final = ("attention", "feed_forward")
_PARTS_OF_DECODER: Final = ("attention", "cross_attention", "feed_forward")
_PROJECTIONS: Final = ("q_proj", "k_proj", "v_proj")


def from_torch(state: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays of a state_dict under the names of our layers, packed projections taken apart.

        layer.update_parameters(from_torch({k: v.numpy() for k, v in module.state_dict().items()}))

    Takes those of torch.nn.MultiheadAttention (with packed or separate projections),
    TransformerEncoderLayer, TransformerDecoderLayer and the stacks of both, for MultiHeadAttention,
    TransformerBlock, TransformerEncoder and TransformerDecoder; any other name stays.
    Raises ArgumentError for `bias_k` and `bias_v`, which have no counterpart, for a norm or
    an array of a norm that a layer has not, and for two names that become one; ShapeError for
    packed projections that are not three of one size.
    """
    if not isinstance(state, Mapping):
        raise ArgumentError(
            f"from_torch: a {type(state).__name__} is given; allowed: a mapping of names to arrays"
        )
    found: dict[str, Array] = {}
    for name, array in state.items():
        if not isinstance(name, str):
            raise ArgumentError(f"from_torch: a {type(name).__name__} is a name; allowed: a str")
        *path, last = name.split(".")
        if last in ("bias_k", "bias_v"):
            raise ArgumentError(
                f"from_torch: {name!r} is given; allowed: attention made with add_bias_kv=False"
            )
        owner = list(_renamed(path, state))
        for own_last, part in _unpacked(name, last, array):
            if path and path[-1] in (*_NORMS, "norm"):
                if own_last not in _NORM_ARRAYS:
                    raise ArgumentError(
                        f"from_torch: {name[:80]!r} is given; allowed of a norm: weight and bias"
                    )
                own_last = _NORM_ARRAYS[own_last]
            own = ".".join((*owner, own_last))
            if own in found:
                raise ArgumentError(
                    f"from_torch: {name[:80]!r} becomes {own[:80]!r}, which another array has "
                    f"already become; allowed: the state_dict of one module"
                )
            found[own] = part
    return found


def _renamed(path: list[str], state: Mapping[str, Array]) -> Iterator[str]:
    for i, part in enumerate(path):
        if part in _NORMS:
            layer = "".join(each + "." for each in path[:i])
            crosses = any(str(name).startswith(layer + "multihead_attn.") for name in state)
            normalised = _PARTS_OF_DECODER if crosses else _PARTS_OF_ENCODER
            number = _NORMS.index(part)
            if number >= len(normalised):
                raise ArgumentError(
                    f"from_torch: {f'{layer}{part}'[:80]!r} is given without cross-attention; "
                    f"allowed: {', '.join(_NORMS[: len(normalised)])}"
                )
            yield f"{normalised[number]}.norm"
        elif (own := _PARTS.get(part, part)) is not None:
            yield own


def _unpacked(name: str, last: str, array: Array) -> Iterator[tuple[str, Array]]:
    """One array, or the three that PyTorch packs into one, each with its name."""
    if last in ("in_proj_weight", "in_proj_bias"):
        kind = last.removeprefix("in_proj_")
        packed = numbers("from_torch", name, array)
        if packed.ndim == 0 or len(packed) % len(_PROJECTIONS):
            raise ShapeError(
                f"from_torch: {name[:80]!r} has shape {packed.shape}; "
                f"allowed: three projections on axis 0"
            )
        for projection, rows in zip(_PROJECTIONS, np.split(packed, 3), strict=True):
            yield f"{projection}.{kind}", rows
    elif last.removesuffix("_weight") in _PROJECTIONS:
        yield f"{last.removesuffix('_weight')}.weight", array
    else:
        yield last, array
