"""The plan of a model's drawing: boxes, forks and frames, and what stands beside its lines.

A model of layers in a row is drawn by its layers. A layer that is written part by part is drawn by
its parts, in one column or in several beside each other. The symbols are those of the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from handgrad.documents.formulas.formula import Formula, Number, Text, row
from handgrad.documents.labels import label
from handgrad.equations.models.drawing import Label
from handgrad.equations.models.flow import Flow, Fork, Group, Node, Parts
from handgrad.equations.models.symbols import inline, value_gradient, value_symbol


@dataclass(frozen=True)
class DrawnValue:
    """A value on a line: its symbol, its shape, whether training computes its gradient, and ∂L/∂ it
    where an equation has that.

    `copies` are the gradients of what of it goes into single boxes, by their numbers.
    """

    symbol: Formula
    shape: Label
    is_trained: bool
    gradient: Formula | None = None
    copies: Mapping[int, Formula] = field(default_factory=dict)


class SideColumn(NamedTuple):
    """Parts one below the other, from the value `start`: an input, or the second of a node."""

    start: int
    parts: Parts


@dataclass(frozen=True)
class DataFlow:
    """Parts by the numbers of their values; `texts` are the lines in the box of each node.

    `parts` lead from the value `start` to the output; what the columns `before` and `behind` them
    give goes into their nodes from aside. `givers` are the nodes that give values beside their own.
    """

    parts: Parts
    values: Mapping[int, DrawnValue]
    texts: Mapping[int, tuple[Label, ...]]
    start: int = 0
    before: tuple[SideColumn, ...] = ()
    behind: tuple[SideColumn, ...] = ()
    givers: Mapping[int, int] = field(default_factory=dict)


def plan_of_flow(flow: Flow, texts: Mapping[int, tuple[Label, ...]], lang: str = "en") -> DataFlow:
    """The layers of a model, with the texts in their boxes."""
    values = {}
    for value in range(flow.output + 1):
        shapes = (flow.shape(value),) if value else flow.input_shapes
        uses = flow.uses(value)
        copies = {node.number: inline(value_gradient(value, node.number)) for node in uses}
        values[value] = DrawnValue(
            value_symbol(value),
            ", ".join("×".join(map(str, each)) or "1" for each in shapes),
            value in flow.needed,
            inline(value_gradient(value)) if value in flow.needed else None,
            copies if len(uses) > 1 else {},
        )
    return DataFlow(_framed(flow.parts, lang), values, texts)


def _framed(parts: Parts, lang: str) -> Parts:
    """Layers with a frame around each round of the first that come again in their order, such as a
    convolution and a pooling."""
    kinds = [_kind(part) for part in parts]
    for first in range(len(parts)):
        for length in range(2, (len(parts) - first) // 2 + 1):
            once = kinds[first : first + length]
            if None in once or len(set(once)) == 1:
                continue
            times = 1
            while kinds[first + times * length : first + (times + 1) * length] == once:
                times += 1
            if times > 1:
                starts = range(first, first + times * length, length)
                rounds = [parts[start : start + length] for start in starts]
                groups = tuple(_block(each, n, lang) for n, each in enumerate(rounds, start=1))
                return (*parts[:first], *groups, *parts[first + times * length :])
    return parts


def _kind(part: Node | Fork | Group) -> str | None:
    return type(part.layer).__name__ if isinstance(part, Node) else None


def _block(parts: Parts, number: int, lang: str) -> Group:
    first, last = parts[0], parts[-1]
    assert isinstance(first, Node)
    assert isinstance(last, Node)
    title = row(Text(f"{label(lang, 'model_block')} "), Number(str(number)))
    (taken,) = first.inputs
    return Group(title, 1, taken, last.number, taken, last.number, parts)
