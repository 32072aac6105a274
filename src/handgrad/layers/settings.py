"""Settings that constructors share, so that a value goes from a model to its layers under one name.

A constructor takes them as `**settings: Unpack[Kind]`; see `handgrad.keywords`.
"""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

import numpy as np
from numpy.typing import DTypeLike

from handgrad.geometry.windows import Setting


class ConvolutionSettings(TypedDict, total=False):
    """Settings of a convolution, PyTorch's: one number for every axis, or one for all."""

    stride: Annotated[Setting, 1]
    padding: Annotated[Setting, 0]
    dilation: Annotated[Setting, 1]
    #: Groups of channels that do not see one another.
    groups: Annotated[int, 1]
    bias: Annotated[bool, True]
    dtype: Annotated[DTypeLike, np.float32]


class StackedSettings(TypedDict, total=False):
    """Settings of recurrent layers above one another, in either direction."""

    #: Share of the outputs that training switches off between layers.
    dropout: Annotated[float, 0.0]
    #: One of cuDNN's four modes; True is "double", False "none".
    bias: Annotated[bool | str, True]
    #: Learn the initial state, (layers · directions, size).
    learn_h0: Annotated[bool, False]
    dtype: Annotated[DTypeLike, np.float32]


class RecurrentSettings(StackedSettings, total=False):
    """Settings of every recurrent layer."""

    bidirectional: Annotated[bool, False]


class CellSettings(RecurrentSettings, total=False):
    """Settings of the recurrent layer that a model names by its `cell`."""

    num_layers: Annotated[int, 1]
    #: Of RNN: "tanh" or "relu".
    nonlinearity: Annotated[str, "tanh"]
    #: Of LeakyRNN, which needs it: 0 to 1, one number or (hidden_size,).
    alpha: Annotated[Any, None]
    #: Of LSTM: features of h, 0 for hidden_size; and the first bias of its forget gates.
    proj_size: Annotated[int, 0]
    forget_bias: Annotated[float | None, None]


class HeadSettings(TypedDict, total=False):
    """Settings of attention that blocks and models hand on as they are."""

    dropout: Annotated[float, 0.0]
    #: Heads of keys and values; None for as many as there are heads.
    kv_heads: Annotated[int | None, None]
    #: Turn queries and keys by their positions, by base^(−2i/d) or these frequencies (d/2,).
    rotary: Annotated[bool, False]
    rotary_base: Annotated[float, 10000.0]
    rotary_frequencies: Annotated[tuple[float, ...] | None, None]
    #: Divide queries and keys of each head by their root mean square.
    qk_norm: Annotated[bool, False]
    #: Factor of the scores; None for 1/√(size of a key).
    scale: Annotated[float | None, None]
    dtype: Annotated[DTypeLike, np.float32]


class AttentionSettings(HeadSettings, total=False):
    """Settings of MultiHeadAttention, its sizes those of cuDNN's descriptor."""

    #: Features of key and value; None for those of the query.
    k_size: Annotated[int | None, None]
    v_size: Annotated[int | None, None]
    #: Size of one head; None for q_size/heads, 0 for no projection.
    q_proj_size: Annotated[int | None, None]
    k_proj_size: Annotated[int | None, None]
    v_proj_size: Annotated[int | None, None]
    #: Features of y; None for q_size.
    o_proj_size: Annotated[int | None, None]
    #: True, False, or the names of the projections that have one.
    bias: Annotated[bool | tuple[str, ...], True]
    #: Share of y that training switches off.
    post_dropout: Annotated[float, 0.0]
    #: Of the norms with `qk_norm`.
    eps: Annotated[float, 1e-6]


class BlockSettings(HeadSettings, total=False):
    """Settings of a transformer block, which stacks and models hand on as they are."""

    #: "pre" or "post", and "layer_norm" or "rms_norm".
    norm: Annotated[str, "pre"]
    normalization: Annotated[str, "layer_norm"]
    eps: Annotated[float, 1e-5]
    #: Of the feed-forward network: any activation, "swiglu" or "geglu"; the form of GELU.
    activation: Annotated[str, "relu"]
    approximate: Annotated[str, "none"]
    #: Size of one head; None for d_model/heads.
    head_size: Annotated[int | None, None]
    bias: Annotated[bool, True]
    #: As `bias` of MultiHeadAttention; None for that of the block.
    attention_bias: Annotated[bool | tuple[str, ...] | None, None]


class StackSettings(BlockSettings, total=False):
    """Settings of a stack of transformer blocks."""

    #: A norm behind the last block; None for one with norm="pre".
    final_norm: Annotated[bool | None, None]
    #: Keep of a block its inputs alone, and make its cache again in backward.
    recompute: Annotated[bool, False]
