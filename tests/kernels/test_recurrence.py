"""Kernels of recurrent ops beyond the cases: sizes of several blocks, threads, caches, dy."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import handgrad
from handgrad import kernels
from handgrad.dispatch import SKIP, engine
from handgrad.errors import ArgumentError, ShapeError
from handgrad.ops import gru, leaky_rnn, lstm, rnn
from tests.ops.cases import leaves, mapped
from tests.tolerances import assert_close

pytestmark = pytest.mark.skipif(kernels.native is None, reason=kernels.reason)

GATES: dict[ModuleType, int] = {rnn: 1, lstm: 4, gru: 3, leaky_rnn: 1}
each_op = pytest.mark.parametrize("op", GATES, ids=lambda op: op.__name__.rpartition(".")[2])
each_order = pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])


@pytest.fixture
def thread_count() -> Iterator[None]:
    before = handgrad.get_threads()
    yield
    handgrad.set_threads(before)


def arguments(
    op: ModuleType, batch: int, steps: int, features: int, hidden: int, projection: int = 0
) -> tuple[np.ndarray | None, ...]:
    """x, the weights and biases, and initial states, in the op's order."""
    rng = np.random.default_rng(5)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape) / np.sqrt(shape[-1])

    rows, size = GATES[op] * hidden, projection or hidden
    x, weight_ih, bias_ih = normal(batch, steps, features), normal(rows, features), normal(rows)
    if op is leaky_rnn:
        return x, weight_ih, bias_ih, normal(batch, hidden)
    found = (x, weight_ih, normal(rows, size), bias_ih, normal(rows))
    if op is not lstm:
        return (*found, normal(batch, size))
    weight_hr = normal(size, hidden) if projection else None
    return (*found, weight_hr, normal(batch, size), normal(batch, hidden))


def settings(op: ModuleType, **others: Any) -> dict[str, Any]:
    return others | ({"alpha": 0.7} if op is leaky_rnn else {})


@each_order
@pytest.mark.parametrize("projection", [0, 35, 270])
@each_op
def test_sums_of_several_blocks(
    op: ModuleType, projection: int, reverse: bool, thread_count: None
) -> None:
    if projection and op is not lstm:
        pytest.skip("only lstm has a projection")
    given = arguments(op, 61, 4, 301, 290, projection)
    lengths = np.random.default_rng(6).integers(0, 5, 61)
    options = settings(op, lengths=lengths, reverse=reverse)
    with engine("reference"):
        outputs, cache = op.forward(*given, **options)
    rng = np.random.default_rng(7)
    doutputs = mapped(lambda array: rng.standard_normal(array.shape), outputs)
    expected = (*leaves(outputs), *op.backward(doutputs, cache))
    bits = set()
    for threads in (1, 2, 3):
        handgrad.set_threads(threads)
        with engine("kernels"):
            ours, cache = op.forward(*given, **options)
        found = (*leaves(ours), *op.backward(doutputs, cache))
        bits.add(tuple(None if one is None else one.tobytes() for one in found))
        for one, right in zip(found, expected, strict=True):
            assert (one is None) == (right is None)
            if right is not None:
                assert_close(one, right, "float64")
    assert len(bits) == 1


@each_order
@each_op
def test_the_cache_shows_what_the_reference_keeps(op: ModuleType, reverse: bool) -> None:
    given = arguments(op, 4, 5, 3, 6)
    lengths = np.array([3, 5, 0, 2])
    options = settings(op, lengths=lengths, reverse=reverse)
    with engine("kernels"):
        _, cache = op.forward(*given, **options)
    with engine("reference"):
        _, kept = op.forward(*given, **options)
    active = kept.active
    for name in {"gates", "g", "h", "c"} & set(kept._fields):
        ours, right = getattr(cache, name), getattr(kept, name)
        if name in ("gates", "g"):
            right = np.where(active, right, 0)
        assert_close(ours, right, "float64", name)


@each_op
def test_what_dy_may_be(op: ModuleType) -> None:
    given = arguments(op, 2, 3, 4, 5)
    with engine("kernels"):
        (y, final), cache = op.forward(*given, **settings(op))
    nothing = mapped(lambda _: None, final)
    zeros = mapped(np.zeros_like, final)
    for one, right in zip(
        op.backward((y, nothing), cache), op.backward((y, zeros), cache), strict=True
    ):
        assert one is right is None or one.tobytes() == right.tobytes()
    name = op.__name__.rpartition(".")[2]
    with pytest.raises(ShapeError, match=f"^{name}: dy is an array of float64 and shape"):
        op.backward(y, cache)
    with pytest.raises(ArgumentError, match=f"^{name}: dy is None; allowed: float64 and"):
        op.backward((None, final), cache)
    with pytest.raises(ShapeError, match=f"^{name}: dy is of float64 and has shape"):
        op.backward((y[:1], final), cache)
    skipped = op.backward((y, final), cache, out=(SKIP,) * len(given))
    assert set(skipped) == {None}


@each_op
def test_lengths_out_of_range_are_refused(op: ModuleType) -> None:
    given = arguments(op, 2, 3, 4, 5)
    with engine("kernels"), pytest.raises(ArgumentError, match="lengths go from 1 to 4"):
        op.forward(*given, **settings(op, lengths=np.array([1, 4])))
    if op is leaky_rnn:
        with engine("kernels"), pytest.raises(ArgumentError, match="allowed: 0 to 1"):
            op.forward(*given, alpha=1.5)


def test_one_minus_an_alpha_near_one_keeps_its_digits() -> None:
    x, weight, bias, _ = arguments(leaky_rnn, 3, 4, 5, 6)
    alpha, dy = 0.9999, np.random.default_rng(2).standard_normal((3, 4, 6))
    with engine("reference"):
        _, cache = leaky_rnn.forward(x, weight, bias, alpha=alpha)
        exact, *_ = leaky_rnn.backward((dy, None), cache)
    with engine("kernels"):
        _, cache = leaky_rnn.forward(*(a.astype("f") for a in (x, weight, bias)), alpha=alpha)
        found, *_ = leaky_rnn.backward((dy.astype("f"), None), cache)
    assert_close(found, exact, "float32 functions")
