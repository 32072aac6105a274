"""Insertions into a wrong backward: one factor, term, mean or transpose more, at any node of it.

With these a backward that is short of something can be put right, and what puts it right is what
was missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from handgrad.program.edits import Edit, Variant, by_site, is_floats, merged
from handgrad.program.nodes import Node, Program
from handgrad.program.words import words


def insertions(program: Program) -> list[Edit]:
    """Every insertion behind an operation that the program made."""
    return [
        edit
        for group in by_site(program)
        for edit in merged(group, [list(_variants(program, node)) for node in group])
    ]


def _variants(program: Program, node: Node) -> Iterator[Variant]:
    if not is_floats(node.value) or np.ndim(node.value) == 0:
        return
    for other in dict.fromkeys(program.named_before(node).values()):
        if is_array_or_mask(other.value) and broadcasts(
            np.shape(other.value), np.shape(node.value)
        ):
            yield from _with_array(node, other)
    for axis in range(np.ndim(node.value)):
        yield from _without_mean(node, axis)
    if np.ndim(node.value) >= 2:
        yield Variant("transpose inserted", words(node), lambda own, of: own.mT)


def _with_array(node: Node, other: Node) -> Iterator[Variant]:
    name = words(other)
    yield Variant("factor inserted", name, lambda own, of: own * of(other))
    if not is_floats(other.value):
        return
    yield Variant("factor inserted", "1/" + name, lambda own, of: own / of(other))
    yield Variant(
        "derivative inserted", f"1 − {name}²", lambda own, of: own * (1.0 - of(other) * of(other))
    )
    yield Variant(
        "derivative inserted",
        f"{name} (1 − {name})",
        lambda own, of: own * (of(other) * (1.0 - of(other))),
    )
    yield Variant("derivative inserted", f"{name} > 0", lambda own, of: own * (of(other) > 0))
    if np.shape(other.value) == np.shape(node.value):
        yield Variant("term inserted", name, lambda own, of: own + of(other))
        yield Variant("term inserted", "−" + name, lambda own, of: own - of(other))
        for axis in range(np.ndim(node.value)):
            yield Variant(
                "term inserted", f"−{name} mean({words(node)} {name})", _projected(other, axis)
            )


def _projected(other: Node, axis: int) -> Any:
    return lambda own, of: own - of(other) * np.mean(own * of(other), axis=axis, keepdims=True)


def _without_mean(node: Node, axis: int) -> Iterator[Variant]:
    """x − mean x; and for p d, where p is a softmax, p (d − Σ p d)."""

    def centred(own: Any, of: Any) -> Any:
        return own - np.mean(own, axis=axis, keepdims=True)

    yield Variant("term inserted", f"−mean({words(node)})", centred)
    if node.op == "multiply":
        for p, d in (node.args, node.args[::-1]):
            yield Variant("term inserted", f"−{words(p)} sum({words(node)})", _softmax(p, d, axis))


def _softmax(p: Any, d: Any, axis: int) -> Any:
    return lambda own, of: of(p) * (of(d) - np.sum(own, axis=axis, keepdims=True))


def is_array_or_mask(value: Any) -> bool:
    """True for an array of floats or of bools that has axes."""
    is_mask = "bool" in str(getattr(value, "dtype", ""))
    return (is_floats(value) or is_mask) and np.ndim(value) > 0


def broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """True where an array of this shape broadcasts to the other one."""
    pairs = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(one in (1, other) for one, other in pairs)
