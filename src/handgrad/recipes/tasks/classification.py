"""Examples with one class each, or one number: images, rows, or sequences."""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from handgrad import data as data_sets
from handgrad.arrays import Array
from handgrad.data import Dataset, Pixels, Sequences
from handgrad.data.encoding import TableEncoding
from handgrad.errors import DataError, RecipeError
from handgrad.escaping import listed, quoted
from handgrad.inference.pictures import step_for
from handgrad.inference.preprocessing import Preprocessing, Scale, Standardization
from handgrad.printing import plain
from handgrad.recipes.recipe import LAYERS
from handgrad.recipes.tasks.task import Task
from handgrad.training.review import Review
from handgrad.training.reviews import SequencesReview

if TYPE_CHECKING:
    from handgrad.recipes.recipe import Recipe

#: Model types that take sequences of different lengths.
RAGGED = ("sequence_classifier",)
#: Model types of which the report shows what happens along time.
SEQUENTIAL = ("sequence_classifier", "cls_encoder")


def load(recipe: Recipe, path: str | PathLike[str] | None = None) -> Task:
    """The task of a recipe whose data are examples with classes."""
    return of(recipe, load_data(recipe, path))


def of(recipe: Recipe, data: Dataset) -> Task:
    """The task with these data."""
    summary = f"{len(data.x_train):,} examples to learn, {len(data.x_test):,} to test"
    about: dict[str, Any] = {}
    review: Review | None = None
    found: dict[str, Any] = {"shape": list(data.input_shape), "classes": list(data.classes)}
    if isinstance(data.x_train, Pixels) and data.x_train.maximum != 1:
        found["maximum"] = data.x_train.maximum
    steps: tuple[Any, ...] = step_for(data.x_train)
    if data.columns and data.target:
        found |= {"target": data.target, "columns": list(data.columns)}
    if data.encoding is not None:
        found["encoding"] = json.dumps(Preprocessing((data.encoding,)).describe())
        steps = (data.encoding,)
        about = {"preprocessing": Preprocessing(steps)}
    if recipe.data.get("standardize"):
        step = statistics(recipe, data.x_train, data.encoding.vectors if data.encoding else ())
        found |= {"mean": list(step.mean), "std": list(step.std)}
        scale = (Scale(found["maximum"]),) if "maximum" in found else ()
        about = {"preprocessing": Preprocessing((*steps, *scale, step))}
        data = _every_part(data, lambda x: standardized(x, step))
    if not data.classes:
        targets = _target_statistics(recipe, data.y_train)
        found |= {"target_mean": list(targets.mean), "target_std": list(targets.std)}
        about["targets"] = targets
        summary += f"; the loss is of targets divided by their deviation, {plain(targets.std[0])}"
        data = _with_targets(data, targets)
    if "class_weights" in recipe.training and data.classes:
        found["class_weights"] = _class_weights(recipe, data)
    if "threshold" in recipe.training:
        about["threshold"] = _threshold(recipe, data)
        summary += f"; {quoted(data.classes[1])} is answered from a probability of "
        summary += f"{about['threshold']:g} on"
    if recipe.model.type in SEQUENTIAL and data.classes:
        review = SequencesReview(data.x_test, data.y_test, data.classes, recipe.seed)
    return Task(data.name, data, len(data.x_train), summary, found, review, about=about)


