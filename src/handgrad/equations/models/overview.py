"""A model at a glance: the table of its layers with what they cost, and its drawing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from handgrad.documents.document import (
    Block,
    Content,
    Details,
    Figure,
    Link,
    Mono,
    Paragraph,
    Strong,
    Table,
)
from handgrad.documents.formulas.formula import Formula, Sign, separated
from handgrad.documents.labels import label
from handgrad.equations.models.chain import Chain
from handgrad.equations.models.costs import Cost
from handgrad.equations.models.drawing import Label, drawn, spoken, text_width
from handgrad.equations.models.extents import BOX_WIDTH
from handgrad.equations.models.flow import Flow, Node
from handgrad.equations.models.layout import Page, pages
from handgrad.equations.models.names import activation_of, parameters_of
from handgrad.equations.models.plan import DataFlow, plan_of_flow
from handgrad.equations.models.planner import plan_of_parts
from handgrad.equations.models.steps import WrittenNode
from handgrad.equations.models.symbols import LOSS
from handgrad.equations.models.tikz import tikz
from handgrad.equations.translations import named

#: The symbols of a node's parameters, by their names.
Symbols = Callable[[Node], Mapping[str, Formula]]

_UNKNOWN: Final = "–"
#: The room for a line of text in a box.
_ROOM: Final = BOX_WIDTH - 12


def table(costs: Sequence[Cost], examples: int, lang: str) -> Details:
    """One row for every node, and the totals; how bytes and FLOPs are counted below it."""
    keys = ("layer", "shape", "parameters", "bytes_cached", "flops_forward")
    header: tuple[Content, ...] = ("", *(label(lang, key) for key in (*keys, "flops_backward")))
    rows = [_row(cost, lang, several=len(costs) > 1) for cost in costs]
    totals = (
        sum(cost.parameters for cost in costs),
        sum(cost.cached for cost in costs),
        sum(cost.forward or 0 for cost in costs),
        sum(cost.backward or 0 for cost in costs),
    )
    total = tuple(Strong(_count(each, lang)) for each in totals)
    summed: tuple[Content, ...] = ("", Strong(label(lang, "total")), "", *total)
    return Details(
        label(lang, "costs"),
        (
            Table(header, (*rows, summed), align="rllrrrr"),
            Paragraph(label(lang, "model_cached").format(examples)),
            Paragraph(label(lang, "model_flops")),
        ),
        level=1,
        anchor="layers",
    )


def kind(node: Node, lang: str) -> str:
    """The layer and its activation: Dense, relu."""
    activation = activation_of(node)
    name = type(node.layer).__name__
    if name == "Activation":
        return str(getattr(node.layer, "name", named(name, lang)))
    name = named(name, lang)
    return name if activation in (None, "identity") else f"{name}, {activation}"


def drawings(plan: DataFlow, loss: Any, lang: str) -> Iterator[Block]:
    """The data flow, in as many figures as fit on a page each."""
    start = (label(lang, "input"),)
    end: tuple[Label, ...] = (label(lang, "output"),)
    if loss is not None:
        end = (named(type(loss).__name__, lang), LOSS)
    found = pages(plan, start, end)
    for i, page in enumerate(found):
        title = label(lang, "model_drawing")
        caption = label(lang, "model_lines" if i == 0 else "model_lines_on")
        described = _described(plan, page, lang)
        figure = drawn(page.shapes, page.width, page.height, title=title, description=described)
        yield Figure(figure, tikz(page.shapes), caption, described)


def plan(chain: Chain, written: Sequence[WrittenNode]) -> DataFlow:
    """The parts of a model that are drawn: its layers, or the parts of the only one that it has."""
    flow = chain.flow
    if len(flow.nodes) == 1 and not chain.is_plain:
        (node,) = flow.nodes
        found = plan_of_parts(
            flow, written[0], chain.symbols_of(node), chain.inputs_of(node), chain.lang
        )
        if found is not None:
            texts = {number: _fitting(*each) for number, each in found.texts.items()}
            return replace(found, texts=texts)
    return layers(flow, chain.symbols_of, chain.lang)


def layers(flow: Flow, symbols: Symbols = parameters_of, lang: str = "en") -> DataFlow:
    """The layers of a model, each with its parameters in its box."""
    texts = {
        node.number: _fitting(f"{node.number}  {kind(node, lang)}", *symbols(node).values())
        for node in flow.nodes
        if not node.is_sum
    }
    return plan_of_flow(flow, texts, lang)


def _row(cost: Cost, lang: str, *, several: bool) -> tuple[Content, ...]:
    node = cost.node
    return (
        Link(str(node.number), f"#forward-{node.number}") if several else str(node.number),
        (f"{kind(node, lang)} ", Mono(node.name)) if node.name else kind(node, lang),
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


def _fitting(words: Label, *symbols: Label) -> tuple[Label, ...]:
    """The lines in a box: what it is, and as many of its parameters as have room."""
    assert isinstance(words, str)
    while text_width(words) > _ROOM:
        words = words.rstrip("…")[:-1] + "…"
    formulas = [each for each in symbols if not isinstance(each, str)]
    shown = separated(tuple(formulas))
    while formulas and text_width(shown) > _ROOM:
        formulas.pop()
        shown = separated((*formulas, Sign("⋯")))
    return (words, shown) if formulas else (words,)


def _described(plan: DataFlow, page: Page, lang: str) -> str:
    """The drawing in words: each box or sum, with what goes into it."""
    found = []
    for node in page.nodes:
        taken = (spoken(plan.values[value].symbol) for value in (*node.inputs, *node.aside))
        is_box = node.number in plan.texts
        values = (", " if is_box else " + ").join(taken)
        words = plan.texts[node.number][0] if is_box else "+"
        found.append(f"{words} ({values})")
    return f"{label(lang, 'model_drawing')}: {', '.join(found)}."
