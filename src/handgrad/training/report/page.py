"""The page: which sections a report has, and what stands in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from handgrad.arrays import Array
from handgrad.data.dataset import Pixels
from handgrad.data.ragged import Sequences
from handgrad.layers.base import Layer, walk
from handgrad.layers.recurrent import Recurrent
from handgrad.models.cls_encoder import ClsEncoder
from handgrad.training.files import write_atomically
from handgrad.training.folder import Run
from handgrad.training.progress import clock
from handgrad.training.report.charts import Series, figure, line_chart
from handgrad.training.report.heatmap import shades
from handgrad.training.report.matrix import confusion_matrix, matrix_chart
from handgrad.training.report.pictures import first_filters, image_pixels, png
from handgrad.training.review import Section

#: Beyond these a drawing is no longer readable.
MOST_CLASSES, MOST_LINES, MOST_MISTAKES, MOST_FILTERS = 24, 9, 24, 64

TRAIN, VALIDATION, TEST = "var(--blue)", "var(--orange)", "var(--muted)"


@dataclass(frozen=True)
class Judged:
    """The test examples themselves, to be shown: images, rows, or sequences, with their classes."""

    x: Any
    y: Array
    classes: Sequence[str] | None = None

    @classmethod
    def of(cls, test: Any) -> Judged | None:
        """The examples of a test part or a pair (x, y); None for a source of batches."""
        if hasattr(test, "x_test"):
            return cls(test.x_test, test.y_test, getattr(test, "classes", None))
        return cls(*test) if isinstance(test, tuple) else None


def write_report(
    run: Run,
    model: Layer,
    summary: Mapping[str, Any],
    shapes: Any = None,
    judged: Judged | None = None,
    outputs: Array | None = None,
    own: Sequence[Section] = (),
) -> None:
    """Write report.html from the run's metrics, the outputs for the test examples, and `own`.

    shapes: of one example, or of each array it is made of; None where that is not known.
    """
    records = run.records()
    sections = [
        _figures(summary),
        _curves([record for record in records if record["kind"] == "epoch"], summary),
    ]
    if judged is not None and outputs is not None:
        sections.append(_judgement(judged, outputs, _reads_sequences(model, judged.x)))
    sections += [_section(escape(each.heading), escape(each.note), each.body) for each in own]
    if judged is not None:
        sections.append(_filters(model, shapes))
    sections.append(_norms([record for record in records if record["kind"] == "gradients"]))
    sections.append(_layers(model, shapes))
    sections.append(_facts(run, summary))
    title = escape(run.folder.resolve().name)
    style = files(__package__).joinpath("style.css").read_text("utf-8")
    page = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title} · handgrad</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        f"<header><h1>{title}</h1><p>{_sentence(summary, judged is not None)}</p></header>\n"
        + "\n".join(section for section in sections if section)
        + "\n</main>\n</body>\n</html>\n"
    )
    write_atomically(run.report, page.encode(errors="backslashreplace"))


def _percent(value: float, digits: int = 2) -> str:
    return f"{100 * value:.{digits}f}\N{NO-BREAK SPACE}%"


def _section(heading: str, note: str, body: str) -> str:
    if not body:
        return ""
    said = f'<p class="note">{note}</p>' if note else ""
    return f"<section><h2>{heading}</h2>{said}{body}</section>"


def _sentence(summary: Mapping[str, Any], classifies: bool) -> str:
    epochs, steps = summary["epochs"], summary["steps"]
    text = (
        f"Trained for {epochs:,} epoch{'s' * (epochs != 1)} ({steps:,} steps) in "
        f"{_duration(summary['seconds'])}."
    )
    if classifies and summary["test_accuracy"] is not None:
        right = round(summary["test_accuracy"] * summary["test_examples"])
        text += f" Of {summary['test_examples']:,} test examples, {right:,} are classified right."
    return text


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 100 else f"{clock(seconds)} min"


def _figures(summary: Mapping[str, Any]) -> str:
    part, extra = summary["judged_on"], summary["figures"]
    figures: list[tuple[str, Any, Callable[[Any], str]]] = [
        (f"{part} accuracy", summary["test_accuracy"], _percent),
        (f"{part} loss", summary["test_loss"], "{:.4f}".format),
        *[(name.replace("_", " "), value, _form(name)) for name, value in extra.items()],
        ("training time", summary["seconds"], _duration),
        ("parameters", summary["parameters"], "{:,}".format),
    ]
    cells = "".join(
        f"<div><dt>{name}</dt><dd>{shown(value)}</dd></div>"
        for name, value, shown in figures
        if value is not None
    )
    return f'<dl class="figures">{cells}</dl>'


def _form(name: str) -> Callable[[Any], str]:
    """Bits as a number, every other figure of a review as a share."""
    return "{:.3f}".format if name.startswith("bits") else _percent


# -- curves ---------------------------------------------------------------------------------------


def _curves(epochs: Sequence[Mapping[str, Any]], summary: Mapping[str, Any]) -> str:
    if not epochs:
        return ""
    losses = _lines(epochs, "loss", summary["test_loss"])
    values = [y for line in losses for y in line.y if y > 0]
    log = bool(values) and max(values) > 20 * min(values)
    charts = [
        figure(
            "Loss" + (", logarithmic" if log else ""),
            line_chart(losses, label="Loss by epoch", x_label="epoch", log=log),
        )
    ]
    accuracies = _lines(epochs, "accuracy", summary["test_accuracy"])
    if accuracies:
        # The first epochs may start anywhere; the axis is for the rest.
        values = sorted(y for line in accuracies for y in line.y)
        low = values[len(values) // 10]
        charts.append(
            figure(
                "Accuracy",
                line_chart(
                    accuracies,
                    label="Accuracy by epoch",
                    x_label="epoch",
                    y_format=lambda y: f"{100 * y:g}\N{NO-BREAK SPACE}%",
                    y_low=max(0.0, low - 0.1 * (1 - low) - 1e-3),
                    y_high=1.0,
                ),
            )
        )
    note = "Training values are averages over the epoch while the weights were still changing."
    return _section("How it learned", note, f'<div class="pair">{"".join(charts)}</div>')


def _lines(epochs: Sequence[Mapping[str, Any]], key: str, test: float | None) -> list[Series]:
    lines = []
    for name, field, style in (
        ("training", key, TRAIN),
        ("validation", f"validation_{key}", VALIDATION),
    ):
        found = [(r["epoch"], r[field]) for r in epochs if r.get(field) is not None]
        if found:
            lines.append(Series(name, [x for x, _ in found], [y for _, y in found], style))
    if test is not None and lines:
        span = [epochs[0]["epoch"], epochs[-1]["epoch"]]
        lines.append(Series("test", span, [test, test], TEST, dashed=True))
    return lines


def _norms(records: Sequence[Mapping[str, Any]]) -> str:
    if not records:
        return ""
    layers = list(records[0]["norms"])
    if len(layers) > MOST_LINES:
        chosen = np.linspace(0, len(layers) - 1, MOST_LINES).round().astype(int)
        layers = [layers[i] for i in chosen]
    window = max(1, len(records) // 25)
    steps = _means([float(record["step"]) for record in records], window)
    lines = [
        Series(
            layer or "model",
            steps,
            _means([record["norms"][layer] for record in records], window),
            f"oklch(var(--tone) 0.13 {265 - 235 * i / max(len(layers) - 1, 1):.0f})",
        )
        for i, layer in enumerate(layers)
    ]
    chart = line_chart(lines, label="Gradient norm by step", x_label="step", log=True)
    note = (
        "The norm of each layer's gradient, before clipping, from the first layer (blue) to the "
        "last (red). Lines that fall together are normal; one that dies or runs away is not."
    )
    if window > 1:
        note += f" Each point is the mean of {window} records; metrics.jsonl has them all."
    return _section(
        "Gradients", note, f'<div class="single">{figure("Norm, logarithmic", chart)}</div>'
    )


def _means(values: Sequence[float], window: int) -> list[float]:
    """Means of `window` values after another, what is left over at the start dropped."""
    start = len(values) % window
    return [float(row.mean()) for row in np.array(values[start:]).reshape(-1, window)]


# -- what it gets right and wrong -----------------------------------------------------------------


def _judgement(judged: Judged, outputs: Array, sequential: bool) -> str:
    x, targets = judged.x, np.asarray(judged.y)
    if targets.dtype.kind not in "iu" or targets.ndim != 1 or outputs.ndim != 2:
        return ""
    names = list(judged.classes or [])
    names = names or [str(i) for i in range(outputs.shape[1])]
    probabilities = _softmax(outputs)
    predictions = probabilities.argmax(axis=1)
    matrix = ""
    if len(names) <= MOST_CLASSES:
        counts = confusion_matrix(targets, predictions, len(names))
        matrix = _section(
            "Confusion matrix",
            "Right answers in blue on the diagonal, mistakes in orange, each on its own scale.",
            f'<div class="scroll">{matrix_chart(counts, names)}</div>',
        )
    own = probabilities[np.arange(len(targets)), targets]
    wrong = np.flatnonzero(predictions != targets)
    if len(wrong):
        heading = "Worst mistakes"
        shown = wrong[np.argsort(own[wrong], kind="stable")][:MOST_MISTAKES]
        note = (
            f"{len(wrong):,} of {len(targets):,} test examples are wrong; here those where the "
            f"true class was thought least likely. In bold what the model read; the numbers are "
            f"its probabilities."
        )
    else:
        heading = "Closest calls"
        shown = np.argsort(own, kind="stable")[:MOST_MISTAKES]
        note = "No test example is wrong; here those where the model was least sure."
    examples = {int(i): _one(x, int(i)) for i in shown}
    if sequential:
        note += (
            " Time runs across, channels stand above one another; orange is above 0, blue below."
        )
        longest = max(map(len, examples.values()))
        pictures = {i: _sequence(example, i, longest) for i, example in examples.items()}
    else:
        pictures = {i: _image(example, i) for i, example in examples.items()}
    cards = "".join(
        f"<li>{picture}{_verdict(names, int(targets[i]), probabilities[i])}</li>"
        for i, picture in pictures.items()
    )
    kind = " sequences" if sequential else ""
    return matrix + _section(heading, note, f'<ul class="examples{kind}">{cards}</ul>')


def _reads_sequences(model: Layer, x: Any) -> bool:
    """Return whether examples are (time, channels); rows of an image are shown as an image."""
    if isinstance(x, Sequences):
        return True
    recurrent = any(isinstance(layer, Recurrent | ClsEncoder) for _, layer in walk(model))
    return recurrent and not isinstance(x, Pixels) and np.ndim(x) == 3


def _one(x: Any, i: int) -> Array:
    """Example i; of sequences its own steps alone."""
    example = np.asarray(x[i : i + 1][0])
    return example[0] if isinstance(x, Sequences) else example


def _softmax(outputs: Array) -> Array:
    shifted = outputs.astype(np.float64) - outputs.max(axis=1, keepdims=True)
    exponentials = np.exp(shifted)
    probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
    return probabilities


def _image(example: Array, index: int) -> str:
    pixels = image_pixels(example)
    said = f"test example {index}"
    if pixels is None:
        return f'<span class="index">{said}</span>'
    return f'<img src="{png(pixels)}" alt="{said}" title="{said}">'


def _sequence(example: Array, index: int, longest: int) -> str:
    """Shades of (time, channels), as wide as it is long beside the longest."""
    picture = shades(example.T / (np.abs(example).max(initial=0) or 1))
    said = f"test example {index}"
    width = 100 * len(example) / longest
    return (
        f'<img class="shades" src="{picture}" alt="{said}" title="{said}" '
        f'style="width:{width:.0f}%">'
    )


def _verdict(names: Sequence[str], target: int, probabilities: Array) -> str:
    guess = int(probabilities.argmax())
    verdict = f"<b>{escape(names[guess])}</b> {_percent(probabilities[guess], 0)}"
    if guess != target:
        verdict += f"<br>is {escape(names[target])} {_percent(probabilities[target], 1)}"
    return f"<p>{verdict}</p>"


# -- the model ------------------------------------------------------------------------------------


def _filters(model: Layer, input_shape: Any) -> str:
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
    return _section(
        "What the first layer looks for", note, f'<div class="filters">{pictures}</div>'
    )


def _layers(model: Layer, input_shape: Any) -> str:
    if input_shape is None:
        return ""
    rows = model.summary(input_shape)
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
    return _section("Layers", note, table)


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


# -- the run --------------------------------------------------------------------------------------


def _facts(run: Run, summary: Mapping[str, Any]) -> str:
    shown: list[tuple[str, Any, Callable[[Any], str]]] = [
        ("engine", summary["engine"], str),
        ("precision", summary["precision"], str),
        ("seed", summary["seed"], str),
        ("finished", summary["finished"], lambda time: f"{time[:10]} {time[11:19]} UTC"),
        ("training loss", summary["train_loss"], "{:.4f}".format),
        ("training accuracy", summary["train_accuracy"], _percent),
        *[(name, text, str) for name, text in summary["versions"].items()],
    ]
    cells = "".join(
        f"<div><dt>{name}</dt><dd>{escape(form(value))}</dd></div>"
        for name, value, form in shown
        if value is not None
    )
    config = escape(run.read_config())
    return _section(
        "The run",
        "",
        f'<dl class="facts">{cells}</dl>'
        f"<details><summary>config.toml</summary><pre>{config}</pre></details>",
    )