def load_data(recipe: Recipe, path: str | PathLike[str] | None = None) -> Dataset:
    """The recipe's data set as it is read, in the shape that the recipe gives."""
    values = recipe.data
    given = path if path is not None else values.get("path")
    numbers = recipe.loss.type == "mse" if "loss" in recipe.tables else None
    data = data_sets.load(
        values["name"],
        given,
        recipe.seed,
        maximum=values.get("maximum"),
        resize=tuple(values["resize"]) if "resize" in values else None,
        target=values.get("target"),
        use=tuple(values.get("columns", values.get("use", ()))),
        drop=() if "columns" in values else tuple(values.get("drop", ())),
        kinds=_kinds(recipe),
        vectors=recipe.model.type == LAYERS,
        numbers=numbers if "classes" not in values else not values["classes"],
    )
    if numbers and data.classes:
        raise RecipeError(
            f'{recipe.name}: loss.type is "mse", and {data.name} has classes; allowed: '
            '"cross_entropy", or a table with numbers to predict'
        )
    data = _dense(recipe, data)
    shape = values.get("shape")
    if shape is not None and tuple(shape) != data.input_shape:
        if isinstance(data.x_train, Sequences) or math.prod(shape) != math.prod(data.input_shape):
            raise RecipeError(
                f"{recipe.name}: data.shape is {shape}, {math.prod(shape)} values; allowed: "
                f"{math.prod(data.input_shape)} values, as an example of {data.name} has"
            )
        data = _every_part(data, lambda x: _reshaped(x, shape))
    classes = values.get("classes")
    if classes is not None:
        data = _with_classes(recipe, data, tuple(classes))
    if values.get("validation"):
        data = data_sets.with_validation(data, values["validation"], recipe.seed)
    return data


def _kinds(recipe: Recipe) -> Any:
    """The kinds of a table's columns, or the plan by which a run has read its own.

    Raises DataError for a plan that is damaged.
    """
    if "encoding" not in recipe.data:
        return recipe.data.get("kinds", {})
    try:
        described = json.loads(recipe.data["encoding"])
    except (ValueError, RecursionError):
        raise DataError(
            f"{recipe.name}: data.encoding is no JSON; expected what a run has written"
        ) from None
    steps = Preprocessing.parse(described).steps
    if len(steps) != 1 or not isinstance(steps[0], TableEncoding):
        raise DataError(f"{recipe.name}: data.encoding has no table; expected the plan of one")
    return steps[0]


