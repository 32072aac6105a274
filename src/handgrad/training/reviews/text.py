"""A model that continues text: what it costs per character, and what it writes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from handgrad.data.text import Blocks, Text
from handgrad.layers.base import Layer
from handgrad.losses import CrossEntropy
from handgrad.training.metrics import evaluate
from handgrad.training.review import Section


@dataclass(frozen=True)
class TextReview:
    """Bits per character of the validation part, judged in `blocks`."""

    text: Text
    blocks: Blocks
    seed: int = 0

    def figures(self, model: Layer) -> dict[str, float]:
        judged: Any = evaluate(model, CrossEntropy(class_axis=-1), self.blocks)
        return {"bits_per_character": judged.loss / math.log(2) * self.text.tokens_per_character}

    def sections(self, model: Layer) -> list[Section]:
        return []
