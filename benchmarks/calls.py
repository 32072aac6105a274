"""The cost of calling an op besides its kernel: checks, the choice of engine, arrays, the cache."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from typing import Any, Final

import numpy as np

from benchmarks.bursts import Spread

_X, _W, _B = (
    np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    for seed, shape in enumerate([(4, 8), (8, 8), (8,)])
)
#: Ops of small networks, on arrays so small that their kernels take no time to speak of.
CALLS: Final[dict[str, tuple[Any, ...]]] = {
    "relu": (_X,),
    "gelu": (_X,),
    "softmax": (_X,),
    "layer_norm": (_X, _B, _B),
    "linear": (_X, _W, _B),
    "dense": (_X, _W, _B),
}


def measure(*, rounds: int, burst: float) -> dict[str, Any]:
    """Seconds of a call of each op beyond those of its kernel, forward and backward, one thread."""
    return {op: _measure(op, arguments, rounds, burst) for op, arguments in CALLS.items()}


def _measure(op: str, arguments: tuple[Any, ...], rounds: int, burst: float) -> dict[str, Any]:
    module = import_module(f"handgrad.ops.{op}")
    y, cache = module.forward(*arguments)
    dy = np.full_like(y, 0.5)
    directions: dict[str, Callable[[], Any]] = {
        "forward": lambda: module.forward(*arguments),
        "backward": lambda: module.backward(dy, cache),
    }
    found = {}
    for name, call in directions.items():
        kernel = _kernel_alone(call)
        count = max(1, round(burst / _seconds(call, 1000)))
        found[name] = [_seconds(call, count) - _seconds(kernel, count) for _ in range(rounds)]
    return {name: asdict(Spread.of(beyond)) for name, beyond in found.items()}


def _kernel_alone(call: Callable[[], Any]) -> Callable[[], Any]:
    """The native part of the call alone, with the same arrays and nothing around it."""
    from handgrad.kernels import native

    assert native is not None
    nothing = (np.zeros(0),)
    capture = native.Capture(nothing, most_bytes=1 << 20)
    capture.begin()
    call()
    capture.end()
    assert not capture.reason, capture.reason
    return lambda: capture.replay(nothing)


def _seconds(call: Callable[[], Any], count: int) -> float:
    """The seconds of one of so many calls."""
    began = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - began) / count
