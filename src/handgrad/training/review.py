"""Reports on a trained model beside its loss and accuracy."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from handgrad.layers.base import Layer

#: The figures there are: shares of 1, except bits.
FIGURES: Final = ("exact_match", "phoneme_error_rate", "bits_per_character")


def figure(name: str, value: float) -> str:
    """A figure in words: "exact match 99.50 %", "2.71 bits per character"."""
    if name.startswith("bits"):
        return f"{value:.3f} {name.replace('_', ' ')}"
    return f"{name.replace('_', ' ')} {100 * value:.2f} %"


class Section(NamedTuple):
    """A section of the report; heading and note are text, body is HTML."""

    heading: str
    note: str
    body: str


class Review(Protocol):
    """Looks at a model when its training is over."""

    def figures(self, model: Layer) -> dict[str, float]:
        """For the summary and the head of the report, by names of `FIGURES`."""

    def sections(self, model: Layer) -> list[Section]:
        """For the report."""
