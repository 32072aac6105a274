"""A derived backward is of no higher order than its forward, in operations and in memory."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

import handgrad as hg
from handgrad.deriving.orders import Order, of_size
from handgrad.errors import HandgradError
from handgrad.program.sizes import Size
from tests.deriving.test_abroad import CASES, Case
from tests.rows import rows

N, D, K = map(Size.of, "NDK")
#: Letters that are at most others, which a forward does not say: blocks, and kernels.
SHORTER: Final = {
    "first.flash_blocks": {"block": "T"},
    "first.chunked_ce": {"chunk": "N"},
    "second.conv1d_loops": {"K": "L"},
    "fifth.sylvester_flow": {"M": "D"},
    "fifth.poly_fit": {"degree": "N"},
}


def order(size: Size) -> Order:
    return of_size(size, {})


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (N * D + N * 3 + 5, "O(D·N)"),
        (N * N + D, "O(D + N²)"),
        (N - K + 1, "O(N)"),
        ((N * D + 1) // 3 * K, "O(D·K·N)"),
        ((N + 1) // K, "O(1 + K⁻¹·N)"),
        (Size.of(7), "O(1)"),
    ],
)
def test_an_order_is_the_products_that_none_bounds(size: Size, text: str) -> None:
    assert str(order(size)) == text


def test_orders_are_compared() -> None:
    assert order(N) <= order(N * D)
    assert not order(N * N) <= order(N * D)
    assert not order(N * D) <= order(N + D)
    assert str(order(N + D) * order(N)) == "O(D·N + N²)"


def test_the_order_is_stated() -> None:
    def linear(x, w):
        return np.tanh(x @ w)

    derived = hg.derive(linear, x=("N", "D"), w=("D", "K"))
    assert derived.order == "backward: O(D·K·N), forward: O(D·K·N)"
    assert f"{derived.order}." in derived.notes().to_markdown()


def test_a_higher_order_is_seen() -> None:
    """The rows of a backward that is written with a loop in vain are counted in each round."""

    def once(x):
        return x.sum(0)

    def again(x):
        y = np.zeros(x.shape[1])
        for _ in range(x.shape[0]):
            y = y + x.sum(0)
        return y

    orders = [hg.derive(f, x=("N", "D")).orders()["forward"].operations for f in (once, again)]
    assert list(map(str, orders)) == ["O(D·N)", "O(D·N²)"]


def test_a_place_of_a_round_is_changed_in_place() -> None:
    """One place has one writer, so that no array of all places tells who was the last."""

    def played(rating, won, lost):
        rating = rating.copy()
        for game in range(won.shape[0]):
            i, j = won[game], lost[game]
            change = 0.3 / (1 + np.exp(rating[i] - rating[j]))
            rating[i] += change
            rating[j] -= change
        return rating

    derived = hg.derive(played, rating=("N",), won=("M", int), lost=("M", int))
    assert str(derived.orders()["backward"].operations) == "O(M + N)"


def test_a_result_that_repeats_an_array_is_read_whole() -> None:
    def repeated(x):
        return np.broadcast_to(x[:, None], (x.shape[0], 4 * x.shape[0]))

    orders = hg.derive(repeated, x=("N",)).orders()
    assert orders["backward"].operations <= orders["forward"].operations


@rows("case", CASES)
def test_no_backward_is_of_a_higher_order(case: Case) -> None:
    try:
        derived = hg.derive(case.forward, **case.given)
    except HandgradError:
        pytest.skip("refused")
    shorter = SHORTER.get(str(case), {})
    orders = derived.orders({x: order(Size.of(y)) for x, y in shorter.items()})
    assert orders["backward"].operations <= orders["forward"].operations
    assert orders["backward"].held <= orders["forward"].made
