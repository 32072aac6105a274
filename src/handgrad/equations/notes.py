"""`hg.notes`: the derivation of an op or of a user's own pair, printed from the code that runs."""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from handgrad.documents import html, markdown, pdf, slides, tex
from handgrad.documents.document import Alert, Document, Equation, Mono, Paragraph, spans
from handgrad.documents.formulas.latex import to_latex
from handgrad.documents.labels import LABELS
from handgrad.equations import docstrings, verdicts
from handgrad.equations.measured import Measure, Measured, measure, measure_layer
from handgrad.equations.models.examples import MODELS, named_model
from handgrad.equations.models.flow import example_shape as model_example_shape
from handgrad.equations.models.model import model_document, recipe_document
from handgrad.equations.operation import document
from handgrad.equations.sources import reference, sources
from handgrad.equations.topics import Topic, op_topic, pair_topic, worked_topic
from handgrad.equations.translations import cited, translated
from handgrad.equations.worked import WORKED
from handgrad.errors import ArgumentError
from handgrad.escaping import printable
from handgrad.layers import Layer, Sequential
from handgrad.layers.base import walk
from handgrad.ops import OPS
from handgrad.optimizers import SGD
from handgrad.paths import as_path
from handgrad.targets import Target, op_of, resolve
from handgrad.writing import reason, write_file

#: The format of each suffix.
_SUFFIXES: Final = {
    ".html": "html",
    ".htm": "html",
    ".tex": "tex",
    ".md": "md",
    ".markdown": "md",
    ".pdf": "pdf",
}
FORMATS: Final = ("html", "tex", "md", "pdf", "slides")
#: In how many examples the gradients of a model are measured.
_EXAMPLES: Final = 3
#: What `notes` takes beside a model.
_MODEL_OPTIONS: Final = frozenset({"loss", "target", "optimizer", "input_shape"})


class Notes:
    """Notes in every format; a notebook shows them as they are."""

    def __init__(self, document: Document) -> None:
        self.document = document

    @property
    def ok(self) -> bool:
        """False where a gradient was measured and is wrong, as the notes then say at their top."""
        return not any(isinstance(block, Alert) for block in self.document.blocks)

    def to_html(self) -> str:
        """One file that needs nothing else, with MathML."""
        return html.page(self.document)

    def to_latex(self) -> str:
        """A LaTeX article that compiles as it is."""
        return tex.render(self.document)

    def to_markdown(self) -> str:
        """Markdown with its mathematics between dollar signs."""
        return markdown.render(self.document)

    def to_pdf(self) -> bytes:
        """A4 pages. Raises HandgradError where the package typst is missing."""
        return pdf.render(self.document)

    def to_slides(self) -> str:
        """One HTML file with a slide for every equation and every step."""
        return slides.page(self.document)

    def rendered(self, format: str, suffix: str = "") -> bytes:
        """The notes in one of FORMATS; slides are a PDF for a file with that suffix.

        Raises ArgumentError for another format.
        """
        match format:
            case "html":
                return printable(self.to_html()).encode()
            case "tex":
                return printable(self.to_latex()).encode()
            case "md":
                return printable(self.to_markdown()).encode()
            case "pdf":
                return self.to_pdf()
            case "slides" if _SUFFIXES.get(suffix) == "pdf":
                return slides.render(self.document)
            case "slides":
                return printable(self.to_slides()).encode()
        raise ArgumentError(f"notes: format is {format!r}; allowed: {', '.join(FORMATS)}")

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> Path:
        """Write the notes in the format of the file's suffix, unless one is given.

        The file is there whole or not at all. Raises ArgumentError for an unknown format, or where
        the file cannot be written.
        """
        file = as_path("notes", path)
        content = self.rendered(format_of(file) if format is None else format, file.suffix)
        try:
            write_file(file, content)
        except OSError as error:
            raise ArgumentError(
                f"notes: {file} cannot be written ({reason(error)}); allowed: a file in a folder "
                "that exists and can be written to"
            ) from None
        return file

    def __repr__(self) -> str:
        return f"Notes({self.document.title!r})"

    def _repr_html_(self) -> str:
        return html.fragment(self.document)

    def _repr_latex_(self) -> str:
        equations = (each for each in self.document.blocks if isinstance(each, Equation))
        return "\n\n".join(f"$$ {to_latex(each.formula)} $$" for each in equations)

    def _repr_markdown_(self) -> str:
        return self.to_markdown()


