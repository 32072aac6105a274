"""Blocks that compute alike: what is left out follows from what is written."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
import pytest

from handgrad import models
from handgrad.documents import markdown
from handgrad.documents.formulas.formula import Formula, FormulaRow, Number, Sign
from handgrad.equations.models.model import model_document
from handgrad.equations.models.rounds import Alike, folded
from handgrad.equations.models.steps import OpCall
from handgrad.layers import TransformerEncoder
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
        "transformer",
        lambda rng: models.Transformer(
            11,
            13,
            d_model=6,
            heads=2,
            hidden=7,
            encoder_blocks=3,
            decoder_blocks=4,
            rng=rng,
            dtype=F64,
        ),
        (tokens(11, 2, 7), np.array([7, 3]), tokens(13, 2, 5), np.array([5, 2])),
    ),
    Case(
        "seq2seq",
        lambda rng: models.Seq2Seq(11, 13, embedding=3, hidden=5, rng=rng, dtype=F64),
        (tokens(11, 2, 7), np.array([7, 3]), tokens(13, 2, 5), np.array([5, 2])),
    ),
]


def at(part: Any, counter: Formula, number: int) -> Any:
    """A formula with a number in the place of the counter, and what is added to it."""
    match part:
        case FormulaRow((first, Sign("+" | "−") as sign, Number(digits))) if first == counter:
            return Number(str(number + (1 if sign.char == "+" else -1) * int(digits)))
    if part == counter:
        return Number(str(number))
    if isinstance(part, tuple):
        return tuple(at(each, counter, number) for each in part)
    names = getattr(part, "__dataclass_fields__", None)
    if names is None:
        return part
    return type(part)(*(at(getattr(part, name), counter, number) for name in names))


def sides(parts: list[OpCall] | tuple[OpCall, ...]) -> tuple[Any, ...]:
    return tuple((each.left, each.right) for part in parts for each in part.equations)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_blocks_that_are_left_out_follow_from_the_one_that_is_written(case):
    _, _, steps, _ = chained(case)
    ((_, step),) = steps
    for parts in (step.forward, step.backward):
        blocks = [
            (block, list(group))
            for block, group in groupby(parts, key=lambda each: each.block)
            if block is not None
        ]
        found = [each for each in folded(parts) if isinstance(each, Alike)]
        assert max(len(each.numbers) for each in found) > 1
        assert sum(len(each.numbers) for each in found) == len(blocks)
        for each in found:
            written = sides(each.parts)
            for number in each.numbers:
                block, whole = blocks.pop(0)
                assert block[:2] == (each.parts[0].block.stack, number)
                single = len(each.numbers) == 1
                assert sides(whole) == (written if single else at(written, each.counter, number))


def test_blocks_that_others_read_are_written_once_too():
    (case,) = (each for each in CASES if each.name == "transformer")
    _, _, steps, _ = chained(case)
    ((_, step),) = steps
    for parts in (step.forward, step.backward):
        found = [each for each in folded(parts) if isinstance(each, Alike)]
        assert sorted(len(each.numbers) for each in found) == [3, 4]


def test_a_long_model_is_written_once():
    rng = np.random.default_rng(0)
    sizes = []
    for blocks in (2, 3, 6):
        model = models.GPT(11, context=9, width=6, heads=2, blocks=blocks, rng=rng, dtype=F64)
        page = markdown.render(model_document(model, title="gpt", input_shape=(5,)))
        assert rf"### Block $l = 1, {'' if blocks == 2 else chr(92) + 'cdots, '}{blocks}$" in page
        sizes.append(page.count(r"\tag{"))
    assert len(set(sizes)) == 1
