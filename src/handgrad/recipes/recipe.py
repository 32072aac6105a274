"""A recipe: a TOML file that says what is learned, by which model, and how.

    description = "..."
    [about]         seconds, and the `expected` value of a `measure`, for `handgrad recipes`
    [data]          name and path; what else depends on the model (see `keys`)
    [model]         layers = [{type = "conv2d", channels = 32, kernel_size = 3}, ...]
                    or type = "gpt" and its settings
    [loss]          type
    [optimizer]     type and its settings
    [schedule]      type and its settings; time is counted in epochs
    [augmentation]  steps = [{type = "affine", rotation = 10}, ...]
    [training]      epochs, batch_size, seed, accumulate, clip_norm, precision, backend, devices,
                    early_stopping, keep_best, class_weights, threshold, parts, exact,
                    sync_batch_norm

Input sizes are never written: each layer gets the shape that comes out of the one before, and a
model the sizes and vocabularies of its data.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from handgrad.errors import RecipeError
from handgrad.recipes import keys
from handgrad.recipes.changes import apply_change
from handgrad.recipes.schema import Key, Keys, String, Tables, check_table, check_typed
from handgrad.recipes.toml import read_toml

#: The model type of a recipe that lists its layers.
LAYERS: Final = "layers"


@dataclass(frozen=True)
class Typed:
    """A table with a `type`: the type, its settings, and where it stands in the recipe."""

    type: str
    settings: dict[str, Any]
    path: str


@dataclass(frozen=True)
class Layers:
    """A list of layers; `inner` and `projection` are those of a residual one, by position."""

    parts: tuple[Typed, ...]
    inner: dict[int, Layers]
    projection: dict[int, Layers]


@dataclass(frozen=True)
class Recipe:
    """A recipe that has been checked; `tables` is the TOML it was read from.

    model: its type, "layers" for a list of them, and its settings; layers: that list, or none.
    """

    name: str
    tables: dict[str, Any]
    description: str
    about: dict[str, Any]
    data: dict[str, Any]
    model: Typed
    layers: Layers
    loss: Typed
    optimizer: Typed
    schedule: Typed
    augmentation: tuple[Typed, ...]
    training: dict[str, Any]

    @classmethod
    def parse(cls, name: str, text: str, changes: Sequence[str] = ()) -> Recipe:
        """The recipe in a TOML text, after `changes` of the form `optimizer.lr=0.01`.

        Raises RecipeError naming the key, what was found and what is allowed.
        """
        try:
            tables = read_toml(text)
        except RecipeError as error:
            raise RecipeError(f"{name}: {error}") from None
        for change in changes:
            apply_change(tables, change)
        return cls.from_tables(name, tables)

    @classmethod
    def from_tables(cls, name: str, tables: dict[str, Any]) -> Recipe:
        """The recipe in tables as `tomllib` reads them. Raises RecipeError as `parse` does."""
        try:
            return cls._checked(name, tables)
        except RecipeError as error:
            raise RecipeError(f"{name}: {error}") from None

    @classmethod
    def _checked(cls, name: str, tables: dict[str, Any]) -> Recipe:
        section = Key(_AnyValue("a table"))
        required = {"data", "model", "optimizer", "training"}
        check_table(
            "",
            tables,
            {
                "description": Key(String()),
                **{key: Key(section.kind, key in required) for key in keys.SECTIONS},
            },
        )
        model = _model(tables["model"])
        training = check_table("training", tables["training"], keys.TRAINING)
        data = check_table("data", tables["data"], keys.data_keys(model.type, tables["data"]))
        for key in ("early_stopping", "keep_best"):
            if training.get(key) and not data.get("validation"):
                raise RecipeError(
                    f"training.{key} is {str(training[key]).lower()} without data.validation; "
                    "allowed: together with a data.validation above 0"
                )
        steps = check_table(
            "augmentation", tables.get("augmentation", {}), {"steps": Key(Tables())}
        )
        return cls(
            name=name,
            tables=tables,
            description=tables.get("description", ""),
            about=check_table("about", tables.get("about", {}), keys.ABOUT),
            data=data,
            model=model,
            layers=_layers("model.layers", model.settings.get(LAYERS, ())),
            loss=_typed("loss", tables.get("loss", {"type": "cross_entropy"}), keys.LOSSES),
            optimizer=_typed("optimizer", tables["optimizer"], keys.OPTIMIZERS),
            schedule=_typed(
                "schedule", tables.get("schedule", {"type": "constant"}), keys.SCHEDULES
            ),
            augmentation=tuple(
                _typed(f"augmentation.steps[{i}]", step, keys.AUGMENTATIONS)
                for i, step in enumerate(steps.get("steps", []))
            ),
            training=training,
        )

    @property
    def seed(self) -> int:
        """The seed of the split, the first weights, shuffling, augmentation and dropout."""
        seed: int = self.training.get("seed", 0)
        return seed

    def changed(self, section: str, **values: Any) -> Recipe:
        """The same recipe with values of one section replaced; None takes a key away."""
        tables = deepcopy(self.tables)
        for key, value in values.items():
            if value is None:
                tables[section].pop(key, None)
            else:
                tables[section][key] = value
        return Recipe.from_tables(self.name, tables)


@dataclass(frozen=True)
class _AnyValue:
    """A section: whether it is a table is said where its keys are checked."""

    allowed: str

    def fits(self, value: Any) -> bool:
        return True


def _typed(path: str, table: Any, types: dict[str, Keys]) -> Typed:
    name, settings = check_typed(path, table, types)
    return Typed(name, settings, path)


def _model(table: Any) -> Typed:
    """The model: a list of layers where there is no type."""
    if not isinstance(table, dict) or "type" in table:
        return _typed("model", table, keys.MODELS)
    layers = check_table("model", table, {LAYERS: Key(Tables(), required=True)})
    if not layers[LAYERS]:
        raise RecipeError("model.layers is empty; allowed: one layer or more")
    return Typed(LAYERS, layers, "model")


def _layers(path: str, tables: Sequence[Any]) -> Layers:
    parts = tuple(_typed(f"{path}[{i}]", table, keys.LAYERS) for i, table in enumerate(tables))
    branches: dict[str, dict[int, Layers]] = {"layers": {}, "projection": {}}
    for i, part in enumerate(parts):
        for key, found in branches.items():
            if key in part.settings:
                if not part.settings[key]:
                    raise RecipeError(f"{part.path}.{key} is empty; allowed: one layer or more")
                found[i] = _layers(f"{part.path}.{key}", part.settings[key])
    return Layers(parts, branches["layers"], branches["projection"])
