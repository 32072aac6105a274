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
    **dict.fromkeys(("macro_precision", "macro_recall", "macro_f1", "auc"), "{:.3f}".format),
    "calibration_error": "{:.3f}".format,
    "mean_absolute_error": plain,
    "root_mean_squared_error": plain,
    "r2": "{:.3f}".format,
}
#: Those that are shown first; the rest are beside them, class by class.
BRIEF: Final = tuple(
    name
    for name in FIGURES
    if name
    not in ("macro_precision", "macro_recall", "calibration_error", "root_mean_squared_error")
)
_NAMES: Final = {"macro_f1": "macro F1", "auc": "AUC", "r2": "R²"}


def named(name: str) -> str:
    """The name of a figure in words."""
    return _NAMES.get(name, name.replace("_", " "))


def figure(name: str, value: float) -> str:
    """A figure in words: "exact match 99.50 %", "2.71 bits per character"."""
    words, number = named(name), shown(name, value)
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
