"""Pooling: what it costs, and errors before the first batch."""

from __future__ import annotations

import pytest

from handgrad.errors import ArgumentError, ShapeError
from handgrad.layers import AvgPool1d, AvgPool2d, MaxPool1d, MaxPool2d


def test_errors_say_what_is_allowed() -> None:
    with pytest.raises(ShapeError, match=r"MaxPool2d: .* \(8,\); allowed: \(C, H, W\)"):
        MaxPool2d(2).output_shape((8,))
    with pytest.raises(ShapeError, match=r"AvgPool2d: .* no smaller than the window 9"):
        AvgPool2d(9).output_shape((1, 8, 8))
    with pytest.raises(ArgumentError, match=r"kernel_size is 'all'; allowed: .* 'global'"):
        AvgPool2d("all")
    with pytest.raises(ShapeError, match=r"MaxPool1d: .* \(1, 8, 8\); allowed: \(C, T\)"):
        MaxPool1d(2).output_shape((1, 8, 8))
    with pytest.raises(ShapeError, match=r"AvgPool1d: .* no smaller than the window 9"):
        AvgPool1d(9).output_shape((1, 8))
    with pytest.raises(ArgumentError, match=r"AvgPool1d: kernel_size is 'all'; allowed: an int or"):
        AvgPool1d("all")


def test_every_value_of_every_window_costs_one_operation() -> None:
    assert MaxPool2d((2, 3)).flops((5, 8, 9)) == 5 * (4 * 3) * (2 * 3)
    assert AvgPool2d(2, 1).flops((5, 8, 9)) == 5 * (7 * 8) * (2 * 2)
    assert AvgPool2d("global").flops((5, 8, 9)) == 5 * 8 * 9
    assert MaxPool1d(3, 2).flops((5, 9)) == 5 * 4 * 3
    assert AvgPool1d("global").flops((5, 9)) == 5 * 9


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MaxPool2d((1,)), r"MaxPool2d: kernel_size is \(1,\); allowed: an int or two ints"),
        (lambda: MaxPool2d(2, stride=0), "MaxPool2d: stride is 0; allowed"),
        (lambda: MaxPool1d((2, 2)), r"MaxPool1d: kernel_size is \(2, 2\); allowed: an int"),
        (lambda: AvgPool2d(2, padding=(0, 0, 0)), r"AvgPool2d: padding is \(0, 0, 0\); allowed"),
        (lambda: AvgPool2d("global", stride=(1,)), r"AvgPool2d: stride is \(1,\); allowed"),
    ],
)
def test_a_setting_for_other_axes_is_refused_at_once(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()
