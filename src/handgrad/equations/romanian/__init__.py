"""Romanian, one table for each family of texts."""

from __future__ import annotations

from typing import Final

from handgrad.equations.romanian import elementwise, layers, purposes, remarks, sequences, windows

#: Every text, by its English words.
TEXTS: Final = {
    **elementwise.TEXTS,
    **layers.TEXTS,
    **purposes.TEXTS,
    **remarks.TEXTS,
    **sequences.TEXTS,
    **windows.TEXTS,
}
#: Layers and losses, by their classes.
NAMES: Final = layers.NAMES
