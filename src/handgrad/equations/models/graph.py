"""Questions about the programs of a layer: what is needed, who takes it, what belongs to whom."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from handgrad.documents.formulas.formula import Formula
from handgrad.equations.exact import ARRANGING, CONSTANT
from handgrad.equations.models.recording import Recording
from handgrad.equations.models.rounds import repeated_rounds
from handgrad.equations.shaping import stored_at
from handgrad.layers import Layer
from handgrad.layers.base import walk
from handgrad.program import Frame, Node, Program, ProgramError, leaves, mapped, reachable
from handgrad.program.functions import is_array


class PassGraph:
    """The nodes of a layer's passes that its results depend on.

    Raises ProgramError for a layer of several outputs.
    """

    def __init__(self, layer: Layer, recording: Recording) -> None:
        self.forward, self.backward, self.others = recording
        runs = self.forward, self.backward, *self.others
        for run in runs:
            _resolve_elements(run)
        self.result = self.forward.result[0]
        if not isinstance(self.result, Node):
            raise ProgramError("notes: the layer gives several outputs; allowed: one array")
        needed = reachable((self.result, *(run.result for run in runs[1:])))
        self.nodes = [each for run in runs for each in run.nodes if each in needed]
        #: The call of an op that gave each of its outputs, and those of each call.
        self.owners = _owners((*self.forward.nodes, *self.backward.nodes))
        self.outputs: defaultdict[Node, list[Node]] = defaultdict(list)
        for element, call in self.owners.items():
            self.outputs[call].append(element)
        self._users: defaultdict[Node, list[Node]] = defaultdict(list)
        for each in self.nodes:
            for operand in each.operands:
                self._users[operand].append(each)
        #: The number of values that are made of each in forward.
        self.forks = Counter(
            operand
            for each in self.needed(self.forward)
            if each.op not in CONSTANT
            for operand in each.operands
        )
        #: The arguments of ops.
        self._taken = {
            operand
            for each in self.nodes
            if each.op.endswith(".forward")
            for operand in each.operands
        }
        self._layers: dict[Frame, str] = {}
        paths = {id(each): path for path, each in walk(layer)}
        for run in runs:
            self._layers |= _layers(run, paths)
        #: The loop of alike rounds that a node is in, and the round.
        self.rounds: dict[Node, tuple[int, int]] = {}
        for run in (self.forward, self.backward):
            does = ((each, (each.op, self.path(each))) for each in self.needed(run))
            self.rounds |= repeated_rounds(does)

    def needed(self, run: Program) -> list[Node]:
        """The nodes of one pass, in order."""
        own = set(run.nodes)
        return [each for each in self.nodes if each in own]

    @property
    def is_one_op(self) -> bool:
        """True for one call of an op, forward and backward, with nothing before or after it."""
        ops = [each.op for each in self.nodes if each.op not in ("input", "element")]
        forwards = [op for op in ops if op.endswith(".forward")]
        return len(forwards) == 1 and all(op.endswith((".forward", ".backward")) for op in ops)

    def backward_calls(self) -> list[Node]:
        return [each for each in self.backward.nodes if each.op.endswith(".backward")]

    def backward_of(self, call: Node) -> Node | None:
        return next((each for each in self.backward_calls() if each.args[1] is call), None)

    def made_of(self, first: Node) -> set[Node]:
        """The nodes that depend on this one."""
        found = {first}
        for each in self.nodes:
            if not found.isdisjoint(each.operands):
                found.add(each)
        return found

    def is_line(self, node: Node) -> bool:
        """True for a value with an equation of its own: an op takes it, or it has a name."""
        if not is_array(node.value):
            return False
        if node in self._taken:
            return True
        if node.op in ARRANGING | CONSTANT or self._goes_into_store(node):
            return False
        if self._is_part_of_sum(node):
            return False
        return len(self._users[node]) > 1 or node.name.isidentifier()

    def _is_part_of_sum(self, node: Node) -> bool:
        """True for a part of a longer sum of gradients that have symbols."""
        if node.op != "add" or node.name[:1] != "d":
            return False
        return [each.op for each in self._users[node]] == ["add"] and all(
            each in self.owners or self.is_line(each) or self._is_part_of_sum(each)
            for each in node.operands
        )

    def _goes_into_store(self, node: Node) -> bool:
        """True for an array of which some elements are set before anything reads it."""
        later = self._users[node]
        return node.op == "store" and len(later) == 1 and later[0].op == "store"

    def path(self, node: Node) -> str:
        """The layer that a node's function belongs to, by its name; "" for the whole layer."""
        frame: Frame | None = node.frame
        while frame is not None:
            if frame in self._layers:
                return self._layers[frame]
            frame = frame.caller
        return ""


def _layers(run: Program, paths: Mapping[int, str]) -> dict[Frame, str]:
    """The layer whose method each frame is."""
    owners = {each.frame: each.value for each in run.assignments if each.name == "self"}
    owners[run.frame] = run.arguments.get("self")
    return {frame: paths[id(owner)] for frame, owner in owners.items() if id(owner) in paths}


def _owners(nodes: tuple[Node, ...]) -> dict[Node, Node]:
    return {
        each: each.args[0]
        for each in nodes
        if each.op == "element" and each.args[0].op.endswith((".forward", ".backward"))
    }


def _resolve_elements(run: Program) -> None:
    """Put what was stored at an index of an array in the place of the element there."""
    stands_for: dict[Node, Node] = {}
    for node in run.nodes:
        node.args = mapped(lambda each: _of(stands_for, each), node.args)
        node.kwargs = mapped(lambda each: _of(stands_for, each), dict(node.kwargs))
        node.operands = tuple(leaves((node.args, node.kwargs)))
        if node.op == "getitem" and (stored := stored_at(*node.args)) is not None:
            stands_for[node] = stored


def _of(stands_for: Mapping[Node, Node], value: Any) -> Any:
    return stands_for.get(value, value) if isinstance(value, Node) else value


def inner_inputs(node: Node, known: Mapping[Node, Formula]) -> Iterator[Node]:
    """The inputs that the definition of a node writes by a symbol, but for those that have one."""
    if node.op == "input":
        if node not in known and np.ndim(node.value) > 0:
            yield node
        return
    for each in node.operands:
        if each not in known:
            yield from inner_inputs(each, known)
