"""The lengths of the sequences of a batch, as callers give them."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from handgrad.arrays import Array, Lengths
from handgrad.dispatch.signature import INTEGERS, NONE, settled
from handgrad.ops.arguments import check_length_values, check_lengths


def settled_lengths(
    owner: str, lengths: Lengths | None, batch: int, steps: int, name: str = "lengths"
) -> Array | None:
    """Return the lengths as an array (batch,) of integers from 0 to `steps`; None stays None.

    Raises ArgumentError where they are no integers or outside of that, ShapeError for another
    number of them; `owner` begins the sentence.
    """
    given = lengths
    if isinstance(lengths, list | tuple):
        with suppress(ValueError):  # rows of several lengths are no array
            given = np.asarray(lengths, dtype=None if lengths else np.int64)
    found: Array | None = settled(owner, name, given, INTEGERS | NONE)
    if found is not None:
        check_lengths(owner, found, batch)
        check_length_values(owner, found, steps)
    return found
