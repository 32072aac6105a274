"""A model that continues text: what it costs per character, and what it writes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from handgrad.data.text import Blocks, TokenizedText
from handgrad.layers.base import Layer
from handgrad.losses import CrossEntropy
from handgrad.training.metrics import evaluate
from handgrad.training.report.attention import attention_map
from handgrad.training.report.charts import figure
from handgrad.training.review import Section

#: Texts that are written, how far they go on, and how freely tokens are drawn.
_SAMPLES, _LENGTH, _TEMPERATURE = 3, 320, 0.8
#: Tokens of a prompt and of the passage whose attention is shown, and how many are drawn for each.
_PASSAGE, _PASSAGES = 32, 8


@dataclass(frozen=True)
class TextReview:
    """Bits per character of the validation part, judged in `blocks`, so many at a time as `batch`;
    `seed` draws the samples."""

    text: TokenizedText
    blocks: Blocks
    seed: int = 0
    batch: int = 256

    def figures(self, model: Layer) -> dict[str, float]:
        judged: Any = evaluate(model, CrossEntropy(class_axis=-1), self.blocks, self.batch)
        return {"bits_per_character": judged.loss / math.log(2) * self.text.tokens_per_character}

    def sections(self, model: Any) -> list[Section]:
        rng = np.random.default_rng(self.seed)
        return [self._samples(model, rng), self._looked(model, rng)]

    def _samples(self, model: Any, rng: np.random.Generator) -> Section:
        decode = self.text.tokenizer.decode
        prompt = self._passage(rng)
        tokens = model.generate(
            np.tile(prompt, (_SAMPLES, 1)), length=_LENGTH, rng=rng, temperature=_TEMPERATURE
        )
        samples = [
            f'<pre class="sample"><b>{escape(decode(prompt))}</b>{escape(decode(written))}</pre>'
            for written in tokens[:, len(prompt) :]
        ]
        note = (
            f"{len(prompt)} tokens of the validation part, in bold, and what the model writes "
            f"behind them: {_SAMPLES} times {_LENGTH} tokens, drawn at temperature {_TEMPERATURE}."
        )
        return Section("What it writes", note, f'<div class="samples">{"".join(samples)}</div>')

    def _looked(self, model: Any, rng: np.random.Generator) -> Section:
        passage = self._passage(rng)
        _, cache = model.forward(passage[None])
        maps = model.attention_maps(cache)
        symbols = [self.text.tokenizer.decode([token]) for token in passage.tolist()]
        blocks = [(1, maps[0][1][0])]
        if len(maps) > 1:
            blocks.append((len(maps), maps[-1][1][0]))
        drawings = []
        for number, weights in blocks:
            for i, head in enumerate(weights):
                name = f"block {number}, head {i + 1}"
                # A token with many before it spreads its attention, which would look like none.
                rows = head / head.max(axis=-1, keepdims=True)
                drawing = attention_map(rows, symbols, symbols, label=name, cell=12, font=10.5)
                drawings.append(figure(name, f'<div class="scroll">{drawing}</div>'))
        note = (
            "Each row is a token of a passage of the validation part; the stronger a cell, the "
            "more this token looked at the one above that column, the strongest of a row being "
            "full. No token sees those behind it."
        )
        return Section("Where it looked", note, f'<div class="flow">{"".join(drawings)}</div>')

    def _passage(self, rng: np.random.Generator) -> Any:
        """Some tokens of the validation part from where a line or a word begins.

        Of several passages the one with most different tokens: not of rules or tables.
        """
        tokens, size = self.text.validation, min(_PASSAGE, self.blocks.size)
        passages = []
        for start in rng.integers(max(1, len(tokens) - 4 * size), size=_PASSAGES).tolist():
            text = self.text.tokenizer.decode(tokens[start : start + 4 * size].tolist())
            half = text[: len(text) // 2]
            after = max(half.find("\n"), half.find(" "), 0)
            passages.append(self.text.tokenizer.encode(text[after:].lstrip() or text)[:size])
        return max(passages, key=lambda passage: len(set(passage.tolist())))
