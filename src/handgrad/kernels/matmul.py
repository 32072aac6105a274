"""Kernel of `ops.matmul`: the tiled product of core/matmul.h on any strides."""

from __future__ import annotations
