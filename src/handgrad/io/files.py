"""Models in files: a .safetensors with weights, buffers and a description.

The description is JSON in the metadata of the file, under "handgrad":

    format          1
    model           the class of each layer and the arguments of its constructor, or
    undescribed     the reason why there is none: the file then holds weights alone
    task, classes, input_shape, preprocessing, tokenizers, columns, targets     see `TrainedModel`
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from handgrad.arrays import Array
from handgrad.data.tokenizers import parse_tokenizer
from handgrad.dispatch.values import shown
from handgrad.errors import DataError, HandgradError, RunError
from handgrad.escaping import cut
from handgrad.inference.preprocessing import Preprocessing, Standardization
from handgrad.inference.trained import TASKS, TrainedModel
from handgrad.io.checkpoint import load_arrays, load_model_arrays, save_arrays, to_json
from handgrad.io.description import UndescribedError, describe, rebuild
from handgrad.layers.base import Layer
from handgrad.layers.flat import check_same_arrays
from handgrad.paths import as_path
from handgrad.writing import reason, write_file

FORMAT: Final = 1
#: Names of the entries, and the form of each in JSON.
_ENTRIES: Final[Mapping[str, tuple[Any, ...]]] = {
    "format": (int,),
    "model": (dict,),
    "undescribed": (str,),
    "task": (str, type(None)),
    "classes": (list, type(None)),
    "input_shape": (list, type(None)),
    "preprocessing": (list,),
    "tokenizers": (dict,),
    "columns": (list,),
    "targets": (list, type(None)),
    "threshold": (float, type(None)),
}


def save(model: Layer | TrainedModel, path: str | os.PathLike[str]) -> None:
    """Write weights, buffers and the model's description to a .safetensors file.

    `hg.load` makes the same model of it, and of a `TrainedModel` what belongs to its use. Of a
    model with layers that are not handgrad's only the arrays are kept, because no file names code
    that would run. Raises RunError where the file cannot be written.
    """
    trained = model if isinstance(model, TrainedModel) else TrainedModel(model)
    location = as_path("save", path)
    arrays = {**trained.model.parameters, **trained.model.buffers}
    try:
        metadata = {"format": "np", "handgrad": description(trained)}
        save_arrays(location, arrays, metadata, write_file)
    except OSError as error:
        raise RunError(f"{location} cannot be written: {reason(error)}") from None


def description(trained: TrainedModel) -> str:
    """The JSON that stands in the metadata of a model's file."""
    try:
        model: dict[str, Any] = {"model": describe(trained.model)}
    except UndescribedError as error:
        model = {"undescribed": str(error)}
    entries = {
        "format": FORMAT,
        **model,
        "task": trained.task,
        "classes": trained.classes,
        "input_shape": trained.input_shape,
        "preprocessing": trained.preprocessing.describe(),
        "tokenizers": {name: each.to_json() for name, each in trained.tokenizers.items()},
        "columns": trained.columns,
        "targets": None if trained.targets is None else [trained.targets.mean, trained.targets.std],
        "threshold": trained.threshold,
    }
    return to_json("the description of the model", entries)


def load_weights(model: Layer, path: str | os.PathLike[str]) -> None:
    """Put the weights and buffers of a file that `save` or a run wrote into a model.

    Raises RunError or DataError for a file that is missing, damaged or of another model; then
    nothing has been changed.
    """
    location = as_path("load_weights", path)
    arrays, _ = load_arrays(location, follow=True)
    _fill(model, arrays, location)


def read_trained(
    path: Path, arrays: Mapping[str, Array], metadata: Mapping[str, str]
) -> TrainedModel:
    """The model of arrays and metadata that were read from `path`."""
    entries = _entries(path, metadata)
    if "undescribed" in entries:
        because = cut(entries["undescribed"], 350)
        raise DataError(
            f"{path} holds weights alone, because {because}; expected a model of "
            "handgrad's layers: make the model in your program, then model.load_weights(path)"
        )
    tokenizers = entries["tokenizers"]
    classes, shape = entries["classes"], entries["input_shape"]
    try:
        model = rebuild(entries["model"], {name: a.shape for name, a in arrays.items()})
        preprocessing = Preprocessing.parse(entries["preprocessing"])
        targets = None
        if entries["targets"] is not None:
            targets = Standardization(*(tuple(each) for each in entries["targets"]))
    except HandgradError as error:
        raise DataError(f"{path} describes no model: {cut(str(error), 350)}") from None
    _fill(model, arrays, path)
    return TrainedModel(
        model,
        entries["task"],
        None if classes is None else tuple(classes),
        None if shape is None else tuple(shape),
        preprocessing,
        {name: parse_tokenizer(path, text) for name, text in tokenizers.items()},
        tuple(entries["columns"]),
        targets,
        entries["threshold"],
    )


def _entries(path: Path, metadata: Mapping[str, str]) -> dict[str, Any]:
    """The description in the metadata, once every entry has the form that it should have."""
    if "handgrad" not in metadata:
        raise DataError(
            f"{path} holds no description of a model; expected a file of model.save or of a run"
        )
    try:
        entries: Any = json.loads(metadata["handgrad"])
    except (ValueError, RecursionError):
        raise DataError(
            f"{path}: its description is no JSON; expected that of model.save"
        ) from None
    if not isinstance(entries, dict) or entries.get("format") != FORMAT:
        found = entries.get("format") if isinstance(entries, dict) else None
        raise DataError(
            f"{path}: the format of its description is {shown(found)}; expected {FORMAT}, which "
            "this version of handgrad writes"
        )
    entries.setdefault("threshold", None)  # files of earlier versions have none
    other = "model" if "undescribed" in entries else "undescribed"
    for name, kinds in _ENTRIES.items():
        if name != other and not (name in entries and _fits(name, entries[name], kinds)):
            raise DataError(f"{path}: {name} of its description is damaged; expected {_SAID[name]}")
    return entries


_SAID: Final = {
    "format": str(FORMAT),
    "model": "a class and its settings",
    "undescribed": "a reason",
    "task": f"one of {', '.join(TASKS)}, or null",
    "classes": "a list of names, or null",
    "input_shape": "a list of sizes, or null",
    "preprocessing": "a list of steps",
    "tokenizers": "texts of JSON by name",
    "columns": "a list of names",
    "targets": "a list of means and one of deviations, or null",
    "threshold": "a number between 0 and 1, or null",
}


def _fits(name: str, value: Any, kinds: tuple[Any, ...]) -> bool:
    if not isinstance(value, kinds):
        return False
    match name, value:
        case "task", str():
            return value in TASKS
        case "classes" | "columns", list():
            return all(isinstance(each, str) for each in value)
        case "threshold", float():
            return 0 < value < 1
        case "targets", list():
            return len(value) == 2 and all(isinstance(each, list) for each in value)
        case "input_shape", list():
            return all(type(each) is int and each >= 0 for each in value)
        case "tokenizers", dict():
            return all(isinstance(each, str) for each in value.values())
    return True


def _fill(model: Layer, arrays: Mapping[str, Array], path: Path) -> None:
    own = {**model.parameters, **model.buffers}
    for name, array in arrays.items():
        if name in own and own[name].dtype != array.dtype:
            raise DataError(f"{path}: {name} is of {array.dtype}; expected {own[name].dtype}")
    try:
        check_same_arrays("load", own, arrays)
        load_model_arrays(model, arrays)
    except HandgradError as error:
        raise DataError(f"{path} does not fit its model: {cut(str(error), 350)}") from None
