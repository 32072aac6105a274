"""Nodes and programs.

A node is one application of a primitive: operands, attributes, symbolic shape, kind and the value it has on the
example. A program is inputs, outputs and what lies between, in order. A loop is a node whose attribute is a program.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from handgrad.program.sizes import Size


class Refused(Exception):  # noqa: N818 (a refusal is an answer; users catch it by this name)
    """The forward can't be read: the line and the reason."""


@dataclass(eq=False)
class Node:
    op: str
    args: tuple["Node", ...] = ()
    attrs: dict[str, Any] = field(default_factory=dict)
    shape: tuple[Size, ...] = ()
    kind: str = "f"  # f float, i integer, b boolean
    value: Any = None  # on the example
    name: str = ""  # as the user calls it
    line: int = 0  # of the user's source
    round: tuple | None = None  # of a trace: the innermost loop that it was made in, and the round

    def __add__(self, o):
        return build("add", self, o)

    def __radd__(self, o):
        return build("add", o, self)

    def __sub__(self, o):
        return build("subtract", self, o)

    def __rsub__(self, o):
        return build("subtract", o, self)

    def __mul__(self, o):
        return build("multiply", self, o)

    def __rmul__(self, o):
        return build("multiply", o, self)

    def __truediv__(self, o):
        return build("divide", self, o)

    def __rtruediv__(self, o):
        return build("divide", o, self)

    def __pow__(self, o):
        return build("power", self, o)

    def __neg__(self):
        return build("negative", self)

    def __gt__(self, o):
        return build("greater", self, o)

    def __lt__(self, o):
        return build("less", self, o)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __repr__(self):
        return f"{self.name or self.op}{list(self.shape)}"


@dataclass
class Program:
    inputs: list[Node]
    outputs: list[Node]

    @property
    def body(self) -> list[Node]:
        """All that the outputs need, each after its operands; constants and inputs left out."""
        order, seen = [], set(map(id, self.inputs))
        stack = [(n, False) for n in reversed(self.outputs)]
        while stack:
            node, done = stack.pop()
            if done:
                order.append(node)
                continue
            if id(node) in seen:
                continue
            seen.add(id(node))
            stack.append((node, True))
            stack += [(a, False) for a in reversed(node.args) if id(a) not in seen]
        return order


@dataclass(frozen=True)
class Loop:
    """Rounds of a body. Body inputs: constants, then carried values; body outputs: the carried values' next, then what is stacked.

    The node's operands are the constants and the carried values' first; its parts are the carried values' last and the stacks."""

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
    evaluate: Callable  # values → value
    shape: Callable  # nodes → (sizes, kind)
    vjp: Callable | None = (
        None  # (gradient, result, *operands) → a gradient or None for each operand
    )
    text: str | Callable = ""  # NumPy: a call's name, an infix sign, or a function of the emitter
    torch: str | Callable = ""  # where it differs
    precedence: int = 9  # of its infix sign, else that of a call
    domain: Callable | None = None  # random numbers → example operands, of other shapes each time
    rewrite: Callable | None = None  # operands, attributes → a simpler node or None
    jax: str | Callable = ""  # where it differs
    analytic: bool = False  # of complex operands: its vjp is that of reals, between conjugations
    parts: Callable | None = None  # of several results: nodes → sizes and kind of each
    samples: tuple[Any, ...] = ()  # of families with attributes: operands on which it is checked
    cases: tuple[dict[str, Any], ...] = ({},)  # attributes to try on the domain
    smooth: bool = True  # a second derivative exists on the domain


PRIMITIVES: dict[str, Primitive] = {}


