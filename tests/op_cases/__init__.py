"""One list of op cases. It drives every test under tests/ops, and the golden files.

A case names an op, its arrays (made by a generator seeded from the case's name, so that adding a
case changes no other), its settings, and what it is exempt from, with the reason. Every other file
here lists those of some ops; `EQUIVALENTS` holds, once per op, the inputs that have a gradient and
the same computation in PyTorch.
"""

from typing import Final

from tests.op_cases import (  # noqa: F401  they list their cases
    activations,
    attention,
    convolutions,
    embeddings,
    losses,
    norms,
    pooling,
    products,
    recurrence,
)
from tests.op_cases.case import LISTED, Arrays, Case, Seed, each, leaves, mapped, named_outputs
from tests.op_cases.equivalents import EQUIVALENTS, Equivalent

__all__ = [
    "CASES",
    "EQUIVALENTS",
    "SMALL_CASES",
    "Arrays",
    "Case",
    "Equivalent",
    "Seed",
    "each",
    "leaves",
    "mapped",
    "named_outputs",
]

CASES: Final = tuple(LISTED)
SMALL_CASES: Final = tuple(case for case in CASES if not case.large)
