"""A model that makes one text from another: how often it is right, and where it looked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from html import escape
from typing import Any, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.data.pairs import PairData
from handgrad.data.tokens import END, START, UNKNOWN, TextCodec
from handgrad.layers.base import Layer
from handgrad.models.decoding import greedy
from handgrad.models.translating import translate
from handgrad.training.report.attention import attention_map, small_map
from handgrad.training.report.charts import figure
from handgrad.training.review import Section

#: The sets of which the answers are right or wrong, and how their mistakes are counted.
_JUDGED: Final = ("dates", "pronounce")
#: Rows of the table, of which so many may be mistakes; maps, and the most symbols on their sides.
_ROWS, _MISTAKES, _MAPS, _SYMBOLS = 16, 10, 4, 30
#: Rows of texts of which none is right or wrong; letters of a text in a caption.
_PROSE, _LETTERS = 8, 44
#: Letters of a text that is not broken into lines.
_SHORT: Final = 16
#: The sign for the end of a text.
_END: Final = "●"


@dataclass
class PairsReview:
    """The test part, made by the model without knowing any of the targets; `seed` draws samples."""

    data: PairData
    seed: int = 0
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
        """The output of the model for every different source of the test part."""
        if not self._made:
            self._made = self._translated(model, list(self.data.test.references()))
        return self._made

    def _translated(self, model: Layer, sources: Sequence[str]) -> list[str]:
        longest = 2 * int(self.data.train.targets.lengths.max())
        translator: Any = model
        return translate(translator, self.data.source, self.data.target, sources, longest=longest)

    def sections(self, model: Layer) -> list[Section]:
        references = self.data.test.references()
        judged = self.data.name in _JUDGED
        order = np.random.default_rng(self.seed).permutation(len(references)).tolist()
        wrong: set[int] = set()
        if judged:
            pairs = enumerate(zip(self.made(model), references.values(), strict=True))
            wrong = {i for i, (text, targets) in pairs if text not in targets}
        mistakes, others = [i for i in order if i in wrong], [i for i in order if i not in wrong]
        texts = self._judged(mistakes, others) if judged else self._prose(model, order)
        return [texts, self._looked(model, mistakes, others)]

    def _judged(self, mistakes: list[int], others: list[int]) -> Section:
        references = list(self.data.test.references().items())
        words = getattr(self.data.target, "words", False)
        shown = mistakes[:_MISTAKES]
        rows = []
        for i in [*shown, *others[: _ROWS - len(shown)]]:
            source, targets = references[i]
            verdict, made = "<td>✓</td>", _isolated(self._made[i])
            if i in shown:
                verdict = '<td class="wrong">✗</td>'
                made = _marked(self._made[i], targets, words=words)
            right = " or ".join(map(_isolated, targets))
            short = max(map(len, (self._made[i], " or ".join(targets)))) <= _SHORT
            kind = ' class="short"' if short else ""
            rows.append(
                f"{verdict}<td>{_isolated(source)}</td><td{kind}>{made}</td><td{kind}>{right}</td>"
            )
        note = f"Drawn at random from the {len(references):,} different sources of the test part"
        if shown:
            note += ", mistakes first; what differs from the nearest right target is marked."
        else:
            note += ", of which all were made right."
        table = _table("texts", ("", "source", "made", "right"), rows)
        return Section("What it makes", note, table)

    def _prose(self, model: Layer, order: list[int]) -> Section:
        references = list(self.data.test.references().items())
        chosen = [references[i] for i in order[:_PROSE]]
        texts = self._translated(model, [source for source, _ in chosen])
        rows = [
            f"<td>{_isolated(source)}</td><td>{_isolated(made)}</td><td>{_isolated(targets[0])}</td>"
            for (source, targets), made in zip(chosen, texts, strict=True)
        ]
        note = (
            f"Drawn at random from the {len(references):,} different sources of the test part. "
            "A text can be translated well in other words than those of the data."
        )
        table = _table("texts prose", ("source", "made", "in the data"), rows)
        return Section("What it makes", note, table)

    def _looked(self, model: Layer, mistakes: list[int], others: list[int]) -> Section:
        """Maps of a mistake, if any is short enough, and of others."""
        sources = list(self.data.test.references())
        drawings: list[str] = []
        for candidates, wanted in ((mistakes, 1), (others, _MAPS), (mistakes, _MAPS)):
            for i in candidates[:200]:
                if wanted == 0 or len(drawings) == _MAPS:
                    break
                source = np.append(self.data.source.encode(sources[i]), END)
                if len(source) <= _SYMBOLS:
                    drawings.append(self._map(model, source, sources[i], i in mistakes))
                    wanted -= 1
        if not drawings:
            return Section("Where it looked", "", "")
        note = (
            "What was made down, the source across. Each row is a step; the stronger a cell, the "
            "more that step looked there, the strongest of a map being full. "
            f"{_END} is the end of a text."
        )
        if 'class="heads"' in drawings[0]:
            note += " Large the mean of the last block's heads, small each head."
        return Section("Where it looked", note, f'<div class="flow">{"".join(drawings)}</div>')

    def _map(self, model: Any, source: Array, text: str, wrong: bool) -> str:
        """The weights with which the model looked at a source while it made what it makes of it."""
        sources, lengths = source[None], np.array([len(source)])
        written = greedy(model, sources, lengths, longest=_SYMBOLS)[0]
        made = np.append(written, END)[:_SYMBOLS]
        inputs = np.append(START, made[:-1])[None]
        _, cache = model.forward(sources, lengths, inputs, np.array([len(made)]))
        weights = [
            weights[0]
            for name, weights in model.attention_maps(cache)
            if name == "decoder" or name.endswith("cross_attention")
        ][-1]
        rows, columns = _symbols(self.data.target, made), _symbols(self.data.source, source)
        said = " → ".join(map(_isolated, map(_short, (text, self.data.target.decode(written)))))
        if wrong:
            said += ' <b class="wrong">wrong</b>'
        label = "Attention to the source at every step"
        drawing = attention_map(weights.mean(axis=0), rows, columns, label=label)
        if len(weights) > 1:
            cell = 110 / len(columns)
            heads = [small_map(w, f"head {i + 1}", cell) for i, w in enumerate(weights)]
            drawing = (
                f'<div class="beside">{drawing}<div class="heads">{"".join(heads)}</div></div>'
            )
        return figure(said, f'<div class="scroll">{drawing}</div>')


def _symbols(tokenizer: TextCodec, tokens: Array) -> list[str]:
    """Each token as text; an unknown one is a replacement character."""
    shown = {END: _END, UNKNOWN: "\N{REPLACEMENT CHARACTER}"}
    return [shown.get(token) or tokenizer.decode([token]) for token in tokens.tolist()]


def _short(text: str) -> str:
    return text if len(text) <= _LETTERS else text[: _LETTERS - 1] + "…"


def _isolated(text: str) -> str:
    """Text that may be written from right to left among other text."""
    return f"<bdi>{escape(text)}</bdi>"


def _table(kind: str, head: Sequence[str], rows: Sequence[str]) -> str:
    names = "".join(f"<th>{name}</th>" for name in head)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<div class="scroll"><table class="{kind}"><thead><tr>{names}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _marked(made: str, targets: Sequence[str], *, words: bool) -> str:
    """The output, marked where it differs from the nearest target; an empty mark is a gap."""
    split, between = (str.split, " ") if words else (list, "")
    symbols = split(made)
    matches = [SequenceMatcher(None, split(target), symbols, autojunk=False) for target in targets]
    nearest = max(matches, key=lambda match: match.ratio())
    parts = []
    for kind, _, _, start, stop in nearest.get_opcodes():
        piece = escape(between.join(symbols[start:stop]))
        parts.append(piece if kind == "equal" else f"<mark>{piece}</mark>")
    return f"<bdi>{between.join(parts)}</bdi>"


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

    Source: Wagner, Fischer, The string-to-string correction problem (1974).
    """
    above = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        row = [i]
        for j, b in enumerate(second, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (a != b)))
        above = row
    return above[-1]
