"""Recurrent ops in bfloat16: the reference's steps with both operands of every product rounded."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.ops import gru, lstm, rnn
from tests.kernels.test_recurrence import (
    arguments,
    each_op,
    each_order,
    settings,
    thread_count,
)
from tests.ops.cases import leaves, mapped
from tests.test_precision import bf16, needs_unit, rounded
from tests.tolerances import assert_close

__all__ = ["bf16", "thread_count"]

pytestmark = needs_unit

#: batch, steps, features, hidden: one unit, odd sums, a pair left over, several blocks of the sum.
SIZES = (
    (1, 1, 1, 1),
    (3, 5, 13, 7),
    (5, 4, 2, 33),
    (17, 3, 67, 19),
    (61, 3, 530, 290),
    (0, 3, 4, 5),
)
each_size = pytest.mark.parametrize("size", SIZES, ids=str)


class Rounding(np.ndarray):
    """Float64 values whose products are those of bfloat16 operands."""

    def __matmul__(self, other: Any) -> Any:
        return (rounded(self) @ rounded(other)).view(Rounding)

    def __rmatmul__(self, other: Any) -> Any:
        return (rounded(other) @ rounded(self)).view(Rounding)


def of_type(kind: Any, values: Any) -> Any:
    return mapped(lambda one: None if one is None else kind(one), values)


def both_ways(op: ModuleType, given: Any, options: dict[str, Any], *, ours: bool) -> list[Any]:
    """Outputs and gradients, in one list, of the kernel or of the reference that rounds."""
    forward, backward = op.forward, op.backward
    if ours:
        given = of_type(lambda one: one.astype(np.float32), given)
    else:
        forward, backward = forward.reference, backward.reference
        given = of_type(lambda one: one.astype(np.float32).astype(np.float64).view(Rounding), given)
    outputs, cache = forward(*given, **options)
    rng = np.random.default_rng(7)
    doutputs = mapped(
        lambda one: rng.standard_normal(one.shape, dtype=np.float32).astype(one.dtype), outputs
    )
    return [*leaves(outputs), *backward(doutputs, cache)]


def assert_rounds(op: ModuleType, given: Any, **options: Any) -> None:
    found = both_ways(op, given, settings(op, **options), ours=True)
    expected = both_ways(op, given, settings(op, **options), ours=False)
    for position, (one, right) in enumerate(zip(found, expected, strict=True)):
        assert (one is None) == (right is None)
        if right is not None:
            assert one.dtype == np.float32
            assert_close(one, np.asarray(right), "bf16 of computed operands", f"result {position}")


@each_size
@each_op
def test_steps_are_those_of_rounded_operands(
    op: ModuleType, size: tuple[int, int, int, int], bf16: None
) -> None:
    assert_rounds(op, arguments(op, *size))


@each_order
@each_op
def test_ragged_batches(op: ModuleType, reverse: bool, bf16: None) -> None:
    lengths = np.random.default_rng(6).integers(0, 6, 15)
    assert_rounds(op, arguments(op, 15, 5, 7, 37), lengths=lengths, reverse=reverse)


@pytest.mark.parametrize("projection", [1, 3, 270])
def test_projections(projection: int, bf16: None) -> None:
    lengths = np.random.default_rng(6).integers(0, 5, 15)
    assert_rounds(lstm, arguments(lstm, 15, 4, 7, 290, projection), lengths=lengths)


@each_op
def test_a_first_step_rounds_operands_alone(op: ModuleType, bf16: None) -> None:
    """Nothing computed is an operand, so the sums agree to the last bits of float32."""
    given = arguments(op, 9, 1, 13, 21)
    found = both_ways(op, given, settings(op), ours=True)
    expected = both_ways(op, given, settings(op), ours=False)
    assert_close(found[0], np.asarray(expected[0]), "float32", "y")
    with hg.precision("float32"):
        assert not np.array_equal(found[0], both_ways(op, given, settings(op), ours=True)[0])


@pytest.mark.parametrize("op", [rnn, lstm, gru], ids=["rnn", "lstm", "gru"])
def test_the_bias_sums_what_was_not_rounded(op: ModuleType, bf16: None) -> None:
    """For one step da does not depend on its own rounding; dense keeps its bias so, too."""
    given = arguments(op, 23, 1, 3, 5)
    found = both_ways(op, given, settings(op), ours=True)
    expected = both_ways(op, given, settings(op), ours=False)
    positions = [k for k, one in enumerate(found) if one is not None and one.ndim == 1]
    assert len(positions) == 2
    for position in positions:
        assert_close(
            found[position], np.asarray(expected[position]), "float32", f"result {position}"
        )


@each_op
def test_same_bits_with_1_2_and_3_threads(op: ModuleType, thread_count: None, bf16: None) -> None:
    lengths = np.random.default_rng(6).integers(0, 5, 61)
    options = settings(op, lengths=lengths)
    bits = set()
    for threads in (1, 2, 3):
        hg.set_threads(threads)
        found = both_ways(op, arguments(op, 61, 4, 301, 290), options, ours=True)
        bits.add(tuple(None if one is None else one.tobytes() for one in found))
    assert len(bits) == 1


@each_op
def test_nan_stays_nan_in_its_sequence(op: ModuleType, bf16: None) -> None:
    given = arguments(op, 3, 2, 5, 6)
    given[0][1, 0, 2] = np.nan  # type: ignore[index]
    y = both_ways(op, given, settings(op), ours=True)[0]
    assert np.isnan(y[1]).all()
    assert np.isfinite(y[[0, 2]]).all()


@each_op
def test_float64_is_not_rounded(op: ModuleType) -> None:
    given = arguments(op, 3, 4, 5, 6)
    with hg.engine("kernels"):
        plain, _ = op.forward(*given, **settings(op))
        with hg.precision("bf16"):
            same, _ = op.forward(*given, **settings(op))
    for one, right in zip(leaves(plain), leaves(same), strict=True):
        np.testing.assert_array_equal(one, right)
