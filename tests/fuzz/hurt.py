"""A surface that goes wrong in every way there is, for the tests of the watchdog."""

from __future__ import annotations

import os
import time

import numpy as np

from fuzz.harness import Case, Fault

PATIENCE = 1.0
MEMORY = 64

_kept: list[np.ndarray] = []


def _hang() -> None:
    while True:
        time.sleep(1.0)


def _crash() -> None:
    os.abort()


def _leave() -> None:
    os._exit(3)


def _grow() -> None:
    _kept.append(np.ones(256 << 17))
    time.sleep(0.3)


def _raw() -> None:
    raise KeyError("a key")


def _fault() -> None:
    raise Fault("silent mismatch", "y is wrong")


def _fine() -> None:
    pass


_WAYS = (_fine, _fault, _raw, _hang, _crash, _leave, _grow)


def draw(rng: np.random.Generator) -> Case:
    way = _WAYS[rng.integers(len(_WAYS))]
    return Case(way.__name__, way, f"print({way.__name__!r})")
