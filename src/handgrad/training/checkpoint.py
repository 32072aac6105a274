"""The state of a training in a checkpoint, beside its arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from handgrad.dispatch.values import shown
from handgrad.errors import RunError
from handgrad.escaping import cut, listed
from handgrad.training.metrics import Sums

_COUNT: Final = (int, "an integer from 0")
_NUMBER: Final = (int | float, "a number")
_TABLE: Final = (dict, "a table")
_SUMS: Final = {
    "examples": _COUNT,
    "loss": _NUMBER,
    "weight": _NUMBER,
    "correct": _COUNT,
    "judged": _COUNT,
}
_GENERATORS: Final = {"shuffling": _TABLE, "augmenting": _TABLE, "model": _TABLE}
_MOVED: Final = {"kept": _TABLE, "lost": _TABLE}
_KINDS: Final = {
    "format": _COUNT,
    "identity": _TABLE,
    "settings": _TABLE,
    "moved": _TABLE,
    "config": (str, "a checksum"),
    "epoch": _COUNT,
    "position": _COUNT,
    "step": _COUNT,
    "stop": (bool, "true or false"),
    "seconds": _NUMBER,
    "sums": _TABLE,
    "callbacks": (list, "a list of tables"),
    "generators": _TABLE,
}


@dataclass(frozen=True)
class CheckpointState:
    """The counters, sums and generators of a training between two steps.

    identity: see `identity`; settings: see `continuing.settings_of`; moved: see `moving`; config:
    the checksum of the config.toml that it was trained with.
    """

    identity: dict[str, Any]
    settings: dict[str, Any]
    moved: dict[str, Any]
    config: str
    epoch: int
    position: int
    step: int
    stop: bool
    seconds: float
    sums: Sums
    callbacks: list[dict[str, Any]]
    generators: dict[str, Any]

    @classmethod
    def read(cls, path: Path, found: Mapping[str, Any]) -> CheckpointState:
        """The state that the checkpoint at `path` has.

        Raises RunError for an entry that is missing, unknown or of another type.
        """
        _check(path, "", found, _KINDS)
        _check(path, "moved.", found["moved"], _MOVED)
        _check(path, "sums.", found["sums"], _SUMS)
        _check(path, "generators.", found["generators"], _GENERATORS)
        tables = {f"callbacks[{i}]": each for i, each in enumerate(found["callbacks"])}
        models = found["generators"]["model"]
        _check(path, "", tables, dict.fromkeys(tables, _TABLE))
        _check(path, "generators.model.", models, dict.fromkeys(models, _TABLE))
        values = {field.name: found[field.name] for field in fields(cls)}
        return cls(**{**values, "sums": Sums(**found["sums"])})


def _check(path: Path, prefix: str, found: Mapping[str, Any], kinds: Mapping[str, Any]) -> None:
    for name in dict.fromkeys((*kinds, *found)):
        if name not in kinds or name not in found:
            what = "missing" if name in kinds else "unknown"
            raise RunError(f"{path}: {cut(prefix + name)} is {what}; allowed: {listed(kinds)}")
        kind, allowed = kinds[name]
        value = found[name]
        fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if not fits or (kind is int and value < 0):
            raise RunError(f"{path}: {cut(prefix + name)} is {shown(value)}; allowed: {allowed}")
