"""The nodes of an expression tree: what a line of an op's mathematics is made of.

A node is a frozen dataclass whose fields are nodes, tuples of nodes, or plain values, so that
`children` and `rebuilt` can walk and change any of them. Sums and products are flat and evaluated
from the left, as Python does: `a - b + c` is one `Sum` of three terms; brackets nest.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an expression or of a function's body."""


@dataclass(frozen=True, slots=True)
class Name(Node):
    id: str


@dataclass(frozen=True, slots=True)
class Constant(Node):
    """A number, string, bool, None or `...` as it stands in the source."""

    value: Any


@dataclass(frozen=True, slots=True)
class Term(Node):
    """One summand; `sign` is 1 or −1."""

    sign: int
    value: Node


@dataclass(frozen=True, slots=True)
class Sum(Node):
    """a + b − c. The first term has sign 1; a leading minus is a `Negative`."""

    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Factor(Node):
    """One factor; `inverse` where it is divided by."""

    inverse: bool
    value: Node


@dataclass(frozen=True, slots=True)
class Product(Node):
    """a · b / c, element by element. The first factor is not inverse."""

    factors: tuple[Factor, ...]


@dataclass(frozen=True, slots=True)
class Negative(Node):
    value: Node


@dataclass(frozen=True, slots=True)
class Power(Node):
    base: Node
    exponent: Node


@dataclass(frozen=True, slots=True)
class Integral(Node):
    """a // b or a % b: sizes, never values."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class MatMul(Node):
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Transpose(Node):
    """The last two axes exchanged: `a.T`, `a.mT` (`form` says which), or xp.matrix_transpose(a)."""

    value: Node
    form: str
    function: Node | None = None


@dataclass(frozen=True, slots=True)
class Keyword(Node):
    name: str
    value: Node


@dataclass(frozen=True, slots=True)
class Reduce(Node):
    """A sum, mean, max or min over axes: `function(value, ...)`, or a method where that is None."""

    kind: str
    value: Node
    arguments: tuple[Node, ...]
    keywords: tuple[Keyword, ...]
    function: Node | None


@dataclass(frozen=True, slots=True)
class Where(Node):
    """`yes` where the condition holds, else `no`."""

    condition: Node
    yes: Node
    no: Node
    function: Node


@dataclass(frozen=True, slots=True)
class Call(Node):
    function: Node
    arguments: tuple[Node, ...]
    keywords: tuple[Keyword, ...]


@dataclass(frozen=True, slots=True)
class Method(Node):
    """`value.name(...)`, where the value is no array library."""

    value: Node
    name: str
    arguments: tuple[Node, ...]
    keywords: tuple[Keyword, ...]


@dataclass(frozen=True, slots=True)
class Attribute(Node):
    value: Node
    name: str


@dataclass(frozen=True, slots=True)
class Index(Node):
    value: Node
    index: Node


@dataclass(frozen=True, slots=True)
class Slice(Node):
    lower: Node | None
    upper: Node | None
    step: Node | None


@dataclass(frozen=True, slots=True)
class Sequence(Node):
    """A tuple (`form` "tuple") or list ("list") written out."""

    form: str
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Starred(Node):
    value: Node


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """left operator right, one of == != < <= > >= is, is not, in, not in."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Logic(Node):
    """`and`, `or`, `&`, `|` of two or more values, `not` or `~` of one."""

    operator: str
    values: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice(Node):
    """yes if test else no, for a setting; `Where` is the choice per element."""

    test: Node
    yes: Node
    no: Node


@dataclass(frozen=True, slots=True)
class Clause(Node):
    """for target in iterable if conditions."""

    target: Node
    iterable: Node
    conditions: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Loop(Node):
    """The element for every value of a bounded loop: `form` is "generator", "list" or "tuple"."""

    form: str
    element: Node
    clauses: tuple[Clause, ...]


# Statements


@dataclass(frozen=True, slots=True)
class Assign(Node):
    """target = value; the target is a Name, or a Sequence of targets. `line` is the source's."""

    target: Node
    value: Node
    line: int


@dataclass(frozen=True, slots=True)
class Store(Node):
    """array[index] = value, in a user's function; an op never writes into an array."""

    target: Node
    value: Node
    line: int


@dataclass(frozen=True, slots=True)
class Branch(Node):
    test: Node
    yes: tuple[Node, ...]
    no: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class For(Node):
    target: Node
    iterable: Node
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Return(Node):
    value: Node
    line: int


def children(node: Node) -> list[Node]:
    """The nodes directly below this one, in the order of the source."""
    found: list[Node] = []
    for item in dataclasses.fields(node):
        value = getattr(node, item.name)
        if isinstance(value, Node):
            found.append(value)
        elif isinstance(value, tuple):
            found.extend(part for part in value if isinstance(part, Node))
    return found


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it."""
    yield node
    for child in children(node):
        yield from walk(child)


def rebuilt(node: Node, change: Callable[[Node], Node]) -> Node:
    """The node with `change` applied to every node directly below it."""
    values: dict[str, Any] = {}
    for item in dataclasses.fields(node):
        value = getattr(node, item.name)
        if isinstance(value, Node):
            values[item.name] = change(value)
        elif isinstance(value, tuple):
            values[item.name] = tuple(
                change(part) if isinstance(part, Node) else part for part in value
            )
    return dataclasses.replace(node, **values) if values else node


def names(node: Node) -> set[str]:
    """Every name that the node mentions."""
    return {part.id for part in walk(node) if isinstance(part, Name)}
