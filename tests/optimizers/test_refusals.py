"""Optimizers refuse invalid input in one sentence, and nothing has moved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handgrad.errors import ArgumentError
from handgrad.optimizers import SGD, Adam, AdamW, Momentum, Nesterov, RMSProp, global_norm
from tests.rows import rows

ALL = (SGD, Momentum, Nesterov, RMSProp, Adam, AdamW)
NO_NUMBER: tuple[Any, ...] = (
    *(None, "0.1", b"x", (), (0.1,), [0.1], {}, True, 1j, object(), np.array([0.1, 0.2])),
    *(np.array(0.1), np.str_("x"), np.datetime64("2020-01-01"), slice(None), 10**400),
)
BROKEN = (float("nan"), float("inf"), np.float32("nan"))


def sentence(error: pytest.ExceptionInfo[ArgumentError]) -> str:
    text = str(error.value)
    assert "\n" not in text
    assert len(text) < 300
    assert "; allowed: " in text
    return text


@rows("kind", ALL)
@rows("wrong", [*NO_NUMBER, -1, *BROKEN], ids=lambda value: type(value).__name__)
@rows("name", ["lr", "weight_decay"])
def test_a_hyperparameter_is_a_number(kind: Any, name: str, wrong: Any) -> None:
    with pytest.raises(ArgumentError) as error:
        kind(**{"lr": 0.1, name: wrong})
    assert name in sentence(error)


@pytest.mark.parametrize("kind", [Adam, AdamW])
@pytest.mark.parametrize(
    "betas", [None, 0.9, (), (0.9,), (0.9, 0.9, 0.9), ("a", "b"), (None, 0.9), {}, np.ones(2)]
)
def test_betas_are_two_numbers(kind: Any, betas: Any) -> None:
    with pytest.raises(ArgumentError) as error:
        kind(betas=betas)
    assert "beta" in sentence(error)


def test_a_number_of_numpy_is_a_number() -> None:
    parameters = {"w": np.ones(2, np.float32)}
    optimizer = Adam(np.float32(0.5), betas=(np.float64(0.5), 0), eps=np.float32(1))  # type: ignore[arg-type]
    optimizer.step(parameters, {"w": np.ones(2, np.float32)}, scale=np.float32(1))  # type: ignore[arg-type]
    np.testing.assert_allclose(parameters["w"], 0.75)


@rows("kind", ALL)
@rows("wrong", NO_NUMBER, ids=lambda value: type(value).__name__)
def test_a_step_takes_numbers(kind: Any, wrong: Any) -> None:
    parameters = {"w": np.ones(3, np.float32)}
    gradients = {"w": np.ones(3, np.float32)}
    for name in ("lr", "scale"):
        if wrong is None and name == "lr":  # the optimizer's own
            continue
        with pytest.raises(ArgumentError) as error:
            kind(0.1).step(parameters, gradients, **{name: wrong})
        assert name in sentence(error)
    np.testing.assert_array_equal(parameters["w"], 1)


@rows("kind", ALL)
@rows(
    "wrong",
    [
        None,
        1.0,
        np.float32(1.0),
        [1.0, 1.0, 1.0],
        np.ones(3, int),
        np.ones(3, complex),
        np.ones(3, object),
        np.broadcast_to(np.float32(1), 3),
        np.ma.masked_array(np.ones(3), [0, 0, 1]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_parameter_is_an_array_that_can_be_written_to(kind: Any, wrong: Any) -> None:
    """A number of NumPy was taken, and moved a copy of it."""
    fine = np.ones(3, np.float32)
    with pytest.raises(ArgumentError, match="parameters: 'w' is "):
        kind(0.1).step({"a": fine, "w": wrong}, {"a": np.ones(3), "w": np.ones(np.shape(wrong))})
    np.testing.assert_array_equal(fine, 1)


@rows("kind", ALL)
@rows("wrong", [None, 3, "w", [("w", 1)], np.ones(3)], ids=str)
def test_parameters_and_gradients_are_mappings(kind: Any, wrong: Any) -> None:
    right = {"w": np.ones(3, np.float32)}
    for given in ((wrong, right), (right, wrong)):
        with pytest.raises(ArgumentError, match="allowed: a mapping of names to arrays"):
            kind(0.1).step(*given)


@pytest.mark.parametrize("kind", ALL)
def test_arrays_that_no_kernel_reads_move_as_others_do(kind: Any) -> None:
    """Big-endian and misaligned arrays are swept by the reference."""
    values = np.random.default_rng(0).standard_normal(5).astype(np.float32)
    plain = {"w": values.copy()}
    kind(0.1).step(plain, {"w": values})
    memory = np.empty(21, np.uint8)
    misaligned = memory[1:].view(np.float32)
    misaligned[...] = values
    for odd in (values.astype(">f4"), misaligned):
        moved = {"w": values.copy()}
        kind(0.1).step(moved, {"w": odd})
        np.testing.assert_allclose(moved["w"], plain["w"], rtol=1e-6)
        kind(0.1).step({"w": odd}, {"w": values})
        np.testing.assert_allclose(odd, plain["w"], rtol=1e-6)


def test_the_norm_of_arrays_that_no_kernel_reads() -> None:
    assert global_norm({"w": np.array([3.0, 4.0], ">f4")}) == 5.0


@pytest.mark.parametrize("step", [None, "1", -1, 1.5, np.nan, [1, 2], 2**63, True, (), object()])
def test_a_state_counts_steps(step: Any) -> None:
    optimizer = Momentum(0.1)
    optimizer.step({"w": np.ones(2)}, {"w": np.ones(2)})
    before = optimizer.state["velocity.w"].copy()
    with pytest.raises(ArgumentError):
        optimizer.load_state({"step": step, "velocity.w": np.zeros(2)})
    assert optimizer.steps == 1
    np.testing.assert_array_equal(optimizer.state["velocity.w"], before)


@pytest.mark.parametrize("state", [None, [], {}, {"step": 1, 3: 4}, {"step": 1, "velocity.w": "x"}])
def test_a_state_is_what_state_returned(state: Any) -> None:
    with pytest.raises(ArgumentError):
        Momentum(0.1).load_state(state)
