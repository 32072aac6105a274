"""The values that a right backward computes: those of the derived one, on the same inputs and dy.

The user's forward is traced as it was called, and swept back from dy. Adjoints, what each use of a
value adds to its own, their partial sums and the forward's values are right wherever they stand.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

from handgrad.checking.affixes import plain, without_affix
from handgrad.checking.alignment.variants import parsed
from handgrad.checking.alignment.wording import said
from handgrad.checking.attempts import Inapplicable
from handgrad.checking.object_arrays import has_fields, twin_of
from handgrad.checking.tensors import as_values
from handgrad.checking.trial import leaves
from handgrad.deriving.reverse import depends, has_parts, sweep, vjp
from handgrad.deriving.traced import has_cache, results_of
from handgrad.program import primitives as primitives
from handgrad.program.emit import Emitter
from handgrad.program.node import FIXED, Node, Program, World, as_node, replaced, within
from handgrad.program.reading import attributes_of, libraries_of
from handgrad.program.sizes import Size
from handgrad.program.text import symbol
from handgrad.program.trace import Tracer
from handgrad.program.trace import run as run_traced

#: Nodes of a forward that is swept.
_MOST: Final = 3000
#: Objects within objects of which the arrays are inputs too.
_DEEP: Final = 5
_RELATIVE: Final = 1e-7
#: The sweep is believed where it is this close to the differences.
_VOUCHED: Final = 1e-4


class RightValues:
    """Arrays by their number of elements; a value is looked up in any shape, or transposed."""

    def __init__(self, values: Iterable[Any]) -> None:
        rows: dict[int, dict[bytes, np.ndarray]] = {}
        for each in values:
            array = np.asarray(each)
            if array.dtype.kind == "f" and array.size and np.isfinite(array).all():
                for turned in (array, array.T) if array.ndim > 1 else (array,):
                    row = turned.astype(np.float64).ravel()
                    rows.setdefault(row.size, {}).setdefault(row.tobytes(), row)
        self._rows = {size: np.stack([*each.values()]) for size, each in rows.items()}

    def has(self, value: Any, relative: float = _RELATIVE) -> bool | None:
        """Return whether a value is one of them; None where it is too plain to tell."""
        array = np.asarray(value)
        if array.dtype.kind != "f" or not array.size or not np.isfinite(array).all():
            return None
        if not np.ptp(array, axis=None):
            return None
        rows = self._rows.get(array.size)
        if rows is None:
            return False
        own = array.astype(np.float64).ravel()
        apart = np.max(np.abs(rows - own), axis=1)
        return bool(np.min(apart) <= relative * np.max(np.abs(own)))


def _is_close(value: Any, right: Any) -> bool:
    own, wanted = np.ravel(value), np.ravel(right)
    allowed = _RELATIVE * np.max(np.abs(wanted), initial=0.0)
    return own.size == wanted.size and bool(np.all(np.abs(own - wanted) <= allowed))


@dataclass(frozen=True, eq=False)
class Right:
    """A value of the derived backward: of a node of forward, or the gradient of one.

    number: its position among them, which is the same on other inputs and cotangents. use: the node
    that the value comes back through, where it is that share of a gradient alone; is_rest: what
    comes back through all others. is_local: the derivative that dy is multiplied by.
    """

    number: int
    node: Node
    is_gradient: bool
    use: Node | None = None
    is_rest: bool = False
    is_local: bool = False

    @property
    def made_by(self) -> Node:
        """The node in the rounds of which the value is made."""
        return self.node if self.use is None or self.is_rest else self.use


def _last_first(right: Right) -> tuple[bool, int]:
    return right.is_local, -right.number


class SweptForward:
    """A forward as it was called, swept back from dy: all that a right backward may compute."""

    def __init__(self, function: Callable[..., Any], given: Mapping[str, Any], dy: Any) -> None:
        """Raises an exception, of any type, where there is no derivation."""
        self.world = World()
        self.world.events = []
        self.world.attributes = attributes_of(*libraries_of(function))
        self.inputs: list[Node] = []
        with self.at_work():
            # A layer that is called is no plain object, and keeps the arrays that it is handed.
            own = {
                name: _KeptContext() if is_context(value) else value
                for name, value in given.items()
            }
            own = twin_of(own)
            traced = {name: _traced(value, self.inputs, name) for name, value in own.items()}
            result = run_traced(function, traced)
            cotangents = [each for each in leaves(dy) if each.dtype.kind == "f"]
            is_pair = type(result) is tuple and len(result) == 2 and len(cotangents) == 1
            with_cache = is_pair or has_cache(result, Tracer)
            outputs = results_of(result[0] if with_cache else result, function)
            self.body = Program(self.inputs, outputs).body
            # An array that an object holds of an earlier call is no input: other draws lack it.
            used = {id(each) for node in self.body for each in node.args} | {*map(id, outputs)}
            self.inputs = [node for node in self.inputs if id(node) in used]
            self.world.events = None
            _name_attributes([*own.values(), *traced.values()])
            self._seed(outputs, cotangents)
            self.gradients = dict(self._seeds)
            sweep(self.body, self.gradients, self._live)
            self.derivatives = self._local(cotangents)
        self._nodes = [*self.inputs, *self.body]
        self._numbers = {id(node): i for i, node in enumerate(self._nodes)}
        known = [(node, False) for node in self._nodes]
        known += [(node, True) for node in self._nodes if id(node) in self.gradients]
        self.rights = [Right(i, *each) for i, each in enumerate(known)]
        self._values: list[Any] = [
            (self.gradients[id(node)] if is_gradient else node).value for node, is_gradient in known
        ]
        self._note_shares()
        for node in self._nodes:
            if id(node) in self.derivatives:
                self.rights.append(Right(len(self.rights), node, True, is_local=True))
                self._values.append(self.derivatives[id(node)].value)
        #: Whole gradients by the plain names of what they are of, the last first.
        self._by_name: dict[str, list[Right]] = {}
        for each in sorted(self.rights, key=_last_first):
            if each.is_gradient and each.use is None:
                self._by_name.setdefault(plain(each.node.name), []).append(each)
        self.pool = RightValues(
            [*map(self.value, self.rights), *(node.value for node in self.world.known.values())]
        )

    @contextmanager
    def at_work(self) -> Iterator[None]:
        with within(self.world), np.errstate(all="ignore"):
            yield

    def _seed(self, outputs: list[Node], cotangents: list[np.ndarray]) -> None:
        if len(self.body) > _MOST or len(cotangents) != len(outputs):
            raise Inapplicable
        for node in self.body:
            # No loop is rolled up here, so that each round's counters are numbers.
            rounds = {f"t{depth}": i for depth, (_, i) in enumerate(node.rounds)}
            node.attrs = {key: replaced(each, rounds) for key, each in node.attrs.items()}
            node.shape = tuple(size.at(rounds) for size in node.shape)
        self._live = depends(self.body, self.inputs)
        self._seeds: dict[int, Node] = {}
        for output, given in zip(outputs, cotangents, strict=True):
            if id(output) in self._live:
                value = given.reshape(output.value.shape)
                seed = Node("input", (), {}, output.shape, "f", value)
                own = self._seeds.get(id(output))
                self._seeds[id(output)] = seed if own is None else own + seed

    def _local(self, cotangents: list[np.ndarray]) -> dict[int, Node]:
        """Gradients from a dy of ones: those of an element-wise forward are dy times these."""
        if len(cotangents) != 1:
            return {}
        found = {
            key: Node("input", (), {}, seed.shape, "f", np.ones_like(seed.value))
            for key, seed in self._seeds.items()
        }
        sweep(self.body, found, self._live)
        return found

    def is_local(self, right: Right) -> bool:
        """Return whether a derivative times dy, spread over further axes, is the gradient."""
        return self.spread(right) is not None

    def spread(self, right: Right) -> np.ndarray | None:
        """The dy, spread over further axes, with which a derivative is the gradient."""
        (seed,) = self._seeds.values()
        own, whole = self.value(right), self.gradients[id(right.node)].value
        dy = np.asarray(seed.value)
        for more in range(np.ndim(whole) - dy.ndim + 1):
            spread = dy.reshape((*dy.shape, *[1] * more))
            try:
                if _is_close(own * spread, whole) and not _is_close(own, whole):
                    return spread
            except ValueError:  # no shape for both
                continue
        return None

    def whole(self, right: Right, value: np.ndarray) -> tuple[Right, np.ndarray]:
        """A gradient for the derivative that dy is multiplied by, and so for what stands there."""
        spread = self.spread(right) if right.is_local else None
        if spread is None:
            return right, value
        every = (each for each in self.rights if each.node is right.node and each.is_gradient)
        return next(each for each in every if not each.is_local), value * spread

    def over_rounds(self, number: int) -> list[tuple[Right, ...]]:
        """The values that a loop of so many rounds makes at one line, first round to last."""
        in_rounds, _ = self._in_rounds
        every = [tuple(each) for each in in_rounds if len(each) == number]
        # There may be no gradient of what the first round begins with, so that any value will do.
        short = [each for each in in_rounds if len(each) == number - 1 > 0]
        short = [each for each in short if each[0].use is not None]
        every += [(each[0], *each) for each in short]
        every += [
            (*before[:1], *each) for each in short for before in self._before((*each, each[-1]))
        ]
        return every + [tuple(each) for own in every for each in self._before(own)]

    def over_calls(self, number: int) -> Iterator[tuple[Right, ...]]:
        """The values that so many calls of one function make, which come at even distances."""
        for each in self._in_rounds[1]:
            apart, rest = divmod(len(each), number)
            yield from (tuple(each[i::apart]) for i in range(apart) if not rest)

    @cached_property
    def _in_rounds(self) -> tuple[list[list[Right]], list[list[Right]]]:
        """The values that loops make at a line, first round to last, and alike ones of no loop."""
        found: dict[Any, dict[Any, Right]] = {}
        called: dict[Any, list[Right]] = {}
        times: Counter[Any] = Counter()
        for right in self.rights:
            node = right.made_by
            if node.rounds:
                shared = None if right.use is None else self._shared(right)
                kind = (right.is_gradient, right.is_rest, right.is_local, shared)
                place = (kind, node.line, node.op, [loop for loop, _ in node.rounds])
                count = [i for _, i in node.rounds]
                key = (repr(place), times[repr((place, count))])
                times[repr((place, count))] += 1
                found.setdefault(key, {})[tuple(count)] = right
            else:
                alike = (right.is_gradient, right.is_rest, right.is_local, node.op, node.shape)
                called.setdefault((*alike, right.use is None), []).append(right)
        ordered = [[each[count] for count in sorted(each)] for each in found.values()]
        return ordered, [*called.values()]

    def _shared(self, right: Right) -> tuple[int, list[int]]:
        """The value of which this is a share of the gradient, where it is one for all rounds."""
        assert right.use is not None
        own = -1 if right.node.rounds else self._numbers[id(right.node)]
        own = right.use.line if right.is_rest else own
        # A stack of the values of all rounds takes each at another position.
        args = right.use.args if right.use.rounds else ()
        return own, [i for i, each in enumerate(args) if each is right.node]

    def _before(self, rounds: tuple[Right, ...]) -> Iterator[list[Right]]:
        """The values that rounds begin with, where they go on from those of the one before."""
        last = rounds[-1]
        for first in self._of_inputs:
            alike = np.shape(first.node.value) == np.shape(last.node.value)
            if alike and first.is_gradient == last.is_gradient:
                yield [first, *rounds[:-1]]

    @cached_property
    def _of_inputs(self) -> list[Right]:
        """Inputs and their whole gradients."""
        return [each for each in self.rights if each.node.op == "input" and each.use is None]

    def called(self, name: str) -> Iterator[Right]:
        """The whole gradients of what a variable's name is called after, the last first."""
        wanted = {plain(each) for each in without_affix(name)}
        found = (right for each in wanted for right in self._by_name.get(each, []))
        yield from sorted(found, key=_last_first)

    def is_called(self, value: Any, name: str) -> bool:
        """Return whether a variable holds the gradient that it is called after."""
        return any(_is_close(value, self.value(right)) for right in self.called(name))

    def judged(self, value: Any, name: str, *, is_copy: bool) -> bool | None:
        """Return whether a variable's value is a right one; None where it is too plain to tell.

        is_copy: the variable is set to another's value, which says nothing by itself. What is right
        elsewhere is not right in one that is called after another gradient, where it is such a
        copy, or a multiple of that.
        """
        told = self.pool.has(value)
        if not told:
            return told
        own, named = np.ravel(value), list(self.called(name))
        if is_copy and not named:
            return None
        for right in named:
            wanted = np.asarray(self.value(right))
            if wanted.size % own.size:
                continue
            rows = wanted.reshape(-1, own.size)
            if any(_is_close(own, row) for row in rows):
                return True
            ratio = float(rows[0] @ own) / max(float(rows[0] @ rows[0]), 1e-300)
            if is_copy or (len(rows) == 1 and _is_close(own, ratio * rows[0])):
                told = False
        return told

    def gradients_of(self, array: np.ndarray) -> list[np.ndarray]:
        """The gradients of the inputs that have these values, and their sum where it is several."""
        own = [
            self.gradients[id(node)].value
            for node in self.inputs
            if id(node) in self.gradients and np.array_equal(node.value, array)
        ]
        every = [*own, sum(own)] if len(own) > 1 else own
        return [np.asarray(each, dtype=np.float64) for each in every]

    def is_vouched(self, rights: Mapping[str, np.ndarray]) -> bool:
        """Return whether gradients that are right are among the values, where they are known."""
        known = [right for right in rights.values() if np.isfinite(right).all()]
        return all(self.pool.has(each, _VOUCHED) is not False for each in known)

    def like(self, node: Node, other: SweptForward) -> Node:
        """The node here that stands where one stands in another derivation of the forward."""
        return self._nodes[other._numbers[id(node)]]

    def value(self, right: Right) -> Any:
        return self._values[right.number]

    def computed(self, right: Right) -> Node | None:
        """A value as it is computed; None for a share of a gradient."""
        if right.use is not None:
            return None
        if right.is_local:
            return self.derivatives[id(right.node)]
        return self.gradients[id(right.node)] if right.is_gradient else right.node

    def _note_shares(self) -> None:
        """Keep as right what each of several uses of a value adds to its gradient."""
        found: dict[int, list[tuple[Node, Node, Any]]] = {}
        with self.at_work():
            for use in self.body:
                if id(use) in self.gradients and id(use) in self._live and not has_parts(use):
                    for node, g in zip(use.args, vjp(use, self.gradients[id(use)]), strict=True):
                        if g is not None and id(node) in self.gradients:
                            found.setdefault(id(node), []).append((node, use, as_node(g).value))
        for own in found.values():
            for node, use, value in own if len(own) > 1 else ():
                self.rights.append(Right(len(self.rights), node, True, use))
                self._values.append(value)
                if len(own) > 2:
                    self.rights.append(Right(len(self.rights), node, True, use, is_rest=True))
                    self._values.append(self.gradients[id(node)].value - value)

    def without(self, node: Node, cut: Iterable[Node]) -> Any:
        """The gradient of a node where nothing comes back through some others; None if nothing."""
        gradients = dict(self._seeds)
        made = depends(self.body, [node])  # what else there is gives it nothing
        with self.at_work():
            sweep(self.body, gradients, self._live & made - {*map(id, cut)})
        return gradients[id(node)].value if id(node) in gradients else None

    def shares(self, node: Node) -> list[tuple[Node, Any]]:
        """The parts of a node's gradient, each with what the node is used in."""
        return [(use, g.value) for use, g in self.share_nodes(node)]

    def share_nodes(self, node: Node, *, is_local: bool = False) -> list[tuple[Node, Node]]:
        """The same as they are computed."""
        found = []
        gradients = self.derivatives if is_local else self.gradients
        with self.at_work():
            for use in self.body:
                if node in use.args and id(use) in gradients and not has_parts(use):
                    every = zip(use.args, vjp(use, gradients[id(use)]), strict=True)
                    found += [(use, g) for a, g in every if a is node and g is not None]
        return [(use, as_node(g)) for use, g in found]

    def operands(self, right: Right, shape: tuple[int, ...]) -> Iterator[tuple[int, Node]]:
        """The operands of one shape, numbered, beside the value of which this is the gradient."""
        for i, (use, operand) in enumerate([] if right.is_rest else self._used_with(right)):
            is_other = operand is not right.node and operand.op not in FIXED
            fits = operand.kind == "f" and np.shape(operand.value) == shape
            if is_other and fits and id(use) in self.gradients:
                yield i, operand

    def _used_with(self, right: Right) -> list[tuple[Node, Node]]:
        uses = self.body if right.use is None else [right.use]
        own = [use for use in uses if right.node in use.args and not has_parts(use)]
        return [(use, each) for use in own for each in (*use.args, use)]

    def mistaken(self, right: Right, number: int, value: Any) -> Any:
        """A gradient as it would be with another value of one of these operands."""
        use, operand = self._used_with(right)[number]
        other = Node(operand.op, operand.args, operand.attrs, operand.shape, "f", value)
        twin = other if operand is use else copy.copy(use)
        if operand is not use:
            twin.args = tuple(other if each is operand else each for each in use.args)
        with self.at_work():
            every = zip(use.args, vjp(twin, self.gradients[id(use)]), strict=True)
            own = [as_node(g).value for each, g in every if each is right.node and g is not None]
        rest = [] if right.use else [v for u, v in self.shares(right.node) if u is not use]
        return sum([*own, *rest]) if own else None

    def behind(self, node: Node) -> list[Node]:
        """The nodes that are made from one and that a gradient comes back through."""
        made = depends(self.body, [node])
        return [each for each in self.body if id(each) in made and id(each) in self.gradients]

    def said(self, node: Node) -> str:
        """A node as the forward writes it, or its name there."""
        if node.name:
            return symbol(node.name)
        emitter = Emitter(loose=True)
        for i, each in enumerate(self._nodes):
            if each is not node and (each.name or each.op == "input"):
                emitter.name(each, each.name or f"input{i}")
        try:
            return said(parsed(emitter.text(node)))
        except SyntaxError:  # of stores, which are no expression
            return f"what line {node.line} makes"


