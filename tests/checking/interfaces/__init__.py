"""Small modules that define gradients in the forms people write them in."""

from __future__ import annotations

from tests.checking.interfaces.assembled import ASSEMBLED
from tests.checking.interfaces.functions import FUNCTIONS
from tests.checking.interfaces.jax_modules import JAX
from tests.checking.interfaces.models import MODELS
from tests.checking.interfaces.objects import OBJECTS
from tests.checking.interfaces.tapes import TAPES
from tests.checking.interfaces.torch_modules import TORCH

INTERFACES = (*OBJECTS, *MODELS, *ASSEMBLED, *FUNCTIONS, *TAPES, *TORCH, *JAX)
