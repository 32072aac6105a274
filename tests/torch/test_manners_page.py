"""docs/torch-manners.md: what is done to each drop-in, and what comes of it."""

from __future__ import annotations

import pytest

from handgrad import kernels

pytest.importorskip("torch")
if kernels.native is None:
    pytest.skip("no compiled kernels", allow_module_level=True)
hgt = pytest.importorskip("handgrad.torch")
from docs.torch_manners import page  # noqa: E402
from docs.torch_manners.done import CHANGES, MANNERS, MODULES  # noqa: E402

TEXT = page.PAGE.read_text("utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.splitlines()
    if line.startswith("| ") and "---" not in line
]
#: Where ours and PyTorch's differ, each for a reason that docs/pytorch.md gives.
DIFFERENT = {
    "a number where PyTorch has NaN": {("empty batch", "CrossEntropyLoss")},
    "computes; PyTorch refuses": {
        ("`gradgradcheck`", "MultiheadAttention"),
        ("`gradgradcheck`", "TransformerEncoderLayer"),
    },
    "equal, y in float32 and not bfloat16": {
        ("`autocast` to bfloat16", name)
        for name in ("Linear", "Conv1d", "Conv2d", "MultiheadAttention", "RNN", "LSTM")
    },
}


@pytest.mark.slow
def test_the_page_is_what_its_program_writes() -> None:
    assert page.page() == TEXT, "run python -m docs.torch_manners"


def test_every_drop_in_and_everything_that_is_done_has_its_cell() -> None:
    drop_ins = {
        name
        for name in hgt.__all__
        if hasattr(page.nn, name) and isinstance(getattr(hgt, name), type)
    }
    assert drop_ins == set(MODULES)
    heads = [row for row in ROWS if row[0] == ""]
    assert heads == [["", *(f"`{name}`" for name in MODULES)]] * 2
    done = [row[0] for row in ROWS if row[0]]
    both = [f"{what}, {when}" for what in CHANGES for when in ("before", "after")]
    assert done == [*MANNERS, *both]


def test_no_cell_is_another_number() -> None:
    found: dict[str, set[tuple[str, str]]] = {}
    for what, *cells in ROWS:
        if what == "":
            continue
        for name, cell in zip(MODULES, cells, strict=True):
            if cell not in ("equal", "–", "both refuse") and not cell.startswith("left ["):
                found.setdefault(cell, set()).add((what, name))
    assert found == DIFFERENT
