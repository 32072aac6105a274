"""The shapes written in the annotations of forward and backward are those of the arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest

from handgrad.ops import OPS
from tests.ops.cases import SMALL_CASES, Case, each

jaxtyping = pytest.importorskip("jaxtyping")

NAMES = {name: getattr(jaxtyping, name) for name in ("Bool", "Float", "Int")}


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations, evaluated with the names that handgrad imports for type checkers only."""
    return get_type_hints(function, localns=NAMES)


def arrays_among(hint: Any) -> tuple[Any, ...]:
    """The array types of a hint such as `Float[Array, "N C"] | None`."""
    if get_origin(hint) in (Union, UnionType):
        return tuple(part for option in get_args(hint) for part in arrays_among(option))
    is_array = inspect.isclass(hint) and issubclass(hint, jaxtyping.AbstractArray)
    return (hint,) if is_array else ()


def assert_fits(value: Any, hint: Any, what: str) -> None:
    """Check an array, or nested tuples of them, against the annotation."""
    if isinstance(value, tuple) and get_origin(hint) is tuple:
        for i, (inner, its_hint) in enumerate(zip(value, get_args(hint), strict=True)):
            assert_fits(inner, its_hint, f"{what}[{i}]")
        return
    allowed = arrays_among(hint)
    if allowed and hasattr(value, "shape"):
        assert any(isinstance(value, array) for array in allowed), (
            f"{what} has shape {value.shape} and type {value.dtype}, annotated as "
            f"{' or '.join(array.__name__ for array in allowed)}"
        )


def parts(hint: Any, number: int) -> tuple[Any, ...]:
    """The annotations of several results, or of a single one."""
    return get_args(hint) if number > 1 else (hint,)


@each([case for case in SMALL_CASES if not case.row.not_annotated])
def test_annotations_are_the_shapes(case: Case, on_engine: str) -> None:
    forward, backward = case.module.forward, case.module.backward
    arguments = case.arguments(case.arrays())
    y, cache = forward(*arguments.args, **arguments.kwargs)
    dy = case.random_like(y, "cotangent")
    gradients = tuple(case.backward(dy, cache).values())
    forward_hints, backward_hints = hints_of(forward), hints_of(backward)
    (dy_name, *_) = inspect.signature(backward).parameters
    with jaxtyping.jaxtyped("context"):
        for name, value in arguments.arguments.items():
            assert_fits(value, forward_hints[name], name)
        y_hint, _ = get_args(forward_hints["return"])
        assert_fits(y, y_hint, "y")
        assert_fits(dy, backward_hints[dy_name], "dy")
        hints = parts(backward_hints["return"], len(gradients))
        for name, gradient, hint in zip(case.gradient_names, gradients, hints, strict=True):
            assert_fits(gradient, hint, f"d{name}")


def test_every_op_has_an_annotated_case() -> None:
    assert {case.op for case in SMALL_CASES if not case.row.not_annotated} == set(OPS)
