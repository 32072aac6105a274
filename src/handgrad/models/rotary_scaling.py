"""Frequencies of rotary positions, stretched for texts longer than those of the first training.

The settings are named as in the `config.json` of Hugging Face, and so are the kinds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import ArgumentError
from handgrad.ops.arguments import check_choice

if TYPE_CHECKING:
    from jaxtyping import Float

#: A frequency from which on nothing, and one up to which all is stretched, in turns per text.
_YARN_TURNS: Final = (32.0, 1.0)


class Scaled(NamedTuple):
    """The frequencies ω, and what queries and keys are each multiplied by."""

    frequencies: tuple[float, ...]
    factor: float


def scaled(size: int, base: float, settings: Mapping[str, Any]) -> Scaled:
    """The frequencies of heads of this size for settings such as {"rope_type": "linear", …}.

    - linear: ω/factor.
    - llama3: ω/factor for wavelengths 2π/ω above original/low_freq_factor, ω for those below
      original/high_freq_factor, and a mean of both between them, that is linear in ω;
      `original` is `original_max_position_embeddings`.
    - yarn: ω/factor where a text of the original length has fewer turns than `beta_slow` (1), ω
      where it has more than `beta_fast` (32), and between them a mean that is linear in i. Queries
      and keys are multiplied by `attention_factor`, 0.1 ln factor + 1 unless given.

    Raises ArgumentError for another kind and for settings that are missing, unknown or not above 0.
    Source: Chen et al., Extending context window of large language models via positional
    interpolation (2023), for linear; Meta, llama-models (2024), for llama3; Peng et al., YaRN:
    efficient context window extension of large language models (2023), for yarn.
    """
    kind = settings.get("rope_type", settings.get("type"))
    check_choice("rotary_scaling", "rope_type", kind, tuple(_KINDS))
    needed, further, scale = _KINDS[kind]
    given = {name: value for name, value in settings.items() if name not in ("rope_type", "type")}
    for name in needed:
        if name not in given:
            raise ArgumentError(f"rotary_scaling: {name} is missing; allowed: a number above 0")
    for name, value in given.items():
        if name not in (*needed, *further):
            allowed = ", ".join((*needed, *further))
            raise ArgumentError(f"rotary_scaling: {name} is given; allowed of {kind}: {allowed}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise ArgumentError(f"rotary_scaling: {name} is {value!r}; allowed: a number above 0")
    frequencies = base ** (-2.0 * np.arange(size // 2) / size)
    stretched, factor = scale(frequencies, base, **given)
    return Scaled(tuple(stretched.tolist()), factor)


def _linear(w: Float[Array, "half"], base: float, factor: float) -> tuple[Array, float]:
    return w / factor, 1.0


def _llama3(
    w: Float[Array, "half"],
    base: float,
    factor: float,
    low_freq_factor: float,
    high_freq_factor: float,
    original_max_position_embeddings: float,
) -> tuple[Array, float]:
    turns = original_max_position_embeddings * w / (2 * math.pi)
    if low_freq_factor == high_freq_factor:
        kept = (turns >= low_freq_factor).astype(np.float64)
    else:
        kept = np.clip((turns - low_freq_factor) / (high_freq_factor - low_freq_factor), 0, 1)
    return (1 - kept) * w / factor + kept * w, 1.0


def _yarn(
    w: Float[Array, "half"],
    base: float,
    factor: float,
    original_max_position_embeddings: float,
    beta_fast: float = _YARN_TURNS[0],
    beta_slow: float = _YARN_TURNS[1],
    attention_factor: float | None = None,
) -> tuple[Array, float]:
    size = 2 * len(w)

    def pair_with(turns: float) -> float:
        """The number i at which ω_i makes so many turns in a text of the original length."""
        wavelength = original_max_position_embeddings / (turns * 2 * math.pi)
        return size * math.log(wavelength) / (2 * math.log(base))

    first = max(math.floor(pair_with(beta_fast)), 0)
    last = min(math.ceil(pair_with(beta_slow)), size - 1)
    stretched = np.clip((np.arange(len(w)) - first) / max(last - first, 0.001), 0, 1)
    if attention_factor is None:
        attention_factor = 0.1 * math.log(factor) + 1.0 if factor > 1 else 1.0
    return stretched * w / factor + (1 - stretched) * w, attention_factor


_ORIGINAL: Final = "original_max_position_embeddings"
#: By kind: the settings it needs, those it may have, and its function.
_KINDS: Final[
    dict[str, tuple[tuple[str, ...], tuple[str, ...], Callable[..., tuple[Array, float]]]]
] = {
    "linear": (("factor",), (), _linear),
    "llama3": (("factor", "low_freq_factor", "high_freq_factor", _ORIGINAL), (), _llama3),
    "yarn": (("factor", _ORIGINAL), ("beta_fast", "beta_slow", "attention_factor"), _yarn),
}
