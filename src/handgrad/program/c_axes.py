"""A program of arrays as one of elements: which loops each node stands in.

Products of matrices' kind become products and sums, a softmax what it is made of, and what only
arranges an array vanishes: its axes are those of the loops that they are read in.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from handgrad.program.c_spellings import SIGNS, SPELLINGS
from handgrad.program.emit_c import refused_in_c
from handgrad.program.node import PRIMITIVES, Node, Program, as_node
from handgrad.program.primitives.axes import broadcast, product, reduced
from handgrad.program.primitives.index import Slot
from handgrad.program.primitives.rearrange import inverse
from handgrad.program.sizes import ONE, Size

REDUCTIONS: Final = ("sum", "prod", "max", "min")
_FILLED: Final = {"zeros": 0.0, "ones": 1.0}
_ARRANGED: Final = ("reshape", "broadcast_to", "transpose", "stop")


@dataclass(eq=False)
class Axis:
    """A loop: how many rounds, and the variable that counts them."""

    size: Size
    counter: str = ""


@dataclass
class ElementProgram:
    """A program whose nodes stand for one element.

    axes: of each array its axes that are no ones, in the order in memory. over: of each reduction
    the axes that it goes over. spaces: the axes in which a node's elements differ. places: inputs
    that are the places along an axis.
    """

    outputs: list[Node]
    inputs: list[Node]
    axes: dict[int, tuple[Axis, ...]]
    over: dict[int, frozenset[Axis]]
    body: list[Node]
    places: list[Node]
    spaces: dict[int, frozenset[Axis]] = field(default_factory=dict)


def elements(program: Program) -> tuple[ElementProgram, list[tuple[Axis, ...]]]:
    """The program in elements, and the axes of each of its outputs."""
    lowered = _Lowering(program)
    outputs = [lowered.of(n) for n in program.outputs]
    inputs = [*program.inputs, *lowered.places]
    known = Program(inputs, outputs)
    joined = _Joined(inputs, known.body)
    plain = _Plain(joined, inputs)
    axes = [joined.axes(n) for n in outputs]
    found = [plain.of(n) for n in outputs]
    read = {id(a) for n in Program(inputs, found).body for a in n.args}
    for n in found:
        if id(n) not in read and n not in inputs and sum(n is each for each in found) == 1:
            n.name = ""  # that of what it is stored in
    body = Program(inputs, found).body
    read = set(map(id, [*found, *(a for n in body for a in n.args)]))
    places = [n for n in lowered.places if id(n) in read]
    inputs = [*program.inputs, *places]
    made = ElementProgram(found, inputs, plain.axes, plain.over, body, places)
    for n in inputs:
        made.spaces[id(n)] = frozenset(joined.axes(n))
        made.axes[id(n)] = joined.axes(n)
    for n in made.body:
        space = frozenset[Axis]().union(*(made.spaces[id(a)] for a in n.args))
        space |= plain.own.get(id(n), frozenset())
        made.spaces[id(n)] = space - made.over.get(id(n), frozenset())
    return made, axes


def _node(op: str, *args: Any, name: str = "", line: int = 0, **attrs: Any) -> Node:
    """A node as it stands, without the rules that may make another of it."""
    nodes = tuple(map(as_node, args))
    shape, kind = PRIMITIVES[op].shape(*nodes, **attrs)
    return Node(op, nodes, attrs, tuple(map(Size.of, shape)), kind, None, name, line)


def _mean(n: Node, x: Node) -> Node:
    count = product(x.shape[a] for a in n.attrs["axis"])
    total = _node("sum", x, name=f"{n.name}_sum" if n.name else "", line=n.line, **n.attrs)
    return _node("divide", total, count, name=n.name or "mean")


def _softmax(n: Node, x: Node) -> Node:
    over = {"axis": n.attrs["axis"], "keepdims": True}
    shifted = _node("subtract", x, _node("max", x, **over))
    e = _node("exp", shifted)
    total = _node("sum", e, **over)
    if n.op == "softmax":
        return _node("divide", e, total)
    return _node("subtract", shifted, _node("log", total))


def _logsumexp(n: Node, x: Node) -> Node:
    over = {"axis": n.attrs["axis"], "keepdims": True}
    top = _node("max", x, **over)
    top = _node("where", _node("isfinite", top), top, 0.0)
    total = _node("sum", _node("exp", _node("subtract", x, top)), **over)
    y = _node("add", _node("log", total), top)
    return _node("reshape", y, shape=reduced(x, n.attrs["axis"], n.attrs["keepdims"]))


def _contract(n: Node, x: Node, y: Node) -> Node:
    left, right, out = (n.attrs[each] for each in ("left", "right", "out"))
    summed = tuple(i for i in dict.fromkeys((*left, *right)) if i not in out)
    free = [any(i not in other for i in own) for own, other in ((left, right), (right, left))]
    if summed and all(free):
        raise refused_in_c(n, "a product of matrices")
    every = (*out, *summed)
    factors = []
    for each, own in ((x, left), (y, right)):
        turned = _node("transpose", each, axes=tuple(own.index(i) for i in every if i in own))
        sizes = iter(turned.shape)
        shape = tuple(next(sizes) if i in own else ONE for i in every)
        factors.append(_node("reshape", turned, shape=shape))
    made = _node("multiply", *factors)
    return _node("sum", made, axis=tuple(range(len(out), len(every))), keepdims=False)


_LOWERED: Final[dict[str, Callable[..., Node]]] = {
    "mean": _mean,
    "softmax": _softmax,
    "log_softmax": _softmax,
    "logsumexp": _logsumexp,
    "contract": _contract,
}


class _Lowering:
    """Nodes made of those that one element has; the inputs stay."""

    def __init__(self, program: Program) -> None:
        self.found = {id(n): n for n in program.inputs}
        self.places: list[Node] = []
        for n in program.body:
            args = [self.found[id(a)] for a in n.args]
            self.found[id(n)] = self._lowered(n, args)

    def of(self, n: Node) -> Node:
        return self.found[id(n)]

    def _lowered(self, n: Node, args: list[Node]) -> Node:
        if n.op in ("const", "size"):
            return n
        if n.op == "arange":
            return self._place(Size.of(n.attrs["size"]))
        if n.op in _FILLED:
            value = as_node(_FILLED[n.op] if n.kind == "f" else int(_FILLED[n.op]))
            return _node("broadcast_to", value, shape=n.shape)
        if n.op in ("getitem", "add_at") and (made := self._labelled(n, args)) is not None:
            pass
        elif n.op in _LOWERED:
            made = _LOWERED[n.op](n, *args)
        elif n.op in (*REDUCTIONS, *_ARRANGED, *SPELLINGS) or (
            n.op in PRIMITIVES and PRIMITIVES[n.op].text in SIGNS
        ):
            made = Node(n.op, tuple(args), n.attrs, n.shape, n.kind)
        else:
            raise refused_in_c(n, _called(n))
        made.name, made.line = n.name or made.name, n.line
        return made

    def _place(self, size: Size) -> Node:
        place = Node("input", (), {}, (size,), "i", None, "place")
        self.places.append(place)
        return place

    def _counted(self, array: Node, size: Size, rank: int) -> int | None:
        """The axis of the index along which an array counts all places; None elsewhere."""
        inner = array
        while inner.op == "reshape":
            inner = inner.args[0]
        longer = [k for k, each in enumerate(array.shape) if each != ONE]
        is_place = any(inner is each for each in self.places)
        if not is_place or inner.shape != (size,) or len(longer) != 1:
            return None
        return longer[0] + rank - array.ndim

    def _labelled(self, n: Node, args: list[Node]) -> Node | None:
        """x[i, label[i]], or a change of it, as a choice along the axis that labels are places of.

        None for another index.
        """
        index, first = n.attrs["index"], 1 if n.op == "getitem" else 2
        whole, arrays = args[0], args[first:]
        if len(index) != whole.ndim or not all(isinstance(each, Slot) for each in index):
            return None
        wide = broadcast(*arrays)[0]
        rows: dict[int, int] = {}  # of an axis of the array that of the index along which it counts
        for k, each in enumerate(index):
            if (axis := self._counted(arrays[each.at], whole.shape[k], len(wide))) is not None:
                rows[k] = axis
        labelled = [k for k in range(whole.ndim) if k not in rows]
        ones = [k for k, size in enumerate(wide) if size == ONE]
        if len(labelled) != 1 or sorted([*rows.values(), *ones]) != list(range(len(wide))):
            return None
        k, count = labelled[0], whole.shape[labelled[0]]
        place, label = self._place(count), arrays[index[k].at]
        negative = _node("less", label, 0)
        label = _node("where", negative, _node("add", label, count), label)
        shape = (ONE,) * (len(wide) - label.ndim) + label.shape
        label = _node("reshape", label, shape=(*shape, ONE))
        chosen = _node("equal", place, label)
        if n.op == "getitem":
            x = _node("transpose", whole, axes=(*sorted(rows, key=rows.__getitem__), k))
            x = _node("reshape", x, shape=(*wide, count))
            chosen = _node("where", chosen, x, 0.0 if n.kind == "f" else 0)
            return _node("sum", chosen, axis=(len(wide),), keepdims=False)
        value = _node("broadcast_to", args[1], shape=wide)
        value = _node("reshape", value, shape=(*wide, ONE))
        change = _node("where", chosen, value, 0.0 if n.kind == "f" else 0)
        order = sorted(rows, key=rows.__getitem__)
        shape = (*(whole.shape[each] for each in order), count)
        change = _node("reshape", change, shape=shape)
        change = _node("transpose", change, axes=inverse((*order, k)))
        return _node("add", whole, change)


def _called(n: Node) -> str:
    """A node that is refused in words."""
    return {
        "table": "an array from elsewhere than the arguments",
        "loop": "a loop",
        "part": "a loop",
        "getitem": "a part of an array by an index",
        "add_at": "a change of a part of an array",
        "store": "a change of a part of an array",
    }.get(n.op, n.op)


class _Joined:
    """Axes that are one because elements meet along them: of each node one for each long axis."""

    def __init__(self, inputs: Sequence[Node], body: Sequence[Node]) -> None:
        self._parents: dict[tuple[int, int], tuple[int, int]] = {}
        self._sizes: dict[tuple[int, int], Axis] = {}
        for n in body:
            for mine, theirs in self._pairs(n):
                self._parents[self._root(theirs)] = self._root(mine)
        for n in (*inputs, *body):
            own = self.axes(n)
            if len(set(own)) < len(own):
                raise refused_in_c(n, "an array beside itself with other axes")

    def axes(self, n: Node) -> tuple[Axis, ...]:
        return tuple(self.axis(n, k) for k, size in enumerate(n.shape) if size != ONE)

    def axis(self, n: Node, k: int) -> Axis:
        return self._sizes.setdefault(self._root((id(n), k)), Axis(n.shape[k]))

    def _root(self, place: tuple[int, int]) -> tuple[int, int]:
        while place in self._parents and self._parents[place] != place:
            place = self._parents[place]
        return place

    def _pairs(self, n: Node) -> Iterable[tuple[tuple[int, int], tuple[int, int]]]:
        """The axes of a node's operands beside its own."""
        for a, places in ((a, _places(n, a)) for a in n.args):
            for k, own in places:
                if a.shape[k] != ONE:
                    yield (id(n), own), (id(a), k)


