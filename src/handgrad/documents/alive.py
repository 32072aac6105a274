"""The script of a page that steps through its run: the story as JSON, and the files of `script`."""

from __future__ import annotations

import json
import math
from functools import cache
from importlib.resources import files
from typing import Any, Final

from handgrad.documents.formulas.formula import Formula
from handgrad.documents.formulas.mathml import to_mathml
from handgrad.documents.labels import LABELS
from handgrad.documents.story import Pane, Quantity, Story, StoryStep

#: The words of the script, by their keys in `labels`.
_WORDS: Final = ("forward", "backward", "equation")

#: The files of the script, which are one function together.
_FILES: Final = ("numbers.js", "products.js", "boards.js", "flow.js", "stage.js")


def style() -> str:
    """The rules for what the script adds."""
    return _source("flow.css") + _source("stage.css")


def scripts(story: Story, lang: str) -> str:
    """The elements at the end of a page's body; without scripts they show nothing."""
    # No end of a script element, and no comment, may stand in the data.
    told = json.dumps(_data(story, lang), ensure_ascii=False, separators=(",", ":"))
    told = told.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return (
        f'<script type="application/json" id="handgrad-story">{told}</script>\n'
        f'<script>\n(() => {{\n"use strict";\n{script()}}})();\n</script>\n'
    )


def script() -> str:
    """The script itself, the same for every page."""
    return "".join(map(_source, _FILES))


@cache
def _source(name: str) -> str:
    return files("handgrad.documents").joinpath("script", name).read_text("utf-8")


def _data(story: Story, lang: str) -> dict[str, Any]:
    table = LABELS[lang]
    words = {name: text for name, text in table.items() if name.startswith("alive")}
    return {
        "words": words | {name: table[name] for name in _WORDS},
        "quantities": [_quantity(each) for each in story.quantities],
        "steps": [_step(each) for each in story.steps],
        "editable": story.editable,
    }


def _quantity(quantity: Quantity) -> dict[str, Any]:
    return {
        "symbol": _math(quantity.symbol),
        "name": quantity.name,
        "shape": quantity.shape,
        "values": [_number(each) for each in quantity.values],
        "panes": [_pane(each) for each in quantity.panes],
        "backward": quantity.backward,
        "beside": quantity.beside,
    }


def _pane(pane: Pane) -> dict[str, Any]:
    symbol = None if pane.symbol is None else _math(pane.symbol)
    element = _math(pane.element)
    return {"rows": pane.rows, "element": element, "symbol": symbol, "index": pane.index}


def _step(step: StoryStep) -> dict[str, Any]:
    return {
        "phase": step.phase,
        "formula": to_mathml(step.formula, display=True),
        "target": step.target,
        "moment": None if step.moment is None else _math(step.moment),
        "operands": step.operands,
        "results": [
            {
                "quantity": each.quantity,
                "trees": [_tree(tree) for tree in each.trees],
                "elements": each.elements,
            }
            for each in step.results
        ],
    }


def _tree(tree: Any) -> Any:
    if isinstance(tree, int | str):
        return tree
    return [_number(each) if isinstance(each, float) else _tree(each) for each in tree]


def _number(value: float) -> float | str:
    """A number of JSON, which has none that is not finite; an integer without its point."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return int(value) if value == int(value) and abs(value) < 2**53 else value


def _math(formula: Formula) -> str:
    return to_mathml(formula)
