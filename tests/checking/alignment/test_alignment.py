"""Wrong lines in passes of varied styles: each is told with a change of the source that was run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad.checking.alignment.told import faults
from handgrad.checking.report import Fault
from handgrad.checking.trial import close
from handgrad.checking.work import Work
from tests.checking.alignment.passes import PLANTED, Planted, inputs, module, source
from tests.checking.alignment.searched import searched

#: Planted in a line that reads a name before it is there: it raises, which is a finding of its own.
RAISES = "dgamma = (g * hat).sum(0)"
JUDGED = [each for each in PLANTED if each.wrong != RAISES]
#: One line of every style of a pass is quick, and all others are slow tests.
FIRST = {each.name: each for each in reversed(JUDGED)}
PARAMETERS = [
    pytest.param(each, id=str(each), marks=[] if FIRST[each.name] is each else pytest.mark.slow)
    for each in JUDGED
]


def told(planted: Planted, folder: Path) -> tuple[tuple[str, ...], list[Fault]]:
    """The wrong gradients, and what is said of them."""
    search = searched(planted, folder)
    given = search.seen, search.trials.draws, search.runs, search.wrong
    told = faults(*given, np.random.default_rng(4), "usual", Work(5.0))
    return search.wrong, [each.fault for each in told]


def changed(text: str, diff: str) -> str:
    """The text after a diff without context."""
    rows = diff.split("\n")[1:]
    old = "\n".join(row[1:] for row in rows if row[0] == "-")
    new = "\n".join(row[1:] for row in rows if row[0] == "+")
    assert text.count(old) == 1
    return text.replace(old, new)


@pytest.mark.parametrize("planted", PARAMETERS)
def test_the_told_change_of_the_source_puts_every_gradient_right(
    planted: Planted, tmp_path: Path
) -> None:
    wrong, found = told(planted, tmp_path)
    assert {fault.gradient for fault in found} == set(wrong) != set()
    text = source(planted)
    for diff in dict.fromkeys(fault.diff for fault in found):
        text = changed(text, diff)
    right = module(source(Planted(planted.name, planted.right, planted.right)), tmp_path)
    mended = module(text, tmp_path)
    rng = np.random.default_rng(11)
    arrays = inputs(planted.name, rng)
    y, cache = right.forward(*arrays)
    several = y if isinstance(y, tuple) else (y,)
    drawn = [rng.standard_normal(np.shape(each)) for each in several]
    dy: Any = tuple(drawn) if isinstance(y, tuple) else drawn[0]
    _, own = mended.forward(*arrays)
    pairs = zip(mended.backward(dy, own), right.backward(dy, cache), strict=True)
    assert all(close(a, b, dy) for a, b in pairs)
