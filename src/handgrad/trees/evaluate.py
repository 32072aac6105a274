"""Run a tree: the same operations on the same values in the same order as Python, bit for bit."""

from __future__ import annotations

import builtins
import operator
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from handgrad.trees import nodes
from handgrad.trees.nodes import Node
from handgrad.trees.reader import Function

Environment = MutableMapping[str, Any]

_COMPARE: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "is": operator.is_,
    "is not": operator.is_not,
    "in": lambda a, b: a in b,
    "not in": lambda a, b: a not in b,
}
_ABSENT: Final = object()


@dataclass(frozen=True)
class Step:
    """One assignment as it was executed, with every name it set; a store sets none.

    `variables` are those of the loops around it, in this round.
    """

    statement: nodes.Assign | nodes.Store
    values: dict[str, Any]
    variables: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Trace:
    """What a run did: the straight line of assignments, the `return` reached, and all names."""

    arguments: frozenset[str]
    steps: tuple[Step, ...]
    returned: nodes.Return
    result: Any
    environment: Environment

    @property
    def names(self) -> frozenset[str]:
        """The arguments and every name that was set."""
        return self.arguments.union(*(step.values for step in self.steps))

    def definition(self, name: str) -> Node | None:
        """The expression assigned to a name alone.

        None for an argument, and where a name in the expression has another value by the end of the
        run, as in a loop: there the expression gives something else.
        """
        for number in reversed(range(len(self.steps))):
            statement = self.steps[number].statement
            if statement.target == nodes.Name(name):
                lasting = all(self._lasts(each, number) for each in nodes.names(statement.value))
                return statement.value if lasting else None
        return None

    def _lasts(self, name: str, number: int) -> bool:
        """Whether a name has the same value before step `number` as at the end of the run."""
        if not any(name in step.values for step in self.steps[number:]):
            return True
        earlier = (step.values for step in reversed(self.steps[:number]) if name in step.values)
        return next(earlier, {}).get(name, _ABSENT) is self.environment[name]


def trace(function: Function, *args: Any, **kwargs: Any) -> Trace:
    """Run the tree and keep every step. Raises what the function itself would raise."""
    bound = function.signature.bind(*args, **kwargs)
    bound.apply_defaults()
    environment = ChainMap(dict(bound.arguments), dict(function.names), vars(builtins))
    steps: list[Step] = []
    returned = _run(function.body, environment, steps, {})
    statement, result = returned or (nodes.Return(nodes.Constant(None), 0), None)
    arguments = frozenset(bound.arguments)
    return Trace(arguments, tuple(steps), statement, result, environment)


def run(function: Function, *args: Any, **kwargs: Any) -> Any:
    """What the function returns, computed from its tree."""
    return trace(function, *args, **kwargs).result


def _run(
    body: tuple[Node, ...],
    environment: Environment,
    steps: list[Step],
    variables: Mapping[str, Any],
) -> tuple[nodes.Return, Any] | None:
    """Execute statements; the `return` that was reached and its value, or None."""
    for statement in body:
        match statement:
            case nodes.Assign(target, value):
                found: dict[str, Any] = {}
                _bind(target, evaluate(value, environment), found)
                environment.update(found)
                steps.append(Step(statement, found, variables))
            case nodes.Store(nodes.Index(array, index), value):
                evaluate(array, environment)[evaluate(index, environment)] = evaluate(
                    value, environment
                )
                steps.append(Step(statement, {}, variables))
            case nodes.Branch(test, yes, no):
                taken = yes if evaluate(test, environment) else no
                if (returned := _run(taken, environment, steps, variables)) is not None:
                    return returned
            case nodes.For(target, iterable, inner):
                for item in evaluate(iterable, environment):
                    bound: dict[str, Any] = {}
                    _bind(target, item, bound)
                    environment.update(bound)
                    here = {**variables, **bound}
                    if (returned := _run(inner, environment, steps, here)) is not None:
                        return returned
            case nodes.Return(value):
                return statement, evaluate(value, environment)
    return None


