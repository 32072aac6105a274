"""Derivatives of derivatives: a gradient is a program, which is swept again.

The product of the Jacobian with a vector is the gradient of the backward by its cotangent, since
the backward is linear in it (Townsend 2017); the Hessian-vector product is the gradient of the
backward by the arrays.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from handgrad.deriving.algebra import simplified
from handgrad.deriving.arguments import Arguments, Setting, Spec
from handgrad.deriving.guards import size_rules
from handgrad.deriving.pair import DerivedPair, alone
from handgrad.deriving.reverse import gradient, linear_in
from handgrad.deriving.samples import Sampler, called
from handgrad.deriving.substitution import widened
from handgrad.deriving.traced import Traced
from handgrad.deriving.unread import without_unread
from handgrad.deriving.written import Written
from handgrad.program.node import Node, Program, within


@dataclass(frozen=True)
class Second:
    """A function with its source; `name` is that of the function, whose first parameters are the
    vectors that it is along.
    """

    name: str
    written: Written
    parameters: Mapping[str, inspect.Parameter]

    @property
    def source(self) -> str:
        return self.written.source_of("forward")

    @cached_property
    def function(self) -> Any:
        return self.written.compiled()[self.name]


def jvp(pair: DerivedPair, gradients: Sequence[Node]) -> Second:
    """`jvp(tangents, *arrays)`: how the results change along a change of the arrays."""
    traced = pair.traced
    with within(traced.world):
        tangents, products = gradient(_backward(pair, gradients), pair.cotangents)
        for path, tangent in zip(pair.wanted, tangents, strict=True):
            tangent.name = f"{'_'.join(map(str, path))}_dot"
        products = linear_in(pair.cotangents, products)
        free = Program([*traced.program.inputs, *tangents], products)
        products, _ = simplified(traced.program, tangents, free.outputs, None, traced.world)
        for product, out in zip(products, traced.program.outputs, strict=True):
            product.name = f"{out.name or 'y'}_dot"
        return _written(traced, "jvp", products, {"tangents": tangents})


def hvp(pair: DerivedPair, gradients: Sequence[Node]) -> Second:
    """`hvp(vectors, dy, *arrays)`: how the gradients change along a change of the arrays."""
    traced = pair.traced
    chosen = [traced.inputs[path] for path in pair.wanted]
    with within(traced.world):
        vectors, products = gradient(_backward(pair, gradients), chosen)
        for path, vector in zip(pair.wanted, vectors, strict=True):
            vector.name = f"v_{'_'.join(map(str, path))}"
        given = [*vectors, *pair.cotangents]
        products, _ = simplified(traced.program, given, products, None, traced.world)
        return _written(traced, "hvp", products, {"vectors": vectors, "dy": pair.cotangents})


def _backward(pair: DerivedPair, gradients: Sequence[Node]) -> Program:
    """The gradients from the arrays, a loop of the forward once: in the form that keeps more."""
    traced = pair.traced
    inputs = [*traced.program.inputs, *pair.cotangents]
    return Program(inputs, widened(gradients, traced.world))


def _written(
    traced: Traced, name: str, outputs: Sequence[Node], further: dict[str, list[Node]]
) -> Second:
    """A function of further arguments in front of the forward's own."""
    parameters: dict[str, inspect.Parameter] = {}
    trees: dict[str, Any] = {}
    inputs = {}
    for own, nodes in further.items():
        while own in traced.arguments.parameters:
            own += "_"
        parameters[own] = inspect.Parameter(own, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        paths = [(own,)] if len(nodes) == 1 else [(own, k) for k in range(len(nodes))]
        specs = []
        for path, node in zip(paths, nodes, strict=True):
            if len(path) == 1:
                node.name = own
            specs.append(_NamedSpec(path, node.shape, "f", called=node.name))
            inputs[path] = node
        trees[own] = specs[0] if len(nodes) == 1 else tuple(specs)
    arguments = Arguments(
        {**parameters, **traced.arguments.parameters}, {**trees, **traced.arguments.trees}
    )
    everything = without_unread(widened(outputs, traced.world))
    program = Program([*traced.program.inputs, *inputs.values()], everything)
    whole = replace(
        traced, arguments=arguments, program=program, inputs={**traced.inputs, **inputs}
    )
    return Second(name, alone(whole, name), arguments.parameters)


@dataclass(frozen=True)
class _NamedSpec(Spec):
    """An argument whose variable has a name of its own."""

    called: str = ""

    @property
    def name(self) -> str:
        return self.called


def backward_arguments(
    pair: DerivedPair, letters: Sequence[str], sampler: Sampler, forward: Callable[..., Any]
) -> Arguments:
    """What the backward takes, so that it can be derived as any function can.

    letters: the sizes at the end of its cache, which `forward` returns beside its results.
    """

    def keeping(rng: np.random.Generator, given: Mapping[str, int]) -> Sequence[Any]:
        values = sampler.draw(rng, {**sampler.lengths(), **given}, examples=False)
        cache: Sequence[Any] = called(forward, sampler.arguments.parameters, values)[1]
        return cache

    lengths = pair.traced.world.lengths
    rules = size_rules(pair.traced.world)
    bound = {x for _, left, right in rules for x in (left - right).letters}
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD
    dys = [
        Spec(("dy",) if len(pair.cotangents) == 1 else ("dy", k), each.shape, "f")
        for k, each in enumerate(pair.cotangents)
    ]
    numbers = {id(n) for n in pair.traced.numbers.values()}
    kept: list[Any] = [
        Setting(("cache", k), float(each.value))
        if id(each) in numbers
        else Spec(("cache", k), each.shape, each.kind, is_computed=bool(each.args))
        for k, each in enumerate(pair.kept)
    ]
    kept += [Setting(("cache", len(kept) + k), lengths[x], x) for k, x in enumerate(letters)]
    return Arguments(
        {name: inspect.Parameter(name, kinds) for name in ("dy", "cache")},
        {"dy": dys[0] if len(dys) == 1 else tuple(dys), "cache": tuple(kept)},
        lengths={**pair.traced.arguments.known, **{x: lengths[x] for x in bound}},
        keeping=keeping,
    )
