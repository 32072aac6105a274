"""Recipes with random settings: each is trained as it says, or refused in one sentence."""

from __future__ import annotations

import json
import tomllib
from copy import deepcopy
from typing import Any, Final

import numpy as np

from fuzz.harness import Case, Fault
from handgrad import recipes
from handgrad.errors import HandgradError
from handgrad.recipes.building import build_loss, build_model, build_optimizer, build_schedule
from handgrad.recipes.changes import to_toml
from handgrad.recipes.keys import task_of
from handgrad.recipes.recipe import Recipe
from handgrad.recipes.tasks import example

PATIENCE = 60.0
MEMORY = 2048

VALUES: Final[tuple[Any, ...]] = (
    *(0, 1, -1, 2, 3, 7, 2**31, 2**63, -(2**63), 10**400, 0.0, 0.5, -0.5, 1.0, 1e-300, 1e300),
    *(
        float("nan"),
        float("inf"),
        True,
        False,
        "",
        "x",
        "relu",
        "sgd",
        "caf\u00e9",
        "\u0000",
        "\ud800",
    ),
    *([], [1], [1, 2], [1, 2, 3], [[1]], [0.9, 0.99], {}, {"type": "dense"}, {"type": "relu"}),
    *([{"type": "flatten"}], [{"type": "dense", "features": 3}], None),
)
#: Values that a run's data would give; small, so that a model that is accepted costs little.
FOUND: Final = {
    "classification": {"shape": [1, 8, 8], "classes": ["a", "b", "c"]},
    "text": {"vocabulary": 11},
    "pairs": {"vocabularies": [11, 13]},
}


def draw(rng: np.random.Generator) -> Case:
    names = recipes.names()
    name = names[int(rng.integers(len(names)))]
    text = (recipes._FOLDER / f"{name}.toml").read_text("utf-8")
    if rng.random() < 0.25:
        damaged = _damaged(text, rng)
        return Case("text of a recipe", lambda: _try_text(name, damaged), damaged)
    if rng.random() < 0.3:
        changes = [_change(text, rng) for _ in range(int(rng.integers(1, 4)))]
        arguments = " ".join(f"--set {change!r}" for change in changes)
        return Case("--set", lambda: _try_text(name, text, changes), f"{name} {arguments}")
    tables = tomllib.loads(text)
    for _ in range(int(rng.integers(1, 5))):
        _mutate(tables, rng)
    return Case("tables of a recipe", lambda: _try_tables(name, tables), lambda: repr(tables))


def _damaged(text: str, rng: np.random.Generator) -> str:
    characters = list(text)
    alphabet = "[]{}=\"'#.,\\\n 0-_eE\u00e9\u0000"
    for _ in range(int(rng.integers(1, 6))):
        at = int(rng.integers(len(characters)))
        characters[at : at + int(rng.integers(3))] = alphabet[int(rng.integers(len(alphabet)))]
    return "".join(characters)


def _change(text: str, rng: np.random.Generator) -> str:
    paths = _paths(tomllib.loads(text))
    path = paths[int(rng.integers(len(paths)))]
    key = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
    value = VALUES[int(rng.integers(len(VALUES)))]
    forms = (json.dumps(value), str(value), "", "=", "[" * 200)
    return f"{key}={forms[int(rng.integers(len(forms)))]}"


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items: Any = value.items() if isinstance(value, dict) else ()
    for key, item in enumerate(value) if isinstance(value, list) else items:
        found += _paths(item, (*path, key))
    return found


def _mutate(tables: dict[str, Any], rng: np.random.Generator) -> None:
    paths = _paths(tables)
    path = paths[int(rng.integers(len(paths)))]
    inside: Any = tables
    for step in path[:-1]:
        inside = inside[step]
    match int(rng.integers(4)):
        case 0 if isinstance(inside, dict):
            del inside[path[-1]]
        case 1 if isinstance(inside, dict):
            inside[("size", "lr", "dropout", "x", "type")[int(rng.integers(5))]] = inside[path[-1]]
        case _:
            inside[path[-1]] = deepcopy(VALUES[int(rng.integers(len(VALUES)))])


def _try_text(name: str, text: str, changes: list[str] | None = None) -> None:
    try:
        recipe = Recipe.parse(name, text, changes or ())
    except HandgradError as error:
        _check(error)
        return
    _build(recipe)


def _try_tables(name: str, tables: dict[str, Any]) -> None:
    try:
        recipe = Recipe.from_tables(name, tables)
    except HandgradError as error:
        _check(error)
        return
    _build(recipe)


def _build(recipe: Recipe) -> None:
    """The parts that a run builds from a recipe, its data aside."""
    try:
        found = dict(FOUND[task_of(recipe.model.type)])
        if recipe.model.type in ("sequence_classifier", "cls_encoder", "two_layer_net"):
            found["shape"] = [6, 4]
        complete = recipe.changed("data", **found)
        if _is_large(complete.tables):
            return
        text = to_toml(complete.tables)
        if tomllib.loads(text) != complete.tables:
            raise Fault("TOML", "config.toml does not read back as it was written")
        optimizer = build_optimizer(recipe)
        schedule = build_schedule(recipe, optimizer.lr, 10)
        rates = [schedule(step) for step in (0, 1, 1000)]
        model = build_model(complete)
        build_loss(recipe)
        model.forward(*example(complete, 2, np.random.default_rng(0)))
    except HandgradError as error:
        _check(error)
        return
    if not all(np.isfinite(rates)):
        raise Fault("learning rate", f"the schedule gives {rates}")


def _is_large(tables: dict[str, Any]) -> bool:
    """Return whether sizes would take more memory than a case may have."""
    sizes = [
        value
        for path in _paths(tables)
        if isinstance(value := _at(tables, path), int)
        and not isinstance(value, bool)
        and path[0] in ("model", "data")
    ]
    return any(abs(size) > 4096 for size in sizes)


def _at(tables: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        tables = tables[step]
    return tables


def _check(error: HandgradError) -> None:
    if "\n" in str(error):
        raise Fault("no sentence", str(error))