class World:
    """What a trace knows besides its nodes: the lengths of the example's letters, guards, and the order of what was built."""

    def __init__(self):
        self.lengths: dict[str, int] = {}
        self.guards: list[
            tuple[str, Any, Any, bool]
        ] = []  # relation, left size, right size, outcome
        self.events: list[Any] | None = None  # nodes and marks of rounds, while a trace runs
        self.line = 0
        self.wide: dict[
            int, list[Node]
        ] = {}  # of a loop's node: the parts of the form that keeps what its reverse reads
        self.open: list[tuple[int, int]] = []  # loops that a trace is in, and their rounds
        self.counters: dict[str, Size] = {}  # of a counter: how many rounds
        self.counts: dict[
            int, tuple[Size, int]
        ] = {}  # of each loop traced: how many rounds, in letters and in number
        self.owed: set = set()  # changes of views that have not come back to their arrays
        self.masks: dict[Any, tuple[str, Node]] = {}  # letters of how many a mask selects
        self.known: dict[Any, Node] = {}  # equal nodes are one, outside a trace

    def length(self, size: Size | int) -> int:
        return Size.of(size).at(self.lengths).constant

    def refuse(self, reason: str) -> NoReturn:
        """Ends the trace; the line is that of the user's source."""
        raise Refused(f"line {self.line}: {reason}")


_worlds: list[World] = []


def world() -> World:
    return _worlds[-1]


@contextmanager
def within(w: World):
    _worlds.append(w)
    try:
        yield w
    finally:
        _worlds.pop()


def concrete(attr, lengths: dict[str, int]):
    """An attribute with its sizes as numbers."""
    if isinstance(attr, Size):
        n = attr.at(lengths).constant
        if n is None:
            raise KeyError(f"length of {attr}")
        return n
    if isinstance(attr, (tuple, list)):
        return type(attr)(concrete(a, lengths) for a in attr)
    if isinstance(attr, slice):
        return slice(*(concrete(a, lengths) for a in (attr.start, attr.stop, attr.step)))
    return attr


def as_node(x) -> Node:
    if isinstance(x, Node):
        return x
    if isinstance(x, Size):
        if x.constant is None:
            return Node("size", (), {"size": x}, (), "i", world().length(x))
        x = x.constant
    if isinstance(x, (bool, int, float, np.generic)) and np.ndim(x) == 0:
        return Node("const", (), {"value": x}, (), np.asarray(x).dtype.kind.replace("u", "i"), x)
    x = np.asarray(x)
    return Node(
        "table", (), {"value": x}, tuple(map(Size.of, x.shape)), x.dtype.kind.replace("u", "i"), x
    )


def number(node: Node):
    """The number of a constant, else None."""
    return node.attrs["value"] if node.op == "const" else None


def build(op: str, *args, **attrs) -> Node:
    """The node of a primitive on operands, simplified, with its value on the example; its shape is checked at once."""
    args = tuple(map(as_node, args))
    w = world()
    primitive = PRIMITIVES[op]
    if primitive.rewrite and (simple := primitive.rewrite(*args, **attrs)) is not None:
        return as_node(simple)
    key = (op, tuple(map(identity, args)), repr(sorted(attrs.items())))
    if w.events is None and key in w.known:
        return w.known[key]
    shape, kind = primitive.shape(*args, **attrs)
    with np.errstate(all="ignore"):
        value = primitive.evaluate(
            *(a.value for a in args), **{k: concrete(v, w.lengths) for k, v in attrs.items()}
        )
    node = Node(op, args, attrs, tuple(map(Size.of, shape)), kind, value, line=w.line)
    if not isinstance(value, tuple) and tuple(w.length(s) for s in node.shape) != np.shape(value):
        raise AssertionError(f"{op}: sizes {node.shape} for a value of shape {np.shape(value)}")
    if w.events is not None:
        w.events.append(node)
        node.round = w.open[-1] if w.open else None
    else:
        w.known[key] = node
    return node


def identity(node: Node):
    if node.op == "const":
        return ("const", type(node.attrs["value"]).__name__, repr(node.attrs["value"]))
    if node.op == "size":
        return ("size", str(node.attrs["size"]))
    return id(node)
