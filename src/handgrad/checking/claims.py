"""What the names in a backward say: `dscores` is the gradient of `scores`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from handgrad.checking.backward_lines import Lines, Variable
from handgrad.checking.straight import Straight, is_floats


class Claims:
    """What the name of a variable says that it is the gradient of."""

    def __init__(self, run: Straight, lines: Lines) -> None:
        self.run = run
        self.lines = lines
        self.names = {name: [name] for name in run.versions}
        for alias, value in (*lines.unpacked().items(), *_entries(run.cache)):
            if is_floats(value):
                meant = [
                    name
                    for name, places in run.versions.items()
                    if any(run.values[place] is value for place in places)
                ]
                self.names[alias] = list(dict.fromkeys([*meant, *self.names.get(alias, [])]))

    def of(self, variable: Variable) -> list[str]:
        """The places of the name, the last first; then those on the way to it."""
        if not self.lines.is_last(variable):
            return []
        stems = {_plain(stem) for stem in _stems(variable.name)}
        names = [
            each for alias, meant in self.names.items() if _plain(alias) in stems for each in meant
        ]
        found = [place for name in names for place in reversed(self.run.versions[name])]
        found += [place for name in names for place in reversed(self.run.inside.get(name, []))]
        return list(dict.fromkeys(found))

    def name(self, place: str) -> str:
        """The forward's name for a place; "" if it has none."""
        return next((name for name, each in self.run.versions.items() if place in each), "")


def _stems(name: str) -> Iterator[str]:
    for prefix in ("d", "grad", "g"):
        if name.startswith(prefix) and len(name) > len(prefix):
            yield name.removeprefix(prefix)
    for suffix in ("_grad", "_bar"):
        if name.endswith(suffix):
            yield name.removesuffix(suffix)


def _plain(name: str) -> str:
    return name.replace("_", "").casefold()


def _entries(cache: Any) -> list[tuple[str, Any]]:
    """The entries of a cache that have names: of a dictionary, a named tuple, an object."""
    if isinstance(cache, Mapping):
        return [(str(key), value) for key, value in cache.items()]
    if hasattr(cache, "_asdict"):
        return list(cache._asdict().items())
    return list(vars(cache).items()) if hasattr(cache, "__dict__") else []
