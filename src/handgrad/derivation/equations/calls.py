"""How a call is written: one table of functions.

A function that is not in it is written by its name and its arrays, and its docstring's first
sentence explains it beside the symbols.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from handgrad.derivation.equations import functions, windows
from handgrad.derivation.equations.functions import Notation
from handgrad.derivation.equations.parts import Part
from handgrad.derivation.formulas.formula import Number, Operator, Symbol
from handgrad.trees import nodes
from handgrad.trees.nodes import Node
from handgrad.trees.text import SHAPING, called

if TYPE_CHECKING:
    from handgrad.derivation.equations.expression import Writer
    from handgrad.derivation.equations.marks import Marks

_SHAPING: Final = SHAPING | frozenset(
    {
        "float",
        "int",
        "tuple",
        "list",
        "per_axis",
        "atleast_1d",
        "atleast_2d",
        "ascontiguousarray",
        "unsqueeze",
        "view",
        "flatten",
        "detach",
        "clone",
        "rows",
    }
)
#: Functions of one array by their own name, as in exp(x).
_OF_ONE: Final = ("exp", "log", "sin", "cos", "tan", "tanh", "sinh", "cosh", "sign")


def shaped(writer: Writer, name: str, node: nodes.Call) -> Node | None:
    """What a call that only shapes is a shape of; None for any other call.

    Where a value says so: a maximum of a size and 1 is that size, unless there is nothing; and a
    sum over broadcast axes is its argument where nothing was broadcast.
    """
    if not node.arguments:
        return None
    if name in _SHAPING:
        return node.arguments[0]
    if (
        name in ("max", "min")
        and isinstance(node.function, nodes.Name)
        and len(node.arguments) == 2
    ):
        value, limit = node.arguments
        if isinstance(limit, nodes.Constant) and writer.value(node) == writer.value(value):
            return value
    if _gives_back(writer, node):
        return node.arguments[0]
    if name == "sum_to" and writer.shape(node) == writer.shape(node.arguments[0]):
        return node.arguments[0]
    return None


def _gives_back(writer: Writer, node: nodes.Call) -> bool:
    """Whether a call leaves its array as it is, as where there is nothing to mask."""
    first = writer.value(node.arguments[0])
    if not hasattr(first, "shape"):
        return False
    on_it = nodes.Call(node.function, (nodes.Name(""), *node.arguments[1:]), node.keywords)
    return writer.at({**writer.frame.names, "": first}).value(on_it) is first


def is_count(writer: Writer, node: Node) -> bool:
    """Whether the value numbers an axis."""
    match writer.bare(node):
        case nodes.Call(function, (first, *_), _):
            name = called(function)
            return name == "arange" or (name == "flip" and is_count(writer, first))
    return False


def as_function(writer: Writer, node: nodes.Method) -> nodes.Call:
    """x.reshape(...) as reshape(x, ...) where x is an array, and F.relu(x) as a call."""
    if writer.is_value(node.value):
        return nodes.Call(nodes.Name(node.name), (node.value, *node.arguments), node.keywords)
    return nodes.Call(nodes.Attribute(node.value, node.name), node.arguments, node.keywords)


def call(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    """The call by its notation, or by its name."""
    notation = NOTATIONS.get(called(node.function))
    if notation is not None and (node.arguments or node.keywords):
        return notation(writer, node, marks)
    return functions.named(writer, node, marks)


NOTATIONS: Final[dict[str, Notation]] = {
    **{name: functions.of_one(name) for name in _OF_ONE},
    "erf": functions.lettered(Operator("erf")),
    "log1p": functions.log_one_plus,
    "expm1": functions.exp_minus_one,
    "logaddexp": functions.log_of_sum,
    "sqrt": functions.root,
    "abs": functions.absolute,
    "square": functions.square,
    "maximum": functions.of_all("max"),
    "minimum": functions.of_all("min"),
    "max": functions.of_all("max"),
    "min": functions.of_all("min"),
    "clip": functions.clip,
    "isinf": functions.infinite,
    "zeros_like": functions.fixed(Number("0")),
    "zeros": functions.fixed(Number("0")),
    "zero_state": functions.fixed(Number("0")),
    "ones_like": functions.fixed(Number("1")),
    "ones": functions.fixed(Number("1")),
    "full": functions.full,
    "full_like": functions.full,
    "eye": functions.fixed(Symbol("I")),
    "arange": functions.count,
    "flip": functions.flipped,
    "weights": functions.operator("softmax"),
    "take": functions.taken,
    "sum": functions.total,
    "stack": functions.stacked,
    "concat": functions.joined,
    "concatenate": functions.joined,
    "hstack": functions.joined,
    "argmax": functions.arg_max,
    "dot": functions.dotted,
    "outer": functions.outer,
    "swapaxes": functions.swapped,
    "transpose": functions.swapped,
    "add": functions.elementwise("+"),
    "subtract": functions.elementwise("-"),
    "multiply": functions.elementwise("*"),
    "divide": functions.elementwise("/"),
    "negative": functions.negated,
    "logistic": functions.lettered(Symbol("sigma")),
    "sigmoid": functions.lettered(Symbol("sigma")),
    "activate": functions.lettered(Symbol("f")),
    "activation_gradient": windows.activation_gradient,
    "window": windows.window,
    "scatter": windows.scatter,
    "pad": windows.padded,
    "crop": windows.padded,
    "window_sum": windows.window_sum,
    "sum_to": windows.summed_to,
    "draw_mask": windows.drawn,
}
