"""The page of a check: the report, and each wrong gradient as pictures beside the right one."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Final

import numpy as np

from handgrad.checking.entry import structured
from handgrad.checking.sample_inputs import Setup, of_op
from handgrad.checking.subject import CheckedTarget
from handgrad.checking.trial import numeric_gradient, run
from handgrad.cli.options import settings_of
from handgrad.cli.requests import Outcome
from handgrad.cli.results import fault_line
from handgrad.data.files import read_bytes
from handgrad.documents import skeleton, svg
from handgrad.escaping import printable
from handgrad.printing import html
from handgrad.targets import op_of

#: Rows and columns of a picture, values that are computed one by one, and lines around a fault.
_MOST: Final = 48
_VALUES: Final = _MOST * _MOST
_AROUND: Final = 4
#: The side of a picture's cell.
_CELL: Final = 10


def page(outcome: Outcome) -> str:
    """One file of HTML that needs nothing else."""
    report = outcome.report
    parts = [f"<h1>{escape(printable(report.target))}: {report.verdict}</h1>", html(report)]
    parts += _sources(outcome)
    parts += _pictures(outcome)
    title = printable(f"handgrad check {report.target}")
    style = skeleton.styles("report")
    return skeleton.page(title, "\n".join([*parts, ""]), name="report", style=style)


def _sources(outcome: Outcome) -> Iterator[str]:
    """The lines around each fault, with its own marked."""
    home, _, name = outcome.request.target.partition(":")
    seen = set()
    for fault in outcome.report.faults:
        line = fault_line(fault, Path(home), name)
        if line is None or line in seen:
            continue
        seen.add(line)
        lines = read_bytes(Path(home), "source").decode("utf-8", "replace").splitlines()
        first = max(line - _AROUND, 1)
        shown = []
        for number, text in enumerate(lines[first - 1 : line + _AROUND - 1], first):
            row = f"{number:>5}  {escape(printable(text))}"
            shown.append(f"<mark>{row}</mark>" if number == line else row)
        yield f"<h2>{escape(printable(home))}, line {line}</h2><pre>{chr(10).join(shown)}</pre>"


def _pictures(outcome: Outcome) -> Iterator[str]:
    """What was expected, what was found, and the difference, of each gradient that is wrong."""
    wrong = [row.gradient for row in outcome.report.gradients if row.verdict == "wrong"]
    if not wrong:
        return
    request, rng = outcome.request, np.random.default_rng(outcome.request.seed)
    try:
        op = op_of(outcome.target.value) or op_of(request.like)
        value, arrays = structured(outcome.target.value, outcome.arrays, op)
        numbered = {str(i): array for i, array in enumerate(arrays)}
        options = settings_of(request.settings, "check: --option")
        setup = Setup("usual", "", numbered, options, True)
        setup = setup if arrays or op is None else of_op(op, rng)[0]
        functions, given = CheckedTarget(value, op, own_inputs=bool(arrays)).functions(setup)
        done = run(functions, given, rng)
    except Exception:  # the report says what is wrong with the target
        return
    for name in dict.fromkeys(wrong):
        found = done.gradients.get(name)
        if found is None or np.shape(found) != np.shape(given[name]):
            continue
        expected, _ = numeric_gradient(functions, done, name, _VALUES, rng)
        found = np.asarray(found, np.float64)
        size = float(np.nanmax(np.abs([expected, found]), initial=0.0)) or 1.0
        yield f"<h2>d{escape(printable(name))}, of shape {np.shape(found)}</h2>"
        pictures = (
            _picture("expected, by differences", expected, size),
            _picture("found", found, size),
            _picture("found − expected", found - expected, size),
        )
        yield f'<div class="flow">{"".join(pictures)}</div>'


def _picture(title: str, array: np.ndarray, size: float) -> str:
    """An array as squares, red above 0 and blue below, its last axis to the right."""
    rows = array.reshape(-1, array.shape[-1]) if array.ndim > 1 else array.reshape(1, -1)
    rows = rows[:_MOST, :_MOST]
    height, width = (_CELL * each for each in rows.shape)
    squares = [
        _square(_CELL * j, _CELL * i, float(value), size)
        for i, row in enumerate(rows)
        for j, value in enumerate(row)
    ]
    largest = float(np.nanmax(np.abs(array), initial=0.0))
    return (
        f"<figure>{svg.drawing(width, height, title, squares, class_='map')}"
        f"<figcaption>{title} <small>up to {largest:.3g}</small></figcaption></figure>"
    )


def _square(x: float, y: float, value: float, size: float) -> svg.Markup:
    """A value whose colour has its sign, the fuller the larger; grey for one not computed."""
    known = np.isfinite(value)
    colour = "var(--line)" if not known else f"var(--{'backward' if value > 0 else 'forward'})"
    return svg.rect(
        x,
        y,
        _CELL,
        _CELL,
        svg.element("title", svg.words(f"{value:.6g}")),
        style=f"fill:{colour}",
        fill_opacity=min(abs(value) / size, 1.0) if known else 1.0,
    )
