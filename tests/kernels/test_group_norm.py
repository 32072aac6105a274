"""The bound function itself, with channels of no values."""

from __future__ import annotations

import numpy as np
import pytest

from handgrad import kernels


@pytest.mark.skipif(kernels.native is None, reason="there are no kernels here")
def test_sums_of_no_values_are_zero() -> None:
    assert kernels.native is not None
    x, gamma, statistics = np.zeros((2, 4, 0)), np.ones(4), np.zeros((2, 2, 2))
    dgamma, dbeta = np.full(4, 9.0), np.full(4, 9.0)
    kernels.native.group_norm_backward(x, x, gamma, statistics, None, dgamma, dbeta)
    assert not dgamma.any()
    assert not dbeta.any()
