"""Backwards derived from forwards by algebra alone: `hg.derive`."""

from handgrad.deriving.derivation import Derivation, derive

__all__ = ["Derivation", "derive"]
