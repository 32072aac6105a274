"""Losses: the last node of a network."""

from typing import TYPE_CHECKING, Final

from handgrad.losses.base import Loss
from handgrad.losses.binary_cross_entropy import BinaryCrossEntropy
from handgrad.losses.cross_entropy import CrossEntropy
from handgrad.losses.ctc_loss import CTCLoss
from handgrad.losses.squared_error import SquaredError
from handgrad.losses.weighted import Weighted
from handgrad.suggestions import suggesting

__all__ = [
    "BY_NAME",
    "BinaryCrossEntropy",
    "CTCLoss",
    "CrossEntropy",
    "Loss",
    "SquaredError",
    "Weighted",
]

#: The losses that a text can name, some by two names.
BY_NAME: Final[dict[str, type[Loss]]] = {
    "cross_entropy": CrossEntropy,
    "mse": SquaredError,
    "squared_error": SquaredError,
    "bce": BinaryCrossEntropy,
    "binary_cross_entropy": BinaryCrossEntropy,
}

if not TYPE_CHECKING:
    __getattr__ = suggesting(__name__)