def notes(
    target: object,
    *inputs: object,
    numbers: bool = False,
    lang: str = "en",
    eta: float = 0.1,
    measure: Measure | None = measure,
    alive: bool = False,
    **options: object,
) -> Notes:
    """The notes of a forward and its backward: symbols, equations, shapes, with `numbers` values.

    `target` is an op (`hg.ops.layer_norm` or its name), a worked example or a model (such as
    "gpt") by name, a pair of
    functions `(forward, backward)` in the op contract, a module or class with both,
    "module:object" for one of these, a layer or model, or the name of a recipe or run. `inputs` are
    arrays for forward, in its order; an op and a worked example have their own, a pair may have
    `INPUTS` beside it or shapes in forward's annotations, and a model of one input needs none.
    `options` are settings of forward; for a model `loss`, `target`, `optimizer` and `input_shape`,
    the shape of one example. `lang` is en or ro. `eta` is the learning rate
    of the updates that `numbers` shows. `measure` gives the finite-difference result; None leaves
    it out. `alive` adds a script to the HTML that steps through the run.

    Raises ArgumentError for a target, inputs or language that is none of these.
    """
    if lang not in LABELS:
        raise ArgumentError(f"notes: lang is {lang!r}; allowed: {', '.join(LABELS)}")
    if not (isinstance(eta, int | float) and math.isfinite(eta)):
        raise ArgumentError(f"notes: eta is {eta!r}; allowed: a number")
    found = target
    if isinstance(target, str) and target in MODELS:
        found, shape, given, loss = named_model(target, small=numbers or alive)
        inputs = inputs or given
        options = {**({} if inputs else {"input_shape": shape}), "loss": loss, **options}
        target = type(found).__name__
    elif isinstance(target, Target) or (isinstance(target, str) and target not in WORKED):
        named = target if isinstance(target, Target) else _resolved(target)
        target = named.name
        if named.recipe is not None:
            words = str(named.recipe.tables.get("description") or target)
            title = _title(named.value, words.partition(",")[0])
            written = recipe_document(
                named.recipe, named.value, title=title, lang=lang, numbers=numbers, alive=alive
            )
            return Notes(_with_source(written, named.value))
        found = named.value
    if isinstance(found, Layer):
        title = target if isinstance(target, str) else _name(target)
        settings = {"title": title, "lang": lang, "numbers": numbers, "alive": alive}
        options = {"optimizer": SGD(eta), **options}
        written = _model(found, inputs, options, **settings)
        measured = () if measure is None else _measured(found, inputs, options)
        return Notes(_with_verdicts(_with_source(written, found), measured))
    topic = _topic(target, found, inputs, options, lang)
    written = document(topic, numbers=numbers, lang=lang, eta=eta, measure=measure, alive=alive)
    return Notes(written)


def _model(
    model: Layer, inputs: tuple[Any, ...], options: dict[str, Any], **settings: Any
) -> Document:
    """The notes of a layer or model, on the batch that is given, if one is."""
    unknown = sorted(options.keys() - _MODEL_OPTIONS)
    if unknown:
        allowed = ", ".join(sorted(_MODEL_OPTIONS))
        given = ", ".join(unknown)
        raise ArgumentError(f"notes: {given} for a model; allowed: its inputs, and {allowed}")
    x = inputs if len(inputs) > 1 else inputs[0] if inputs else None
    return model_document(model, x, **settings, **options)


def _with_source(document: Document, model: Layer) -> Document:
    """The document with a sentence on its model and the first source that the model's class names
    before all else, and every source at its end."""
    lang = document.lang
    source = docstrings.parse(type(model).__doc__ or "").source
    words = cited(source, lang) if source else ""
    is_stack = type(model) is Sequential  # which says nothing of its layers
    sentence = "" if is_stack else translated(docstrings.introduction(type(model)), lang)
    if not sentence:
        return replace(document, blocks=(*document.blocks, *sources(words, lang)))
    work, year, _ = words.split("; ")[0].partition(")")
    first = (" ", *spans(reference(work + year))) if words else ()
    opening = Paragraph((*spans(docstrings.prose(sentence)), *first))
    return replace(document, blocks=(opening, *document.blocks, *sources(words, lang)))


def _measured(model: Layer, inputs: tuple[Any, ...], options: dict[str, Any]) -> Sequence[Measured]:
    """The gradients of a model with a layer of the user's own; the others are tested."""
    if all(type(each).__module__.startswith("handgrad.") for _, each in walk(model)):
        return ()
    shape = options.get("input_shape", model_example_shape(model))
    if not inputs and (model.takes_tokens or shape is None):
        return ()
    example = np.random.default_rng(0).standard_normal((_EXAMPLES, *(shape or ())))
    return measure_layer(model, [np.asarray(each) for each in inputs] or [example])


def _with_verdicts(document: Document, measured: Sequence[Measured]) -> Document:
    lang = document.lang
    before, after = (tuple(part(measured, Mono, lang)) for part in (verdicts.alert, verdicts.table))
    return replace(document, blocks=(*before, *document.blocks, *after))


def _topic(
    target: Any, found: Any, inputs: tuple[Any, ...], options: dict[str, Any], lang: str
) -> Topic:
    """What is written about an op, a worked example, or `found`, a pair of functions."""
    if isinstance(target, str) and target in WORKED:
        return worked_topic(target, lang)
    if op_of(found) is not None:
        return op_topic(found.__name__.rpartition(".")[2], inputs, options, lang)
    return pair_topic(found, target if isinstance(target, str) else _name(target), inputs, options)


def _resolved(text: str) -> Target:
    """What a string names. Raises ArgumentError where it names nothing."""
    near = difflib.get_close_matches(text, (*WORKED, *MODELS, *OPS), n=1)
    try:
        return resolve(text)
    except ArgumentError as error:
        if near and near[0] not in OPS:
            raise ArgumentError(
                f"notes: {text} is no target; allowed: a worked example ({', '.join(WORKED)}), a "
                f"model ({', '.join(MODELS)}), an op, module:object; did you mean {near[0]}?"
            ) from None
        raise ArgumentError(f"notes: {error}") from None


def _title(model: Layer, recipe: str) -> str:
    """The name of a recipe's model; one of layers in a row has none, and goes by what the recipe
    says of itself."""
    return recipe if type(model) is Sequential else type(model).__name__


def _name(target: Any) -> str:
    if isinstance(target, tuple) and target:
        target = target[-1]
    name = getattr(target, "__qualname__", None) or getattr(target, "__name__", None)
    return name or type(target).__name__


def format_of(file: Path) -> str:
    """The format of a file by its suffix. Raises ArgumentError for an unknown one."""
    if file.suffix not in _SUFFIXES:
        raise ArgumentError(
            f"notes: {file} has no suffix of a format; allowed: {', '.join(_SUFFIXES)}, or format="
        )
    return _SUFFIXES[file.suffix]
