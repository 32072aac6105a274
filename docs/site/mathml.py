"""Equations as MathML, which browsers set by themselves, without scripts and without a network."""

from __future__ import annotations

import re
from typing import Any

from docutils.nodes import SkipNode, math, math_block
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def inline(translator: Any, node: math) -> None:
    translator.body.append(convert(node.astext(), display="inline"))
    raise SkipNode


def block(translator: Any, node: math_block) -> None:
    """An equation with its shape and its number beside it, which can be moved below on a phone."""
    text, _, number = node.astext().partition(r"\tag{")
    formula, _, shape = text.partition(r"\qquad")
    beside = [convert(shape, display="inline")] if shape.strip() else []
    beside += [f"({number.strip().rstrip('}')})"] if number else []
    body = convert(re.sub(r"\s+", " ", formula), display="block")
    translator.body.append(f'<div class="equation">{body}<span>{" ".join(beside)}</span></div>')
    raise SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
