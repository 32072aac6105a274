"""The measurements of a training, and their table for a terminal and for a notebook."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Final

from handgrad.suggestions import did_you_mean

#: Epochs that a table shows; of more, the first and the last of them.
_MOST: Final = 20

#: The columns, where there are such values, with their forms.
_COLUMNS: Final[Mapping[str, Callable[[Any], str]]] = {
    "epoch": str,
    "loss": "{:.4f}".format,
    "accuracy": "{:.2%}".format,
    "validation_loss": "{:.4f}".format,
    "validation_accuracy": "{:.2%}".format,
    "learning_rate": "{:.3g}".format,
    "seconds": "{:.1f}".format,
}


@dataclass(repr=False)
class History:
    """The measurements of a training: one record per epoch, and the run's summary if there is one.

    `history["validation_loss"]` is that value for every epoch; printed it is a table of them, in a
    notebook too.
    """

    epochs: list[dict[str, Any]] = field(default_factory=list)
    summary: dict[str, Any] | None = None

    def __getitem__(self, name: str) -> list[float]:
        known = dict.fromkeys(key for record in self.epochs for key in record)
        if name not in known:
            hint = did_you_mean(name, known)
            raise KeyError(f"history: {name!r} is unknown; allowed: {', '.join(known)}{hint}")
        return [record[name] for record in self.epochs]

    def __repr__(self) -> str:
        return _text(self.epochs) or "History of no epoch"

    def _repr_html_(self) -> str:
        return _html(self.epochs)


def _text(epochs: Sequence[Mapping[str, Any]]) -> str:
    """The table in columns of equal width; "" without epochs."""
    head, rows = _cells(epochs)
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in (head, *rows)
    ]
    return "\n".join(lines) if epochs else ""


def _html(epochs: Sequence[Mapping[str, Any]]) -> str:
    """The same as a table of HTML."""
    head, rows = _cells(epochs)
    titles = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _cells(epochs: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """The titles, and a row for every epoch shown; dots stand for those left out."""
    names = [name for name in _COLUMNS if any(each.get(name) is not None for each in epochs)]
    rows = [
        ["" if each.get(name) is None else _COLUMNS[name](each[name]) for name in names]
        for each in epochs
    ]
    if len(rows) > _MOST:
        rows = [*rows[: _MOST // 2], ["…"] * len(names), *rows[-_MOST // 2 :]]
    return [name.replace("_", " ") for name in names], rows
