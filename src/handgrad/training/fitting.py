"""Data as `Trainer.fit` takes them, made ready: checked, divided, preprocessed, as batches.

Whatever would stop a training at its first step, or spoil it, is said here with the row where it
stands: values that are not finite, labels that no output stands for, targets of another kind than
the loss takes.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from handgrad.arrays import Array
from handgrad.data.dataset import Pixels, take
from handgrad.data.given import warn_of_channels_last
from handgrad.data.ragged import Sequences
from handgrad.data.sources import Source, as_source
from handgrad.errors import ArgumentError, DataError, ShapeError
from handgrad.inference.pictures import step_for
from handgrad.inference.preprocessing import Preprocessing, Preprocessor, Scale, Standardization
from handgrad.layers import Conv2d
from handgrad.layers.base import reads_tokens
from handgrad.losses import BinaryCrossEntropy, CrossEntropy, SquaredError
from handgrad.training.choices import default_loss
from handgrad.training.collecting import NO_TAG, DataPart, GivenData, check_part, collected, divide
from handgrad.training.judged import Judged, columns_of, usual_answer
from handgrad.training.metrics import inputs_in
from handgrad.training.state import TrainState


@dataclass(frozen=True)
class Fitting:
    """The batches of a training; `test` is what judges it in the end: examples, or batches alone.

    judged_on: the part that `test` is, "test" or "validation"; about: the entries of `TrainedModel`
    that the data say.
    """

    train: Source
    validation: Source | None
    test: Judged | Source | None
    judged_on: str
    about: dict[str, Any]


def ready(
    state: TrainState, x: Any, y: Any, validation: Any, split: float | None, test: Any
) -> Fitting:
    """Data for `Trainer.fit`. The model is built and its loss chosen, where they wait.

    Raises ArgumentError for a call that is not possible, DataError and ShapeError for data that
    are not, each with the row.
    """
    given = collected(x, y, validation, test)
    for part in given.parts.values():
        check_part(part, given.columns)
    if split is not None:
        divide(given, split, state.seed)
    if "train" in given.sources:
        about = _ready_source(state, given.sources["train"])
    else:
        about = _ready_arrays(state, given)
    dtype = state.model_dtype
    sources = {name: as_source((part.x, part.y), name, dtype) for name, part in given.parts.items()}
    sources |= given.sources
    for judged_on in ("test", "validation"):
        if judged_on in given.parts:
            final: Judged | Source | None = _judged(given, given.parts[judged_on])
            break
        if judged_on in given.sources:
            final = given.sources[judged_on]
            break
    else:
        final, judged_on = None, "test"
    return Fitting(sources["train"], sources.get("validation"), final, judged_on, about)


def _judged(given: GivenData, part: DataPart) -> Judged:
    learned = given.parts.get("train")
    return Judged(
        part.x,
        part.y,
        given.classes,
        part.origins,
        None if learned is None else usual_answer(learned.y),
        columns_of(given, part.x),
        given.encoding,
    )


# -- model, loss and preprocessing -----------------------------------------------------------------


def _ready_source(state: TrainState, source: Source) -> dict[str, Any]:
    """Build the model and choose the loss by the first batch, where they wait for it."""
    if state.preprocessing:
        raise ArgumentError(
            "Trainer: preprocessing is given with a source of batches; allowed: with arrays and "
            "data sets, because a source makes its batches itself"
        )
    if state.loss is None or not state.model.is_built:
        inputs, targets = source.gather(source.every()[:1])
        if not state.model.is_built:
            state.model.build(tuple(inputs[0].shape[1:]), seed=state.seed)
        state.loss = state.loss or default_loss(targets)
    return {"task": _task(state.loss)}


def _ready_arrays(state: TrainState, given: GivenData) -> dict[str, Any]:
    """Apply the steps, build the model, choose the loss and fit the targets to the outputs."""
    train = given.parts["train"]
    steps = _steps(state.preprocessing, train.x)
    for name, part in given.parts.items():
        given.parts[name] = replace(part, x=_applied(steps, part.x))
    _check_steps(state, given.parts["train"])
    shape = tuple(given.parts["train"].x.shape[1:])
    if not state.model.is_built:
        _check_channels(state, shape)
        state.model.build(shape, seed=state.seed)
    for name, part in given.parts.items():
        given.parts[name] = replace(part, x=_as_numbers(part.x, state))
    train = given.parts["train"]
    if isinstance(train.x, Pixels) and train.x.maximum != 1:
        steps = (Scale(train.x.maximum), *steps)
    steps = (*step_for(train.x), *steps)
    if given.encoding is not None:  # rows of a table come as they stand in it
        steps = (given.encoding, *steps)
    first = as_source((take(train.x, [0]), take(train.y, [0])), "train", state.model_dtype)
    inputs, _ = first.gather(np.zeros(1, np.int64))
    inputs = inputs_in(state.model_dtype, inputs)
    outputs = state.model.forward(*inputs, training=False)[0]
    if state.loss is None:
        if all(_is_one_hot(part.y, outputs) for part in given.parts.values()):
            for name, part in given.parts.items():
                given.parts[name] = replace(part, y=part.y.argmax(axis=1))
        state.loss = default_loss(given.parts["train"].y)
    for name, part in given.parts.items():
        given.parts[name] = replace(part, y=_fitting(state.loss, part, outputs, given.classes))
    return {
        "task": _task(state.loss),
        "classes": given.classes,
        "input_shape": shape,
        "preprocessing": Preprocessing(steps),
        "columns": given.columns,
    }


def _check_steps(state: TrainState, part: DataPart) -> None:
    """Raise ShapeError for sequences of bare numbers where the model takes features.

    Raise DataError for sequences where the model takes no lengths beside them.
    """
    parameters = inspect.signature(state.model.forward).parameters.values()
    inputs = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    takes_steps = inputs == ["x", "lengths"] and not reads_tokens(state.model)
    if takes_steps and not isinstance(part.x, Pixels) and part.x.ndim == 2:
        write = (
            "[each[:, None] for each in x]" if isinstance(part.x, Sequences) else "x[:, :, None]"
        )
        raise ShapeError(
            f"{part.what} has sequences of shape (T,), one number a step; allowed: (T, features); "
            f"of one feature, write {write}"
        )
    if isinstance(part.x, Sequences) and isinstance(_first_layer(state), Conv2d):
        raise DataError(
            f"{part.what} has images of different heights, {part.x.lengths.min()} to "
            f"{part.x.lengths.max()}; expected one size, as Pillow's image.resize((W, H)) gives"
        )
    if isinstance(part.x, Sequences) and inputs == ["x"]:
        lengths = part.x.lengths
        other = int(np.argmax(lengths != lengths[0]))
        raise DataError(
            f"{part.what} has length {lengths[0]} in row 0 and {lengths[other]} in row {other}; "
            "expected one length, or a model of sequences, such as hg.SequenceClassifier"
        )


def _check_channels(state: TrainState, shape: tuple[int, ...]) -> None:
    """Raise ShapeError for images without channels, and warn where these seem to stand last."""
    if not isinstance(_first_layer(state), Conv2d):
        return
    if len(shape) == 2:
        raise ShapeError(
            f"x has examples of shape {shape}; allowed: (C, H, W); of images with one channel, "
            "write x[:, None]"
        )
    warn_of_channels_last(shape, "x")


def _first_layer(state: TrainState) -> Any:
    return next(iter(getattr(state.model, "layers", {}).values()), None)


def _is_one_hot(y: Any, outputs: Array) -> bool:
    """Return whether each row of y has one 1 for a class, and zeros for the other outputs."""
    if isinstance(y, Sequences) or y.ndim != 2 or y.shape[1] < 2 or outputs.ndim != 2:
        return False
    return bool(
        y.shape[1] == outputs.shape[1]
        and ((y == 0) | (y == 1)).all()
        and (y.sum(axis=1) == 1).all()
    )


def _steps(asked: Sequence[str | Preprocessor], x: Any) -> tuple[Preprocessor, ...]:
    """The steps with their settings; "standardize" takes its own from x."""
    found: tuple[Preprocessor, ...] = ()
    for each in asked:
        if isinstance(each, str):
            found += (Standardization.of(_values(_applied(found, x))),)
        else:
            found += (each,)
    return found


def _applied(steps: tuple[Preprocessor, ...], x: Any) -> Any:
    if not steps:
        return x
    values = Preprocessing(steps)(_values(x))
    return Sequences(values, x.lengths, x.padding) if isinstance(x, Sequences) else values


def _as_numbers(x: Any, state: TrainState) -> Any:
    """Whole numbers as floats where the model reads no tokens; pixels stay what they are."""
    if isinstance(x, Pixels) or x.dtype.kind not in "ib" or reads_tokens(state.model):
        return x
    values = _values(x).astype(state.model_dtype)
    return Sequences(values, x.lengths, x.padding) if isinstance(x, Sequences) else values


def _values(x: Any) -> Array:
    return x.values if isinstance(x, Sequences) else np.asarray(x)


def _task(loss: Any) -> str | None:
    match loss:
        case CrossEntropy():
            return "classification" if loss.class_axis == 1 else "tagging"
        case SquaredError():
            return "regression"
        case BinaryCrossEntropy():
            return "binary"
    return None


def _fitting(loss: Any, part: DataPart, outputs: Array, classes: Sequence[str] | None) -> Any:
    """The targets in the form that the loss takes. Raises DataError where they have none."""
    match loss:
        case CrossEntropy():
            return _class_targets(loss, part, outputs)
        case SquaredError() | BinaryCrossEntropy():
            return _number_targets(loss, part, outputs, classes)
    return part.y


def _class_targets(loss: CrossEntropy, part: DataPart, outputs: Array) -> Any:
    values = _values(part.y)
    if values.dtype.kind == "f":
        if part.y.ndim != outputs.ndim:
            raise DataError(
                f"{part.of} has values of {values.dtype}; expected for cross_entropy indices or "
                'names of classes, such as y.astype(int), and for numbers loss="mse"'
            )
        return part.y
    count = outputs.shape[loss.class_axis]
    ignored = loss.options["ignore_index"]
    wrong = ((values < 0) | (values >= count)) & (values != ignored) & (values != NO_TAG)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        row = _row(part.y, at[0])
        other = 'loss="bce" for yes or no, ' if count == 1 else ""
        raise DataError(
            f"{part.of} has the label {values[at]} in row {row}; expected 0 to {count - 1}, "
            f'because the model gives {count} scores; {other}loss="mse" for numbers'
        )
    return part.y


def _row(y: Any, first: int) -> int:
    """The sequence that a step belongs to, or the row itself."""
    if isinstance(y, Sequences):
        return int(np.searchsorted(np.cumsum(y.lengths), first, side="right"))
    return first


def _number_targets(
    loss: Any, part: DataPart, outputs: Array, classes: Sequence[str] | None
) -> Array:
    is_binary = isinstance(loss, BinaryCrossEntropy)
    name = "bce" if is_binary else "mse"
    if isinstance(part.y, Sequences) or (
        classes is not None and not (is_binary and len(classes) == 2)
    ):
        allowed = "numbers from 0 to 1, or two classes" if is_binary else "numbers"
        raise DataError(f"{part.of} holds classes or tags; expected for {name} {allowed}")
    y = part.y.astype(outputs.dtype)
    if y.ndim == outputs.ndim - 1 and outputs.shape[-1] == 1:
        y = y[..., None]
    if y.shape[1:] != outputs.shape[1:]:
        raise ShapeError(
            f"{part.of} has shape {part.y.shape}; allowed for {name}: "
            f"(N, {', '.join(map(str, outputs.shape[1:]))}), as the outputs of the model"
        )
    if is_binary and not ((y >= 0) & (y <= 1)).all():
        at = tuple(np.argwhere(~((y >= 0) & (y <= 1)))[0])
        raise DataError(f"{part.of} has {y[at]:g} in row {at[0]}; expected for bce 0 to 1")
    return y
