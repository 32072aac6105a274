"""Examples that a lecture works out on the board, with its numbers and a row that ReLU clips.

Each is a module in the op contract: `forward` and `backward`, `INPUTS` by the name of forward's
arguments, `COTANGENT` for what comes in going backward (None where the output is the loss itself),
and `TEXTS`, which have in every language a title, what it is, and what is kept and why.

Source: Anonymous, Transformer Layer: notițe și arhitectură (undated), sections 2, 3, 4 and 5.
"""

from __future__ import annotations

from typing import Final

#: The name of every example, each a module of this package.
WORKED: Final = ("ffn", "head_split", "tiles")

__all__ = ["WORKED"]
