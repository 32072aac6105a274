"""Reports on a trained model beside its loss and accuracy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from handgrad.layers.base import Layer
from handgrad.printing import plain

#: The figures there are, and the form of each; an error is in the unit of the targets.
FIGURES: Final[dict[str, Callable[[float], str]]] = {
    "exact_match": "{:.2%}".format,
    "phoneme_error_rate": "{:.2%}".format,
    "bits_per_character": "{:.3f}".format,
    "mean_absolute_error": plain,
}


def figure(name: str, value: float) -> str:
    """A figure in words: "exact match 99.50 %", "2.71 bits per character"."""
    words, number = name.replace("_", " "), shown(name, value)
    return f"{number} {words}" if name.startswith("bits") else f"{words} {number}"


def shown(name: str, value: float) -> str:
    """The value of a figure, a share as "99.50 %"."""
    return FIGURES.get(name, plain)(value).replace("%", "\N{NO-BREAK SPACE}%")


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