def _places(n: Node, a: Node) -> list[tuple[int, int]]:
    """Axes of an operand, and those of the node that they are."""
    if n.op == "like" and a is not n.args[0]:
        return []
    if n.op == "transpose":
        return [(own, k) for k, own in enumerate(n.attrs["axes"])]
    if n.op in REDUCTIONS:
        kept = [k for k in range(a.ndim) if k not in n.attrs["axis"]]
        return [(k, k if n.attrs["keepdims"] else i) for i, k in enumerate(kept)]
    if n.op == "reshape":
        old, new = ([k for k, s in enumerate(x.shape) if s != ONE] for x in (a, n))
        if [a.shape[k] for k in old] != [n.shape[k] for k in new]:
            raise refused_in_c(n, "reshape to other axes")
        return list(zip(old, new, strict=True))
    return [(k, k + n.ndim - a.ndim) for k in range(a.ndim)]


class _Plain:
    """Nodes without those that only arrange; what a reduction goes over is kept beside."""

    def __init__(self, joined: _Joined, inputs: Sequence[Node]) -> None:
        self.joined = joined
        self.axes: dict[int, tuple[Axis, ...]] = {}
        self.over: dict[int, frozenset[Axis]] = {}
        self.own: dict[int, frozenset[Axis]] = {}
        self._found = {id(n): n for n in inputs}

    def of(self, node: Node) -> Node:
        for n in Program([], [node]).body if id(node) not in self._found else ():
            if id(n) not in self._found:
                self._found[id(n)] = self._plain(n)
        return self._found[id(node)]

    def _plain(self, n: Node) -> Node:
        args = tuple(self._found[id(a)] for a in n.args)
        if n.op in _ARRANGED:
            return args[0]
        if n.op not in REDUCTIONS:
            return Node(n.op, args, n.attrs, n.shape, n.kind, None, n.name, n.line) if args else n
        x = n.args[0]
        over = [self.joined.axis(x, k) for k in n.attrs["axis"] if x.shape[k] != ONE]
        if not over:
            return args[0]
        made = Node(n.op, args, n.attrs, n.shape, n.kind, None, n.name, n.line)
        self.over[id(made)] = frozenset(over)
        self.own[id(made)] = frozenset(self.joined.axes(x))
        return made


