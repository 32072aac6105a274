"""Wild bugs: all are caught, no right sibling is blamed, and most are named rightly."""

from __future__ import annotations

from functools import cache
from itertools import chain

import pytest

from benchmarks.bug_corpus import EXERCISES
from benchmarks.bug_corpus.case import Exercise
from benchmarks.bug_corpus.judge import Outcome, false_alarms, outcomes
from handgrad.checking.kinds import KINDS
from handgrad.ops import OPS

pytestmark = pytest.mark.slow

#: What is reached; it may rise, not fall.
NAMED_WITHOUT_LIKE = 132
NAMED_WITH_LIKE = 55

each_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda each: each.name)


@cache
def found(exercise: Exercise) -> list[Outcome]:
    return list(outcomes(exercise))


def test_labels_use_the_words_of_the_checker() -> None:
    known = set(KINDS)
    for exercise in EXERCISES:
        assert exercise.like is None or exercise.like in OPS
        for bug in exercise.bugs:
            assert bug.kinds <= known, f"{bug.name}: {bug.kinds - known}"


def test_every_bug_has_a_name_of_its_own() -> None:
    names = [(exercise.name, bug.name) for exercise in EXERCISES for bug in exercise.bugs]
    assert len(set(names)) == len(names)


@each_exercise
def test_every_bug_is_caught(exercise: Exercise) -> None:
    missed = [
        f"{outcome.bug.name}, {'with' if outcome.with_like else 'without'} like"
        for outcome in found(exercise)
        if not outcome.caught
    ]
    assert not missed


@each_exercise
def test_the_right_sibling_passes(exercise: Exercise) -> None:
    assert [fault.message for _, fault in false_alarms(exercise)] == []


@pytest.mark.parametrize(
    ("with_like", "floor"), [(False, NAMED_WITHOUT_LIKE), (True, NAMED_WITH_LIKE)]
)
def test_so_many_are_named_rightly(with_like: bool, floor: int) -> None:
    every = chain.from_iterable(map(found, EXERCISES))
    named = [each for each in every if each.with_like == with_like and each.named]
    assert len(named) >= floor
