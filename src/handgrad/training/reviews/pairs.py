"""A model that makes one text from another: how often it is right, and where it looked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from handgrad.data.pairs import PairData
from handgrad.layers.base import Layer
from handgrad.models.translating import translate
from handgrad.training.review import Section

#: The sets of which the answers are right or wrong, and how their mistakes are counted.
_JUDGED: Final = ("dates", "pronounce")


@dataclass
class PairsReview:
    """The test part, made by the model without knowing any of the targets."""

    data: PairData
    _made: list[str] = field(default_factory=list)

    def figures(self, model: Layer) -> dict[str, float]:
        """exact_match: of the sources, how many became one of the targets that are right for them.

        phoneme_error_rate: insertions, deletions and replacements that turn what was made into the
        nearest right target, over the length of that target; all sources together.
        """
        if self.data.name not in _JUDGED:
            return {}
        references = self.data.test.references()
        made = self.made(model)
        right = [text in targets for text, targets in zip(made, references.values(), strict=True)]
        figures = {"exact_match": float(np.mean(right))}
        if self.data.name == "pronounce":
            figures["phoneme_error_rate"] = _error_rate(made, list(references.values()))
        return figures

    def made(self, model: Layer) -> list[str]:
        """What the model makes of every different source of the test part."""
        if not self._made:
            sources = list(self.data.test.references())
            longest = 2 * int(self.data.train.targets.lengths.max())
            self._made = translate(
                model, self.data.source, self.data.target, sources, longest=longest
            )
        return self._made

    def sections(self, model: Layer) -> list[Section]:
        return []


def _error_rate(made: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    edits, length = 0, 0
    for text, targets in zip(made, references, strict=True):
        counts = [(edit_distance(text.split(), target.split()), target) for target in targets]
        fewest, nearest = min(counts)
        edits += fewest
        length += len(nearest.split())
    return edits / length


def edit_distance(first: Sequence[Any], second: Sequence[Any]) -> int:
    """The fewest insertions, deletions and replacements that make `second` of `first`.

    Source: Wagner & Fischer (1974).
    """
    above = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        row = [i]
        for j, b in enumerate(second, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (a != b)))
        above = row
    return above[-1]
