"""Notes of functions that nobody wrote for them: those of the bug corpus, in its many styles."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from benchmarks.bug_corpus import EXERCISES
from benchmarks.bug_corpus.case import Exercise
from handgrad.documents.formulas.latex import to_latex
from handgrad.equations.equations import derive
from handgrad.equations.subject import Subject
from handgrad.equations.tracing import output
from handgrad.errors import ArgumentError

pytestmark = pytest.mark.slow

#: Words for objects that a formula has no way to write.
OPAQUE = ("ndarray", "object", "function", "replaced")


def subject(exercise: Exercise) -> Subject:
    rng = np.random.default_rng(0)
    names = inspect.signature(exercise.forward).parameters
    given = dict(zip(names, exercise.inputs(rng), strict=False))
    arrays = {name: value for name, value in given.items() if isinstance(value, np.ndarray)}
    options = {name: value for name, value in given.items() if name not in arrays}
    found = Subject(exercise.name, exercise.forward, exercise.right, arrays, options)
    dy = like(output(found), rng)
    return Subject(exercise.name, exercise.forward, exercise.right, arrays, options, dy)


def like(y: Any, rng: np.random.Generator) -> Any:
    if isinstance(y, tuple | list):
        return tuple(like(each, rng) for each in y)
    return rng.standard_normal(np.shape(y))


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda each: each.name)
@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
def test_both_passes_are_written(exercise: Exercise) -> None:
    if exercise.forward.__name__ == "<lambda>":
        with pytest.raises(ArgumentError, match=r"<lambda> (cannot be read|is no function)"):
            subject(exercise)
        return
    derivation = derive(subject(exercise))
    assert derivation.forward
    assert derivation.backward
    for each in (*derivation.forward, *derivation.backward):
        words = to_latex(each.left) + to_latex(each.right)
        assert not any(word in words for word in OPAQUE), words
