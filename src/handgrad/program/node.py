"""Nodes and programs.

A node is one application of a primitive: operands, attributes, symbolic shape, kind and the value
it has on the example. A program is inputs, outputs and what lies between, in order. A loop is a
node whose attribute is a program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from handgrad.program.arithmetic import ArithmeticOperand
from handgrad.program.sizes import Size

#: What stands for an operand: a node, a size, a number or an array.
Operand: TypeAlias = Any
#: Relation, its two sides, and the outcome on the example. The relation "true" is that of a
#: node's value, which is the left side.
Guard: TypeAlias = tuple[str, Any, Any, bool]

LEAVES = ("const", "table", "size", "input")
"""What has no operands and is no application of a primitive."""
FIXED = ("const", "table", "size")
"""Leaves that no caller gives."""
DTYPES: dict[str, type] = {"f": float, "i": int, "b": bool, "c": complex}
"""NumPy's types of the kinds."""


class Refused(Exception):  # noqa: N818 (a refusal is an answer; users catch it by this name)
    """The forward can't be read: the line and the reason."""


class ByChance(Refused):
    """On this example alone: an axis of length 1 is spread, or a place is outside of an array."""


@dataclass(eq=False)
class Node(ArithmeticOperand):
    """One application of a primitive."""

    op: str
    args: tuple[Node, ...] = ()
    attrs: dict[str, Any] = field(default_factory=dict)
    shape: tuple[Size, ...] = ()
    kind: str = "f"  # f float, i integer, b boolean, c complex
    value: Any = None  # on the example
    name: str = ""  # as the user calls it
    line: int = 0  # of the user's source
    #: Of a trace: the loops that it was made in, outermost first, and the round of each.
    rounds: tuple[tuple[int, int], ...] = ()
    #: The node that this is the adjoint of, where it is one and has a name.
    primal: Node | None = None

    def operate(self, name: str, *operands: Operand) -> Node:
        return build("power" if name == "pow" else name, *operands)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def take_name(self, other: Node) -> None:
        """The name of a node that this one stands for, unless it has one of its own."""
        if not self.name:
            self.name, self.primal = other.name, other.primal

    def __repr__(self) -> str:
        return f"{self.name or self.op}{list(self.shape)}"


@dataclass
class Program:
    """What leads from inputs to outputs."""

    inputs: list[Node]
    outputs: list[Node]

    @property
    def body(self) -> list[Node]:
        """All that the outputs need, each after its operands; the inputs are left out."""
        order: list[Node] = []
        seen = set(map(id, self.inputs))
        stack = [(n, False) for n in reversed(self.outputs)]
        while stack:
            node, done = stack.pop()
            if done:
                order.append(node)
            elif id(node) not in seen:
                seen.add(id(node))
                stack.append((node, True))
                stack += [(a, False) for a in reversed(node.args) if id(a) not in seen]
        return order

    def everywhere(self) -> Iterator[Node]:
        """The nodes of the body, and those in its loops."""
        for node in self.body:
            yield node
            if node.op == "loop":
                yield from node.attrs["loop"].body.everywhere()


@dataclass(frozen=True)
class Loop:
    """Rounds of a body.

    The body's inputs are constants, then carried values; its outputs are the carried values'
    next, then what is stacked. The node's operands are the constants and the carried values'
    first; its parts are the carried values' last and the stacks.
    """

    body: Program
    counter: str  # the letter that counts rounds: 0 … count-1, downwards where reverse
    count: Size
    constants: int
    carried: int
    reverse: bool = False


@dataclass(frozen=True)
class Primitive:
    """All there is to know of one function."""

    name: str
    evaluate: Callable[..., Any]  # values → value
    shape: Callable[..., tuple[tuple[Size, ...], str]]  # nodes → sizes and kind
    #: (gradient, result, *operands) → a gradient or None for each operand
    vjp: Callable[..., tuple[Any, ...]] | None = None
    #: NumPy: a call's name, an infix sign, or a function of the emitter
    text: str | Callable[..., Any] = ""
    torch: str | Callable[..., Any] = ""  # where it differs
    precedence: int = 9  # of its infix sign, else that of a call
    #: random numbers → example operands, of other shapes each time
    domain: Callable[..., Any] | None = None
    rewrite: Callable[..., Any] | None = None  # operands, attributes → a simpler node or None
    jax: str | Callable[..., Any] = ""  # where it differs
    analytic: bool = False  # of complex operands: its vjp is that of reals, between conjugations
    #: of several results: nodes → sizes and kind of each
    parts: Callable[..., Any] | None = None
    samples: tuple[Any, ...] = ()  # of families with attributes: operands on which it is checked
    cases: tuple[dict[str, Any], ...] = ({},)  # attributes to try on the domain
    smooth: bool = True  # a second derivative exists on the domain


