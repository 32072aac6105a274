"""Derived backwards beside published ones: right, and in operations and kept elements no more than
a fifth dearer.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from handgrad.deriving.algebra.choose import Costs, Count
from handgrad.deriving.deriving import derive
from handgrad.program.node import Node, World, within
from handgrad.program.sizes import Size
from handgrad.program.trace import Tracer, unwrap
from handgrad.program.trace import run as trace_run
from tests.deriving.published import PAIRS, Pair

LENGTHS = {"N": 24, "D": 40, "C": 12, "L": 20, "K": 28, "T": 32, "S": 36, "E": 44, "H": 30, "R": 4}
#: A derived backward may cost this many times the published one.
MOST = 1.2
#: Of all pairs, so many have to meet that.
LEAST = 18


def derived(pair: Pair) -> Any:
    given = {key: value for key, value in pair.given.items() if key != "wrt"}
    return derive(pair.forward, wrt=pair.given.get("wrt"), assume=pair.assume, **given)


def counts_of_derived(pair: Pair) -> Count:
    back = derived(pair).programs["backward"]
    known = {id(n) for n in back.inputs}
    return Costs(LENGTHS, larger=1, function=1.0, comes=1.0, goes=1.0).total(back.outputs, known)


def arguments(pair: Pair) -> dict[str, np.ndarray]:
    from handgrad.deriving.arguments import size_of as parse

    rng = np.random.default_rng(5)
    found = {}
    for name, shape in pair.given.items():
        if name != "wrt":
            letters = [letter for letter in shape if isinstance(letter, str)]
            found[name] = rng.random([parse(letter).at(LENGTHS).constant for letter in letters])
            if bool in shape:
                found[name] = found[name] < 0.5
    for text in pair.assume:
        name = text[4:].split(",")[0]
        found[name] = found[name] / found[name].sum(-1, keepdims=True)
    return found


def counts_of_published(pair: Pair) -> Count:
    """The published backward, traced as any function is."""
    given = arguments(pair)
    y = pair.forward(**given)
    rng = np.random.default_rng(6)
    dy = tuple(rng.standard_normal(np.shape(v)) for v in y) if isinstance(y, tuple) else None
    dy = rng.standard_normal(np.shape(y)) if dy is None else dy
    kept = pair.kept(**given)
    names = list(inspect.signature(pair.backward).parameters)
    world = World()
    world.events = []
    inputs: list[Node] = []

    def node(name: str, value: Any) -> Tracer:
        value = np.asarray(value)
        inputs.append(
            Node("input", (), {}, tuple(map(Size.of, value.shape)), value.dtype.kind, value, name)
        )
        return Tracer(inputs[-1])

    with within(world):
        first = tuple(node("dy", v) for v in dy) if isinstance(dy, tuple) else node("dy", dy)
        values = dict(
            zip(
                names,
                [first, *(node(n, v) for n, v in zip(names[1:], kept, strict=True))],
                strict=True,
            )
        )
        result = trace_run(pair.backward, values)
        outputs = [unwrap(v) for v in (result if isinstance(result, tuple) else [result])]
    known = {id(n) for n in inputs}
    return Costs({}, larger=1, function=1.0, comes=1.0, goes=1.0).total(outputs, known)


def cheaper(one: Count, other: Count) -> bool:
    work = one.contractions + one.elements <= MOST * (other.contractions + other.elements)
    return work and one.kept <= MOST * other.kept


@pytest.mark.parametrize("name", PAIRS)
def test_derived_equals_published(name: str) -> None:
    pair = PAIRS[name]
    given = arguments(pair)
    d = derived(pair)
    y, cache = d.forward(**given)
    rng = np.random.default_rng(7)
    shapes = [np.shape(v) for v in y] if isinstance(y, tuple) else [np.shape(y)]
    dys = tuple(rng.standard_normal(shape) for shape in shapes)
    dy = dys if isinstance(y, tuple) else dys[0]
    want = pair.backward(dy, *pair.kept(**given))
    got = d.backward(dy, cache)
    for a, b in zip(
        got if isinstance(got, tuple) else (got,),
        want if isinstance(want, tuple) else (want,),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9)


def test_most_cost_no_more_than_published() -> None:
    dearer = [
        name
        for name, pair in PAIRS.items()
        if not cheaper(counts_of_derived(pair), counts_of_published(pair))
    ]
    assert len(PAIRS) - len(dearer) >= LEAST, dearer
