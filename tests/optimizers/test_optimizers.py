"""Every optimizer: PyTorch's numbers, one sweep or many, state, resuming and errors."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from handgrad import dispatch, optimizers
from handgrad.errors import ArgumentError, EngineError, HandgradError, ShapeError
from handgrad.layers import FlatArrays
from handgrad.optimizers import Adam, Momentum, Optimizer, base
from tests.optimizers.cases import CASES, Case, problem, torch_trajectory
from tests.tolerances import assert_close

GOLDEN = Path(__file__).parents[1] / "golden" / "optimizers.json"
KINDS = sorted({case.kind for case in CASES}, key=lambda kind: kind.__name__)

every_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


def _trajectory(optimizer: Optimizer) -> list[np.ndarray]:
    first, gradients = problem()
    parameters = FlatArrays.of({"weight": first})
    trajectory = []
    for gradient in gradients:
        optimizer.step(parameters, FlatArrays.of({"weight": gradient}))
        trajectory.append(parameters.buffer.copy())
    return trajectory


@every_case
def test_matches_the_golden_numbers(case: Case) -> None:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))["cases"][case.name]
    trajectory = _trajectory(case.make())
    for step, expected in golden.items():
        found = trajectory[int(step) - 1]
        assert_close(found, expected, "torch float64", f"step {step}")


@every_case
@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")
def test_matches_pytorch(case: Case) -> None:
    expected = torch_trajectory(case)
    assert_close(_trajectory(case.make()), expected, "torch float64")


@every_case
def test_update_is_pure_and_is_what_step_does(case: Case) -> None:
    first, gradients = problem()
    optimizer = case.make()
    settings = {"lr": optimizer.lr, **optimizer.hyperparameters}
    if optimizer.counts_steps:
        settings["step"] = 1
    arrays = [first, gradients[0], *(np.zeros(5) for _ in optimizer.slots)]
    for array in arrays:
        array.flags.writeable = False
    updated = case.kind.update(*arrays, **settings)
    parameters = {"weight": first.copy()}
    with dispatch.engine("reference"):
        optimizer.step(parameters, {"weight": gradients[0]})
    np.testing.assert_array_equal(parameters["weight"], updated[0])
    for slot, expected in zip(optimizer.slots, updated[1:], strict=True):
        np.testing.assert_array_equal(optimizer.state[f"{slot}.weight"], expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_kernel_gives_the_reference_s_numbers(
    kind: type[Optimizer], dtype: type[np.floating]
) -> None:
    if base.kernel_module(kind.name) is None:
        pytest.skip("this optimizer has no kernel here")
    found = {}
    for engine in ("kernels", "reference"):
        rng = np.random.default_rng(3)
        parameters = FlatArrays.of({"weight": rng.standard_normal(1237).astype(dtype)})
        optimizer = kind(weight_decay=0.1)
        for _ in range(3):
            gradients = FlatArrays.of({"weight": rng.standard_normal(1237).astype(dtype)})
            with dispatch.engine(engine):
                optimizer.step(parameters, gradients)
        found[engine] = [parameters.buffer, *optimizer.state.values()]
    for kernel, reference in zip(*found.values(), strict=True):
        assert_close(kernel, reference, np.dtype(dtype).name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_a_scale_is_that_of_the_gradients(kind: type[Optimizer], engine: str) -> None:
    rng = np.random.default_rng(4)
    first, gradient = rng.standard_normal((2, 1237))
    kept = gradient.copy()
    found = []
    for given, scale in ((gradient, 0.25), (0.25 * gradient, 1.0)):
        parameters = FlatArrays.of({"weight": first})
        optimizer = kind(weight_decay=0.1)
        with dispatch.engine(engine):
            optimizer.step(parameters, FlatArrays.of({"weight": given}), scale=scale)
        found.append(parameters.buffer)
    assert_close(*found, "float64")
    np.testing.assert_array_equal(gradient, kept)


def test_the_kernel_gets_flat_arrays_and_all_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    class Recorder:
        @staticmethod
        def update(*arrays: np.ndarray, **settings: float) -> None:
            assert [array.shape for array in arrays] == [(12,)] * 4
            assert settings == {**adam.hyperparameters, "lr": 0.5, "step": 1, "scale": 1.0}
            arrays[0][...] = 7

    monkeypatch.setattr(base, "kernel_module", lambda name: Recorder)
    adam = Adam()
    parameter = np.ones((3, 4), np.float32)
    adam.step({"weight": parameter}, {"weight": parameter.copy()}, 0.5)
    np.testing.assert_array_equal(parameter, np.full((3, 4), 7))


def test_kernels_asked_for_and_absent_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "kernel_module", lambda name: None)
    monkeypatch.setattr(base, "get_engine", lambda: "kernels")
    with pytest.raises(EngineError, match=r"optimizers\.adam: engine 'kernels' .* found no kernel"):
        Adam().step(_parameters(), _parameters())


def _parameters() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {"weight": (3, 4), "bias": (3,), "scale": ()}
    return {
        name: np.asarray(rng.standard_normal(shape), np.float32) for name, shape in shapes.items()
    }


@every_case
def test_one_sweep_equals_many(case: Case) -> None:
    gradients = {name: array * 0.5 for name, array in _parameters().items()}
    flat, plain = FlatArrays.of(_parameters()), _parameters()
    at_once, one_by_one = case.make(), case.make()
    for _ in range(3):
        at_once.step(flat, FlatArrays.of(gradients))
        one_by_one.step(plain, gradients)
    for name, array in plain.items():
        assert array.dtype == np.float32
        np.testing.assert_array_equal(flat[name], array)


@every_case
def test_a_saved_state_continues_with_the_same_bits(case: Case) -> None:
    gradients = FlatArrays.of({name: array * 0.5 for name, array in _parameters().items()})
    parameters = FlatArrays.of(_parameters())
    optimizer = case.make()
    for _ in range(2):
        optimizer.step(parameters, gradients)
    saved = {name: array.copy() for name, array in optimizer.state.items()}
    copy = FlatArrays.of(parameters)
    optimizer.step(parameters, gradients)

    resumed = case.make()
    resumed.load_state(dict(sorted(saved.items())))
    resumed.step(copy, gradients)
    np.testing.assert_array_equal(copy.buffer, parameters.buffer)
    assert {name: array.shape for name, array in resumed.state.items()} == {
        name: array.shape for name, array in saved.items()
    }


def test_state_holds_the_step_and_every_slot() -> None:
    adam = Adam()
    assert adam.state.keys() == {"step"}
    adam.step(_parameters(), _parameters())
    names = [f"{slot}.{name}" for slot in ("m", "v") for name in _parameters()]
    assert list(adam.state) == ["step", *names]
    assert int(adam.state["step"]) == 1


def test_state_before_the_first_step_loads() -> None:
    adam = Adam()
    adam.load_state(Adam().state)
    parameters = _parameters()
    adam.step(parameters, _parameters())
    assert adam.steps == 1


def test_another_learning_rate_for_one_step() -> None:
    first, gradients = problem()
    parameters = {"weight": first.copy()}
    optimizers.SGD(lr=1.0).step(parameters, {"weight": gradients[0]}, 0.25)
    np.testing.assert_array_equal(parameters["weight"], first - 0.25 * gradients[0])


def test_the_state_follows_when_the_order_of_the_parameters_changes() -> None:
    flat, gradients = FlatArrays.of(_parameters()), FlatArrays.of(_parameters())
    turned, turned_gradients = (dict(reversed(_parameters().items())) for _ in range(2))
    adam, expected = Adam(), Adam()
    for _ in range(2):
        adam.step(flat, gradients)
        adam.step(turned, turned_gradients)
        expected.step(FlatArrays.of(flat), gradients)
        expected.step(FlatArrays.of(flat), gradients)
    for name, array in expected.state.items():
        np.testing.assert_array_equal(adam.state[name], array)


def test_non_contiguous_parameters_are_updated_in_place() -> None:
    parameter = np.ones((4, 3), np.float32)
    optimizers.SGD(lr=1.0).step({"weight": parameter.T}, {"weight": np.ones((3, 4), np.float32)})
    np.testing.assert_array_equal(parameter, np.zeros((4, 3)))


def test_averaged_momentum_is_an_exponential_average() -> None:
    parameters = {"weight": np.zeros(1)}
    momentum = Momentum(lr=1.0, momentum=0.5)
    for gradient in (2.0, 4.0):
        momentum.step(parameters, {"weight": np.array([gradient])})
    np.testing.assert_array_equal(momentum.state["velocity.weight"], [0.5 * 1.0 + 0.5 * 4.0])
    np.testing.assert_array_equal(parameters["weight"], [-1.0 - 2.5])


def test_gradients_that_do_not_fit_are_named() -> None:
    parameters = _parameters()
    gradients = _parameters()
    with pytest.raises(ArgumentError, match="Adam: gradients: 'bias' is missing"):
        Adam().step(parameters, {"weight": gradients["weight"]})
    with pytest.raises(ArgumentError, match="Adam: gradients: 'gamma' is unknown"):
        Adam().step(parameters, {**gradients, "gamma": np.ones(3)})
    with pytest.raises(ShapeError, match=r"Adam: gradients: 'bias' has shape \(4,\)"):
        Adam().step(parameters, {**gradients, "bias": np.ones(4)})


def test_a_failed_step_does_not_count() -> None:
    adam = Adam()
    with pytest.raises(ArgumentError):
        adam.step(_parameters(), {})
    assert adam.steps == 0


def test_other_parameters_than_the_state_s_are_named() -> None:
    adam = Adam()
    adam.step(_parameters(), _parameters())
    others = {**_parameters(), "gamma": np.ones(3, np.float32)}
    with pytest.raises(ArgumentError, match="Adam: parameters: 'gamma' is unknown"):
        adam.step(others, others)


def test_a_state_of_another_optimizer_is_refused() -> None:
    momentum = Momentum()
    momentum.step(_parameters(), _parameters())
    with pytest.raises(ArgumentError, match=r"'velocity\.weight' is unknown; allowed: step, m\.<"):
        Adam().load_state(momentum.state)
    with pytest.raises(ArgumentError, match="'step' is missing"):
        Adam().load_state({})


@pytest.mark.parametrize("kind", KINDS)
def test_negative_rates_are_refused(kind: type[Optimizer]) -> None:
    with pytest.raises(ArgumentError, match=r"lr is -1\.0; allowed: 0 or more"):
        kind(lr=-1.0)
    with pytest.raises(ArgumentError, match="weight_decay is nan; allowed: 0 or more"):
        kind(weight_decay=float("nan"))


def test_averaging_rates_are_checked() -> None:
    with pytest.raises(
        ArgumentError, match=r"Adam: beta2 is 1\.0; allowed: 0 or more, less than 1"
    ):
        Adam(betas=(0.9, 1.0))
    with pytest.raises(ArgumentError, match="form is 'heavy'; allowed: averaged, classical"):
        Momentum(form="heavy")


NUMBERS = np.ones((3, 4), np.float32)
WRONG = (
    None,
    "a",
    [1.0],
    1j,
    object(),
    NUMBERS.astype(complex),
    NUMBERS.astype(object),
    NUMBERS[0],
)
NO_RATE = ("a", [1.0], 1j, object(), NUMBERS, True, float("nan"), 2**2000, -1.0)


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_wrong_is_one_sentence(kind: type[Optimizer], engine: str) -> None:
    with dispatch.engine(engine):
        for rate in NO_RATE:
            with pytest.raises(HandgradError, match="; allowed: "):
                kind(lr=rate)
            with pytest.raises(HandgradError, match="; allowed: "):
                kind(lr=0.1).step({"a": NUMBERS.copy()}, {"a": NUMBERS}, lr=rate)
        read_only = NUMBERS.copy()
        read_only.flags.writeable = False
        for array in (*WRONG, read_only):
            with pytest.raises(HandgradError, match="; allowed: "):
                kind(lr=0.1).step({"a": array}, {"a": NUMBERS})
        for array in WRONG:
            with pytest.raises(HandgradError, match="; allowed: "):
                kind(lr=0.1).step({"a": NUMBERS.copy()}, {"a": array})
        for mapping in (None, NUMBERS, [NUMBERS]):
            with pytest.raises(HandgradError, match="; allowed: "):
                kind(lr=0.1).step({"a": NUMBERS.copy()}, mapping)
