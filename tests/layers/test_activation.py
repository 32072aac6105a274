"""Activation: names and options of the ops."""

from __future__ import annotations

import numpy as np
import pytest

from handgrad.errors import ArgumentError
from handgrad.layers import Activation


def test_options_are_the_op_s() -> None:
    x = np.array([-2.0, 0.0, 3.0])
    y, _ = Activation("leaky_relu", negative_slope=0.25).forward(x)
    np.testing.assert_array_equal(y, [-0.5, 0.0, 3.0])


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ArgumentError, match="Activation: name is 'swish'; allowed: relu"):
        Activation("swish")