def example(recipe: Recipe, count: int, rng: np.random.Generator) -> tuple[Array, ...]:
    """Normal values in the shape of an example; sequences of different lengths where they fit."""
    x = rng.standard_normal((count, *recipe.data["shape"]), np.float32)
    if recipe.model.type not in RAGGED:
        return (x,)
    return x, np.linspace(x.shape[1], max(1, x.shape[1] // 2), count).astype(np.int64)


def _with_classes(recipe: Recipe, data: Dataset, classes: tuple[str, ...]) -> Dataset:
    """The data with these classes, matched by name; names that are all others rename them.

    Raises RecipeError where some of the data's classes are among them, and others are not, or
    where there are not as many to be renamed.
    """
    known = set(data.classes) & set(classes)
    if known and known != set(data.classes):
        other = next(name for name in data.classes if name not in known)
        raise RecipeError(
            f"{recipe.name}: {data.name} has the class {quoted(other)}; allowed: {listed(classes)}"
        )
    if not known and len(classes) != len(data.classes):
        raise RecipeError(
            f"{recipe.name}: data.classes has {len(classes)} names; allowed: {len(data.classes)}, "
            f"as many as {data.name} has classes"
        )
    if known:
        index = np.array([classes.index(name) for name in data.classes])
        parts = {name: getattr(data, name) for name in ("y_train", "y_test", "y_validation")}
        labels = {name: index[y] for name, y in parts.items() if y is not None}
        return replace(data, classes=classes, **labels)
    return replace(data, classes=classes)


def _every_part(data: Dataset, change: Any) -> Dataset:
    parts = {name: getattr(data, name) for name in ("x_train", "x_test", "x_validation")}
    return replace(data, **{name: change(x) for name, x in parts.items() if x is not None})


def _dense(recipe: Recipe, data: Dataset) -> Dataset:
    """Sequences as arrays where all have one length, which models of other kinds need."""
    if not isinstance(data.x_train, Sequences):
        return data
    parts = [x for x in (data.x_train, data.x_test, data.x_validation) if isinstance(x, Sequences)]
    lengths = np.unique(np.concatenate([x.lengths for x in parts]))
    if len(lengths) == 1:
        return _every_part(data, lambda x: x[:].x)
    if recipe.model.type not in RAGGED:
        raise RecipeError(
            f"{recipe.name}: {data.name} has sequences of {lengths[0]} to {lengths[-1]} steps; "
            f'allowed: one length, or model.type = "{RAGGED[0]}"'
        )
    return data


def _reshaped(x: Any, shape: list[int]) -> Any:
    if isinstance(x, Pixels):
        return Pixels(x.values.reshape(len(x), *shape), x.maximum)
    return x.reshape(len(x), *shape)


def vectors(recipe: Recipe) -> dict[int, tuple[int, int]]:
    """The columns of a completed recipe's table that are levels: see `TableEncoding.vectors`."""
    plan = _kinds(recipe)
    return plan.vectors if isinstance(plan, TableEncoding) else {}


def statistics(recipe: Recipe, x: Any, levels: Collection[int] = ()) -> Standardization:
    """The step with mean and deviation of the training part: of all values, or for each channel.

    A run that has them keeps them, so that other data are treated as its own were. Columns of
    `levels` stay as they are.
    """
    if "mean" in recipe.data and "std" in recipe.data:
        return Standardization(tuple(recipe.data["mean"]), tuple(recipe.data["std"]))
    values = x.values if isinstance(x, Sequences) else np.asarray(x)
    step = Standardization.of(values, every=recipe.data["standardize"] == "all")
    if not levels:
        return step
    mean, std = (np.resize(each, values.shape[1]) for each in (step.mean, step.std))
    mean[list(levels)], std[list(levels)] = 0.0, 1.0
    return Standardization(tuple(mean.tolist()), tuple(std.tolist()))


def _class_weights(recipe: Recipe, data: Dataset) -> list[float]:
    """The weight of each class in the loss; those that nobody named have 1.

    "balanced" gives each class of the training part the same weight together, with a mean of 1 over
    its examples. A run that has them keeps them. Raises RecipeError for a class that is none.

    Source: King, Zeng, Logistic regression in rare events data (2001), section 4.2.
    """
    if "class_weights" in recipe.data:
        return list(recipe.data["class_weights"])
    given = recipe.training["class_weights"]
    if given == "balanced":
        counts = np.bincount(data.y_train, minlength=len(data.classes))
        seen = counts > 0
        weights = np.where(seen, len(data.y_train) / (seen.sum() * np.maximum(counts, 1)), 1.0)
        return [float(weight) for weight in weights]
    for name in given:
        if name not in data.classes:
            raise RecipeError(
                f"{recipe.name}: training.class_weights has {quoted(name)}; allowed: "
                f"{listed(data.classes)}, the classes of {data.name}"
            )
    return [float(given.get(name, 1.0)) for name in data.classes]


def _threshold(recipe: Recipe, data: Dataset) -> float:
    """The probability from which the second class is answered. Raises RecipeError unless of two."""
    if len(data.classes) != 2:
        found = f"{len(data.classes)} classes" if data.classes else "a number to predict"
        raise RecipeError(
            f"{recipe.name}: training.threshold is {recipe.training['threshold']:g}, and "
            f"{data.name} has {found}; allowed: with two classes, of which the second is answered "
            "from it on"
        )
    return float(recipe.training["threshold"])


def _target_statistics(recipe: Recipe, y: Array) -> Standardization:
    """The step by which numbers to predict are learned: mean 0 and deviation 1."""
    if "target_mean" in recipe.data and "target_std" in recipe.data:
        return Standardization(tuple(recipe.data["target_mean"]), tuple(recipe.data["target_std"]))
    return Standardization.of(y[:, None])


def _with_targets(data: Dataset, step: Standardization) -> Dataset:
    parts = {name: getattr(data, name) for name in ("y_train", "y_test", "y_validation")}
    changed: dict[str, Any] = {
        name: step(y[:, None])[:, 0] for name, y in parts.items() if y is not None
    }
    return replace(data, **changed)


def standardized(x: Any, step: Standardization) -> Any:
    """The examples after the step, in the form they are in."""
    scaled = step(x.values if isinstance(x, Sequences) else np.asarray(x))
    return Sequences(scaled, x.lengths, x.padding) if isinstance(x, Sequences) else scaled
