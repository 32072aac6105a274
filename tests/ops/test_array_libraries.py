"""Every reference op on the arrays of other libraries, and traced by jax.jit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from handgrad.dispatch import engine
from tests.ops.cases import ORDINARY_CASES, Case, each, mapped, named_outputs
from tests.tolerances import assert_close

CASES = tuple(case for case in ORDINARY_CASES if not case.row.large)


def traced(case: Case) -> tuple[Any, ...]:
    """All that decides what jax.jit traces: settings, and of arrays which axes are none or one."""
    shapes = {name: array.shape for name, array in case.arrays().items()}
    axes = {name: tuple(min(size, 2) for size in shape) for name, shape in shapes.items()}
    return case.op, repr(sorted(case.options.items())), repr(axes)


#: JAX compiles every step of an op that is not under jax.jit; one case per op is enough for that.
ONE_PER_OP = tuple({case.op: case for case in reversed(CASES)}.values())
#: Compiling takes long, and other sizes of the same axes would only repeat it.
ONE_PER_TRACE = tuple({traced(case): case for case in reversed(CASES)}.values())


def expected_results(case: Case) -> tuple[Any, Any, dict[str, Any]]:
    """dy, y and the gradients of the reference on NumPy arrays."""
    with engine("reference"):
        y, cache = case.forward(case.arrays())
        dy = case.random_like(y, "cotangent")
        return dy, y, case.backward(dy, cache)


def assert_outputs_close(y: Any, expected_y: Any, kind: type = object) -> None:
    expected = named_outputs(expected_y)
    for (name, output), right in zip(named_outputs(y).items(), expected.values(), strict=True):
        assert isinstance(output, kind)
        assert_close(output, right, "other arrays", name)


def check(case: Case, convert: Any, kind: type) -> None:
    dy, expected_y, expected = expected_results(case)
    y, cache = case.forward({name: convert(array) for name, array in case.arrays().items()})
    assert_outputs_close(y, expected_y, kind)
    gradients = case.backward(mapped(convert, dy), cache)
    for name in case.differentiable:
        assert isinstance(gradients[name], kind)
        assert_close(gradients[name], expected[name], "other arrays", f"d{name}")


@each(CASES)
def test_array_api_strict(case: Case) -> None:
    strict = pytest.importorskip("array_api_strict")
    check(case, strict.asarray, type(strict.asarray(0.0)))


@each(CASES)
def test_torch(case: Case) -> None:
    torch = pytest.importorskip("torch")
    check(case, torch.asarray, torch.Tensor)


@pytest.fixture
def jax() -> Iterator[Any]:
    """JAX with float64, and with little time spent on optimising code that runs once."""
    module = pytest.importorskip("jax")
    settings = {"jax_enable_x64": True, "jax_disable_most_optimizations": True}
    before = {name: module.config.values[name] for name in settings}
    for name, value in settings.items():
        module.config.update(name, value)
    yield module
    for name, value in before.items():
        module.config.update(name, value)


@each(ONE_PER_OP)
def test_jax(case: Case, jax: Any) -> None:
    check(case, jax.numpy.asarray, jax.Array)


@each(ONE_PER_TRACE)
def test_jax_jit(case: Case, jax: Any) -> None:
    dy, expected_y, expected = expected_results(case)

    @jax.jit
    def step(arrays: Any, dy: Any) -> Any:
        y, cache = case.forward(arrays)
        return y, case.backward(dy, cache)

    y, gradients = step(case.arrays(), dy)
    assert_outputs_close(y, expected_y)
    for name in case.differentiable:
        assert_close(gradients[name], expected[name], "other arrays", f"d{name}")
