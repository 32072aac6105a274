"""Verdicts on gradients as a page says them: an alert at its top and a table at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from handgrad.documents.document import (
    Alert,
    Block,
    Content,
    Details,
    Heading,
    Link,
    Paragraph,
    Span,
    Strong,
    Table,
)
from handgrad.documents.formulas.formula import Formula, Number
from handgrad.documents.formulas.numbers import number
from handgrad.documents.labels import label
from handgrad.equations.measured import Measured

#: A gradient by the name of what it belongs to.
Named = Callable[[str], Span]


def alert(measured: Sequence[Measured], named: Named, lang: str) -> Iterator[Block]:
    """The gradients that are wrong, if there are any."""
    wrong = [named(each.gradient) for each in measured if each.verdict == "wrong"]
    if wrong:
        before, between, after = label(lang, "wrong_gradient").split("{}")
        symbols = [span for each in wrong for span in (", ", each)][1:]
        where = Link(label(lang, "finite_differences"), "#check")
        yield Alert((Strong(before.strip()), " ", *symbols, between, where, after))


def table(
    measured: Sequence[Measured], named: Named, lang: str, after: tuple[Block, ...] = ()
) -> Iterator[Block]:
    """Every gradient that was measured, with its error and its bound, and what comes `after`.

    Where all are right one line says so, and opens the others.
    """
    if not measured:
        return
    yield Heading(label(lang, "finite_differences"), anchor="check")
    blocks = (Paragraph(label(lang, "measured")), _table(measured, named, lang), *after)
    if all(each.verdict == "right" for each in measured):
        yield Details(label(lang, "proved"), blocks)
    else:
        yield from blocks


def _table(measured: Sequence[Measured], named: Named, lang: str) -> Table:
    header = ("gradient", "error", "bound", "method", "verdict")
    rows: list[tuple[Content, ...]] = [
        (
            named(each.gradient),
            _magnitude(each.error),
            _magnitude(each.bound),
            label(lang, each.method),
            _verdict(each, lang),
        )
        for each in measured
    ]
    return Table(tuple(label(lang, key) for key in header), tuple(rows), align="lrrll")


def _verdict(measured: Measured, lang: str) -> Span:
    words = label(lang, measured.verdict)
    return words if measured.verdict == "right" else Strong(words)


def _magnitude(value: float) -> Formula:
    """Two digits, and a power of ten where there are many."""
    if 0.01 <= value < 10:
        return Number(f"{value:.2g}")
    return number(float(f"{value:.1e}"), digits=2)
