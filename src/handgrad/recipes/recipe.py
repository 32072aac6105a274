"""A recipe: a TOML file that says what is learned, by which model, and how.

    description = "..."
    [data]          name, and where wanted path, validation, shape, maximum, classes
    [model]         layers = [{type = "conv2d", channels = 32, kernel_size = 3}, ...]
    [loss]          type
    [optimizer]     type and its settings
    [schedule]      type and its settings; time is counted in epochs
    [augmentation]  steps = [{type = "affine", rotation = 10}, ...]
    [training]      epochs, batch_size, seed, accumulate, clip_norm, precision, early_stopping

Input sizes are never written: each layer gets the shape that comes out of the one before.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from handgrad.errors import RecipeError
from handgrad.ops.activation import ACTIVATIONS
from handgrad.ops.rnn import NONLINEARITIES
from handgrad.recipes.schema import (
    Either,
    Flag,
    Integer,
    Key,
    Keys,
    Number,
    Several,
    Size,
    Tables,
    Text,
    check_table,
    check_typed,
    shown,
)

_COUNT: Final = Integer(1)
_RATE: Final = Number(0, below=1)
_NOT_NEGATIVE: Final = Number(0)
_POSITIVE: Final = Number(above=0)
_INITIALIZER: Final = Text(
    ("he_uniform", "he_normal", "xavier_uniform", "xavier_normal", "truncated_normal", "orthogonal")
)

_SECTIONS: Final = ("data", "model", "loss", "optimizer", "schedule", "augmentation", "training")
_DATA: Final = {
    "name": Key(Text(), required=True),
    "path": Key(Text()),
    "validation": Key(Number(0, below=1)),
    "shape": Key(Several(_COUNT, (1, 2, 3))),
    "maximum": Key(_POSITIVE),
    "classes": Key(Several(Text())),
}
_TRAINING: Final = {
    "epochs": Key(_COUNT, required=True),
    "batch_size": Key(_COUNT),
    "seed": Key(Integer(0)),
    "accumulate": Key(_COUNT),
    "clip_norm": Key(_POSITIVE),
    "precision": Key(Text(("float32", "bf16"))),
    "early_stopping": Key(_COUNT),
}

_CONVOLUTION: Final[Keys] = {
    "channels": Key(_COUNT, required=True),
    "kernel_size": Key(Size(1), required=True),
    "stride": Key(Size(1)),
    "padding": Key(Size(0)),
    "dilation": Key(Size(1)),
    "groups": Key(_COUNT),
    "bias": Key(Flag()),
}
_RECURRENT: Final[Keys] = {
    "hidden_size": Key(_COUNT, required=True),
    "num_layers": Key(_COUNT),
    "bidirectional": Key(Flag()),
    "dropout": Key(Number(0, 1)),
    "bias": Key(Flag()),
}
_FIRST: Final[Keys] = {"activation": Key(Text(ACTIVATIONS)), "initializer": Key(_INITIALIZER)}
_WINDOW: Final[Keys] = {"stride": Key(Size(1)), "padding": Key(Size(0))}
LAYERS: Final[dict[str, Keys]] = {
    "dense": {"features": Key(_COUNT, required=True), "bias": Key(Flag()), **_FIRST},
    "conv1d": {**_CONVOLUTION, **_FIRST},
    "conv2d": {**_CONVOLUTION, **_FIRST},
    "conv_transpose2d": {
        **_CONVOLUTION,
        "output_padding": Key(Size(0)),
        "initializer": Key(_INITIALIZER),
    },
    "max_pool2d": {
        "kernel_size": Key(Size(1), required=True),
        **_WINDOW,
        "dilation": Key(Size(1)),
    },
    "avg_pool2d": {
        "kernel_size": Key(Either(Size(1), Text(("global",))), required=True),
        **_WINDOW,
        "count_include_pad": Key(Flag()),
    },
    "rnn": {**_RECURRENT, "nonlinearity": Key(Text(NONLINEARITIES))},
    "leaky_rnn": {**_RECURRENT, "alpha": Key(Number(0, 1), required=True)},
    "lstm": {**_RECURRENT, "proj_size": Key(_COUNT), "forget_bias": Key(Number(None))},
    "gru": _RECURRENT,
    "last_step": {"bidirectional": Key(Flag())},
    "flatten": {},
    "batch_norm": {"momentum": Key(Number(0, 1)), "eps": Key(_NOT_NEGATIVE)},
    "layer_norm": {"eps": Key(_NOT_NEGATIVE)},
    "rms_norm": {"eps": Key(_NOT_NEGATIVE)},
    "standardize": {"eps": Key(_NOT_NEGATIVE)},
    "dropout": {"p": Key(Number(0, 1), required=True)},
    "activation": {"name": Key(Text(ACTIVATIONS[1:]), required=True)},
    "residual": {"layers": Key(Tables(), required=True), "projection": Key(Tables())},
}
_LOSSES: Final[dict[str, Keys]] = {
    "cross_entropy": {"label_smoothing": Key(Number(0, 1))},
}
_ADAM: Final[Keys] = {
    "lr": Key(_POSITIVE),
    "betas": Key(Several(_RATE, (2,))),
    "eps": Key(_NOT_NEGATIVE),
    "weight_decay": Key(_NOT_NEGATIVE),
}
_SGD: Final[Keys] = {"lr": Key(_POSITIVE), "weight_decay": Key(_NOT_NEGATIVE)}
_OPTIMIZERS: Final[dict[str, Keys]] = {
    "sgd": _SGD,
    "momentum": {
        **_SGD,
        "momentum": Key(_RATE),
        "form": Key(Text(("averaged", "classical"))),
    },
    "nesterov": {**_SGD, "momentum": Key(_RATE)},
    "rmsprop": {**_SGD, "alpha": Key(_RATE), "eps": Key(_NOT_NEGATIVE)},
    "adam": _ADAM,
    "adamw": _ADAM,
}
_SCHEDULES: Final[dict[str, Keys]] = {
    "constant": {},
    "step": {"epochs": Key(_POSITIVE, required=True), "gamma": Key(_POSITIVE)},
    "cosine": {"eta_min": Key(_NOT_NEGATIVE), "warmup": Key(_POSITIVE)},
    "linear_warmup": {"epochs": Key(_POSITIVE, required=True), "start_factor": Key(Number(0, 1))},
    "one_cycle": {
        "pct_start": Key(_RATE),
        "div_factor": Key(_POSITIVE),
        "final_div_factor": Key(_POSITIVE),
    },
}
_AUGMENTATIONS: Final[dict[str, Keys]] = {
    "affine": {
        "rotation": Key(_NOT_NEGATIVE),
        "scale": Key(_RATE),
        "shear": Key(_NOT_NEGATIVE),
        "shift": Key(_NOT_NEGATIVE),
        "elastic": Key(_NOT_NEGATIVE),
        "grid": Key(Integer(2)),
        "fill": Key(Number(None)),
    },
    "shift": {"pixels": Key(_COUNT, required=True), "fill": Key(Number(None))},
    "flip": {"probability": Key(Number(0, 1))},
}


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
    """A recipe that has been checked; `tables` is the TOML it was read from."""

    name: str
    tables: dict[str, Any]
    description: str
    data: dict[str, Any]
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
            tables = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise RecipeError(f"{name}: not TOML ({error}); allowed: a recipe in TOML") from None
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
                "description": Key(Text()),
                **{key: Key(section.kind, key in required) for key in _SECTIONS},
            },
        )
        model = check_table("model", tables["model"], {"layers": Key(Tables(), required=True)})
        training = check_table("training", tables["training"], _TRAINING)
        data = check_table("data", tables["data"], _DATA)
        if "early_stopping" in training and not data.get("validation"):
            raise RecipeError(
                f"training.early_stopping is {training['early_stopping']} without data.validation; "
                "allowed: together with a data.validation above 0"
            )
        steps = check_table(
            "augmentation", tables.get("augmentation", {}), {"steps": Key(Tables())}
        )
        return cls(
            name=name,
            tables=tables,
            description=tables.get("description", ""),
            data=data,
            layers=_layers("model.layers", model["layers"]),
            loss=_typed("loss", tables.get("loss", {"type": "cross_entropy"}), _LOSSES),
            optimizer=_typed("optimizer", tables["optimizer"], _OPTIMIZERS),
            schedule=_typed("schedule", tables.get("schedule", {"type": "constant"}), _SCHEDULES),
            augmentation=tuple(
                _typed(f"augmentation.steps[{i}]", step, _AUGMENTATIONS)
                for i, step in enumerate(steps.get("steps", []))
            ),
            training=training,
        )

    @property
    def seed(self) -> int:
        """Of the split, the first weights, shuffling, augmentation and dropout."""
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


def _layers(path: str, tables: list[Any]) -> Layers:
    if not tables:
        raise RecipeError(f"{path} is empty; allowed: one layer or more")
    parts = tuple(_typed(f"{path}[{i}]", table, LAYERS) for i, table in enumerate(tables))
    branches: dict[str, dict[int, Layers]] = {"layers": {}, "projection": {}}
    for i, part in enumerate(parts):
        for key, found in branches.items():
            if key in part.settings:
                found[i] = _layers(f"{part.path}.{key}", part.settings[key])
    return Layers(parts, branches["layers"], branches["projection"])


_STEP: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)((?:\[\d+\])*)")


def apply_change(tables: dict[str, Any], change: str) -> None:
    """Carry out `--set`: `optimizer.lr=0.01`, `model.layers[0].channels=64`, in place.

    The value is read as TOML; what is not TOML is taken as a string, so that quotes can be left
    out. Raises RecipeError where the path leads nowhere.
    """
    path, equals, text = change.partition("=")
    steps = _steps(path.strip())
    if not equals or not steps:
        raise RecipeError(
            f"--set {change}: found no key and value; allowed: key=value, such as optimizer.lr=0.01"
        )
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    place: Any = tables
    for depth, step in enumerate(steps[:-1]):
        if isinstance(place, dict) and isinstance(step, str) and depth == 0:
            place = place.setdefault(step, {})
        else:
            place = _entry(change, place, step)
    last = steps[-1]
    if isinstance(last, int):
        _entry(change, place, last)
    elif not isinstance(place, dict):
        raise RecipeError(f"--set {change}: {last} is inside {shown(place)}; allowed: a table")
    place[last] = value


def _entry(change: str, place: Any, step: str | int) -> Any:
    if isinstance(step, int):
        if isinstance(place, list) and step < len(place):
            return place[step]
        count = len(place) if isinstance(place, list) else 0
        raise RecipeError(f"--set {change}: there is no [{step}]; allowed: below {count}")
    if isinstance(place, dict) and step in place:
        return place[step]
    known = ", ".join(place) if isinstance(place, dict) else "nothing"
    raise RecipeError(f"--set {change}: there is no {step}; allowed: {known}")


def _steps(path: str) -> list[str | int]:
    """`model.layers[0].channels` as ["model", "layers", 0, "channels"]; [] where it is no path."""
    steps: list[str | int] = []
    for piece in path.split("."):
        match = _STEP.fullmatch(piece)
        if match is None:
            return []
        steps.append(match[1])
        steps += [int(number) for number in re.findall(r"\d+", match[2])]
    return steps


def to_toml(tables: dict[str, Any]) -> str:
    """TOML that reads back as these tables: plain values first, then one section for each table."""
    lines = [f"{key} = {_value(v)}" for key, v in tables.items() if not isinstance(v, dict)]
    for key, table in tables.items():
        if isinstance(table, dict):
            lines += ["", f"[{key}]"]
            lines += [f"{name} = {_value(value, spread=True)}" for name, value in table.items()]
    return "\n".join(lines).strip() + "\n"


_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _value(value: Any, *, spread: bool = False) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = "".join(
            _ESCAPES.get(c) or (c if c.isprintable() else f"\\U{ord(c):08x}") for c in value
        )
        return f'"{escaped}"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        if spread and any(isinstance(item, dict) for item in value):
            return "[\n" + "".join(f"    {_value(item)},\n" for item in value) + "]"
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return repr(value)
