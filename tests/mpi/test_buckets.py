"""Buckets of gradients leave while the backward pass runs, and never too early."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.layers import Layer
from handgrad.mpi.buckets import Buckets

STEPS = 6


class Recorder:
    """A communicator of one rank that keeps what was reduced, as it was when it left."""

    def __init__(self) -> None:
        self.left: list[np.ndarray] = []
        self.events: list[str] = []

    def Iallreduce(self, in_place: Any, bucket: np.ndarray) -> Recorder:  # noqa: N802
        self.left.append(bucket.copy())
        self.events.append("left")
        return self

    def Test(self) -> bool:  # noqa: N802
        return True

    def Wait(self) -> None:  # noqa: N802
        self.events.append("waited")


def gpt(*, tied: bool) -> tuple[Layer, Any]:
    rng = np.random.default_rng(0)
    model = hg.GPT(11, context=8, width=8, heads=2, blocks=3, tied=tied, rng=rng)
    return model, (rng.integers(0, 11, (2, 8)),)


def translator(*, shared: bool) -> tuple[Layer, Any]:
    rng = np.random.default_rng(0)
    model = hg.Transformer(
        11,
        11,
        d_model=8,
        heads=2,
        hidden=8,
        encoder_blocks=2,
        decoder_blocks=2,
        dropout=0.0,
        shared=shared,
        tied=shared,
        rng=rng,
    )
    x, y = rng.integers(1, 11, (2, 2, 5))
    return model, (x, np.array([5, 4]), y, np.array([5, 5]))


def dense() -> tuple[Layer, Any]:
    rng = np.random.default_rng(0)
    layers = [hg.Dense(6, 6, rng=rng, activation="tanh") for _ in range(5)]
    return hg.Sequential(*layers), (rng.normal(size=(3, 6)).astype(np.float32),)


def step(model: Layer, inputs: Any, flat: Any, buckets: Buckets, events: list[str]) -> None:
    """One step of a training, with another gradient of the outputs each time."""
    outputs, cache = model.forward(*inputs, training=True)
    dy = np.random.default_rng(len(events)).normal(size=outputs.shape).astype(outputs.dtype)
    expected = model.backward(dy, cache)[1]
    buckets.prepare()
    buckets.begin()
    model.backward(dy, cache, gradients=flat, input_gradient=False)
    events.append("backward")
    buckets.finish()
    for name, gradient in expected.items():
        np.testing.assert_array_equal(flat[name], gradient, err_msg=name)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_no_bucket_leaves_before_it_is_final(norm: str) -> None:
    rng = np.random.default_rng(0)
    encoder = hg.TransformerEncoder(3, 8, 2, 16, norm=norm, rng=rng)
    x = rng.normal(size=(2, 5, 8)).astype(np.float32)
    cases = [
        dense(),
        (encoder, (x,)),
        *(gpt(tied=tied) for tied in (True, False)),
        *(translator(shared=shared) for shared in (True, False)),
    ]
    for model, inputs in cases:
        recorder = Recorder()
        flat = model.bind().zeros_like()
        buckets = Buckets(recorder, flat, None, size=64)
        for number in range(STEPS):
            recorder.left.clear()
            recorder.events.clear()
            step(model, inputs, flat, buckets, recorder.events)
            np.testing.assert_array_equal(np.concatenate(recorder.left[::-1]), flat.buffer)
            early = recorder.events.index("backward")
            late = recorder.events.count("left") - early
            if number < 3:
                assert early == 0
            elif not isinstance(model, hg.Transformer | hg.GPT):
                assert early > 2 * late, (type(model).__name__, early, late)
            else:
                assert early > 0


def test_a_captured_step_reduces_all_at_the_end() -> None:
    recorder = Recorder()
    model, _ = dense()
    flat = model.bind().zeros_like()
    buckets = Buckets(recorder, flat, None, size=64)
    flat.buffer[:] = 3
    buckets.finish()
    assert recorder.events.count("left") == len(recorder.left) > 1
    np.testing.assert_array_equal(np.concatenate(recorder.left[::-1]), flat.buffer)


def test_what_no_backward_writes_is_zero() -> None:
    flat = dense()[0].bind().zeros_like()
    buckets = Buckets(Recorder(), flat, None)
    buckets.prepare()
    buckets.begin()
    flat.buffer[:10] = 1
    buckets.finish()
    assert flat.buffer.sum() == 10
