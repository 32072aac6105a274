"""What is told about a trained model beside its loss and accuracy."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from handgrad.layers.base import Layer


class Section(NamedTuple):
    """A section of the report; heading and note are text, body is HTML."""

    heading: str
    note: str
    body: str


class Review(Protocol):
    """Looks at a model when its training is over."""

    def figures(self, model: Layer) -> dict[str, float]:
        """For the summary and the head of the report, by name: `exact_match`, a share of 1."""

    def sections(self, model: Layer) -> list[Section]:
        """For the report."""
