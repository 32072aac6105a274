"""What the names of a forward and a backward stand for: which is the gradient of which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from handgrad.derivation.equations.expression import is_array
from handgrad.derivation.equations.glossary import Glossary, canonical, is_word
from handgrad.derivation.equations.steps import stem, steps_of
from handgrad.derivation.formulas.formula import Formula, Row, Script, Symbol
from handgrad.trees import Function, Trace, nodes
from handgrad.trees.nodes import Node

Functions = tuple[Function, Function]
Traces = tuple[Trace, Trace]

#: Names of a gradient that comes in, which say nothing about what it is the gradient of.
_ANY_OUTPUT: Final = frozenset({"dout", "dO", "grad", "grad_output", "gradient", "upstream", "g"})


def glossary_of(
    functions: Functions,
    traces: Traces,
    *,
    gradients: tuple[str, ...] | None,
    is_last: bool,
) -> Glossary:
    """The glossary of a pair, from what ran. `is_last` where the output is the loss."""
    backward = functions[1]
    outputs = [name for name, _ in output_names(functions, traces[0])]
    values = _values(traces)
    capitals = _capitals(functions)
    if capitals:  # what is made of matrices is one as well
        found = (name for name, value in values.items() if len(name) == 1 and _axes(value) > 1)
        capitals = capitals.union(found)
    first = Glossary(
        known=frozenset(values),
        capitals=capitals,
        vectors=frozenset(name for name, value in values.items() if _axes(value) < 2),
        loss=outputs[0] if is_last and len(outputs) == 1 else "",
        inputs=frozenset(each.name for each in functions[0].parameters),
    )
    dependent = _dependent(backward)
    named = _gradients(first, functions, traces[1], outputs, dependent)
    inputs = gradient_inputs(functions, traces[1], gradients)
    named |= {f"d{name}": name for name in inputs}
    derivatives = frozenset(
        name
        for name in values
        if len(name) > 1 and name[0] == "d" and name[1:] in values and name not in dependent
    )
    returned = {each.id for each in _returned(traces[1]) if isinstance(each, nodes.Name)}
    glossary = replace(
        first,
        gradients=named,
        derivatives=derivatives,
        results=frozenset({*returned, *outputs}),
    )
    glossary = replace(glossary, words=_written_out(glossary, values))
    return replace(glossary, letters=_letters(glossary, values, backward))


def output_names(functions: Functions, done: Trace) -> list[tuple[str, Node]]:
    """What forward returns before its cache: a name for each output, and its expression.

    An output goes by the name in backward's first argument: `loss` for `dloss`.
    """
    value = done.returned.value
    first = value.items[0] if isinstance(value, nodes.Sequence) and value.items else value
    items = _leaves(first)
    incoming = functions[1].parameters[0].name
    stem = incoming[1:] if incoming[0] == "d" and incoming not in _ANY_OUTPUT else ""
    found = []
    for position, item in enumerate(items):
        own = item.id if isinstance(item, nodes.Name) else ""
        name = (stem or own or "y") if len(items) == 1 else (own or f"y{position + 1}")
        found.append((name, item))
    return found


def _leaves(node: Node) -> list[Node]:
    """The parts of nested tuples, such as (y, (h, c)), in order."""
    if not isinstance(node, nodes.Sequence):
        return [node]
    return [leaf for item in node.items for leaf in _leaves(item)]


def gradient_inputs(
    functions: Functions, done: Trace, given: tuple[str, ...] | None
) -> tuple[str, ...]:
    """The input that each gradient belongs to, in the order in which backward returns them."""
    if given is not None:
        return given
    names = [each.name for each in functions[0].parameters]
    items = _returned(done)
    found = []
    for position, item in enumerate(items):
        own = item.id[1:] if isinstance(item, nodes.Name) else ""
        found.append(own if own in names else names[min(position, len(names) - 1)])
    return tuple(found)


def _returned(done: Trace) -> tuple[Node, ...]:
    value = done.returned.value
    return value.items if isinstance(value, nodes.Sequence) else (value,)


def _values(traces: Traces) -> dict[str, Any]:
    """Every variable of the two functions whose value is an array, a number or a list of arrays."""
    found: dict[str, Any] = {}
    for done in traces:
        for name in sorted(done.names):
            value = done.environment[name]
            first = value[0] if isinstance(value, list) and value else value
            if is_array(first) or isinstance(first, int | float):
                found.setdefault(name, value)
    return found


def _axes(value: Any) -> int:
    return len(value.shape) if is_array(value) else 0


def _capitals(functions: Functions) -> frozenset[str]:
    """Single letters that are annotated as a matrix: two axes behind those of a batch."""
    found = set()
    for parameter in (*functions[0].parameters, *functions[1].parameters[:1]):
        axes = [each for each in parameter.shape.split() if not each.startswith(("*", "..."))]
        name = parameter.name
        if " or " in parameter.shape or len(axes) != 2 or "*size" in parameter.shape:
            continue
        found.add(name[1:] if len(name) == 2 and name[0] == "d" else name)
    return frozenset(name for name in found if len(name) == 1)


def _dependent(backward: Function) -> set[str]:
    """The names of backward that depend on the gradient that comes in."""
    found = {backward.parameters[0].name}
    before = -1
    while len(found) > before:
        before = len(found)
        for statement in backward.body:
            for part in nodes.walk(statement):
                match part:
                    case nodes.Assign(target, value, _) if nodes.names(value) & found:
                        found |= nodes.names(target)
                    case nodes.For(target, iterable, _) if nodes.names(iterable) & found:
                        found |= nodes.names(target)
    return found


def _gradients(
    glossary: Glossary,
    functions: Functions,
    done: Trace,
    outputs: Sequence[str],
    dependent: set[str],
) -> dict[str, str]:
    """Of every gradient's name, the name it is the gradient of."""
    backward = functions[1]
    incoming = backward.parameters[0].name
    found = {incoming: outputs[0]} if len(outputs) == 1 else {}
    found |= _of_outputs(backward, outputs)
    counters = [each.counter for each in steps_of(backward.body)]
    names = {*dependent, *_loop_names(backward)} - {incoming, *found}
    for name in {*names, *(stem(each, counters) for each in names)}:
        of = name[1:]
        if name[0] == "d" and of and glossary.reads(of):
            found[name] = of
    return found


