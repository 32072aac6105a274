"""A cache that was copied or pickled serves backward, however the arrays in it lay."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from handgrad.ops import attention, matmul, rotary
from tests.tolerances import assert_close


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda cache: pickle.loads(pickle.dumps(cache))],
    ids=["copy", "deepcopy", "pickle"],
)
@pytest.mark.parametrize("op", [attention, matmul, rotary], ids=lambda op: op.__name__)
def test_a_broadcast_input_in_a_copied_cache(op: Any, copied: Callable[[Any], Any]) -> None:
    """NumPy's deep copy puts the axis that was broadcast last in memory."""
    rng = np.random.default_rng(0)
    x = np.broadcast_to(rng.standard_normal((1, 2, 4, 4)), (3, 2, 4, 4))
    y, cache = op.forward(*{attention: (x, x, x), matmul: (x, x), rotary: (x,)}[op])
    dy = rng.standard_normal(y.shape)
    given = [cache, copied(cache)]
    expected, found = (op.backward(dy, each) for each in given)
    if not isinstance(expected, tuple):
        expected, found = (expected,), (found,)
    for one, other in zip(found, expected, strict=True):
        if other is not None:
            assert_close(one, other, "float64")
