"""What notes can be written of: an op, a worked example, or a user's own pair of functions."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Final

import numpy as np

from handgrad.documents.labels import label
from handgrad.equations import docstrings
from handgrad.equations.docstrings import DocString
from handgrad.equations.naming import gradients_of
from handgrad.equations.subject import Subject, parameters
from handgrad.equations.tracing import output, path
from handgrad.equations.translations import cited, is_translated, translated
from handgrad.equations.worked import WORKED
from handgrad.errors import ArgumentError
from handgrad.ops import samples
from handgrad.ops.samples import SampleInput
from handgrad.targets import pair_of

#: Samples of these kinds take no path of their own.
_NO_VARIANTS: Final = ("empty", "extreme values")
#: What comes into a loss that is not the last node.
_ANY_LOSS: Final = np.asarray(2.0)
#: Sizes of the letters in annotations, where a user gives no inputs.
_SMALL_SIZES: Final = (2, 3, 4, 5)


@dataclass(frozen=True)
class Topic:
    """A pair on its example, and what is said about it."""

    subject: Subject
    #: Where gradients are measured: an example without kinks.
    measured: Subject
    title: str
    introduction: str
    doc: DocString
    cache: str
    #: Other settings or inputs, with what is different about each, that take another path.
    variants: tuple[tuple[str, Subject], ...] = ()
    #: Whether its texts are in the language that was asked for, and not those of the code.
    translated: bool = False


def op_topic(name: str, inputs: Sequence[Any], options: Mapping[str, Any], lang: str) -> Topic:
    """An op, on its own small example unless there are inputs."""
    module = import_module(f"handgrad.ops.{name}")
    usual, *others = samples.sample_inputs(name, np.random.default_rng(0))
    if inputs:
        arrays, settings = _given(module.forward, inputs, name), dict(options)
        for key in [key for key, value in options.items() if isinstance(value, np.ndarray)]:
            arrays[key] = _as_array(settings.pop(key), key)
        subject = _on(name, arrays, settings, None)
        subject = replace(subject, cotangent=_cotangent(subject))
    else:
        small = samples.small_example(name)
        subject = _on(name, small.arrays, {**small.options, **options}, None)
        same = not options
        dy = samples.small_cotangent(name) if same else _cotangent(subject)
        subject = replace(subject, cotangent=dy)
    variants = () if inputs or options else tuple(_variants(name, subject, usual, others, lang))
    topic = Topic(
        subject,
        subject if inputs or options else _on(name, usual.arrays, usual.options, None),
        name,
        inspect.getdoc(module) or "",
        docstrings.parse(inspect.getdoc(module.forward) or ""),
        inspect.getdoc(module.Cache) or "",
        variants,
    )
    return _translated(topic, lang)


def _translated(topic: Topic, lang: str) -> Topic:
    """The topic with the words of its code in a language, if all of them are known there."""
    doc = topic.doc
    introduction = docstrings.paragraphs(topic.introduction)
    cache = docstrings.paragraphs(topic.cache)
    texts = (*introduction, doc.summary, *doc.conventions, doc.shapes, *cache)
    if not all(is_translated(text, lang) for text in texts):
        return topic
    return replace(
        topic,
        introduction="\n\n".join(translated(each, lang) for each in introduction),
        doc=DocString(
            translated(doc.summary, lang),
            tuple(translated(each, lang) for each in doc.conventions),
            translated(doc.shapes, lang),
            cited(doc.source, lang),
        ),
        cache="\n\n".join(translated(each, lang) for each in cache),
        translated=True,
    )


def _on(name: str, arrays: Mapping[str, Any], options: Mapping[str, Any], dy: Any) -> Subject:
    module = import_module(f"handgrad.ops.{name}")
    settings = {
        key: np.random.default_rng(value.number) if isinstance(value, samples.Seed) else value
        for key, value in options.items()
    }
    return Subject(
        name,
        inspect.unwrap(module.forward),
        inspect.unwrap(module.backward),
        arrays,
        settings,
        dy,
        tuple(each for each in samples.gradient_names(name)),
        getattr(module, "validate", None),
    )


def _variants(
    name: str, subject: Subject, usual: SampleInput, others: Sequence[SampleInput], lang: str
) -> Iterator[tuple[str, Subject]]:
    """Samples on which something else is computed than before, simplest first."""
    seen = [path(subject)]
    described = [
        (_differences(usual, each, lang), each)
        for each in others
        if each.situation not in _NO_VARIANTS
    ]
    for words, sample in sorted(described, key=lambda pair: len(pair[0])):
        found = _on(name, sample.arrays, sample.options, None)
        dy = _cotangent(found)
        found = replace(found, cotangent=_ANY_LOSS if dy is None else dy)
        taken = path(found)
        if taken not in seen:
            seen.append(taken)
            yield ", ".join(words), found


def _differences(usual: SampleInput, other: SampleInput, lang: str) -> list[str]:
    """What is set or given otherwise, in words of code."""
    words = [
        f"{key}={value!r}"
        for key, value in other.options.items()
        if usual.options.get(key) != value and not isinstance(value, samples.Seed)
    ]
    words += [key for key in other.arrays if key not in usual.arrays]
    words += [label(lang, "without").format(key) for key in usual.arrays if key not in other.arrays]
    words += [
        f"{key}.dtype={array.dtype}"
        for key, array in other.arrays.items()
        if key in usual.arrays and array.dtype != usual.arrays[key].dtype
    ]
    return words or [f"{key}.shape={array.shape}" for key, array in other.arrays.items()]


def worked_topic(name: str, lang: str) -> Topic:
    """One of the examples of the notes, on its own numbers."""
    module = import_module(f"handgrad.equations.worked.{name}")
    title, introduction, kept = module.TEXTS[lang]
    subject = _pair(module, name, (), {})
    doc = docstrings.parse(inspect.getdoc(module.forward) or "")
    doc = DocString(shapes=translated(doc.shapes, lang), source=cited(doc.source, lang))
    return Topic(subject, subject, title, introduction, doc, kept, translated=True)


def pair_topic(target: Any, name: str, inputs: Sequence[Any], options: Mapping[str, Any]) -> Topic:
    """A user's own functions: `(forward, backward)`, or an object that has both."""
    subject = _pair(target, name, inputs, options)
    doc = docstrings.parse(inspect.getdoc(subject.forward) or "")
    own = inspect.getdoc(target) if not isinstance(target, tuple) else None
    cache = _beside(target, subject.forward, "Cache", None)
    words = inspect.getdoc(cache) or "" if inspect.isclass(cache) else ""
    if words.startswith("Cache("):  # what a NamedTuple says of itself
        words = ""
    return Topic(subject, subject, subject.name, own or "", doc, words)


