"""Programs: what one run of a function did with its arrays, in static single assignment form.

A node is one array operation with its operands, the position in the source that it comes from, and
its value in the run. Settings and branches are resolved: only operations on arrays are nodes.

Source of the form: Cytron, Ferrante, Rosen, Wegman, Zadeck, Efficiently computing static single
assignment form and the control dependence graph (1991).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NamedTuple

from handgrad.errors import HandgradError
from handgrad.program.sizes import Size


class ProgramError(HandgradError, ValueError):
    """A function of which no program can be made: where, and why."""


class Site(NamedTuple):
    """A position in a source file: a line, the columns of an expression, and its text."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


class Round(NamedTuple):
    """One round of a loop, or of a comprehension, counted from 0."""

    loop: Site
    number: int


@dataclass(frozen=True, eq=False)
class Frame:
    """A call of a function whose source was followed; `site` is where its caller calls it."""

    function: Callable[..., Any]
    caller: Frame | None = None
    site: Site | None = None

    @property
    def name(self) -> str:
        return str(getattr(self.function, "__qualname__", self.function))


@dataclass(eq=False, slots=True, repr=False)
class Node:
    """One operation on arrays.

    op: its name in the array API ("add", "matmul", "mean", "getitem"), "input" for an array from
    outside, "store" for one with some elements replaced. args, kwargs: the operands as the function
    was given them, with nodes in the place of arrays, also within tuples, lists and slices.
    function: what computes the value from such arguments without changing any of them; None for an
    input or a random draw. rounds: the loops around it, outermost first.
    """

    number: int
    op: str
    function: Callable[..., Any] | None
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    value: Any
    frame: Frame
    site: Site | None
    rounds: tuple[Round, ...] = ()
    name: str = ""
    #: All names that it has been given.
    names: set[str] = field(default_factory=set)
    #: Sizes in a run in letters: of the axes of an array, or a whole number by itself.
    sizes: tuple[Size, ...] | None = None
    #: The nodes among the arguments, in order.
    operands: tuple[Node, ...] = field(init=False)
    #: True where none of them is within a tuple, list, dict or slice.
    is_flat: bool = field(init=False)

    def __post_init__(self) -> None:
        self.operands = tuple(leaves((self.args, self.kwargs)))
        direct = [each for each in (*self.args, *self.kwargs.values()) if isinstance(each, Node)]
        self.is_flat = len(direct) == len(self.operands)

    def __repr__(self) -> str:
        named = f" {self.name}" if self.name else ""
        return f"<{self.op} {self.number}{named}>"

    def called_with(self, value: Callable[[Node], Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of `function`, with these values in the place of nodes."""

        def of(each: Any) -> Any:
            return value(each) if isinstance(each, Node) else each

        if self.is_flat:
            return tuple([of(each) for each in self.args]), {
                name: of(each) for name, each in self.kwargs.items()
            }
        return mapped(of, self.args), mapped(of, dict(self.kwargs))

    @property
    def line(self) -> int:
        return self.site.line if self.site is not None else 0


class Assignment(NamedTuple):
    """A name that was set: to a node, or to a structure of nodes and settings.

    `made` is the number of nodes that there were by then.
    """

    frame: Frame
    name: str
    value: Any
    site: Site | None
    rounds: tuple[Round, ...]
    made: int


class Branch(NamedTuple):
    """A condition that the run decided; `node` where it hangs on the value of an array."""

    frame: Frame
    site: Site
    taken: bool
    node: Node | None


@dataclass(frozen=True, eq=False)
class Program:
    """One run: its nodes in order, the arguments and the result in terms of nodes."""

    frame: Frame
    nodes: tuple[Node, ...]
    arguments: Mapping[str, Any]
    result: Any
    assignments: tuple[Assignment, ...]
    branches: tuple[Branch, ...]

    @property
    def results(self) -> tuple[Any, ...]:
        """The results of the function: several one by one, or the only one."""
        return self.result if isinstance(self.result, tuple) else (self.result,)

    @property
    def is_decided(self) -> bool:
        """True where the values of arrays decided what was computed."""
        return any(each.node is not None for each in self.branches)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.op == "input")

    @cached_property
    def users(self) -> dict[Node, list[Node]]:
        """The nodes that read each node, in order."""
        found: dict[Node, list[Node]] = {}
        for node in self.nodes:
            for operand in dict.fromkeys(node.operands):
                found.setdefault(operand, []).append(node)
        return found

    def moved_by(self, nodes: Iterable[Node]) -> list[Node]:
        """The nodes that are made from some of these, directly or not, in order."""
        found: set[Node] = set()
        waiting = list(nodes)
        while waiting:
            for user in self.users.get(waiting.pop(), ()):
                if user not in found:
                    found.add(user)
                    waiting.append(user)
        return sorted(found, key=lambda node: node.number)


def leaves(nested: Any) -> Iterator[Node]:
    """The nodes in a structure, in order."""
    if isinstance(nested, Node):
        yield nested
    elif isinstance(nested, tuple | list):
        for each in nested:
            yield from leaves(each)
    elif isinstance(nested, dict | MappingProxyType):
        for each in nested.values():
            yield from leaves(each)
    elif isinstance(nested, slice):
        yield from leaves((nested.start, nested.stop, nested.step))


def reachable(
    results: Any, operands: Callable[[Node], Iterable[Node]] = attrgetter("operands")
) -> set[Node]:
    """The nodes in a structure and all that they are made of, by their `operands`."""
    found: set[Node] = set()
    waiting = list(leaves(results))
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += operands(node)
    return found


def mapped(change: Callable[[Any], Any], nested: Any) -> Any:
    """The structure with `change` of everything in it that is no tuple, list, dict or slice."""
    if isinstance(nested, tuple):
        parts = [mapped(change, each) for each in nested]
        return type(nested)(*parts) if hasattr(nested, "_fields") else tuple(parts)
    if type(nested) is list:
        return [mapped(change, each) for each in nested]
    if type(nested) is dict:
        return {key: mapped(change, each) for key, each in nested.items()}
    if isinstance(nested, slice):
        return slice(*(mapped(change, each) for each in (nested.start, nested.stop, nested.step)))
    return change(nested)


def values_of(nested: Any, found: Mapping[Node, Any] = MappingProxyType({})) -> Any:
    """The structure with the nodes' values: those that were found, or else those of the run."""
    return mapped(
        lambda each: found.get(each, each.value) if isinstance(each, Node) else each, nested
    )