def merged(
    made: ElementProgram, results: list[tuple[Axis, ...]]
) -> tuple[ElementProgram, list[tuple[Axis, ...]]]:
    """The same where axes that lie behind each other in all arrays are one longer one."""
    while (pair := _neighbours(made, results)) is not None:
        a, b = pair
        one = Axis(a.size * b.size)

        def joined(axes: tuple[Axis, ...], a: Axis = a, b: Axis = b, one: Axis = one) -> Any:
            return tuple(one if x is a else x for x in axes if x is not b)

        results = [joined(each) for each in results]
        made.axes = {key: joined(each) for key, each in made.axes.items()}
        made.over = {key: frozenset(joined(tuple(each))) for key, each in made.over.items()}
        made.spaces = {key: frozenset(joined(tuple(each))) for key, each in made.spaces.items()}
    return made, results


def _neighbours(made: ElementProgram, results: list[tuple[Axis, ...]]) -> tuple[Axis, Axis] | None:
    arrays = [*made.axes.values(), *results]
    for a, b in {pair for each in arrays for pair in itertools.pairwise(each)}:
        alike = all((a in each) == (b in each) for each in made.over.values())
        beside = all(
            (a, b) in itertools.pairwise(each) if a in each or b in each else True
            for each in arrays
        )
        if alike and beside:
            return a, b
    return None
