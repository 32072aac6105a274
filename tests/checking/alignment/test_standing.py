"""Lines of a backward beside the values of the derived one, and what a departing line lacks."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np

from handgrad.checking.alignment.beside import joined
from handgrad.checking.alignment.pool import RightValues, derivation
from handgrad.checking.alignment.told import Told
from handgrad.checking.report import Fault
from tests.checking.alignment.passes import Planted, module, source
from tests.checking.alignment.searched import searched


def lines_of(planted: Planted, folder: Path) -> dict[str, bool]:
    """The lines of a planted pass, and whether each makes values of the derived backward alone."""
    standing = searched(planted, folder).standing
    assert standing is not None
    return {ast.unparse(each): right for each, right in standing.of.items()}


def test_lines_before_the_wrong_one_are_right_and_those_made_from_it_are_not(
    tmp_path: Path,
) -> None:
    planted = Planted("coded", "dmu = dz + dy * mu / n", "dmu = dz - dy * mu / n")
    told = lines_of(planted, tmp_path)
    assert told["dr = dy * 2 * r / n"] is told["dz = dr @ v.T"] is True
    assert (
        told["dmu = dz - dy * mu / n"] is told["return (dmu @ w.T, x.T @ dmu, mu.T @ dr)"] is False
    )


def test_lines_of_loops_and_helpers_count_every_round(tmp_path: Path) -> None:
    right = 'dh = g["dh"]'
    told = lines_of(Planted("cells", right, right.replace("dh =", "dh = -1 *")), tmp_path)
    assert told["a = np.tanh(x @ w + h @ u)"] is True
    assert told["dz = da * (1 - a * a)"] is False


def test_the_line_that_departs_is_found_where_no_change_puts_it_right(tmp_path: Path) -> None:
    planted = Planted("coded", "dmu = dz + dy * mu / n", "dmu = np.sin(7 * dz) + 0.123 * mu**3")
    search = searched(planted, tmp_path)
    statement = search.departing("w")
    assert statement is not None
    assert ast.unparse(statement) == "dmu = np.sin(7 * dz) + 0.123 * mu ** 3"
    assert search.departing("v") is None


def test_an_unknown_cause_gains_the_line_that_departs() -> None:
    unknown = Fault("w", "unknown", "", "dw: wrong by 2 of its size", 0.0)
    line = Fault("w", "unknown", "", "the first value ... (line 18)", 0.0, line=18)
    (fault,) = joined([unknown], [Told(line, {})])
    assert (fault.kind, fault.line) == ("unknown", 18)
    assert fault.message == "dw: wrong by 2 of its size; the first value ... (line 18)"


def test_values_are_looked_up_in_any_shape_and_plain_ones_tell_nothing() -> None:
    pool = RightValues([np.arange(6.0).reshape(2, 3), np.full(6, np.nan), 3])
    assert pool.has(np.arange(6.0)) is pool.has(np.arange(6.0).reshape(2, 3).T) is True
    assert pool.has(-np.arange(6.0)) is pool.has(np.arange(5.0)) is False
    assert pool.has(np.zeros(6)) is pool.has(np.arange(6)) is pool.has(np.array([np.inf])) is None


def test_a_forward_without_a_derivation_or_with_another_gradient_has_no_derivation(
    tmp_path: Path,
) -> None:
    right = "(p + 1e-6) * 2"
    made = module(source(Planted("smoothed", right, right)), tmp_path)
    x = np.random.default_rng(0).standard_normal((4, 5))
    gradient = 2 * x / (x * x + 1e-6)
    one = np.ones(())
    found = derivation(made.forward, {"x": x}, one)
    assert found is not None
    assert found.is_vouched({"x": gradient})
    assert not found.is_vouched({"x": 2 * gradient})
    assert derivation(lambda x: sorted(x), {"x": x}, one) is None
