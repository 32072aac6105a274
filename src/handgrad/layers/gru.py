"""Gated recurrent units over whole sequences."""

from __future__ import annotations

from handgrad.layers.recurrent import Recurrent
from handgrad.ops import gru


class GRU(Recurrent):
    """Gated recurrent unit, gates in the order r, z, n; see `Recurrent` and `hg.ops.gru`."""

    op = gru
    forward_capturable = True
    gates = 3
    flops_per_unit = 11
