"""Wrong backwards written by hand, the way people write them, each beside its right sibling.

Planted bugs (`benchmarks.planted_bugs`) are made by a list of mutations. These were written without
one, so they say what the checker does with what people do.
"""

from __future__ import annotations

from typing import Final

from benchmarks.bug_corpus import (
    activations,
    attention,
    convolutions,
    dense,
    losses,
    networks,
    normalizations,
    numerics,
    recurrent,
    selections,
)
from benchmarks.bug_corpus.case import Exercise

EXERCISES: Final[tuple[Exercise, ...]] = (
    *activations.EXERCISES,
    *dense.EXERCISES,
    *normalizations.EXERCISES,
    *losses.EXERCISES,
    *selections.EXERCISES,
    *convolutions.EXERCISES,
    *attention.EXERCISES,
    *recurrent.EXERCISES,
    *networks.EXERCISES,
    *numerics.EXERCISES,
)
