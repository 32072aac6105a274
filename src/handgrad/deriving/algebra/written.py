"""The nodes that arrays have been written as."""

from __future__ import annotations

from dataclasses import dataclass, field

from handgrad.program.node import Node


@dataclass
class WrittenNodes:
    """The nodes that stand for arrays, and how often each does."""

    of: dict[int, Node] = field(default_factory=dict)
    _times: dict[int, int] = field(default_factory=dict)

    _alone: set[int] = field(default_factory=set)

    def put(self, key: int, node: Node, *, alone: bool) -> None:
        """Keeps the node of an array; one that stands alone is not there for what others read."""
        self.of[key] = node
        if alone:
            self._alone.add(key)
        else:
            self._times[id(node)] = self._times.get(id(node), 0) + 1

    def pop(self, key: int) -> Node | None:
        node = self.of.pop(key, None)
        if node is not None and key not in self._alone:
            self._times[id(node)] -= 1
        self._alone.discard(key)
        return node

    def __contains__(self, node: object) -> bool:
        """Return whether the node of this id is written for some array."""
        return self._times.get(node, 0) > 0  # type: ignore[call-overload]
