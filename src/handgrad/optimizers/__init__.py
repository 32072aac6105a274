"""Optimizers: each file has its update rule as a pure function, and the class that applies it."""

from typing import TYPE_CHECKING, Final

from handgrad.optimizers.accumulation import Accumulation
from handgrad.optimizers.adam import Adam
from handgrad.optimizers.adamw import AdamW
from handgrad.optimizers.base import Optimizer
from handgrad.optimizers.clipping import clip_by_global_norm, clipping_factor, global_norm
from handgrad.optimizers.momentum import Momentum
from handgrad.optimizers.nesterov import Nesterov
from handgrad.optimizers.rmsprop import RMSProp
from handgrad.optimizers.schedules import (
    Constant,
    Cosine,
    LinearWarmup,
    OneCycle,
    Schedule,
    Step,
)
from handgrad.optimizers.sgd import SGD
from handgrad.suggestions import suggesting

__all__ = [
    "BY_NAME",
    "SGD",
    "Accumulation",
    "Adam",
    "AdamW",
    "Constant",
    "Cosine",
    "LinearWarmup",
    "Momentum",
    "Nesterov",
    "OneCycle",
    "Optimizer",
    "RMSProp",
    "Schedule",
    "Step",
    "clip_by_global_norm",
    "clipping_factor",
    "global_norm",
]

#: The optimizers that a text can name.
BY_NAME: Final[dict[str, type[Optimizer]]] = {
    each.name: each for each in (SGD, Momentum, Nesterov, RMSProp, Adam, AdamW)
}

if not TYPE_CHECKING:
    __getattr__ = suggesting(__name__)
