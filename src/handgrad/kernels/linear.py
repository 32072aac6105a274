"""Kernel of `ops.linear`: that of `dense`, whose activation is the identity unless it is given."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from handgrad.kernels import dense

SPEC: Final = replace(dense.SPEC, op="linear")
