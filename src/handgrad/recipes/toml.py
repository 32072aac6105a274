"""TOML of a user as tables, in time and depth that do not depend on what it says."""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

from handgrad.errors import RecipeError

#: Characters of a recipe, which is some hundred lines long.
LONGEST: Final = 2**22
#: Tables and lists inside each other; a residual layer takes two.
DEEPEST: Final = 64
#: Parts of a dotted key, for which `tomllib` takes time that grows with their square.
_MOST_DOTS: Final = 1000
_NOT_OF_KEYS: Final = re.compile(r"[^\w\-.\"' \t]+")


class NotTOMLError(RecipeError):
    """A text that is not TOML at all."""


def read_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text.

    Raises RecipeError, in words that end a sentence beginning with the name of the text, where it
    is not TOML, too long or too deep, or has an integer beyond the 64 bits that TOML promises.
    """
    if len(text) > LONGEST:
        raise RecipeError(f"{len(text):,} characters of TOML; allowed: at most {LONGEST:,}")
    if any(piece.count(".") > _MOST_DOTS for piece in _NOT_OF_KEYS.split(text)):
        raise RecipeError(f"a key of more than {_MOST_DOTS} parts; allowed: a recipe in TOML")
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise NotTOMLError(f"not TOML ({error}); allowed: a recipe in TOML") from None
    except RecursionError:
        raise RecipeError(f"TOML nested too deep; allowed: {DEEPEST} levels") from None
    except ValueError as error:  # an integer of thousands of digits, a date that is none
        raise RecipeError(f"not TOML ({error}); allowed: a recipe in TOML") from None
    level: list[Any] = [tables]
    for _ in range(DEEPEST):
        for value in level:
            if type(value) is int and not -(2**63) <= value < 2**63:
                raise RecipeError("an integer beyond 64 bits; allowed: smaller ones, as in TOML")
        level = [item for value in level for item in _items(value)]
        if not level:
            return tables
    raise RecipeError(f"TOML nested too deep; allowed: {DEEPEST} levels")


def _items(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
