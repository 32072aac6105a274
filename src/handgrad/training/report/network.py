"""The network of a report: its gradients while it learned, its first filters, its layers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from handgrad.layers.base import Layer, walk
from handgrad.training.report.charts import Series, figure, line_chart
from handgrad.training.report.html import section
from handgrad.training.report.pictures import first_filters, png

#: Beyond these a drawing is no longer readable.
MOST_LINES, MOST_FILTERS = 9, 64


def norms(records: Sequence[Mapping[str, Any]], model: Layer) -> str:
    """The section on the gradient norms that were recorded; nothing where none were."""
    if not records:
        return ""
    layers = list(records[0]["norms"])
    if len(layers) > MOST_LINES:
        chosen = np.linspace(0, len(layers) - 1, MOST_LINES).round().astype(int)
        layers = [layers[i] for i in chosen]
    window = max(1, len(records) // 25)
    steps = _means([float(record["step"]) for record in records], window)
    kinds = {name: type(each).__name__ for name, each in walk(model)}
    lines = [
        Series(
            _label(layer, kinds),
            steps,
            _means([record["norms"][layer] for record in records], window),
            f"oklch(var(--tone) 0.15 {265 - 235 * i / max(len(layers) - 1, 1):.0f})",
            dashed=i % 2 == 1,
        )
        for i, layer in enumerate(layers)
    ]
    chart = line_chart(lines, label="Gradient norm by step", x_label="step", log=True)
    note = (
        "The norm of each layer's gradient, before clipping, from the first layer (blue) to the "
        "last (red), every second one dashed. Lines that fall together are normal; one that dies "
        "or runs away is not."
    )
    if window > 1:
        note += f" Each point is the mean of {window} records; metrics.jsonl has them all."
    return section(
        "Gradients", note, f'<div class="single">{figure("Norm, logarithmic", chart)}</div>'
    )


def _label(layer: str, kinds: Mapping[str, str]) -> str:
    """A layer's name, with its class where the name is a number, which says nothing."""
    if layer.rpartition(".")[2].isdigit() and layer in kinds:
        return f"{layer} {kinds[layer]}"
    return layer or "model"


def _means(values: Sequence[float], window: int) -> list[float]:
    """Means of `window` values after another, what is left over at the start dropped."""
    start = len(values) % window
    return [float(row.mean()) for row in np.array(values[start:]).reshape(-1, window)]


def filters(model: Layer, input_shape: Any) -> str:
    """The section with the weights of the first layer, where they are pictures."""
    filters = first_filters(model.parameters, input_shape or ())
    pictures = "".join(
        f'<img src="{png(f)}" alt="filter {i}" title="filter {i}">'
        for i, f in enumerate(filters[:MOST_FILTERS])
    )
    if not pictures:
        return ""
    colours = (
        "red, green and blue weights as colours around grey"
        if filters[0].ndim == 3 and next(iter(model.parameters.values())).shape[1] == 3
        else "blue weighs against, orange weighs for, white not at all"
    )
    more = f" The first {MOST_FILTERS} of {len(filters)}." if len(filters) > MOST_FILTERS else ""
    note = f"The weights of the first layer, each filter on its own scale: {colours}.{more}"
    return section("What the first layer looks for", note, f'<div class="filters">{pictures}</div>')


def layer_table(model: Layer, input_shape: Any) -> str:
    """The section with a row for each layer, where the shape of an example is known."""
    if input_shape is None:
        return ""
    rows = model.rows(input_shape)
    body = "".join(
        f"<tr><td>{escape(row.name)}</td><td>{escape(row.layer)}</td>"
        f"<td>{_sizes(row.output_shape)}</td>"
        f"<td>{row.parameters:,}</td><td>{_count(row.flops)}</td></tr>"
        for row in rows
    )
    parameters, flops = sum(row.parameters for row in rows), sum(row.flops for row in rows)
    table = (
        '<div class="scroll"><table><thead><tr><th>name</th><th>layer</th><th>output</th>'
        f"<th>parameters</th><th>FLOPs</th></tr></thead><tbody>{body}</tbody>"
        f'<tfoot><tr><td colspan="3">input {_sizes(input_shape)}</td>'
        f"<td>{parameters:,}</td><td>{_count(flops)}</td></tr></tfoot></table></div>"
    )
    note = "Shapes and FLOPs of one example going forward; a multiply and an add are two."
    return section("Layers", note, table)


def _sizes(shape: Any) -> str:
    """28 × 28, or one such for each array: 30, 12."""
    if shape and isinstance(shape[0], tuple):
        return ", ".join(map(_sizes, shape))
    return " × ".join(map(str, shape)) or "1"


def _count(value: float) -> str:
    """1,234 or 12.3 M: three digits that mean something."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= size:
            scaled = value / (1e3 if unit == "k" else size)
            return f"{scaled:.{max(0, 2 - int(math.log10(scaled)))}f} {unit}"
    return f"{value:,.0f}"
