"""A model in a folder: its config.json says what to build, its arrays are put into that."""

from __future__ import annotations

import inspect
import math
import os
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import ArgumentError, DataError, HandgradError, HandgradWarning, RunError
from handgrad.escaping import cut, listed
from handgrad.io.description import blank
from handgrad.io.hf.config import CONFIG, Config
from handgrad.io.hf.families import FAMILIES, TIED, Family
from handgrad.io.hf.names import Entry
from handgrad.io.hf.weights import Stored, stored, write
from handgrad.models.pretrained import Pretrained
from handgrad.paths import as_path

M = TypeVar("M", bound=Pretrained)

#: The type of the arrays by its name today, and by the one before.
_FLOAT32: Final = {"dtype": "float32", "torch_dtype": "float32"}


def load(kind: type[M], path: str | os.PathLike[str], **settings: object) -> M:
    """A model of this class from a folder; see `Pretrained.from_pretrained`."""
    folder, family = as_path("from_pretrained", path), _family(kind)
    if not os.path.isdir(folder):
        raise DataError(
            f"{folder} is no folder; expected one with {CONFIG} and safetensors, as Hugging Face "
            "keeps models"
        )
    config = Config(folder)
    config.choice("model_type", family.model_types)
    config.require(quantization_config=None)
    arrays = stored(folder)
    known = {**family.settings(config), **settings}
    config.refuse_unread()
    shapes = {name: each.shape for name, each in arrays.items()}
    # Room for as much again: `_fill` names what is missing.
    shapes["missing"] = (sum(map(math.prod, shapes.values())),)
    try:
        model = blank(kind, known, shapes)
    except HandgradError as error:
        raise DataError(
            f"{config.path} describes no model of the folder: {cut(str(error), 350)}"
        ) from None
    assert isinstance(model, kind)
    _fill(model, family, folder, arrays, settings)
    model.kept_entries = config.without_effect()
    return model


def save(model: Pretrained, path: str | os.PathLike[str]) -> None:
    """Write a model into a folder; see `Pretrained.save_pretrained`."""
    from handgrad.io.checkpoint import to_json
    from handgrad.writing import reason, write_file

    folder, family = as_path("save_pretrained", path), _family(type(model))
    constructor = inspect.signature(type(model)).parameters
    defaults = {name: each.default for name, each in constructor.items()}
    own_entries = family.config({**defaults, **model.settings})
    config = {**model.kept_entries, **own_entries, **_FLOAT32}
    own = dict(_own_arrays(model))
    found: dict[str, Array] = {}
    for entry in family.names.all_entries(len(model.blocks.blocks)):
        if entry.ours[0] in own:
            parts = [own.pop(name) for name in entry.ours]
            rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
            for name, part in zip(entry.theirs, np.split(rows, len(entry.theirs)), strict=True):
                found[family.names.in_file(name)] = part.T if entry.transposed else part
    if own:
        raise ArgumentError(
            f"save_pretrained: {type(model).__name__} has {next(iter(own))}, for which the layout "
            f"has no name; allowed: the layers that its constructor makes"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write(folder, found)
        text = to_json(f"save_pretrained: the settings of {type(model).__name__}", config, indent=2)
        write_file(folder / CONFIG, text.encode())
    except OSError as error:
        raise RunError(f"{folder} cannot be written: {reason(error)}") from None


def _family(kind: type[Pretrained]) -> Family:
    if kind.__name__ not in FAMILIES:
        raise ArgumentError(
            f"{kind.__name__} has no layout of Hugging Face; allowed: {', '.join(FAMILIES)}"
        )
    return FAMILIES[kind.__name__]


def _own_arrays(model: Pretrained) -> Mapping[str, Array]:
    """All parameters, also those that are frozen."""
    return {**model.parameters, **model.frozen_parameters}


def _fill(
    model: Pretrained,
    family: Family,
    folder: Path,
    arrays: Mapping[str, Stored],
    given: Mapping[str, Any],
) -> None:
    """Put the arrays of a folder into a model, each of which is there once.

    A warning names weights that the model has no place for, unless a given setting chose so.
    """
    own, plain = _own_arrays(model), {}
    for name, each in arrays.items():
        plain[family.names.plain(name)] = each
    used: set[str] = set()
    for entry in family.names.all_entries(len(model.blocks.blocks)):
        if entry.ours[0] in own:
            _put(entry, own, plain, folder)
            used.update(entry.theirs)
    decided = [names for name, names in family.names.chosen if name in given]
    left = []
    for name, each in plain.items():
        if name in used or re.fullmatch(family.names.constants, name):
            continue
        chosen = any(re.fullmatch(names, name) for names in decided)
        copied = dict(family.names.copies).get(name)
        if copied in plain and _are_equal(each, plain[copied]):
            continue
        if copied is not None and not chosen:
            raise DataError(
                f"{each.path} has {cut(each.name)}, another than {copied}, but {TIED} is true; "
                f"expected one of both, or tied=True or tied=False as a setting"
            )
        if copied is None and not re.fullmatch(family.names.heads, name):
            raise DataError(
                f"{each.path} has {cut(each.name)}, which the model has not; expected the arrays "
                f"that {CONFIG} describes"
            )
        if not chosen:
            left.append(each.name)
    if left:
        warnings.warn(
            f"{folder}: {type(model).__name__} has no place for the weights "
            f"{listed(left, 5)}, which are left out",
            HandgradWarning,
            stacklevel=4,
        )


def _are_equal(one: Stored, other: Stored) -> bool:
    return one.shape == other.shape and np.array_equal(one.read(), other.read(), equal_nan=True)


def _put(entry: Entry, own: Mapping[str, Array], plain: Mapping[str, Stored], folder: Path) -> None:
    """Write their arrays, one below the other, into the rows of ours."""
    row = sum(len(own[name]) for name in entry.ours) // len(entry.theirs)
    shape = (row, *own[entry.ours[0]].shape[1:])
    expected = shape[::-1] if entry.transposed else shape
    parts = []
    for name in entry.theirs:
        if name not in plain:
            raise DataError(f"{folder} has no {name}; expected the arrays that {CONFIG} describes")
        each = plain[name]
        if each.shape != expected:
            raise DataError(
                f"{each.path}: {cut(each.name)} has shape {each.shape}; expected {expected}"
            )
        values = each.read()
        parts.append(values.T if entry.transposed else values)
    rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
    begin = 0
    for name in entry.ours:
        own[name][...] = rows[begin : begin + len(own[name])]
        begin += len(own[name])
