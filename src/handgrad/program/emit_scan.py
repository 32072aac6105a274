"""Loops as source for JAX: one round is a function, which `jax.lax.scan` runs.

XLA compiles the rounds of a Python loop one by one, those of a scan once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from handgrad.program.emit_loops import LoopWriting
from handgrad.program.node import Loop, Node, mapped_sizes
from handgrad.program.sizes import Size


class ScanWriting(LoopWriting):
    """The statements of a scan. The counter has no number in a round that XLA compiles."""

    def run(self) -> None:
        e, loop = self.e, self.loop
        self._before()
        moved = [k for k in range(loop.carried) if self.results[k] is not self.carries[k]]
        carried = [e.variables[id(self.carries[k])] for k in moved]
        step = e.names.fresh("step")
        state, counter = e.names.fresh("state"), e.names.counter(loop.counter)
        e.line(f"def {step}({state}, {counter}):")
        e.indent += 1
        outside = e.uses, dict(e.variables), e.taken
        if carried:
            e.line(f"{_listed(carried)} = {state}")
        stacked = self._stacked_before()
        own = [self.body.outputs[i] for i in self.stacks if i not in stacked]
        self._compute(moved, own)
        following = [e.text(self.results[k]) for k in moved]
        stacked |= {i: e.text(self.body.outputs[i]) for i in self.stacks if i not in stacked}
        made = [stacked[i] for i in self.stacks]
        e.line(f"return {_tuple(following)}, {_tuple(made)}")
        e.uses, e.variables, e.taken = outside
        e.indent -= 1
        rounds = f"{e.alias}.arange({e.size(loop.count)})"
        order = ", reverse=True" if loop.reverse else ""
        found = ", ".join(
            _tuple(names) if names else "_" for names in (carried, list(self.stacks.values()))
        )
        e.line(f"{found} = jax.lax.scan({step}, {_tuple(carried)}, {rounds}{order})")
        self._name_parts()

    def _stack(self, i: int, name: str) -> None:
        """A scan makes its stacks itself."""

    def _first(self, first: Node, carry: Node, text: str) -> str:
        """An array, in the type that it has after a round."""
        if not self.e.is_number(first):
            return text
        return f"{self.e.alias}.asarray({text}{self.e.kind(carry)})"

    def _stacked_before(self) -> dict[int, str]:
        """Variables for carried values that are stacked as they were before the round."""
        e, found = self.e, dict[int, str]()
        places = {id(c): k for k, c in enumerate(self.carries)}
        for i in self.stacks:
            k = places.get(id(self.body.outputs[i]))
            if k is None:
                continue
            name = e.variables[id(self.carries[k])]
            found[i] = e.names.fresh(f"{name}_before")
            e.line(f"{found[i]} = {name}")
        return found


def can_scan(loop: Loop) -> bool:
    """Return whether the counter of a loop is read as the place in an array alone."""
    return not any(_counts(part, loop.counter) for part in _parts(loop))


def _parts(loop: Loop) -> Iterator[Any]:
    """What a body, those of loops inside included, does with sizes beside places in arrays."""
    for node in loop.body.body:
        yield node.shape
        for name, attribute in node.attrs.items():
            if name == "index" and isinstance(attribute, tuple):
                yield [part for part in attribute if isinstance(part, slice)]
            elif isinstance(attribute, Loop):
                yield attribute.count
                yield from _parts(attribute)
            else:
                yield attribute
        yield [arg.attrs["size"] for arg in node.args if arg.op == "size"]


def _counts(part: Any, letter: str) -> bool:
    found: list[Size] = []
    mapped_sizes(part, found.append)
    return any(letter in size.letters for size in found)


def _tuple(parts: list[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _listed(parts: list[str]) -> str:
    return ", ".join(parts) if len(parts) > 1 else _tuple(parts)