def _bind(target: Node, value: Any, names: Environment) -> None:
    match target:
        case nodes.Name(name):
            names[name] = value
        case nodes.Sequence(_, targets):
            values = list(value)
            stars = [i for i, each in enumerate(targets) if isinstance(each, nodes.Starred)]
            if stars:
                (star,) = stars
                behind = len(values) - (len(targets) - star - 1)
                values = [*values[:star], values[star:behind], *values[behind:]]
            for each, item in zip(targets, values, strict=True):
                _bind(each.value if isinstance(each, nodes.Starred) else each, item, names)


def evaluate(node: Node, names: Environment) -> Any:
    """The value of an expression where these names are known; NameError for one that is not."""
    of = partial(evaluate, names=names)
    match node:
        case nodes.Name(name):
            value = names.get(name, _ABSENT)
            if value is _ABSENT:
                raise NameError(f"name {name!r} is not defined")
            return value
        case nodes.Constant(value):
            return value
        case nodes.Sum(terms):
            total = of(terms[0].value)
            for term in terms[1:]:
                total = total + of(term.value) if term.sign > 0 else total - of(term.value)
            return total
        case nodes.Product(factors):
            total = of(factors[0].value)
            for factor in factors[1:]:
                total = total / of(factor.value) if factor.inverse else total * of(factor.value)
            return total
        case nodes.Negative(value):
            return -of(value)
        case nodes.Power(base, exponent):
            return of(base) ** of(exponent)
        case nodes.Integral(sign, left, right):
            return of(left) // of(right) if sign == "//" else of(left) % of(right)
        case nodes.MatMul(left, right):
            return of(left) @ of(right)
        case nodes.Transpose(value, form, function):
            return getattr(of(value), form) if function is None else of(function)(of(value))
        case nodes.Reduce(kind, value, arguments, keywords, function):
            first = (of(value),) if function is not None else ()
            reduction = of(function) if function is not None else getattr(of(value), kind)
            return reduction(*first, *map(of, arguments), **_named(keywords, of))
        case nodes.Where(condition, yes, no, function):
            return of(function)(of(condition), of(yes), of(no))
        case nodes.Call(function, arguments, keywords):
            return of(function)(*_items(arguments, of), **_named(keywords, of))
        case nodes.Method(value, name, arguments, keywords):
            return getattr(of(value), name)(*_items(arguments, of), **_named(keywords, of))
        case nodes.Attribute(value, name):
            return getattr(of(value), name)
        case nodes.Index(value, index):
            return of(value)[of(index)]
        case nodes.Slice(lower, upper, step):
            return slice(*(None if part is None else of(part) for part in (lower, upper, step)))
        case nodes.Sequence(form, items):
            return tuple(_items(items, of)) if form == "tuple" else list(_items(items, of))
        case nodes.Compare(sign, left, right):
            return _COMPARE[sign](of(left), of(right))
        case nodes.Logic():
            return _logic(node, of)
        case nodes.Choice(test, yes, no):
            return of(yes) if of(test) else of(no)
        case nodes.Loop(form, element, clauses):
            values = _looped(element, clauses, names)
            return list(values) if form == "list" else values
    raise TypeError(f"{type(node).__name__} has no value")


def _items(items: tuple[Node, ...], of: Callable[[Node], Any]) -> Iterator[Any]:
    for item in items:
        if isinstance(item, nodes.Starred):
            yield from of(item.value)
        else:
            yield of(item)


def _named(keywords: tuple[nodes.Keyword, ...], of: Callable[[Node], Any]) -> dict[str, Any]:
    return {each.name: of(each.value) for each in keywords}


def _logic(node: nodes.Logic, of: Callable[[Node], Any]) -> Any:
    first, *rest = node.values
    value = of(first)
    match node.operator:
        case "not":
            return not value
        case "~":
            return ~value
        case "&":
            return value & of(rest[0])
        case "|":
            return value | of(rest[0])
    for each in rest:  # `and` and `or` stop at the first value that decides
        if bool(value) == (node.operator == "or"):
            return value
        value = of(each)
    return value


def _looped(element: Node, clauses: tuple[nodes.Clause, ...], names: Environment) -> Iterator[Any]:
    if not clauses:
        yield evaluate(element, names)
        return
    clause, *inner = clauses
    for item in evaluate(clause.iterable, names):
        scope: Environment = ChainMap({}, names)
        _bind(clause.target, item, scope)
        if all(evaluate(condition, scope) for condition in clause.conditions):
            yield from _looped(element, tuple(inner), scope)