def _of_outputs(backward: Function, outputs: Sequence[str]) -> dict[str, str]:
    """The output that each gradient is one of, where a tuple of them comes in."""
    incoming = nodes.Name(backward.parameters[0].name)
    for statement in backward.body:
        match statement:
            case nodes.Assign(nodes.Sequence() as target, value, _) if value == incoming:
                names = [each.id for each in _leaves(target) if isinstance(each, nodes.Name)]
                if len(names) == len(outputs):
                    return dict(zip(names, outputs, strict=True))
    return {}


def _loop_names(function: Function) -> set[str]:
    """The variables of comprehensions, which carry gradients as lists do."""
    return {
        name
        for statement in function.body
        for part in nodes.walk(statement)
        if isinstance(part, nodes.Clause)
        for name in nodes.names(part.target)
    }


def _written_out(glossary: Glossary, values: dict[str, Any]) -> frozenset[str]:
    """Words of the table whose letter is taken by another name."""
    taken: dict[Formula, str] = {}
    words = set()
    for name in sorted(values, key=lambda each: (is_word(each), len(each))):
        if name in glossary.gradients or isinstance(values[name], list):
            continue  # an element of a list has an index besides
        symbol = glossary.symbol(name)
        owner = taken.setdefault(symbol, name)
        if canonical(owner) != canonical(name) and is_word(name):
            words.add(name)
    return frozenset(words)


def _letters(glossary: Glossary, values: dict[str, Any], backward: Function) -> frozenset[str]:
    """Every letter that is a symbol, or a variable of a loop, and so cannot be an index."""
    found = {name for name in _loop_names(backward) if len(name) == 1}
    for name in values:
        if name not in glossary.gradients:
            found |= set(_symbols(glossary.symbol(name)))
    return frozenset(found)


def _symbols(formula: Formula) -> list[str]:
    match formula:
        case Symbol(name):
            return [name]
        case Script(base, sub, None) if not isinstance(sub, Row):
            return _symbols(base)
    return []
