"""Backwards derived from forwards by algebra alone: `hg.derive`."""

from handgrad.deriving.derivation import Derivation
from handgrad.deriving.deriving import derive

__all__ = ["Derivation", "derive"]
