"""Allowed values of a recipe, and one sentence for each that is not.

A table is described as `{key: Key(kind)}`; a kind says what it allows and checks one value. Only
form is checked here: defaults and finer limits belong to the classes that the values go to.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from handgrad.errors import RecipeError
from handgrad.escaping import cut, one_line
from handgrad.suggestions import did_you_mean


class Kind(Protocol):
    """A kind of value."""

    @property
    def allowed(self) -> str:
        """In words, for "..., allowed: <this>"."""
        ...

    def fits(self, value: Any) -> bool: ...


@dataclass(frozen=True)
class Integer:
    least: int = 0
    most: int | None = None

    @property
    def allowed(self) -> str:
        return f"an integer {_range(self.least, self.most)}"

    def fits(self, value: Any) -> bool:
        # Beyond 63 bits there is no count that means anything.
        return type(value) is int and self.least <= value < 2**63 and _below(value, self.most)


@dataclass(frozen=True)
class Real:
    """An integer or a float. `above` and `below` leave out the limit itself."""

    least: float | None = 0
    most: float | None = None
    above: float | None = None
    below: float | None = None

    @property
    def allowed(self) -> str:
        if self.above is not None or self.below is not None:
            limits = [f"above {self.above:g}"] if self.above is not None else []
            limits += [f"{self.least:g} or more"] if not limits and self.least is not None else []
            limits += [f"below {self.below:g}"] if self.below is not None else []
            return f"a number {' and '.join(limits)}"
        return f"a number {_range(self.least, self.most)}".rstrip()

    def fits(self, value: Any) -> bool:
        # An integer of TOML has any size; beyond this one it is no float.
        if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
            return False
        return (
            (self.least is None or self.least <= value)
            and _below(value, self.most)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )


@dataclass(frozen=True)
class String:
    choices: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        return ", ".join(self.choices) or "a string"

    def fits(self, value: Any) -> bool:
        return isinstance(value, str) and (not self.choices or value in self.choices)


@dataclass(frozen=True)
class Flag:
    allowed: str = "true or false"

    def fits(self, value: Any) -> bool:
        return isinstance(value, bool)


@dataclass(frozen=True)
class Several:
    """A list of values of one kind, of the given lengths or of any."""

    kind: Kind
    lengths: tuple[int, ...] = ()

    @property
    def allowed(self) -> str:
        count = f"{' or '.join(map(str, self.lengths))} values" if self.lengths else "values"
        return f"a list of {count}, each {self.kind.allowed}"

    def fits(self, value: Any) -> bool:
        return (
            isinstance(value, list)
            and (not self.lengths or len(value) in self.lengths)
            and all(self.kind.fits(item) for item in value)
        )


@dataclass(frozen=True)
class Mapped:
    """A table of values of one kind under names that nobody knows before."""

    kind: Kind

    @property
    def allowed(self) -> str:
        return f"a table such as {{name = ...}}, each {self.kind.allowed}"

    def fits(self, value: Any) -> bool:
        return isinstance(value, dict) and all(self.kind.fits(item) for item in value.values())


@dataclass(frozen=True)
class AxisSizes:
    """One integer for every axis, or a list with one for each of at most two."""

    least: int = 1

    @property
    def allowed(self) -> str:
        return f"an integer of at least {self.least}, or a list of two of them"

    def fits(self, value: Any) -> bool:
        one = Integer(self.least)
        return one.fits(value) or Several(one, (1, 2)).fits(value)


@dataclass(frozen=True)
class Either:
    """One kind or the other."""

    first: Kind
    second: Kind

    @property
    def allowed(self) -> str:
        return f"{self.first.allowed}; or {self.second.allowed}"

    def fits(self, value: Any) -> bool:
        return self.first.fits(value) or self.second.fits(value)


@dataclass(frozen=True)
class Tables:
    """A list of tables, each with a `type`; their own checks follow where they are used."""

    allowed: str = "a list of tables such as {type = ...}"

    def fits(self, value: Any) -> bool:
        return isinstance(value, list) and all(isinstance(item, dict) for item in value)


@dataclass(frozen=True)
class Key:
    kind: Kind
    required: bool = False


Keys: TypeAlias = Mapping[str, Key]


def check_table(path: str, table: Any, keys: Keys) -> dict[str, Any]:
    """The table itself, once every key is known, present where required, and fits its kind."""
    if not isinstance(table, dict):
        raise RecipeError(f"{path} is {shown(table)}; allowed: a table")
    prefix = f"{path}." if path else ""
    for name, value in table.items():
        if name not in keys:
            raise RecipeError(
                f"{prefix}{one_line(cut(name))} is an unknown key; {_suggestion(name, keys)}"
            )
        if not keys[name].kind.fits(value):
            near = ""
            if isinstance(value, str) and isinstance(keys[name].kind, String):
                near = did_you_mean(value, keys[name].kind.choices)  # type: ignore[attr-defined]
            raise RecipeError(
                f"{prefix}{name} is {shown(value)}; allowed: {keys[name].kind.allowed}{near}"
            )
    for name, key in keys.items():
        if key.required and name not in table:
            raise RecipeError(f"{prefix}{name} is missing; allowed: {key.kind.allowed}")
    return table


def check_typed(path: str, table: Any, types: Mapping[str, Keys]) -> tuple[str, dict[str, Any]]:
    """The `type` of a table that says by it which keys it has, and its other keys."""
    if not isinstance(table, dict):
        raise RecipeError(f"{path} is {shown(table)}; allowed: a table with a type")
    kind = String(tuple(types))
    if "type" not in table:
        raise RecipeError(f"{path}.type is missing; allowed: {kind.allowed}")
    name = table["type"]
    check_table(path, {"type": name}, {"type": Key(kind)})
    check_table(path, table, {"type": Key(kind), **types[name]})
    return name, {key: value for key, value in table.items() if key != "type"}


def shown(value: Any) -> str:
    """A value as it would stand in TOML, cut to a readable length."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return one_line(cut(f"{{{', '.join(f'{k} = {shown(v)}' for k, v in value.items())}}}"))
    if isinstance(value, int) and abs(value) >= 2**63:
        return f"{one_line(cut(str(value)))}, beyond 63 bits"
    return one_line(cut(f'"{value}"' if isinstance(value, str) else str(value)))


def _suggestion(name: str, known: Iterable[str]) -> str:
    return f"allowed: {', '.join(known)}{did_you_mean(name, known)}"


def _range(least: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f"from {least:g} to {most:g}"
    return f"of at least {least:g}" if least is not None else ""


def _below(value: float, most: float | None) -> bool:
    return most is None or value <= most