def _beside(target: Any, forward: Any, name: str, otherwise: Any) -> Any:
    """What an object, or the module of its forward, has under this name."""
    found = None if isinstance(target, tuple) else getattr(target, name, None)
    return _globals(forward).get(name, otherwise) if found is None else found


def _globals(function: Any) -> Mapping[str, Any]:
    return getattr(inspect.unwrap(function), "__globals__", {})


def _pair(target: Any, name: str, inputs: Sequence[Any], options: Mapping[str, Any]) -> Subject:
    forward, backward = functions_of(target, name)
    own = None if inputs else _own_inputs(target, forward)
    if inputs:
        arrays = _given(forward, inputs, name)
    else:
        arrays = _annotated(forward, name) if own is None else own
    subject = Subject(name, forward, backward, arrays, options)
    dy = ... if own is None else _beside(target, forward, "COTANGENT", ...)
    subject = replace(subject, cotangent=_cotangent(subject) if dy is ... else _as_arrays(dy))
    return replace(subject, gradients=gradients_of(subject))


def functions_of(target: Any, name: str) -> tuple[Any, Any]:
    """Forward and backward. Raises ArgumentError where there are not two functions."""
    pair = pair_of(target)
    if pair is not None:
        return inspect.unwrap(pair[0]), inspect.unwrap(pair[1])
    raise ArgumentError(
        f"notes: {name} has no functions forward and backward; allowed: an op, a worked example "
        f"({', '.join(WORKED)}), a pair (forward, backward), a module or class with both"
    )


def _given(forward: Any, inputs: Sequence[Any], name: str) -> dict[str, Any]:
    """Inputs by the names of forward's arguments."""
    names = list(inspect.signature(forward).parameters)
    if len(inputs) > len(names):
        raise ArgumentError(
            f"notes: {len(inputs)} inputs are given for {name}; allowed: {len(names)}, "
            f"{', '.join(names)}"
        )
    return {key: _as_array(value, key) for key, value in zip(names, inputs, strict=False)}


def _as_array(value: Any, name: str) -> Any:
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise ArgumentError(f"notes: {name} is of {array.dtype}; allowed: an array of numbers")
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _as_arrays(value: Any) -> Any:
    """Floats, also where the example is written in whole numbers; None stays."""
    if value is None:
        return None
    if isinstance(value, tuple):
        return tuple(map(_as_arrays, value))
    return np.asarray(value, dtype=np.float64)


def _own_inputs(target: Any, forward: Any) -> dict[str, Any] | None:
    """The INPUTS that stand beside forward, by name or in its order, if they are for it."""
    own = _beside(target, forward, "INPUTS", None)
    parameters = inspect.signature(forward).parameters
    if isinstance(own, list | tuple) and len(own) <= len(parameters):
        own = dict(zip(parameters, own, strict=False))
    if not isinstance(own, Mapping) or not set(own) <= set(parameters):
        return None
    return {key: np.asarray(value, dtype=np.float64) for key, value in own.items()}


def _annotated(forward: Any, name: str) -> dict[str, Any]:
    """Whole numbers in the shapes that forward's annotations say."""
    rng = np.random.default_rng(0)
    sizes: dict[str, int] = {}
    arrays = {}
    for parameter in parameters(forward):
        if parameter.optional:
            continue
        tokens = parameter.shape.split()
        if (not tokens and parameter.shape == "") or " or " in parameter.shape:
            raise ArgumentError(
                f"notes: no inputs are given for {name}; allowed: hg.notes(target, *inputs), "
                "INPUTS beside forward, or shapes in forward's annotations, "
                'x: Float[Array, "N D"]'
            )
        shape = [
            int(token) if token.isdigit() else _size(token.lstrip("*#"), sizes) for token in tokens
        ]
        arrays[parameter.name] = rng.integers(-2, 4, shape).astype(np.float64)
    return arrays


def _size(letter: str, sizes: dict[str, int]) -> int:
    return sizes.setdefault(letter, _SMALL_SIZES[len(sizes) % len(_SMALL_SIZES)])


def _cotangent(subject: Subject) -> Any:
    """Whole numbers in the shape of the output, none of them 0; None for a scalar, the loss."""
    y = output(subject)
    return None if not isinstance(y, tuple) and np.ndim(y) == 0 else _whole_like(y)


def _whole_like(y: Any) -> Any:
    if isinstance(y, tuple | list):
        return tuple(map(_whole_like, y))
    values = np.random.default_rng(1).permutation(np.arange(np.size(y)) % 7 - 3)
    return np.where(values == 0, 4.0, values.astype(np.float64)).reshape(np.shape(y))
