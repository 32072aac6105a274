"""A forward as its program, each operation of which can be run again on other values.

Every array that an expression makes on its way is a node: in `tanh(x @ W + b)` the product, the sum
and the tanh. So a backward can be asked of each of its arrays which of them it is the gradient of,
even where the forward has no name for that.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np

from handgrad.checking.trial import leaves
from handgrad.program import Node, ProgramError, Recorder, values_of
from handgrad.program import leaves as nodes_in
from handgrad.program.edits import is_floats
from handgrad.program.running import numbers

_EPSILON: Final = float(np.finfo(np.float64).eps)


class ForwardTrace:
    """One run of a forward that returns (y, cache).

    `versions` holds the nodes of a name in the order of assignment, and `inside` all nodes that its
    assignments made on their way. Raises ProgramError where the forward does not return a pair.
    """

    def __init__(
        self,
        recorder: Recorder,
        function: Callable[..., Any],
        arrays: Sequence[Any],
        options: Mapping[str, Any],
    ) -> None:
        self.program = program = recorder.run(function, *arrays, **options)
        if not isinstance(program.result, tuple) or len(program.result) != 2:
            name = program.frame.name
            raise ProgramError(f"{name} returns no pair; allowed: return y, cache")
        self.parameters = frozenset(
            node for node in nodes_in(dict(program.arguments)) if node.op == "input"
        )
        self.versions: dict[str, list[Node]] = {}
        self.inside: dict[str, list[Node]] = {}
        for name, value in program.arguments.items():
            if isinstance(value, Node):
                self.versions[name] = [value]
        made = 0
        for each in program.assignments:
            if each.frame is not program.frame or not isinstance(each.value, Node):
                continue
            versions = self.versions.setdefault(each.name, [])
            if each.value not in versions:
                versions.append(each.value)
            after = each.value.number + 1
            self.inside.setdefault(each.name, []).extend(program.nodes[made:after])
            made = max(made, after)
        self.y, cache = program.result
        self.output, self.cache = values_of(self.y), values_of(cache)
        self._ends = frozenset(nodes_in(self.y))

    # Running it again

    def contraction(
        self,
        start: Node,
        cuts: Mapping[Node, Any],
        dy: Any,
        *,
        held: Container[Node] = (),
        unread: Node | Literal["y"] | None = None,
        passed: tuple[Node, Node] | None = None,
        mistaken: tuple[Node, Node] | None = None,
    ) -> Callable[[Mapping[Node, Any]], float]:
        """The function whose gradient the gradient of a node is, of the value there.

        The sum of <value, cotangent> over the nodes of `cuts`, behind which nothing moves, and over
        y with `dy`, counted from the values of the run. A wrong backward may have taken it for
        another one: the nodes in `held` do not move; `unread`, a later node or "y", does not read
        this one; the second of `passed` moves as the first does, as if it were the same; what reads
        this node and the first of `mistaken` moves as if it read the second in the first's place.
        """
        first, second = passed or (None, None)
        operand, other = mistaken or (None, None)
        behind = [
            node
            for node in self.program.moved_by([start])
            if node.function is not None and node not in held
        ]

        def total(point: Mapping[Node, Any]) -> float:
            moved: dict[Node, Any] = {start: point[start]}

            def value(node: Node) -> Any:
                return moved.get(node, node.value)

            def still(node: Node) -> Any:
                return start.value if node is start else value(node)

            def change(node: Node, operand: Node, other: Node) -> Any:
                """The node's change, if it read another node in an operand's place."""

                def result(read: Callable[[Node], Any]) -> Any:
                    instead = node.called_with(
                        lambda each: read(other if each is operand else each)
                    )
                    return numbers(node, *instead)

                return result(value) - result(still)

            sum_ = 0.0
            for node in behind:
                if moved.keys().isdisjoint(node.operands):
                    continue
                read = still if node is unread else value
                result = numbers(node, *node.called_with(read))
                if operand in node.operands and start in node.operands and is_floats(node.value):
                    assert other is not None
                    result = node.value + change(node, operand, other)
                if node is second and first in moved:
                    assert first is not None
                    result = node.value + (moved[first] - first.value)
                if node in cuts:
                    sum_ += _moved(result, node.value, cuts[node])
                else:
                    moved[node] = result
            if not self._ends.isdisjoint(moved):
                start_too = {start: start.value} if unread == "y" else {}
                y = values_of(self.y, {**moved, **start_too})
                pairs = zip(leaves(y), leaves(self.output), leaves(dy), strict=True)
                sum_ += sum(_moved(*each) for each in pairs)
            return float(sum_)

        return total

    def readers(self, node: Node) -> list[Node | Literal["y"]]:
        """The nodes made directly from this one, and "y" if y is."""
        found: list[Node | Literal["y"]] = [*self.program.users.get(node, ())]
        return [*found, "y"] if node in self._ends else found

    def behind(self, node: Node) -> list[Node]:
        """All nodes that this one moves."""
        return self.program.moved_by([node])

    def noise(self, cuts: Mapping[Node, Any], dy: Any) -> float:
        """The error of a contraction by rounding in the values alone."""
        ends = [(node.value, cut) for node, cut in cuts.items()]
        ends += zip(leaves(self.output), leaves(dy), strict=True)
        squares = sum(_size(value, cotangent) ** 2 for value, cotangent in ends)
        return 4.0 * _EPSILON * float(np.sqrt(squares))

    def arrays(self) -> list[Node]:
        """The arrays of floats among the inputs and all that they move, in order."""
        moving = {*self.parameters, *self.program.moved_by(self.parameters)}
        return [node for node in self.program.nodes if node in moving and is_floats(node.value)]


def _moved(value: Any, start: Any, cotangent: Any) -> float:
    """<value − start, cotangent>; an infinity stays where it is."""
    value, start, cotangent = (np.asarray(each) for each in (value, start, cotangent))
    known = np.isfinite(start)
    with np.errstate(invalid="ignore"):
        return float(np.sum(np.where(known, value - start, 0.0) * cotangent))


def _size(value: Any, cotangent: Any) -> float:
    product = np.asarray(value) * np.asarray(cotangent)
    return float(np.sqrt(np.sum(product[np.isfinite(product)] ** 2)))
