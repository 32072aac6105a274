"""A surface that goes wrong in every way there is, for the tests of the watchdog."""

from __future__ import annotations

import os
import time
from typing import Final

import numpy as np

from fuzz.harness import Case, Fault

PATIENCE = 4.0
MEMORY = 64

_kept: list[np.ndarray] = []


def hang() -> None:
    while True:
        time.sleep(1.0)


def crash() -> None:
    os.abort()


def leave() -> None:
    os._exit(3)


def grow() -> None:
    _kept.append(np.ones(192 << 17))
    hang()  # until the watchdog has looked, which has to wait for its turn


def raw() -> None:
    raise KeyError("a key")


def wrong() -> None:
    raise Fault("silent mismatch", "y is wrong")


def fine() -> None:
    pass


_WAYS: Final = (fine, wrong, raw, hang, crash, leave, grow)


def draw(rng: np.random.Generator) -> Case:
    way = _WAYS[rng.integers(len(_WAYS))]
    return Case(way.__name__, way, f"print({way.__name__!r})")
