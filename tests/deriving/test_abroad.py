"""Forwards that papers and kernels publish are derived, and right at sizes nobody tried before."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, NamedTuple

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import HandgradError
from tests.rows import rows

SETS: Final = ("first", "second", "third", "fourth", "fifth", "sixth")
#: Lengths of the letters in the order of the alphabet, which no derivation is proved at.
LENGTHS: Final = (7, 5, 9, 4, 6, 8, 3, 11, 10)
#: The error of differences over the sum of what it is added up from.
NEAR: Final = 1e-5


class Case(NamedTuple):
    source: str
    forward: Callable[..., Any]
    given: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.source}.{self.forward.__name__}"


CASES: Final = [
    Case(source, *case)
    for source in SETS
    for case in import_module(f"tests.deriving.abroad.forwards.{source}").CASES.values()
]


def mapped(tree: Any, function: Callable[[Any], Any]) -> Any:
    if isinstance(tree, dict):
        return {name: mapped(each, function) for name, each in tree.items()}
    if isinstance(tree, list):
        return [mapped(each, function) for each in tree]
    return function(tree)


def flat(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [leaf for each in tree.values() for leaf in flat(each)]
    if isinstance(tree, list | tuple):
        return [leaf for each in tree for leaf in flat(each)]
    return [np.asarray(tree)]


def specs(given: Any) -> list[tuple[Any, ...]]:
    """The shapes in letters of all arrays."""
    if isinstance(given, tuple):
        return [given]
    return [
        spec
        for each in (given.values() if isinstance(given, dict) else given)
        for spec in specs(each)
    ]


def drawn(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    """Arrays of the case's shapes, at lengths of this test's own, in the forward's order."""
    sizes = [size for spec in specs(case.given) for size in spec if isinstance(size, str)]
    letters = sorted({letter for size in sizes for letter in re.findall(r"[A-Za-z]\w*", size)})
    lengths = dict(zip(letters, LENGTHS, strict=False))

    def array(spec: Any) -> Any:
        kind = float
        if spec and isinstance(spec[-1], type):
            *spec, kind = spec
        shape = tuple(each if isinstance(each, int) else eval(each, {}, lengths) for each in spec)
        if kind is bool:
            return rng.random(shape) < 0.6
        return rng.integers(0, 3, shape) if kind is int else rng.standard_normal(shape)

    names = inspect.signature(case.forward).parameters
    return {name: mapped(case.given[name], array) for name in names if name in case.given}


@rows("case", CASES)
def test_the_gradient_is_that_of_differences(case: Case) -> None:
    rng = np.random.default_rng(5)
    derivation = hg.derive(case.forward, **case.given)
    arguments = drawn(case, rng)
    expected = flat(case.forward(**mapped(arguments, np.copy)))
    y, cache = derivation.forward(**arguments)
    for actual, wanted in zip(flat(y), expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-9, atol=1e-11)

    dy = [rng.standard_normal(each.shape) for each in expected]
    gradients = flat(derivation.backward(dy[0] if len(dy) == 1 else tuple(dy), cache))
    floats = [each for each in flat(arguments) if each.dtype.kind == "f"]
    directions = [rng.standard_normal(each.shape) for each in floats]
    assert [each.shape for each in gradients] == [each.shape for each in floats]
    products = [g * u for g, u in zip(gradients, directions, strict=True)]
    found = sum(float(each.sum()) for each in products)
    scale = sum(float(np.abs(each).sum()) for each in products)

    def moved(h: float) -> float:
        steps = iter(directions)
        points = mapped(arguments, lambda x: x + h * next(steps) if x.dtype.kind == "f" else x)
        return sum(
            float((d * each).sum())
            for d, each in zip(dy, flat(case.forward(**points)), strict=True)
        )

    differences = [(moved(h) - moved(-h)) / (2 * h) for h in (1e-5, 1e-6, 1e-7)]
    assert min(abs(each - found) for each in differences) <= NEAR * scale


def test_a_forward_without_a_derivative_is_refused_with_its_line() -> None:
    def spread(x: Any) -> Any:
        return np.lib.stride_tricks.as_strided(x, (2, 2)).sum()

    with pytest.raises(HandgradError, match="as_strided"):
        hg.derive(spread, x=("N",))
