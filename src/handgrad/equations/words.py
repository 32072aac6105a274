"""Functions that are written by their names, and the words that explain them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Final

from handgrad.documents.formulas.formula import Formula, Operator, Symbol, Text
from handgrad.equations.writes import Writes
from handgrad.program import Node
from handgrad.program.functions import LIBRARIES

#: Functions of several words, by the one that says most, and those with a letter.
_WORDS: Final[Mapping[str, Formula]] = {
    "draw_mask": Operator("Bernoulli"),
    "extended_labels": Symbol("Lambda"),
    "reaching": Symbol("R"),
}


def by_name(writer: Writes, node: Node) -> Formula:
    """The function's name, explained beside the symbols."""
    plain = node.op.strip("_") or "f"
    is_word = plain.isascii() and plain.isalnum()
    word = _WORDS.get(node.op) or (Operator if is_word else Text)(plain.replace("_", " "))
    explain(writer, node, word)
    return word


def explain(writer: Writes, node: Node, symbol: Formula) -> None:
    """Keep the function's own words for the list of symbols, unless a library has it."""
    function = node.function
    if not callable(function) or not inspect.isfunction(inspect.unwrap(function)):
        return
    module = getattr(function, "__module__", None) or ""
    if module.split(".")[0] not in LIBRARIES and not module.startswith("handgrad.equations"):
        writer.scope.helpers.setdefault(node.op, (symbol, first_sentence(function)))


def first_sentence(function: Callable[..., object]) -> str:
    """The first sentence of a docstring, or what comes before its first semicolon."""
    words = (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<=[.;])\s", words, maxsplit=1)[0].rstrip(";")
