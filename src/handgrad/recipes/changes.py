"""Changes to a recipe's tables by `--set`, and tables as TOML again."""

from __future__ import annotations

import re
from typing import Any, Final

from handgrad.errors import RecipeError
from handgrad.escaping import cut, listed, one_line, quoted
from handgrad.recipes.schema import shown
from handgrad.recipes.toml import NotTOMLError, read_toml

_STEP: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)((?:\[[0-9]{1,9}\])*)")


def apply_change(tables: dict[str, Any], change: str) -> None:
    """Carry out `--set`: `optimizer.lr=0.01`, `model.layers[0].channels=64`, in place.

    The value is read as TOML; what is not TOML is taken as a string, so that quotes can be left
    out. Raises RecipeError where the path leads nowhere.
    """
    path, equals, text = change.partition("=")
    steps = _steps(path.strip())
    change = one_line(cut(change))
    if not equals or not steps:
        raise RecipeError(
            f"--set {change}: found no key and value; allowed: key=value, such as optimizer.lr=0.01"
        )
    node: Any = tables
    for depth, step in enumerate(steps[:-1]):
        if isinstance(node, dict) and isinstance(step, str) and depth == 0:
            node = node.setdefault(step, {})
        else:
            node = _entry(change, node, step)
    last = steps[-1]
    if isinstance(last, int):
        _entry(change, node, last)
    elif not isinstance(node, dict):
        raise RecipeError(f"--set {change}: {last} is inside {shown(node)}; allowed: a table")
    node[last] = read_value(text, f"--set {change}")


def read_value(text: str, source: str) -> Any:
    """A value in TOML, or else the text itself as a string.

    Raises RecipeError, beginning with `source`, for a value of TOML that is too large or too deep.
    """
    try:
        tables = read_toml(f"value = {text}")
    except NotTOMLError:
        return text.strip()
    except RecipeError as error:
        raise RecipeError(f"{source}: {error}") from None
    return tables["value"]


def _entry(change: str, node: Any, step: str | int) -> Any:
    if isinstance(step, int):
        if isinstance(node, list) and step < len(node):
            return node[step]
        count = len(node) if isinstance(node, list) else 0
        raise RecipeError(f"--set {change}: there is no [{step}]; allowed: below {count}")
    if isinstance(node, dict) and step in node:
        return node[step]
    known = listed(node) if isinstance(node, dict) else "nothing"
    raise RecipeError(f"--set {change}: there is no {cut(step)}; allowed: {known}")


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
    """TOML that reads back as these tables: plain values first, then one section for each table.

    Raises RecipeError for a string that is not Unicode, as a file's name in bytes may be.
    """
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
        if any("\ud800" <= c <= "\udfff" for c in value):
            raise RecipeError(
                f"{quoted(value)} is not Unicode and cannot stand in a config.toml; allowed: names "
                "and paths in UTF-8"
            )
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
