"""Mutants are drawn from every part of the package, and those of Python can be compiled."""

import random

import pytest

from tests.mutation.__main__ import ROOT, candidates


@pytest.mark.parametrize("part", ["ops", "kernels", "layers"])
def test_every_part_has_mutants_that_read_as_one_change(part: str) -> None:
    found = candidates(part, builds=True)
    assert len(found) > 100
    for mutant in random.Random(0).sample(found, 20):
        assert mutant.text() != mutant.file.read_text("utf-8")
        assert "->" in mutant.describe(ROOT)
        if mutant.file.suffix == ".py":
            compile(mutant.text(), str(mutant.file), "exec")