PRIMITIVES: dict[str, Primitive] = {}


class Selection(NamedTuple):
    """A letter for how many elements of an array are not 0, or how many differ from each other."""

    letter: str
    node: Node
    once: bool

    @property
    def function(self) -> str:
        return "unique" if self.once else "count_nonzero"

    def number(self, values: Any) -> int:
        return len(np.unique(values)) if self.once else int(np.count_nonzero(values))

    def is_of(self, values: Any, once: bool) -> bool:
        own = np.asarray(self.node.value)
        return self.once == once and np.array_equal(own if once else own != 0, values)


class Signatures:
    """Numbers of computations: equal ones have one, in whichever rounds of loops they stand."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._known: dict[int, tuple[Node, int]] = {}

    def of(self, node: Node) -> int:
        waiting = [node]
        while waiting:
            last = waiting[-1]
            missing = [a for a in last.args if id(a) not in self._known]
            waiting += missing
            if not missing:
                waiting.pop()
                told = self._told(last)
                self._known[id(last)] = last, self._numbers.setdefault(told, len(self._numbers))
        return self._known[id(node)][1]

    def stand(self, made: Node, old: Node) -> None:
        """Give a node the number of the one that it was made from, if that has one."""
        if id(old) in self._known:
            self._known[id(made)] = made, self._known[id(old)][1]

    def _told(self, node: Node) -> Any:
        now: dict[str, Size | int] = {f"t{depth}": i for depth, (_, i) in enumerate(node.rounds)}
        args = [
            str(replaced(a.attrs["size"], now)) if a.op == "size" else self._known[id(a)][1]
            for a in node.args
        ]
        if node.op in ("input", "loop"):
            return id(node)
        if node.op == "table":
            value = np.asarray(node.value)
            return value.dtype.str, value.shape, value.tobytes()
        attrs = {name: replaced(each, now) for name, each in node.attrs.items()}
        return node.op, tuple(args), repr(sorted(attrs.items()))


class World:
    """All that a trace knows besides its nodes."""

    def __init__(self) -> None:
        self.lengths: dict[str, int] = {}  # of the letters, on the example
        self.guards: list[Guard] = []
        self.events: list[Any] | None = None  # nodes and ends of rounds, in a trace
        self.line = 0
        self.has_numbers = True  # of its nodes; without, a trace only knows shapes and kinds
        self.ties = "first"  # the slope where pieces meet: primitives/extremes.py
        #: Attributes of arrays that their library has otherwise than NumPy.
        self.attributes: Mapping[str, Callable[[Any], Any]] = {}
        self.spells_out = False  # loops of a number of rounds that stands in the code are none
        self.is_stopped = False  # nothing computed now passes a gradient on
        #: Functions with gradients of their own, of which the forward was followed: their kinds.
        self.own_rules: dict[str, str] = {}
        self.refusal: Refused | None = None  # the first, should the user's `except` catch it
        #: Of a loop's node: the parts of the form that keeps what its reverse reads.
        self.wide: dict[int, list[Node]] = {}
        self.open: list[tuple[int, int]] = []  # loops that a trace is in, and their rounds
        self.counters: dict[str, Size] = {}  # of a counter: how many rounds
        #: Of each loop traced: how many rounds, in letters and in number.
        self.counts: dict[int, tuple[Size, int]] = {}
        self.masks: dict[Any, Selection] = {}  # letters of how many a mask selects
        self.signatures = Signatures()
        self.known: dict[Any, Node] = {}  # equal nodes are one, outside a trace

    def length(self, size: Size | int) -> int:
        return Size.of(size).number(self.lengths)

    def at_line(self, reason: str) -> str:
        """The reason with the line of the user's source, where there is one."""
        return f"line {self.line}: {reason}" if self.line else reason

    def refuse(self, reason: str) -> NoReturn:
        """Ends the trace; the line is that of the user's source."""
        refusal = Refused(self.at_line(reason))
        self.refusal = self.refusal or refusal
        raise refusal


_worlds: list[World] = []


def world() -> World:
    return _worlds[-1]


@contextmanager
def within(w: World) -> Iterator[World]:
    _worlds.append(w)
    try:
        yield w
    finally:
        _worlds.pop()


def mapped_sizes(attribute: Any, f: Callable[[Size], Any]) -> Any:
    """An attribute with a function applied to its sizes."""
    if isinstance(attribute, Size):
        return f(attribute)
    if isinstance(attribute, tuple | list):
        return type(attribute)(mapped_sizes(a, f) for a in attribute)
    if isinstance(attribute, slice):
        parts = (attribute.start, attribute.stop, attribute.step)
        return slice(*(mapped_sizes(p, f) for p in parts))
    return attribute


def concrete(attribute: Any, lengths: Mapping[str, int]) -> Any:
    """An attribute with its sizes as numbers."""
    return mapped_sizes(attribute, lambda size: size.number(lengths))


