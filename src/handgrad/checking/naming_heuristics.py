"""Naming heuristics: `dscores` in a backward is the gradient of the forward's `scores`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from handgrad.checking.backward_trace import Assigned, BackwardTrace
from handgrad.checking.forward_trace import ForwardTrace
from handgrad.program import Node
from handgrad.program.edits import is_floats


class NamingHeuristics:
    """The nodes that a variable is the gradient of, to judge by its name."""

    def __init__(self, run: ForwardTrace, lines: BackwardTrace) -> None:
        self.run = run
        self.lines = lines
        self.names = {name: [name] for name in run.versions}
        for alias, value in (*lines.unpacked().items(), *_entries(run.cache)):
            if is_floats(value):
                meant = [
                    name
                    for name, nodes in run.versions.items()
                    if any(node.value is value for node in nodes)
                ]
                self.names[alias] = list(dict.fromkeys([*meant, *self.names.get(alias, [])]))

    def of(self, variable: Assigned) -> list[Node]:
        """The nodes of the name, the last first; then those on the way to it."""
        if not self.lines.is_last(variable):
            return []
        wanted = {plain(each) for each in without_affix(variable.name)}
        names = [
            each for alias, meant in self.names.items() if plain(alias) in wanted for each in meant
        ]
        found = [node for name in names for node in reversed(self.run.versions[name])]
        found += [node for name in names for node in reversed(self.run.inside.get(name, []))]
        return list(dict.fromkeys(found))

    def name(self, node: Node) -> str:
        """The forward's name for a node; "" if it has none."""
        return next((name for name, each in self.run.versions.items() if node in each), "")


def without_affix(name: str) -> Iterator[str]:
    """The rest of a name that begins or ends as those of gradients do."""
    for prefix in ("d", "grad", "gradient", "g"):
        if name.startswith(prefix) and len(name) > len(prefix):
            yield name.removeprefix(prefix)
    for suffix in ("_grad", "_gradient", "_bar"):
        if name.endswith(suffix):
            yield name.removesuffix(suffix)


def plain(name: str) -> str:
    """The name without what spellings differ in."""
    return name.replace("_", "").casefold()


def _entries(cache: Any) -> list[tuple[str, Any]]:
    """The entries of a cache that have names: of a dictionary, a named tuple, an object."""
    if isinstance(cache, Mapping):
        return [(str(key), value) for key, value in cache.items()]
    if hasattr(cache, "_asdict"):
        return list(cache._asdict().items())
    return list(vars(cache).items()) if hasattr(cache, "__dict__") else []
