"""Random numbers that come out the same every time, of generators that belong to nobody."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


@contextmanager
def seeded(seed: int) -> Iterator[Callable[[], bool]]:
    """Let what code draws from the generators of Python, NumPy and PyTorch come from `seed`.

    Gives a function that tells whether anything has been drawn yet. Afterwards the generators go
    on as if nothing had been.
    """
    states = random.getstate(), np.random.get_state()  # noqa: NPY002  layers draw from it
    # Its functions would make it every device's, in more Python than a small forward has.
    generator: Any = getattr(sys.modules.get("torch"), "default_generator", None)
    of_torch = None if generator is None else generator.get_state()
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002
    if generator is not None:
        generator.manual_seed(seed)
    begun = _state(generator)
    try:
        yield lambda: _state(generator) != begun
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        if generator is not None:
            generator.set_state(of_torch)


def _state(generator: Any) -> tuple[Any, ...]:
    of_numpy = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    of_torch = None if generator is None else generator.get_state().numpy().tobytes()
    return random.getstate(), of_numpy["key"].tobytes(), of_numpy["pos"], of_torch
