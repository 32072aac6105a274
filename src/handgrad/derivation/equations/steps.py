"""Loops over the steps of a sequence, as the code writes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from handgrad.trees import nodes
from handgrad.trees.nodes import Node
from handgrad.trees.text import called

#: What is behind the name of all steps together.
_ENDINGS: Final = ("_run", "_steps")


@dataclass(frozen=True)
class Steps:
    """`for t in range(count)`, or its reverse."""

    loop: nodes.For
    counter: str
    is_reversed: bool
    count: Node
    #: Every name that a round sets, and of these the ones that it reads before.
    names: frozenset[str]
    carried: frozenset[str]


def steps_of(body: tuple[Node, ...]) -> list[Steps]:
    """Every loop over a range that is in no other loop and has none inside."""
    loops = [each for statement in body for each in nodes.walk(statement) if _is_loop(each)]
    nested = {
        id(each)
        for outer in loops
        for inner in nodes.walk(outer)
        if inner is not outer and _is_loop(inner)
        for each in (outer, inner)
    }
    found = (_steps(each) for each in loops if id(each) not in nested)
    return [each for each in found if each is not None]


def _is_loop(node: Node) -> bool:
    return isinstance(node, nodes.For)


def _steps(loop: Node) -> Steps | None:
    match loop:
        case nodes.For(nodes.Name(counter), iterable, body):
            match iterable:
                case nodes.Call(nodes.Name("range"), (count,), ()):
                    is_reversed = False
                case nodes.Call(
                    nodes.Name("reversed"), (nodes.Call(nodes.Name("range"), (count,), ()),), ()
                ):
                    is_reversed = True
                case _:
                    return None
            assignments = list(_assignments(body))
            names = set[str]().union(*(nodes.names(each.target) for each in assignments))
            carried: set[str] = set()
            known: set[str] = set()
            for each in assignments:
                carried |= (nodes.names(each.value) & names) - known
                known |= nodes.names(each.target)
            return Steps(loop, counter, is_reversed, count, frozenset(names), frozenset(carried))
    return None


def _assignments(body: Iterable[Node]) -> Iterator[nodes.Assign]:
    for statement in body:
        yield from (each for each in nodes.walk(statement) if isinstance(each, nodes.Assign))


def stem(name: str, counters: Iterable[str]) -> str:
    """`dh` of `dh_t` and `x` of `x_run`."""
    for ending in (*(f"_{each}" for each in counters), *_ENDINGS):
        if name.endswith(ending) and name != ending:
            return name.removesuffix(ending)
    return name


def gathered(steps: Steps, name: str) -> tuple[Node, bool] | None:
    """What a round adds to a tuple, and whether it adds it in front; None for any other name."""
    for each in _assignments(steps.loop.body):
        match each:
            case nodes.Assign(nodes.Name(target), nodes.Sequence(_, (one, other))) if (
                target == name
            ):
                own = nodes.Starred(nodes.Name(name))
                if one == own or other == own:
                    return (one, True) if other == own else (other, False)
    return None


def turned(node: Node) -> set[str]:
    """The names of which an axis is turned round somewhere, other than to compare places."""
    match node:
        case nodes.Where(_, yes, no):
            return turned(yes) | turned(no)
        case nodes.Call(function, _, _) if called(function) == "flip":
            return nodes.names(node)
    return set[str]().union(*map(turned, nodes.children(node)))
