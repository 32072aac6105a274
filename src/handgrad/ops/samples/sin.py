"""Sample inputs of `ops.sin`."""

from __future__ import annotations

from typing import Final

from handgrad.ops.samples._elementwise import smooth
from handgrad.ops.samples._table import OpSamples

SAMPLES: Final[OpSamples] = smooth(lambda F, x: x.sin())
