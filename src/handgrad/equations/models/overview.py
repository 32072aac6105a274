"""A model at a glance: the table of its layers with what they cost, and its drawing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from handgrad.documents.document import (
    Block,
    Content,
    Figure,
    Heading,
    Link,
    Mono,
    Paragraph,
    Strong,
    Table,
)
from handgrad.documents.formulas.formula import Formula, Sign, separated
from handgrad.documents.labels import label
from handgrad.equations.models.costs import Cost
from handgrad.equations.models.drawing import Label, svg, text_width
from handgrad.equations.models.extents import BOX_WIDTH
from handgrad.equations.models.flow import Flow, Node
from handgrad.equations.models.layout import Page, pages
from handgrad.equations.models.names import activation_of, parameters_of
from handgrad.equations.models.symbols import LOSS
from handgrad.equations.models.tikz import tikz

#: The symbols of a node's parameters, by their names.
Symbols = Callable[[Node], Mapping[str, Formula]]

_UNKNOWN: Final = "–"
#: The room for a line of text in a box.
_ROOM: Final = BOX_WIDTH - 12


def table(costs: Sequence[Cost], examples: int, lang: str) -> Iterator[Block]:
    """One row for every node, and the totals; how bytes and FLOPs are counted below it."""
    keys = ("layer", "shape", "parameters", "bytes_cached", "flops_forward")
    header: tuple[Content, ...] = ("", *(label(lang, key) for key in (*keys, "flops_backward")))
    rows = [_row(cost, lang) for cost in costs]
    totals = (
        sum(cost.parameters for cost in costs),
        sum(cost.cached for cost in costs),
        sum(cost.forward or 0 for cost in costs),
        sum(cost.backward or 0 for cost in costs),
    )
    total = tuple(Strong(_count(each, lang)) for each in totals)
    yield Heading(label(lang, "layers"), anchor="layers")
    yield Table(header, (*rows, ("", Strong(label(lang, "total")), "", *total)), align="rllrrrr")
    yield Paragraph(label(lang, "model_cached").format(examples))
    yield Paragraph(label(lang, "model_flops"))


def kind(node: Node) -> str:
    """The layer and its activation: Dense, relu."""
    activation = activation_of(node)
    name = type(node.layer).__name__
    if name == "Activation":
        return str(getattr(node.layer, "name", name))
    return name if activation in (None, "identity") else f"{name}, {activation}"


def drawings(flow: Flow, loss: Any, lang: str, symbols: Symbols = parameters_of) -> Iterator[Block]:
    """The data flow, in as many figures as fit on a page each."""
    texts = {node.number: _texts(node, symbols(node)) for node in flow.nodes if not node.is_sum}
    start = (label(lang, "input"),)
    end: tuple[Label, ...] = (label(lang, "output"),)
    if loss is not None:
        end = (type(loss).__name__, LOSS)
    yield Heading(label(lang, "model_drawing"), anchor="drawing")
    found = pages(flow, texts, start, end)
    for i, page in enumerate(found):
        title = label(lang, "model_drawing")
        caption = label(lang, "model_lines") if i == 0 else ""
        if len(found) > 1:
            caption = f"{i + 1}/{len(found)}. {caption}".rstrip()
        described = _described(page, lang)
        drawn = svg(page.shapes, page.width, page.height, title=title, description=described)
        yield Figure(drawn, tikz(page.shapes), caption, described)


def _row(cost: Cost, lang: str) -> tuple[Content, ...]:
    node = cost.node
    return (
        Link(str(node.number), f"#forward-{node.number}"),
        (f"{kind(node)} ", Mono(node.name)) if node.name else kind(node),
        "×".join(map(str, node.shape)) or "1",
        _count(cost.parameters, lang),
        _count(cost.cached, lang),
        _count(cost.forward, lang),
        _count(cost.backward, lang),
    )


def _count(value: int | None, lang: str) -> str:
    """Digits in groups of three, as the language has them."""
    if value is None:
        return _UNKNOWN
    return f"{value:,}" if lang == "en" else f"{value:,}".replace(",", ".")


def _texts(node: Node, parameters: Mapping[str, Formula]) -> tuple[Label, ...]:
    """The lines in a node's box: what it is, and as many of its parameters as have room."""
    words = f"{node.number}  {kind(node)}"
    while text_width(words) > _ROOM:
        words = words.rstrip("…")[:-1] + "…"
    symbols = list(parameters.values())
    shown = separated(tuple(symbols))
    while symbols and text_width(shown) > _ROOM:
        symbols.pop()
        shown = separated((*symbols, Sign("⋯")))
    return (words, shown) if symbols else (words,)


def _described(page: Page, lang: str) -> str:
    """The drawing in words: 3 Dense (h2), 4 Residual (h1 + h3)."""
    of = [" + ".join(f"h{value}" for value in node.inputs) for node in page.nodes]
    parts = [
        f"{node.number} {kind(node)} ({value})" for node, value in zip(page.nodes, of, strict=True)
    ]
    return f"{label(lang, 'model_drawing')}: {', '.join(parts)}."
