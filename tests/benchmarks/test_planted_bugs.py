"""Planted bugs: sources with one expression changed, which the checker catches."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks.mutations import mutants
from benchmarks.planted_bugs import Bench

SOURCE = '''\
def forward(x):
    return helper(x) * x, x


def helper(x):
    return x + 1


def backward(dy, x):
    """A docstring is left as it is."""
    return scaled(dy, 2.0 * x + 1.0)


@plain
def scaled(dy, slope):
    return dy * slope
'''


def test_each_mutant_has_one_change_of_what_backward_alone_calls() -> None:
    found = list(mutants(SOURCE, "backward", "forward", decorator="plain"))
    before = SOURCE.replace("@plain", "# a plain function").splitlines()
    assert {each.line for each in found} == {11, 16}
    assert len({each.source for each in found}) == len(found)
    for each in found:
        ast.parse(each.source)
        after = each.source.splitlines()
        changed = [
            i for i, pair in enumerate(zip(before, after, strict=True), 1) if len({*pair}) > 1
        ]
        assert changed == [each.line], each.told


@pytest.mark.slow
@pytest.mark.parametrize(("op", "every"), [("rnn", 16), ("lstm", 30), ("attention", 20)])
def test_mutants_of_an_op_are_caught_and_named(op: str, every: int, tmp_path: Path) -> None:
    bench = Bench(op, tmp_path)
    for number, mutant in enumerate(bench.mutants()[::every]):
        module = bench.planted(mutant, number)
        if not bench.runs(module) or bench.is_right(module):
            continue
        report = bench.report(module)
        assert any(fault.line for fault in report.faults), (mutant.told, str(report))
