"""Derived gradients stand for differences, where differences bear them out, and runs begin late."""

from __future__ import annotations

from typing import Any

import numpy as np

import handgrad as hg
from handgrad.checking.alignment.watched import watched
from handgrad.checking.functions import forward_backward
from handgrad.checking.trial import run
from tests.checking.functions import normal


def product(x: Any, w: Any) -> Any:
    return np.tanh(x @ w), (x, w)


def product_backward(dy: Any, cache: Any) -> Any:
    x, w = cache
    dz = dy * (1 - np.tanh(x @ w) ** 2)
    return dz @ w.T, x.T @ dz * 2


def derived(forward: Any, backward: Any, *arrays: Any) -> dict[str, Any]:
    functions = forward_backward((forward, backward), arrays)
    done = run(
        functions, dict(zip(functions.inputs, arrays, strict=True)), np.random.default_rng(1)
    )
    seen = watched(functions, done)
    assert seen is not None
    return {n: seen.gradient(done, n, np.random.default_rng(2)) for n in functions.gradients}


def test_a_derived_gradient_is_right_with_a_bound() -> None:
    x, w = normal(4, 3), normal(3, 2, seed=12)
    functions = forward_backward((product, product_backward), (x, w))
    done = run(
        functions, dict(zip(functions.inputs, (x, w), strict=True)), np.random.default_rng(1)
    )
    found = derived(product, product_backward, x, w)
    np.testing.assert_allclose(found["x"][0], done.gradients["x"], rtol=1e-12)
    np.testing.assert_allclose(2 * found["w"][0], done.gradients["w"], rtol=1e-12)
    assert all(0 < bound < 1e-5 for _, bound in found.values())


def test_of_inputs_with_the_same_values_each_has_its_own_gradient() -> None:
    x = normal(4, 3)
    found = derived(lambda x, w: (x * w**2, (x, w)), lambda dy, c: (dy, dy), x, x.copy())
    np.testing.assert_allclose(2 * found["x"][0], found["w"][0], rtol=1e-12)


def test_what_differences_do_not_bear_out_is_no_gradient() -> None:
    found = derived(lambda x: (np.abs(x), x), lambda dy, x: dy, np.zeros((4, 3)))  # at a kink
    assert found == {"x": None}


class Counted:
    """A layer whose backward takes from what forward leaves, so that it runs once."""

    def forward(self, x: Any) -> Any:
        self.kept = iter([x])
        return np.sin(x)

    def backward(self, dy: Any) -> Any:
        x = next(self.kept)
        return np.sin(x) * dy


def test_a_backward_that_runs_once_after_each_forward_is_changed_too() -> None:
    report = hg.check(Counted(), normal(4, 3))
    assert "cos" in report.faults[0].diff


class InPlace:
    """A layer that writes into what it is given: a change may write into what forward gave."""

    def forward(self, x: Any) -> Any:
        self.x = x
        x[x < 0] = x[x < 0] / 5.5
        return x

    def backward(self, dy: Any) -> Any:
        dy[self.x < 0] = self.x[self.x < 0] / 5.5
        return dy


def test_what_a_change_writes_into_is_put_back_for_the_next() -> None:
    report = hg.check(InPlace(), normal(4, 3))
    assert any("= dy[self.x < 0] / 5.5" in fault.diff for fault in report.faults)


class Doubled:
    """A layer of which each element is repeated: the first of them is no size, nor a constant."""

    def __init__(self) -> None:
        self.size = (2, 2)

    def forward(self, x: Any) -> Any:
        return x.repeat(self.size[0], axis=0).repeat(self.size[1], axis=1)

    def backward(self, dy: Any) -> Any:
        dy = dy[:: self.size[0], :: self.size[1]]
        return dy


def test_a_line_that_sets_what_it_reads_is_the_first_to_depart() -> None:
    (fault,) = hg.check(Doubled(), normal(2, 3)).faults
    assert "a sum over the copies is missing: of each block dy[::self.size[0], ::self.size[1]]" in (
        fault.message
    )
    assert "+        dy = sum(" in fault.diff.replace("((", "(")
