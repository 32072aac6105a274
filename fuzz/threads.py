"""Kernels called by several threads at once, under settings of each, while the process forks."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Final

import numpy as np

import handgrad as hg
from fuzz.harness import Case, Fault
from fuzz.harness.worker import sanitized
from handgrad import ops

PATIENCE = 120.0
MEMORY = 1024

#: In seconds: how long a child may compute.
_CHILD: Final = 60.0

_Call = Callable[[], bytes]


def _product(rng: np.random.Generator) -> _Call:
    m, k, n = (int(size) for size in rng.integers(1, 400, 3))
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    return lambda: bytes(hg.matmul(a, b).tobytes())


def _convolution(rng: np.random.Generator) -> _Call:
    n, c, o, side = (int(size) for size in rng.integers(1, 24, 4))
    x = rng.standard_normal((n, c, side, side), np.float32)
    weight = rng.standard_normal((o, c, 3, 3), np.float32)

    def call() -> bytes:
        y, cache = ops.conv2d.forward(x, weight, padding=1)
        return bytes(y.tobytes() + ops.conv2d.backward(y, cache)[1].tobytes())

    return call


def _recurrence(rng: np.random.Generator) -> _Call:
    n, t, d, h = (int(size) for size in rng.integers(1, 40, 4))
    x = rng.standard_normal((n, t, d), np.float32)
    w_ih, w_hh = (rng.standard_normal((4 * h, size), np.float32) for size in (d, h))

    def call() -> bytes:
        y, cache = ops.lstm.forward(x, w_ih, w_hh)
        return bytes(y[0].tobytes() + ops.lstm.backward(y, cache)[0].tobytes())

    return call


def _attention(rng: np.random.Generator) -> _Call:
    shape = tuple(int(size) for size in rng.integers(1, (4, 4, 150, 40)))
    q, k, v = (rng.standard_normal(shape, np.float32) for _ in range(3))

    def call() -> bytes:
        y, cache = ops.attention.forward(q, k, v, causal=True)
        return bytes(y.tobytes() + ops.attention.backward(y, cache)[0].tobytes())

    return call


def _elementwise(rng: np.random.Generator) -> _Call:
    x = rng.standard_normal(int(rng.integers(1, 300_000)), np.float32)

    def call() -> bytes:
        y, cache = ops.gelu.forward(x)
        return bytes(y.tobytes() + ops.gelu.backward(y, cache).tobytes())

    return call


_CALLS: Final = (_product, _convolution, _recurrence, _attention, _elementwise)


def _fork(call: _Call, expected: bytes) -> str:
    """The fault of a child that makes this call; "" if there is none."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if call() == expected else 3
        finally:
            os._exit(status)
    end = time.monotonic() + _CHILD
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return "" if status == 0 else f"ended with {os.waitstatus_to_exitcode(status)}"
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hangs"


def draw(rng: np.random.Generator) -> Case:
    kinds = [int(kind) for kind in rng.integers(len(_CALLS), size=int(rng.integers(1, 7)))]
    counts = [int(count) for count in rng.integers(1, 9, len(kinds))]
    seeds = [int(seed) for seed in rng.integers(1 << 30, size=len(kinds))]
    engines = ["reference" if flag else "auto" for flag in rng.random(len(kinds)) < 0.1]
    forks, turns = int(rng.integers(0, 6)), int(rng.integers(1, 12))
    releases = bool(rng.random() < 0.3)

    def run() -> None:
        calls = [
            _CALLS[kind](np.random.default_rng(s)) for kind, s in zip(kinds, seeds, strict=True)
        ]
        expected = []
        for call, engine in zip(calls, engines, strict=True):
            with hg.engine(engine), hg.threads(1):
                expected.append(call())
        before = hg.get_engine(), hg.get_precision(), hg.get_threads()
        wrong: list[str] = []

        def work(number: int) -> None:
            try:
                for _ in range(turns):
                    with hg.engine(engines[number]), hg.threads(counts[number]):
                        if calls[number]() != expected[number]:
                            wrong.append(f"{_CALLS[kinds[number]].__name__}: other results")
                        if (hg.get_engine(), hg.get_threads()) != (engines[number], counts[number]):
                            wrong.append("another's settings")
                    if releases:
                        hg.release_memory()
            except BaseException as error:
                wrong.append(f"{_CALLS[kinds[number]].__name__}: {error!r}")

        threads = [threading.Thread(target=work, args=(n,)) for n in range(len(calls))]
        for thread in threads:
            thread.start()
        for number in range(forks):
            at = number % len(calls)
            # A fork may catch the allocator of AddressSanitizer, which has no handler, locked.
            if (
                engines[at] == "auto"
                and not sanitized()
                and (fault := _fork(calls[at], expected[at]))
            ):
                wrong.append(f"a child that calls {_CALLS[kinds[at]].__name__} {fault}")
        for thread in threads:
            thread.join()
        if (hg.get_engine(), hg.get_precision(), hg.get_threads()) != before:
            wrong.append("other settings are left behind")
        if wrong:
            raise Fault("concurrency", "; ".join(sorted(set(wrong))))

    names = " and ".join(sorted({_CALLS[kind].__name__.strip("_") for kind in kinds}))
    return Case(f"threads: {names}", run)
