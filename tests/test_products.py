"""`hg.matmul` with what it cannot take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import ArgumentError, HandgradError
from tests.rows import rows

NOTHING: tuple[Any, ...] = (None, 3, 0.5, "x", b"x", (), [[1.0]], {}, object(), len, hg, iter(()))


@rows("wrong", NOTHING, ids=lambda value: type(value).__name__)
@rows("name", ["a", "b", "out"])
@rows("precision", [None, "float32"])
def test_what_is_no_array_is_refused(name: str, wrong: Any, precision: Any) -> None:
    if (name, wrong) == ("out", None):
        return
    given = {"a": np.ones((2, 2)), "b": np.ones((2, 2)), name: wrong}
    with pytest.raises(ArgumentError, match=rf"matmul: {name} is .*; allowed") as error:
        hg.matmul(**given, precision=precision)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("wrong", [1, "x" * 1000, object(), np.array(["bf16", "x"]), ["bf16"]])
def test_an_unknown_precision_is_refused(wrong: Any) -> None:
    allowed = "float32, bf16" if isinstance(wrong, str) else "a string, or None"
    with pytest.raises(ArgumentError, match=rf"precision is .*; allowed: {allowed}") as error:
        hg.matmul(np.ones((2, 2)), np.ones((2, 2)), precision=wrong)
    assert len(str(error.value)) < 300
    with pytest.raises(ArgumentError):
        hg.set_precision(wrong)
    with pytest.raises(ArgumentError):
        hg.set_engine(wrong)


@pytest.mark.parametrize("dtype", ["i4", "c8", "O", "S4", "m8[s]", "?"])
def test_other_types_of_values_are_refused(dtype: str) -> None:
    with pytest.raises(HandgradError):
        hg.matmul(np.zeros((2, 2), dtype), np.ones((2, 2)))


def test_a_read_only_out_is_refused() -> None:
    out = np.zeros((2, 2))
    out.flags.writeable = False
    with pytest.raises(ArgumentError, match=r"out is an array .*, read-only"):
        hg.matmul(np.ones((2, 2)), np.ones((2, 2)), out=out)


def test_shapes_are_looked_at_before_they_are_used() -> None:
    for shape in ((3, 2), (2, 3, 2), (5, 4, 2)):
        with pytest.raises(HandgradError, match="matmul: "):
            hg.matmul(np.ones(shape), np.ones((7, 9, 4)), out=np.ones((2, 2)))
