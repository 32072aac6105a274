"""The page: every row with its verdicts, and the code that was run."""

from __future__ import annotations

import dis
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any, Final, NamedTuple

from docs.mistakes import careddu, gulino, transformer_notes, yamanishi, yeung
from docs.mistakes.row import Document, Form, Row, Verdict

PAGE: Final = Path(__file__).parents[1] / "mistakes.md"
MODULES: Final = (careddu, transformer_notes, gulino, yeung, yamanishi)

_INTRODUCTION: Final = """\
# Mistakes in the documents

handgrad's systems were first described by five sets of notes on backpropagation. These are the
{rows} passages where the notes are wrong or leave something open: the printed form, the right one,
and the result of running the two. The last column is not written by hand: in a clone of the
repository, `python -m docs.mistakes` runs everything again and writes this page, and a test
compares the two.

- **✗ and ✓** are the verdict of the run. Most are a sentence of the report of `hg.check`
  ([how to read one](find-the-bug.md)): a gradient is not that of its forward, a forward is not that
  of the op it is meant to be, or an exception, where sizes do not fit. Where every gradient is
  right, it is so on unusual inputs and in float32 too.
- **What gradients cannot show**, such as a mean or a size, is measured by a few lines of code.
- **"harmless"** is what is printed in a case where the mistake does not show.
- **"What was run"** unfolds to the code, which is complete but for the imports. `normal` draws
  arrays of the shapes it is given, the same in every run; a `Verdict` is whether the formula
  passes, and what is said of it.

The notes are quoted by their formulas only; their texts are by the authors named
([references](references.md)).
"""


class Judged(NamedTuple):
    """A form of a row that has been run; `kind` is "printed", "right" or "harmless"."""

    document: Document
    row: Row
    kind: str
    form: Form
    verdict: Verdict

    @property
    def expected(self) -> bool:
        """Return whether the run bears the page out: only printed forms that do harm fail."""
        return bool(self.verdict.good) == (self.kind != "printed")


def judged() -> list[Judged]:
    """Everything run, in the order of the page."""
    return [
        Judged(module.DOCUMENT, row, kind, form, form.run())
        for module in MODULES
        for row in module.DOCUMENT.rows
        for kind in ("printed", "right", "harmless")
        for form in getattr(row, kind)
    ]


def page(found: list[Judged]) -> str:
    """The page in Markdown."""
    rows = sum(len(module.DOCUMENT.rows) for module in MODULES)
    parts = [_INTRODUCTION.format(rows=rows)]
    for module in MODULES:
        document = module.DOCUMENT
        name = module.__name__.rpartition(".")[2]
        parts.append(
            f"## {document.title}\n\n{document.author}. Code: [{name}.py](mistakes/{name}.py).\n"
        )
        parts += [_section([each for each in found if each.row is row]) for row in document.rows]
    return "\n".join(parts)


def _section(found: list[Judged]) -> str:
    row = found[0].row
    lines = [
        f"### {_escaped(row.passage)}\n\n{_escaped(row.about)}\n",
        "| | formula | what running it says |",
        "| --- | --- | --- |",
    ]
    for each in found:
        mark = "✓" if each.verdict.good else "✗"
        formula, verdict = _escaped(each.form.formula), _escaped(each.verdict.text)
        lines.append(f"| {each.kind} | {formula} | {mark} {verdict} |")
    code = _code([each.form for each in found])
    lines.append(f"\n<details>\n<summary>What was run</summary>\n\n```python\n{code}\n```\n")
    return "\n".join([*lines, "</details>\n"])


def _escaped(text: str) -> str:
    """Text as it stands, for Markdown."""
    return re.sub(r"([\\`*_|<>\[\]])", r"\\\1", text)


# The code of a row


def _code(forms: list[Form]) -> str:
    """The functions of these forms, each after those that it calls, and the calls of hg.check."""
    pieces = dict.fromkeys(
        piece for form in forms for function in form.functions for piece in _pieces(function)
    )
    calls = dict.fromkeys(form.call for form in forms if form.call)
    return "\n\n\n".join([*pieces, *(["\n".join(calls)] if calls else [])])


def _pieces(function: Callable[..., Any]) -> Iterator[str]:
    for name in _globals(function.__code__):
        value = vars(sys.modules[function.__module__]).get(name)
        if isinstance(value, tuple):
            yield f"{name} = {value!r}"
        elif inspect.isfunction(value) and _is_shown(value):
            yield from _pieces(value)
    yield inspect.getsource(function).rstrip()


def _is_shown(function: Callable[..., Any]) -> bool:
    """Return whether it belongs to a document: the page explains `row`, readers have the rest."""
    home = function.__module__
    return home.startswith("docs.mistakes.") and home != Row.__module__


def _globals(code: CodeType) -> Iterator[str]:
    """The globals that a function reads, those of lambdas and loops in it included."""
    for instruction in dis.get_instructions(code):
        if instruction.opname == "LOAD_GLOBAL":
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals(constant)
