"""Fail allocation after allocation of a kernel's call, until it succeeds; see test_memory.py.

    python -m tests.threads.memory_program <library> <kernel> same|fresh <threads>...

Every failure has to come back as a MemoryError, and the same call after it has to give the same
bits as ever. With `fresh` each try is made in a forked process of its own, which has to start the
threads too. For each number of threads it prints how many allocations were made to fail, and how
many of these raised.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np

import handgrad as hg
from handgrad import ops
from handgrad.models.attention_decoder import AttentionDecoder
from handgrad.training.step import TrainingStep
from tests.ops.cases import leaves

Call = Callable[[], bytes]


def _arrays(*shapes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def _bytes(*arrays: Any) -> bytes:
    return b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)


def _op(op: Any, *shapes: tuple[int, ...], **settings: Any) -> Call:
    """Forward and backward of an op."""
    arrays = _arrays(*shapes)

    def call() -> bytes:
        y, cache = op.forward(*arrays, **settings)
        gradients = op.backward(y, cache)
        return _bytes(*leaves(y), *leaves(gradients))

    return call


def _matmul() -> Call:
    a, b = _arrays((500, 700), (700, 600))
    return lambda: _bytes(hg.matmul(a, b))


def _products() -> Call:
    a, b = _arrays((6, 100, 90), (6, 90, 110))
    return lambda: _bytes(hg.matmul(a, b))


def _cross_entropy() -> Call:
    (x,) = _arrays((300, 200))
    target = np.arange(300) % 200

    def call() -> bytes:
        loss, cache = ops.cross_entropy.forward(x, target)
        return _bytes(loss, ops.cross_entropy.backward(loss, cache))

    return call


def _ctc_loss() -> Call:
    (x,) = _arrays((8, 40, 30))
    targets = 1 + np.arange(8 * 12).reshape(8, 12) % 29

    def call() -> bytes:
        loss, cache = ops.ctc_loss.forward(x, targets)
        return _bytes(loss, ops.ctc_loss.backward(loss, cache))

    return call


def _embedding() -> Call:
    (weight,) = _arrays((500, 64))
    tokens = np.arange(2000) % 500

    def call() -> bytes:
        y, cache = ops.embedding.forward(tokens, weight)
        return _bytes(y, ops.embedding.backward(y, cache))

    return call


def _adam() -> Call:
    start, gradient = _arrays((300, 400), (300, 400))

    def call() -> bytes:
        parameters, optimizer = {"weight": start.copy()}, hg.optimizers.Adam(lr=0.1)
        for _ in range(2):
            optimizer.step(parameters, {"weight": gradient})
        return _bytes(parameters["weight"])

    return call


def _decoder() -> Call:
    rng = np.random.default_rng(0)
    decoder = AttentionDecoder(8, 48, 48, rng=rng)
    e, h, s0, dy = _arrays((16, 6, 8), (16, 12, 48), (16, 48), (16, 6, 48))

    def call() -> bytes:
        y, cache = decoder.forward(e, h, s0)
        inputs, gradients = decoder.backward(dy, cache)
        return _bytes(y, *inputs, *gradients.values())

    return call


def _step() -> Call:
    """A captured step, and its replay."""
    rng = np.random.default_rng(0)
    model = hg.MLP((64, 96, 10), rng=rng)
    gradients = model.bind().zeros_like()
    x, target = _arrays((40, 64))[0], np.arange(40) % 10

    def call() -> bytes:
        step = TrainingStep(model, hg.losses.CrossEntropy(), gradients)
        found = [_bytes(step((x,), target), gradients.buffer) for _ in range(2)]
        assert found[0] == found[1]
        return found[0]

    return call


_HEADS = (2, 4, 90, 24)

CASES: Final[dict[str, Callable[[], Call]]] = {
    "adam": _adam,
    "attention": lambda: _op(ops.attention, _HEADS, _HEADS, _HEADS, causal=True),
    "attention of one query": lambda: _op(ops.attention, (2, 4, 1, 24), _HEADS, _HEADS),
    "avg_pool2d": lambda: _op(ops.avg_pool2d, (8, 16, 20, 20), kernel_size=3),
    "conv1d": lambda: _op(ops.conv1d, (8, 16, 200), (24, 16, 5), (24,), padding=2),
    "conv2d": lambda: _op(
        ops.conv2d, (8, 12, 20, 20), (24, 12, 3, 3), (24,), padding=1, activation="relu"
    ),
    "conv2d of a large image": lambda: _op(
        ops.conv2d, (2, 8, 160, 160), (8, 8, 3, 3), (8,), padding=1
    ),
    "conv_transpose2d": lambda: _op(
        ops.conv_transpose2d, (8, 12, 16, 16), (12, 20, 3, 3), (20,), stride=2
    ),
    "cross_entropy": _cross_entropy,
    "ctc_loss": _ctc_loss,
    "decoder": _decoder,
    "dense": lambda: _op(ops.dense, (300, 200), (250, 200), (250,), activation="relu"),
    "embedding": _embedding,
    "group_norm": lambda: _op(ops.group_norm, (40, 60, 25), (60,), (60,), num_groups=6),
    "gru": lambda: _op(ops.gru, (16, 20, 24), (120, 24), (120, 40), (120,), (120,)),
    "layer_norm": lambda: _op(ops.layer_norm, (300, 200), (200,), (200,)),
    "lstm": lambda: _op(ops.lstm, (16, 20, 24), (160, 24), (160, 40), (160,), (160,)),
    "matmul": _matmul,
    "max_pool2d": lambda: _op(ops.max_pool2d, (8, 16, 20, 20), kernel_size=2),
    "products": _products,
    "softmax": lambda: _op(ops.softmax, (60, 200, 9), axis=1),
    "step": _step,
}


def _try(faults: ctypes.CDLL, call: Call, number: int, expected: bytes) -> tuple[bool, bool]:
    """Whether the allocation of this number was asked for and failed, and whether that raised."""
    hg.release_memory()
    faults.fail_allocation(ctypes.c_long(number))
    found = None
    try:
        found = call()
    except MemoryError:
        pass
    finally:
        happened = faults.failed_allocations() > 0
        faults.fail_allocation(ctypes.c_long(0))
    if found is not None and found != expected:
        raise AssertionError(f"allocation {number} failed: other results")
    if call() != expected:
        raise AssertionError(f"after allocation {number} had failed: other results")
    return happened, found is None


def _try_afresh(faults: ctypes.CDLL, call: Call, number: int, expected: bytes) -> tuple[bool, bool]:
    child = os.fork()
    if child == 0:
        status = 3
        try:
            happened, raised = _try(faults, call, number, expected)
            status = 0 if not happened else 2 if raised else 1
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status not in (0, 1, 2):
        raise AssertionError(f"allocation {number} failed: the child ended with {status}")
    return status > 0, status == 2


def main(library: str, name: str, mode: str, *threads: str) -> None:
    """Fail all allocations of this call, one in each try."""
    faults = ctypes.CDLL(library)
    call = CASES[name]()
    attempt = _try_afresh if mode == "fresh" else _try
    for count in threads:
        with hg.threads(int(count)):
            expected = call()
            number = raised = 0
            while True:
                happened, was_raised = attempt(faults, call, number + 1, expected)
                if not happened:
                    break
                number += 1
                raised += was_raised
        print(number, raised)


if __name__ == "__main__":
    main(*sys.argv[1:])
