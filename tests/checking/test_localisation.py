"""Layers of several inputs are checked as they are called, and inside a model too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.layers import MultiHeadAttention


class _Doubled(MultiHeadAttention):
    """The gradient of a memory is twice what it should be."""

    def backward(self, dy: Any, cache: Any, **options: Any) -> tuple[Any, Mapping[str, Any]]:
        dinputs, gradients = super().backward(dy, cache, **options)
        if isinstance(dinputs, tuple):
            dinputs = (dinputs[0], 2.0 * dinputs[1])
        return dinputs, gradients


def _decoder() -> hg.TransformerDecoder:
    rng = np.random.default_rng(0)
    return hg.TransformerDecoder(1, 4, 2, 6, rng=rng, activation="tanh", dtype=np.float64)


def _inputs() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 5, 4))


def test_a_layer_of_two_inputs_with_settings() -> None:
    report = hg.check(_decoder(), *_inputs(), memory_lengths=np.array([5, 2]))
    assert report.ok
    assert [row.gradient for row in report.gradients[:2]] == ["x", "memory"]


@pytest.mark.slow
def test_the_wrong_layer_of_a_model_with_two_inputs_is_named() -> None:
    decoder = _decoder()
    block = decoder.blocks[0]
    block.layers["cross_attention"].inner.__class__ = _Doubled
    report = hg.check(decoder, *_inputs())
    assert [fault.gradient for fault in report.faults] == ["0.cross_attention.inner.key"]
    assert "is twice what it should be" in report.faults[0].message
