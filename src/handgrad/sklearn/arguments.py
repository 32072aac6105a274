"""Checks of arguments that several estimators have."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any


def is_size(value: Any) -> bool:
    """Return whether this is an integer from 1."""
    return isinstance(value, Integral) and int(value) >= 1


def is_fraction(value: Any) -> bool:
    """Return whether this is a number from 0 below 1."""
    return isinstance(value, Real) and 0 <= float(value) < 1