class _KeptContext:
    """Stands for the context of a torch.autograd.Function: it keeps what it is handed."""

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def __getattr__(self, name: str) -> Any:
        """The other methods, which say how gradients are asked for."""
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None


def is_context(value: Any) -> bool:
    """Return whether this is the context of a torch.autograd.Function."""
    return hasattr(value, "save_for_backward")


def derivation(
    function: Callable[..., Any], given: Mapping[str, Any], dy: Any
) -> SweptForward | None:
    """The derivation of a forward; None where it has none."""
    try:
        return SweptForward(function, given, dy)
    except Exception:  # of a form that has no derivation
        return None


def _traced(value: Any, inputs: list[Node], name: str, depth: int = 0) -> Any:
    """An argument with its arrays of floats as inputs of the program, those of an object too."""
    if depth > _DEEP:
        return value
    value = as_values(value)
    inner = partial(_traced, inputs=inputs, depth=depth + 1)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        sizes = tuple(map(Size.of, value.shape))
        inputs.append(Node("input", (), {}, sizes, "f", value, name))
        return Tracer(inputs[-1])
    if type(value) in (tuple, list):
        return type(value)(inner(each, name="") for each in value)
    if type(value) is dict:
        return {key: inner(each, name=str(key)) for key, each in value.items()}
    if has_fields(value):
        twin = copy.copy(value)
        vars(twin).update({key: inner(each, name=key) for key, each in vars(value).items()})
        return twin
    return value


def _name_attributes(objects: Iterable[Any]) -> None:
    """Name values after the attributes of objects that keep them, where they have no name."""
    for each in objects:
        for name, kept in vars(each).items() if hasattr(each, "__dict__") else ():
            if isinstance(kept, Tracer) and not kept.held.name:
                kept.held.name = name
