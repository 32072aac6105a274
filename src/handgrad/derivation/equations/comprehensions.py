"""Loops inside an expression: which symbols their variables are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from handgrad.derivation.formulas.formula import Formula, Number, separated
from handgrad.trees import nodes
from handgrad.trees.nodes import Node
from handgrad.trees.text import called

if TYPE_CHECKING:
    from handgrad.derivation.equations.expression import Writer


def within(writer: Writer, clauses: tuple[nodes.Clause, ...]) -> Writer:
    """A writer for the element of a loop."""
    for clause in clauses:
        bound, indices = _binding(writer, clause.target, clause.iterable)
        first = next(iter(writer.value(clause.iterable) or ()), None)
        names = {**writer.frame.names, **dict(matched(clause.target, first))}
        index = separated(tuple(indices)) if indices else writer.index
        if indices and writer.index is not None:
            index = separated((writer.index, *indices))
        writer = replace(
            writer,
            frame=writer.frame.at(names),
            bound={**writer.bound, **bound},
            index=index,
        )
    return writer


def _binding(
    writer: Writer, target: Node, iterable: Node
) -> tuple[dict[str, Formula], list[Formula]]:
    """The symbol of every variable of a loop, and which of them are its index."""
    match target, iterable:
        case nodes.Sequence(_, targets), nodes.Call(function, arguments, _) if called(
            function
        ) == "zip" and len(targets) == len(arguments):
            bound: dict[str, Formula] = {}
            indices: list[Formula] = []
            for one, over in zip(targets, arguments, strict=True):
                inside = replace(writer, index=separated(tuple(indices)) if indices else None)
                found, added = _binding(inside, one, over)
                bound |= found
                indices += added
            return bound, indices
        case nodes.Sequence(_, (counter, *_)), nodes.Call(function, _, _) if (
            called(function) == "enumerate"
        ):
            return _binding(writer, counter, nodes.Constant(None))
        case nodes.Name(name), nodes.Name(over) if over in writer.frame.families:
            own, _ = writer.frame.families[over]
            index = writer.index or own
            writer.frame.used.setdefault(over)
            element = writer.frame.symbol(over, index)
            return {name: element}, [] if writer.index is not None else [own]
    found = {name: writer.frame.glossary.symbol(name) for name in _target_names(target)}
    return found, list(found.values())


def _target_names(target: Node) -> list[str]:
    return [
        part.id for part in nodes.walk(target) if isinstance(part, nodes.Name) and part.id != "_"
    ]


def matched(target: Node, value: Any) -> Iterator[tuple[str, Any]]:
    """The names of a loop's target with their part of its first value."""
    match target:
        case nodes.Name(name):
            yield name, value
        case nodes.Sequence(_, targets) if value is not None:
            for each, part in zip(targets, value, strict=False):
                yield from matched(each, part)


def element(writer: Writer, name: str, node: Node) -> tuple[Formula, Formula] | None:
    """Both sides for one element of a list that a loop makes; None for anything else."""
    match node:
        case nodes.Loop("list", value, clauses):
            inside = within(writer, clauses)
            if inside.index is None:
                return None
            frame = writer.frame
            frame.families[name] = inside.index, None
            frame.used.setdefault(name)
            left = frame.glossary.symbol(name, frame.primes.get(name, 0), inside.index)
            return left, inside.result(value)
    return None


def numbers(writer: Writer, node: Node, known: Mapping[str, list[Formula]]) -> list[Formula]:
    """The index of every element of a list that a loop makes, by those of the lists before."""
    match node:
        case nodes.Loop("list", _, (nodes.Clause(_, nodes.Name(over), ()),)) if over in known:
            return known[over]
        case nodes.Loop("list", _, (nodes.Clause(target, iterable, ()),)):
            found = []
            for position, item in enumerate(writer.value(iterable) or ()):
                whole = list(_whole(target, item)) or [position]
                found.append(separated(tuple(Number(str(each)) for each in whole)))
            return found
    return []


def _whole(target: Node, item: Any) -> Iterator[int]:
    """The whole numbers that a loop's variables have for one item."""
    for name, value in matched(target, item):
        parts = value if isinstance(value, tuple) else (value,)
        if name != "_" and all(isinstance(part, int) for part in parts):
            yield from parts
