"""Losses: the last node of a network."""

from handgrad.losses.base import Loss
from handgrad.losses.binary_cross_entropy import BinaryCrossEntropy
from handgrad.losses.cross_entropy import CrossEntropy
from handgrad.losses.ctc_loss import CTCLoss
from handgrad.losses.squared_error import SquaredError

__all__ = ["BinaryCrossEntropy", "CTCLoss", "CrossEntropy", "Loss", "SquaredError"]
