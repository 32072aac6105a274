"""What a wrong backward may lack: one factor, term, mean or transpose more, at any place of it.

With these a backward that is short of something can be put right, and what puts it right is what
was missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from handgrad.program.edits import is_floats
from handgrad.program.insertions import broadcasts, is_array_or_mask
from handgrad.trees import nodes
from handgrad.trees.edits import Edit, Editor, Variant, edited, executed
from handgrad.trees.evaluate import Trace
from handgrad.trees.nodes import Constant, Factor, Keyword, Name, Node, Term
from handgrad.trees.reader import Function


def insertions(function: Function, run: Trace) -> list[Edit]:
    """Every insertion into a statement that `run`, a trace of the function, executed."""
    found: list[Edit] = []
    for statement, known in executed(run):
        for kind, part, node in _Inserter(run, known).variants(statement.value):
            changed = replace(statement, value=node)
            found.append(edited(function, kind, part, statement, changed))
    for kind, part, node in _Inserter(run, run.names).variants(run.returned.value):
        returned = replace(run.returned, value=node)
        found.append(edited(function, kind, part, run.returned, returned))
    return found


class _Inserter(Editor):
    """The insertions at a node: around every part of an expression that is an array of floats."""

    def own(self, node: Node) -> Iterator[Variant]:
        here = self.value(node)
        if not is_floats(here) or here.ndim == 0:
            return
        arrays = {name: self.environment[name] for name in sorted(self.known)}
        for name, value in arrays.items():
            if is_array_or_mask(value) and broadcasts(value.shape, here.shape):
                yield from self.with_array(node, name, value, here)
        for axis in range(here.ndim):
            yield from self.without_mean(node, axis)
        if here.ndim >= 2:
            yield Variant("transpose inserted", self.words(node), nodes.Transpose(node, "mT"))

    def with_array(self, node: Node, name: str, value: Any, here: Any) -> Iterator[Variant]:
        other, words = Name(name), self.words(Name(name))
        yield Variant("factor inserted", words, _product(node, other))
        if not is_floats(value):
            return
        quotient = nodes.Product((Factor(False, node), Factor(True, other)))
        yield Variant("factor inserted", "1/" + words, quotient)
        square = _product(other, other)
        for slope, said in (
            (nodes.Sum((Term(1, Constant(1.0)), Term(-1, square))), f"1 − {words}²"),
            (_product(other, _minus(Constant(1.0), other)), f"{words} (1 − {words})"),
            (nodes.Compare(">", other, Constant(0)), f"{words} > 0"),
        ):
            yield Variant("derivative inserted", said, _product(node, slope))
        if value.shape == here.shape:
            for sign, said in ((1, words), (-1, "−" + words)):
                yield Variant("term inserted", said, nodes.Sum((Term(1, node), Term(sign, other))))
            for axis in range(here.ndim):
                projected = _product(other, _reduced("mean", _product(node, other), axis))
                said = f"−{words} mean({self.words(node)} {words})"
                yield Variant("term inserted", said, _minus(node, projected))

    def without_mean(self, node: Node, axis: int) -> Iterator[Variant]:
        """x − mean x; and for p d, where p is a softmax, p (d − Σ p d)."""
        said = f"−mean({self.words(node)})"
        yield Variant("term inserted", said, _minus(node, _reduced("mean", node, axis)))
        match node:
            case nodes.Product((Factor(False, first), Factor(False, second))):
                for p, d in ((first, second), (second, first)):
                    said = f"−{self.words(p)} sum({self.words(node)})"
                    inner = _minus(d, _reduced("sum", node, axis))
                    yield Variant("term inserted", said, _product(p, inner))


def _product(left: Node, right: Node) -> Node:
    return nodes.Product((Factor(False, left), Factor(False, right)))


def _minus(left: Node, right: Node) -> Node:
    return nodes.Sum((Term(1, left), Term(-1, right)))


def _reduced(kind: str, value: Node, axis: int) -> Node:
    keywords = (Keyword("axis", Constant(axis)), Keyword("keepdims", Constant(True)))
    return nodes.Reduce(kind, value, (), keywords, None)