def replaced(attribute: Any, letters: Mapping[str, Size | int]) -> Any:
    """An attribute with other letters in its sizes."""
    return mapped_sizes(attribute, lambda size: size.at(letters))


def as_node(x: Operand) -> Node:
    """A node as it is; a size, a number or an array as a leaf."""
    if isinstance(x, Node):
        return x
    if isinstance(x, Size):
        if x.constant is None:
            return Node("size", (), {"size": x}, (), "i", world().length(x))
        x = x.constant
    if isinstance(x, bool | int | float | complex | np.generic) and np.ndim(x) == 0:
        return Node("const", (), {"value": x}, (), _kind(np.asarray(x)), x)
    if isinstance(x, list | tuple) and _holds_nodes(x):
        return build("pile", *x)
    x = np.asarray(x)
    if x.dtype.kind in "OSU":
        world().refuse(f"arrays of type {x.dtype} are not known")
    return Node("table", (), {"value": x}, tuple(map(Size.of, x.shape)), _kind(x), x)


def _holds_nodes(x: Any) -> bool:
    if isinstance(x, list | tuple):
        return any(map(_holds_nodes, x))
    return isinstance(x, Node | Size)


def _kind(array: np.ndarray[Any, Any]) -> str:
    return str(array.dtype.kind).replace("u", "i")


def number(node: Node) -> Any:
    """The number of a constant, else None."""
    return node.attrs["value"] if node.op == "const" else None


def build(op: str, *operands: Operand, **attrs: Any) -> Node:
    """The node of a primitive on operands, simplified, with its value on the example.

    Its shape is compared with the value's at once. A trace simplifies nothing and keeps equal
    nodes apart, so that its rounds stay comparable.
    """
    args = tuple(map(as_node, operands))
    w = world()
    primitive = PRIMITIVES[op]
    tracing = w.events is not None
    key: Any = None
    if not tracing:
        if primitive.rewrite and (simple := primitive.rewrite(*args, **attrs)) is not None:
            return as_node(simple)
        told = _of_loop(attrs["loop"]) if op == "loop" else repr(sorted(attrs.items()))
        key = (op, tuple(map(identity, args)), told)
        if key in w.known:
            return w.known[key]
    if w.events is not None:
        for a in args:
            settle(a)
    shape, kind = primitive.shape(*args, **attrs)
    if w.has_numbers:
        numbers = {k: concrete(v, w.lengths) for k, v in attrs.items()}
        with np.errstate(all="ignore"):
            value = primitive.evaluate(*(a.value for a in args), **numbers)
    elif primitive.parts is not None:
        value = tuple(blank(*each) for each in primitive.parts(*args, **attrs))
    else:
        value = blank(shape, kind)
    node = Node(op, args, attrs, tuple(map(Size.of, shape)), kind, value, line=w.line)
    if not isinstance(value, tuple) and tuple(map(w.length, node.shape)) != np.shape(value):
        raise AssertionError(f"{op}: sizes {node.shape} for a value of shape {np.shape(value)}")
    if w.events is not None:
        w.events.append(node)
        node.rounds = tuple(w.open)
    else:
        w.known[key] = node
    return build("stop", node) if w.is_stopped and kind == "f" and op != "stop" else node


def blank(shape: tuple[Size, ...], kind: str) -> np.ndarray[Any, Any]:
    """Stands for the value of a node where there are no numbers: its shape and type, no memory."""
    lengths = tuple(world().length(size) for size in shape)
    return np.broadcast_to(np.asarray(DTYPES[kind]()), lengths)


def settle(node: Node) -> None:
    """Gives a node of a finished round a shape without that round's counters."""
    w = world()
    now = tuple(w.open)
    if now[: len(node.rounds)] == node.rounds or not any(s.letters for s in node.shape):
        return
    letters: dict[str, Size | int] = {}
    for depth, (loop, i) in enumerate(node.rounds):
        if now[depth : depth + 1] != ((loop, i),):
            count, total = w.counts[loop]
            letters[f"t{depth}"] = count.at(letters) - 1 if i == total - 1 else i
    node.shape = tuple(s.at(letters) for s in node.shape)


def _of_loop(loop: Loop) -> Any:
    """Equal for loops that are the same: those of one body, whose text does not tell all of it."""
    told = (loop.counter, str(loop.count), loop.constants, loop.carried, loop.reverse)
    return (id(loop.body), *told)


def identity(node: Node) -> Any:
    """Equal for nodes that are the same: constants by their number, others by themselves."""
    if node.op == "const":
        return ("const", type(node.attrs["value"]).__name__, repr(node.attrs["value"]))
    if node.op == "size":
        return ("size", str(node.attrs["size"]))
    return id(node)
