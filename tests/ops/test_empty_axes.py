"""Every axis of every op's arrays without a position: kernels and references give the same.

A sum over nothing is 0, and what stood in fresh memory is in no result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from fuzz._calls import NAMES, Call, resize, sizes_of
from fuzz._operands import Operand
from handgrad import kernels
from handgrad.errors import EngineError, HandgradError
from handgrad.ops.samples import op_samples
from tests.ops.cases import leaves, mapped
from tests.ops.fresh_memory import fill_fresh_memory
from tests.tolerances import assert_close

pytestmark = pytest.mark.skipif(kernels.native is None, reason="no compiled kernels")


def calls_without(op: str) -> list[tuple[str, Call]]:
    """The samples of an op, each with the axes of each letter made empty."""
    found = []
    for row in op_samples(op).rows:
        letters = sizes_of(_call(op, row, np.random.default_rng(0)))
        for letter in letters:
            rng = np.random.default_rng(1)
            call = _call(op, row, rng)
            resize(call, letter, 0, rng)
            found.append((f"{row.label}: {letter}", call))
    return found


def _call(op: str, row: Any, rng: np.random.Generator) -> Call:
    sample = row.draw(rng)
    operands = {
        name: Operand(np.array(array, np.float64) if array.dtype.kind == "f" else np.array(array))
        for name, array in sample.arrays.items()
    }
    return Call(op, operands, dict(sample.options), np.dtype(np.float64))


def results(call: Call) -> Any:
    """The outputs and gradients, or the class of the error."""
    rng = np.random.default_rng(2)
    with np.errstate(all="ignore"):
        try:
            y, cache = call.module.forward(**call.arrays(), **call.settings())
            dy = mapped(lambda each: np.asarray(rng.standard_normal(np.shape(each))), y)
            gradients = call.module.backward(dy, cache)
        except EngineError:
            raise
        except (HandgradError, IndexError) as error:
            return type(error)
        return [None if each is None else np.array(each) for each in leaves((y, gradients))]


@pytest.mark.parametrize("op", NAMES)
def test_an_empty_axis_gives_what_the_reference_gives(
    op: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for label, call in calls_without(op):
        with hg.engine("reference"):
            expected = results(call)
        for value in (np.nan, 7.0):
            with hg.engine("kernels"), monkeypatch.context() as patch:
                fill_fresh_memory(patch, value)
                try:
                    found = results(call)
                except EngineError:
                    break
            if isinstance(expected, type):
                assert found is expected, label
                continue
            assert len(found) == len(expected), label
            for one, other in zip(found, expected, strict=True):
                assert (one is None) == (other is None), label
                if one is not None:
                    assert one.shape == other.shape, label
                    assert_close(one, other, "float64", label)
