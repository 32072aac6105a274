"""Layers: parameters and one op, or a composition of layers. One small file per family."""

from handgrad.lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
