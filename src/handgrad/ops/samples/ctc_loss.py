"""Sample inputs of `ops.ctc_loss`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from handgrad.ops import ctc_loss
from handgrad.ops.samples._makers import between, extreme, fixed, normal, pick, uniform
from handgrad.ops.samples._table import NO_MEAN, Maker, OpSamples, SampleRow, row


def _spelt(batch: int, most: int, classes: int, blank: int = 0) -> Maker:
    """Labels that are no blank; of few classes, so that some follow themselves."""

    def make(rng: np.random.Generator) -> np.ndarray:
        found = rng.integers(0, max(classes - 1, 1), (batch, most))
        return np.asarray(found + (found >= blank))

    return make


def _whole(values: Any) -> Maker:
    return fixed(values, int)


def _scored(
    batch: int,
    steps: int,
    classes: int,
    most: int,
    *,
    input_lengths: Sequence[int] | None = None,
    target_lengths: Sequence[int] | None = None,
    targets: Maker | None = None,
    blank: int = 0,
) -> dict[str, Maker]:
    makers = {
        "x": normal(batch, steps, classes),
        "targets": targets or _spelt(batch, most, classes, blank),
    }
    if input_lengths is not None:
        makers["input_lengths"] = _whole(list(input_lengths))
    if target_lengths is not None:
        makers["target_lengths"] = _whole(list(target_lengths))
    return makers


_REPEATED: Final = _whole([[1, 1, 2], [2, 2, 2]])
#: Lengths of four examples: the second has too few steps and the third none.
_IMPOSSIBLE: Final = _scored(
    4,
    5,
    3,
    3,
    targets=_whole([[1, 2, 1], [1, 1, 1], [2, 1, 1], [2, 0, 0]]),
    input_lengths=[5, 4, 0, 2],
    target_lengths=[3, 3, 2, 1],
)

_ROWS: Final = (
    row("usual", "usual", _scored(2, 5, 4, 2)),
    row("square", "usual", _scored(3, 3, 3, 1)),
    row("one example", "one row", _scored(1, 6, 5, 2)),
    row("one step", "one row", _scored(2, 1, 4, 1)),
    row("prime sizes", "prime sizes", _scored(2, 7, 3, 3)),
    row("no examples", "empty", _scored(0, 5, 4, 2), not_in_torch=NO_MEAN),
    row("no labels", "empty", _scored(2, 3, 4, 0)),
    row("repeated labels", "usual", _scored(2, 6, 3, 3, targets=_REPEATED)),
    row("as few steps as possible", "usual", _scored(2, 5, 3, 3, targets=_REPEATED)),
    row("another blank", "option", _scored(2, 5, 4, 2, blank=2), blank=2),
    row("sum", "option", _scored(2, 5, 4, 2), reduction="sum"),
    row("none", "option", _scored(2, 5, 4, 2), reduction="none"),
    row(
        "input lengths",
        "masked rows",
        _scored(3, 6, 4, 2, input_lengths=[6, 4, 5]),
        smooth=True,
    ),
    row(
        "target lengths",
        "masked rows",
        _scored(3, 5, 4, 3, target_lengths=[2, 0, 1]),
        smooth=True,
    ),
    row(
        "both lengths",
        "masked rows",
        _scored(3, 6, 4, 3, input_lengths=[6, 3, 0], target_lengths=[3, 1, 0]),
        smooth=True,
        reduction="none",
    ),
    row(
        "impossible targets as 0",
        "masked rows",
        _IMPOSSIBLE,
        smooth=True,
        zero_infinity=True,
    ),
    row(
        "large and small values",
        "extreme values",
        {"x": extreme(2, 5, 4), "targets": _spelt(2, 2, 4)},
    ),
)

_SMALL: Final = row(
    "small",
    "usual",
    {
        "x": fixed([[[1, 0, 2], [0, 2, 1], [1, 1, 0], [2, 0, 1]]]),
        "targets": _whole([[1, 2]]),
    },
)


def _random(rng: np.random.Generator) -> SampleRow:
    batch, classes = between(rng, 1, 4), between(rng, 2, 6)
    most = between(rng, 0, 3)
    # Two steps for each label are enough for any target.
    steps = between(rng, max(2 * most, 1), 2 * most + 4)
    targets = rng.integers(0, most + 1, batch)
    inputs = [int(rng.integers(2 * target, steps + 1)) for target in targets]
    blank = between(rng, 0, classes - 1)
    makers = _scored(
        batch,
        steps,
        classes,
        most,
        blank=blank,
        input_lengths=pick(rng, None, inputs),
        target_lengths=targets.tolist(),
    )
    if rng.random() < 0.3:
        del makers["target_lengths"]
        makers.pop("input_lengths", None)
    reduction = pick(rng, *ctc_loss.REDUCTIONS)
    zero_infinity = pick(rng, False, True)
    return row(
        "random", "usual", makers, blank=blank, reduction=reduction, zero_infinity=zero_infinity
    )


def _ctc(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    x, targets = arrays["x"], arrays["targets"]
    whole = F.torch.full((len(x),), x.shape[1]), F.torch.full((len(x),), targets.shape[1])
    return F.ctc_loss(
        F.log_softmax(x, dim=-1).transpose(0, 1),
        targets,
        arrays.get("input_lengths", whole[0]),
        arrays.get("target_lengths", whole[1]),
        **options,
    )


SAMPLES: Final = OpSamples(
    gradients=("x",),
    rows=_ROWS,
    awkward=(
        row("awkward", "prime sizes", _scored(3, 23, 17, 7)),
        row("around vectors", "usual", _scored(2, 40, 33, 16)),
        row("one class", "one row", _scored(2, 3, 1, 0)),
        row(
            "spread scores",
            "extreme values",
            {"x": uniform(3, 9, 5, low=-300.0, high=300.0), "targets": _spelt(3, 3, 5)},
        ),
        row(
            "large",
            "masked rows",
            _scored(
                17,
                61,
                37,
                19,
                input_lengths=range(45, 62),
                target_lengths=range(3, 20),
            ),
            smooth=True,
            large=True,
        ),
    ),
    small=_SMALL,
    small_cotangent=fixed(2),
    random=_random,
    torch=_ctc,
)
