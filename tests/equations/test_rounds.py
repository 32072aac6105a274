"""Rounds of a loop that compute alike: what is left out follows from what is written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handgrad import models
from handgrad.documents import markdown
from handgrad.documents.formulas.formula import Number, Script
from handgrad.equations.models.model import model_document
from handgrad.equations.models.rounds import Repeated, folded
from handgrad.equations.models.steps import OpCall
from handgrad.equations.models.symbols import renamed
from handgrad.layers import TransformerEncoder
from tests.equations.calculating import bare
from tests.equations.test_whole import F64, Case, chained, normal, tokens

CASES = [
    Case(
        "encoder",
        lambda rng: TransformerEncoder(4, 6, 2, 7, rng=rng, dtype=F64),
        (normal(4, 5, 6),),
    ),
    Case(
        "gpt",
        lambda rng: models.GPT(11, context=9, width=6, heads=2, blocks=5, rng=rng, dtype=F64),
        (tokens(11, 4, 5),),
    ),
    Case(
        "seq2seq",
        lambda rng: models.Seq2Seq(11, 13, embedding=3, hidden=5, rng=rng, dtype=F64),
        (tokens(11, 2, 7), np.array([7, 3]), tokens(13, 2, 5), np.array([5, 2])),
    ),
]


def changed(part: Any, changes: dict[Any, Any]) -> Any:
    """A formula in which all changes are made at once; a number also where it goes on."""
    if part in changes:
        return changes[part]
    if isinstance(part, Script):
        symbols = {one: other for one, other in changes.items() if not isinstance(one, Number)}
        for symbol, _ in bare(part):
            if symbol in symbols:
                return renamed(part, symbols)
    if isinstance(part, Number):
        for before, after in changes.items():
            if isinstance(before, Number) and part.digits.startswith(f"{before.digits}."):
                return Number(after.digits + part.digits.removeprefix(before.digits))
    if isinstance(part, tuple):
        return tuple(changed(each, changes) for each in part)
    names = getattr(part, "__dataclass_fields__", None)
    if names is None:
        return part
    return type(part)(*(changed(getattr(part, name), changes) for name in names))


def sides(parts: list[OpCall]) -> tuple[Any, ...]:
    return tuple((each.left, each.right) for part in parts for each in part.equations)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_rounds_that_are_left_out_follow_from_the_one_before(case):
    _, _, steps, _ = chained(case)
    ((_, step),) = steps
    for parts in (step.forward, step.backward):
        rounds: dict[Any, list[OpCall]] = {}
        for part in parts:
            rounds.setdefault(part.block, []).append(part)
        loops = {block[0] for block in rounds if block is not None}
        found = [each for each in folded(parts) if isinstance(each, Repeated)]
        assert found
        for repeated in found:
            assert any(_follows(rounds, loop, repeated) for loop in loops), repeated


def _follows(rounds: dict[Any, list[OpCall]], loop: str, repeated: Repeated) -> bool:
    changes = {one: other for one, other in repeated.changes if not isinstance(one, str)}
    numbers = sorted(number for each, number in filter(None, rounds) if each == loop)
    if repeated.last > len(numbers):
        return False
    before = rounds[loop, numbers[repeated.first - 2]]
    return sides(rounds[loop, numbers[repeated.first - 1]]) == changed(sides(before), changes)


def test_a_long_model_is_written_once():
    rng = np.random.default_rng(0)
    sizes = []
    for blocks in (3, 6):
        model = models.GPT(11, context=9, width=6, heads=2, blocks=blocks, rng=rng, dtype=F64)
        page = markdown.render(model_document(model, title="gpt", input_shape=(5,)))
        assert f"`blocks.{blocks - 1}`" in page or "Rounds" in page
        sizes.append(page.count(r"\tag{"))
    assert sizes[0] == sizes[1]
