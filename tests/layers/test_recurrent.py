"""Recurrent layers: PyTorch's numbers and names, ragged batches, states, windows of a sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pytest

import handgrad
from handgrad.errors import ArgumentError, ShapeError
from handgrad.layers import GRU, LSTM, RNN, Dense, LastStep, LeakyRNN, Sequential
from handgrad.layers.recurrent import BIAS_MODES, Recurrent
from handgrad.losses import CrossEntropy
from handgrad.training.step import TrainingStep
from tests.ops.cases import leaves, mapped
from tests.rows import rows
from tests.tolerances import assert_close

F64 = np.float64
FEATURES, HIDDEN = 4, 5

Make = Callable[..., Recurrent]


def leaky(*sizes: int, **settings: Any) -> LeakyRNN:
    return LeakyRNN(*sizes, alpha=[0.1, 0.3, 0.5, 0.7, 0.9], **settings)


KINDS: dict[str, Make] = {"RNN": RNN, "LeakyRNN": leaky, "LSTM": LSTM, "GRU": GRU}
SETTINGS: dict[str, dict[str, Any]] = {
    "one layer": {},
    "two layers, both directions": {"num_layers": 2, "bidirectional": True},
    "input bias": {"num_layers": 2, "bias": "input"},
    "without bias": {"bidirectional": True, "bias": "none"},
}
each_kind = pytest.mark.parametrize("kind", KINDS)
each_setting = pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)


def make(kind: str, **settings: Any) -> Recurrent:
    return KINDS[kind](FEATURES, HIDDEN, rng=np.random.default_rng(3), dtype=F64, **settings)


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def random_like(seed: int, nested: Any) -> Any:
    rng = np.random.default_rng(seed)
    return mapped(lambda array: rng.standard_normal(array.shape), nested)


def some_state(layer: Recurrent, batch: int, seed: int = 11) -> Any:
    (_, state), _ = layer.forward(normal(0, batch, 1, FEATURES))
    return random_like(seed, state)


def add(one: Any, other: Any) -> Any:
    pairs = zip(leaves(one), leaves(other), strict=True)
    total = iter([a + b for a, b in pairs])
    return mapped(lambda _: next(total), one)


def dot(one: Any, other: Any) -> float:
    return sum(float(np.sum(a * b)) for a, b in zip(leaves(one), leaves(other), strict=True))


# PyTorch

IN_TORCH = {
    "LSTM": ("LSTM", {}),
    "LSTM without bias": ("LSTM", {"bias": False}),
    "LSTM both directions": ("LSTM", {"bidirectional": True}),
    "LSTM 3 layers": ("LSTM", {"num_layers": 3}),
    "LSTM projection": ("LSTM", {"proj_size": 2}),
    "LSTM all at once": ("LSTM", {"num_layers": 3, "bidirectional": True, "proj_size": 3}),
    "GRU": ("GRU", {}),
    "GRU 3 layers, both directions": ("GRU", {"num_layers": 3, "bidirectional": True}),
    "RNN": ("RNN", {}),
    "RNN relu": ("RNN", {"nonlinearity": "relu"}),
    "RNN 3 layers, both directions": ("RNN", {"num_layers": 3, "bidirectional": True}),
    **{
        f"{kind}, bias {mode}": (kind, {"num_layers": 2, "bidirectional": True, "bias": mode})
        for kind in ("RNN", "GRU", "LSTM")
        for mode in BIAS_MODES
    },
}


@rows(("kind", "settings"), IN_TORCH.values(), ids=IN_TORCH)
@rows("lengths", [None, [3, 6, 1, 4]], ids=["full", "ragged"])
@rows("with_state", [False, True], ids=["from 0", "from a state"])
def test_equals_pytorch(
    kind: str, settings: dict[str, Any], lengths: list[int] | None, with_state: bool
) -> None:
    torch = pytest.importorskip("torch")
    layer = make(kind, **settings)
    # PyTorch has no mode of a single bias: there the other one is 0.
    in_torch = {**settings, "bias": settings.get("bias", True) is not False}
    module = getattr(torch.nn, kind)(
        FEATURES, HIDDEN, batch_first=True, dtype=torch.float64, **in_torch
    )
    weights = {name: array.detach().numpy() for name, array in module.state_dict().items()}
    for name in weights.keys() - layer.parameters.keys():
        weights.pop(name).fill(0.0)
    layer.update_parameters(weights)
    assert list(layer.parameters) == list(weights)

    x = normal(1, 4, 6, FEATURES)
    state = some_state(layer, 4) if with_state else None
    (y, final), cache = layer.forward(x, state, lengths)
    dy, dfinal = random_like(2, (y, final))
    (dx, dstate), gradients = layer.backward((dy, dfinal), cache)

    given = (x, state) if with_state else (x,)
    tensors = mapped(lambda array: torch.tensor(array, requires_grad=True), given)
    sequences = tensors[0]
    if lengths is not None:
        pack = torch.nn.utils.rnn.pack_padded_sequence
        sequences = pack(sequences, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    outputs, their_final = module(sequences, *tensors[1:])
    if lengths is not None:
        pad = torch.nn.utils.rnn.pad_packed_sequence
        outputs, _ = pad(outputs, batch_first=True, total_length=6)
    for found, expected in zip(leaves((y, final)), leaves((outputs, their_final)), strict=True):
        assert_close(found, expected.detach(), "torch float64", "outputs")

    learned = dict(module.named_parameters())
    inputs = [*leaves(tensors), *(learned[name] for name in layer.parameters)]
    cotangents = [torch.tensor(array) for array in leaves((dy, dfinal))]
    expected = torch.autograd.grad([*leaves((outputs, their_final))], inputs, cotangents)
    found = [dx, *leaves(dstate if with_state else ()), *gradients.values()]
    for ours, theirs in zip(found, expected, strict=True):
        assert_close(ours, theirs, "torch float64", "gradients")


def test_names_and_shapes_are_pytorch_s() -> None:
    layer = LSTM(
        3, 4, 2, rng=np.random.default_rng(0), bidirectional=True, proj_size=2, dtype=np.float32
    )
    assert {name: array.shape for name, array in layer.parameters.items()} == {
        "weight_ih_l0": (16, 3),
        "weight_hh_l0": (16, 2),
        "bias_ih_l0": (16,),
        "bias_hh_l0": (16,),
        "weight_hr_l0": (2, 4),
        "weight_ih_l0_reverse": (16, 3),
        "weight_hh_l0_reverse": (16, 2),
        "bias_ih_l0_reverse": (16,),
        "bias_hh_l0_reverse": (16,),
        "weight_hr_l0_reverse": (2, 4),
        "weight_ih_l1": (16, 4),
        "weight_hh_l1": (16, 2),
        "bias_ih_l1": (16,),
        "bias_hh_l1": (16,),
        "weight_hr_l1": (2, 4),
        "weight_ih_l1_reverse": (16, 4),
        "weight_hh_l1_reverse": (16, 2),
        "bias_ih_l1_reverse": (16,),
        "bias_hh_l1_reverse": (16,),
        "weight_hr_l1_reverse": (2, 4),
    }


def test_parameters_take_the_bytes_of_the_cudnn_descriptor() -> None:
    layer = RNN(512, 512, 2, rng=np.random.default_rng(0))
    assert layer.parameter_bytes == 4_202_496
    found = {
        mode: RNN(512, 512, 2, rng=np.random.default_rng(0), bias=mode).parameter_bytes
        for mode in BIAS_MODES
    }
    of_one_bias = 4 * 2 * 512
    assert found == {
        "none": 4_202_496 - 2 * of_one_bias,
        "input": 4_202_496 - of_one_bias,
        "recurrent": 4_202_496 - of_one_bias,
        "double": 4_202_496,
    }


# Gradients


@each_kind
@each_setting
@pytest.mark.parametrize("lengths", [None, [5, 0, 2]], ids=["full", "ragged"])
def test_gradients_of_inputs_states_and_weights(
    kind: str, settings: dict[str, Any], lengths: list[int] | None
) -> None:
    """Along one random direction of everything; outputs and final states have a cotangent."""
    layer = make(kind, **settings)
    x, state = normal(1, 3, 5, FEATURES), some_state(layer, 3)
    outputs, cache = layer.forward(x, state, lengths)
    cotangent = random_like(2, outputs)
    dinputs, gradients = layer.backward(cotangent, cache)

    first = {name: array.copy() for name, array in layer.parameters.items()}
    directions = {name: normal(i, *array.shape) for i, (name, array) in enumerate(first.items())}
    moves = random_like(4, (x, state))

    def value(step: float) -> float:
        layer.update_parameters({name: first[name] + step * directions[name] for name in first})
        moved = add((x, state), mapped(lambda array: step * array, moves))
        return dot(layer.forward(*moved, lengths)[0], cotangent)

    expected = (value(1e-5) - value(-1e-5)) / 2e-5
    found = dot(dinputs, moves) + sum(dot(gradients[name], directions[name]) for name in first)
    assert_close(found, expected, "finite differences")


@each_kind
def test_without_a_state_there_is_none_to_differentiate(kind: str) -> None:
    layer = make(kind, num_layers=2)
    (y, _), cache = layer.forward(normal(1, 3, 5, FEATURES))
    (_, dstate0), _ = layer.backward((y, None), cache)
    assert dstate0 is None


def test_a_part_of_the_state_may_have_no_gradient() -> None:
    layer = LSTM(FEATURES, HIDDEN, rng=np.random.default_rng(3), dtype=F64)
    (y, (h, c)), cache = layer.forward(normal(1, 3, 5, FEATURES))
    zeros = np.zeros_like
    (dx, _), _ = layer.backward((y, (None, c)), cache)
    (expected, _), _ = layer.backward((y, (zeros(h), c)), cache)
    np.testing.assert_array_equal(dx, expected)


def test_a_part_of_the_initial_state_may_be_missing() -> None:
    """It starts from 0, and has no gradient."""
    layer = make("LSTM", num_layers=2)
    x, (h, c) = normal(1, 3, 5, FEATURES), some_state(layer, 3)
    for state, whole in (((h, None), (h, np.zeros_like(c))), ((None, c), (np.zeros_like(h), c))):
        (y, final), cache = layer.forward(x, state)
        (expected, _), whole_cache = layer.forward(x, whole)
        np.testing.assert_array_equal(y, expected)
        (_, dstate0), _ = layer.backward((y, final), cache)
        (_, dwhole), _ = layer.backward((y, final), whole_cache)
        for part, ours, right in zip(state, dstate0, dwhole, strict=True):
            if part is None:
                assert ours is None
            else:
                np.testing.assert_array_equal(ours, right)


# Learned initial states


def learning(kind: str, **settings: Any) -> Recurrent:
    """A layer whose learned states are far from 0, at which they start."""
    layer = make(kind, learn_h0=True, **settings)
    for i, name in enumerate(layer.learned_states):
        getattr(layer, name)[...] = normal(20 + i, *getattr(layer, name).shape)
    return layer


def expanded(layer: Recurrent, batch: int) -> Any:
    """The learned states as a state that is given."""
    learned = [np.repeat(getattr(layer, name)[:, None], batch, 1) for name in layer.learned_states]
    return tuple(learned) if len(learned) > 1 else learned[0]


@each_kind
def test_learned_states_start_at_0_and_come_last(kind: str) -> None:
    layer = make(kind, num_layers=2, bidirectional=True, learn_h0=True)
    plain = make(kind, num_layers=2, bidirectional=True)
    names = ["h0", "c0"] if kind == "LSTM" else ["h0"]
    assert list(layer.parameters) == [*plain.parameters, *names]
    for name in names:
        np.testing.assert_array_equal(layer.parameters[name], np.zeros((4, HIDDEN)))
    x = normal(1, 3, 5, FEATURES)
    np.testing.assert_array_equal(layer.forward(x)[0][0], plain.forward(x)[0][0])
    assert layer.flops((5, FEATURES)) == plain.flops((5, FEATURES))
    assert layer.parameter_bytes == plain.parameter_bytes + len(names) * 4 * HIDDEN * 8
    assert make(kind).learned_states == ()


def test_a_projection_shortens_what_is_learned_of_h() -> None:
    layer = make("LSTM", proj_size=2, learn_h0=True)
    assert (layer.parameters["h0"].shape, layer.parameters["c0"].shape) == ((1, 2), (1, HIDDEN))


@each_kind
@each_setting
@pytest.mark.parametrize("lengths", [None, [5, 0, 2]], ids=["full", "ragged"])
@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_a_learned_state_is_one_for_the_whole_batch(
    kind: str, settings: dict[str, Any], lengths: list[int] | None, engine: str
) -> None:
    """As where it is given for every sequence, whose gradients are summed."""
    layer = learning(kind, **settings)
    x = normal(1, 3, 5, FEATURES)
    with handgrad.engine(engine):
        (y, final), cache = layer.forward(x, lengths=lengths)
        given, given_cache = layer.forward(x, expanded(layer, 3), lengths)
        for ours, expected in zip(leaves((y, final)), leaves(given), strict=True):
            np.testing.assert_array_equal(ours, expected)
        cotangent = random_like(2, (y, final))
        (dx, none), gradients = layer.backward(cotangent, cache)
        (given_dx, dstate0), of_given = layer.backward(cotangent, given_cache)
    assert none is None
    np.testing.assert_array_equal(dx, given_dx)
    for name, dpart in zip(layer.learned_states, leaves(dstate0), strict=True):
        assert_close(gradients[name], dpart.sum(axis=1), "float64", name)
        np.testing.assert_array_equal(of_given[name], np.zeros_like(gradients[name]))
    for name in gradients.keys() - {*layer.learned_states}:
        np.testing.assert_array_equal(gradients[name], of_given[name])


@each_kind
@each_setting
@pytest.mark.parametrize("lengths", [None, [5, 0, 2]], ids=["full", "ragged"])
def test_gradients_of_learned_states_match_differences(
    kind: str, settings: dict[str, Any], lengths: list[int] | None
) -> None:
    layer = learning(kind, **settings)
    x = normal(1, 3, 5, FEATURES)
    outputs, cache = layer.forward(x, lengths=lengths)
    cotangent = random_like(2, outputs)
    _, gradients = layer.backward(cotangent, cache)
    first = {name: array.copy() for name, array in layer.parameters.items()}
    directions = {name: normal(i, *array.shape) for i, (name, array) in enumerate(first.items())}

    def value(step: float, names: Iterable[str]) -> float:
        moved = {name: first[name] + step * directions[name] for name in names}
        layer.update_parameters({**first, **moved})
        return dot(layer.forward(x, lengths=lengths)[0], cotangent)

    for names in (layer.learned_states, tuple(first)):
        expected = (value(1e-5, names) - value(-1e-5, names)) / 2e-5
        found = sum(dot(gradients[name], directions[name]) for name in names)
        assert_close(found, expected, "finite differences")


def test_each_part_of_a_state_is_given_or_learned() -> None:
    layer = learning("LSTM", num_layers=2)
    x, (h, _) = normal(1, 3, 5, FEATURES), some_state(layer, 3)
    (y, final), cache = layer.forward(x, (h, None))
    (expected, _), whole = layer.forward(x, (h, expanded(layer, 3)[1]))
    np.testing.assert_array_equal(y, expected)
    (_, (dh0, dc0)), gradients = layer.backward((y, final), cache)
    (_, (right_dh0, right_dc0)), _ = layer.backward((y, final), whole)
    np.testing.assert_array_equal(dh0, right_dh0)
    assert dc0 is None
    np.testing.assert_array_equal(gradients["h0"], np.zeros((2, HIDDEN)))
    assert_close(gradients["c0"], right_dc0.sum(axis=1), "float64", "c0")


@each_kind
@pytest.mark.parametrize("with_state", [False, True], ids=["learned", "given"])
def test_gradients_of_learned_states_go_where_they_are_sent(kind: str, with_state: bool) -> None:
    layer = learning(kind, num_layers=2, bidirectional=True)
    x = normal(1, 3, 5, FEATURES)
    (y, final), cache = layer.forward(x, some_state(layer, 3) if with_state else None)
    _, expected = layer.backward((y, final), cache)
    flat = layer.bind().zeros_like()
    flat.buffer[...] = np.nan
    (no_dx, _), found = layer.backward((y, final), cache, gradients=flat, input_gradient=False)
    assert found is flat
    assert no_dx is None
    for name, array in expected.items():
        np.testing.assert_array_equal(flat[name], array)


def test_an_empty_batch_moves_no_learned_state() -> None:
    layer = learning("LSTM")
    outputs, cache = layer.forward(np.zeros((0, 5, FEATURES)))
    _, gradients = layer.backward(outputs, cache)
    for name in layer.learned_states:
        np.testing.assert_array_equal(gradients[name], np.zeros((1, HIDDEN)))


def test_a_training_step_has_the_gradients_of_learned_states() -> None:
    """In the same buffers for batch after batch, also of another size."""
    rng = np.random.default_rng(0)
    lstm = LSTM(FEATURES, HIDDEN, rng=rng, learn_h0=True)
    model = Sequential(lstm, LastStep(), Dense(HIDDEN, 3, rng=rng))
    loss = CrossEntropy()
    found = model.bind().zeros_like()
    step = TrainingStep(model, loss, found)
    for seed, batch in enumerate((6, 6, 4, 6)):
        x, target = normal(seed, batch, 4, FEATURES).astype(np.float32), np.arange(batch) % 3
        found.buffer[...] = np.nan
        step((x,), target)
        scores, cache = model.forward(x)
        _, loss_cache = loss.forward(scores, target)
        _, expected = model.backward(loss.backward(loss_cache), cache)
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array)
        assert np.any(found["0.h0"])


def test_learned_states_go_to_a_file_and_back() -> None:
    layer, other = learning("LSTM", num_layers=2), make("LSTM", num_layers=2, learn_h0=True)
    other.update_parameters(layer.parameters)
    x = normal(1, 3, 5, FEATURES)
    np.testing.assert_array_equal(other.forward(x)[0][0], layer.forward(x)[0][0])
    without = {name: array for name, array in layer.parameters.items() if name != "c0"}
    with pytest.raises(ArgumentError, match="'c0' is missing"):
        other.update_parameters(without)


# Ragged batches


def alone(state: Any, n: int) -> Any:
    return mapped(lambda array: array[:, n : n + 1], state)


@each_kind
@each_setting
def test_a_ragged_batch_equals_every_sequence_alone(kind: str, settings: dict[str, Any]) -> None:
    """Outputs, final states and all gradients; what stands in the padding has no influence."""
    layer = make(kind, **settings)
    lengths = [4, 6, 1, 3]
    x, state = normal(1, 4, 6, FEATURES), some_state(layer, 4)
    (y, final), cache = layer.forward(x, state, lengths)
    dy, dfinal = random_like(2, (y, final))
    dy_before = dy.copy()
    for n, length in enumerate(lengths):
        x[n, length:] = dy[n, length:] = np.nan
    (y, final), cache = layer.forward(x, state, lengths)
    (dx, dstate), gradients = layer.backward((dy, dfinal), cache)

    sums = {name: np.zeros_like(array) for name, array in gradients.items()}
    for n, length in enumerate(lengths):
        own_x, own_dy = x[n : n + 1, :length], dy_before[n : n + 1, :length]
        (own_y, own_final), own_cache = layer.forward(own_x, alone(state, n))
        (own_dx, own_dstate), own = layer.backward((own_dy, alone(dfinal, n)), own_cache)
        for name in sums:
            sums[name] += own[name]
        found = (y[n : n + 1, :length], alone(final, n), dx[n : n + 1, :length], alone(dstate, n))
        right = (own_y, own_final, own_dx, own_dstate)
        for ours, theirs in zip(leaves(found), leaves(right), strict=True):
            assert_close(ours, theirs, "float64", f"sequence {n}")
        np.testing.assert_array_equal(y[n, length:], 0)
        np.testing.assert_array_equal(dx[n, length:], 0)
    for name, array in gradients.items():
        assert_close(array, sums[name], "float64", name)


@each_kind
def test_a_sequence_of_length_0_keeps_its_state(kind: str) -> None:
    layer = make(kind, bidirectional=True)
    x, state = normal(1, 2, 3, FEATURES), some_state(layer, 2)
    (y, final), cache = layer.forward(x, state, np.array([0, 0]))
    np.testing.assert_array_equal(y, np.zeros((2, 3, 2 * HIDDEN)))
    for ours, given in zip(leaves(final), leaves(state), strict=True):
        np.testing.assert_array_equal(ours, given)
    dfinal = random_like(2, final)
    (dx, dstate), gradients = layer.backward((normal(3, *y.shape), dfinal), cache)
    for ours, given in zip(leaves(dstate), leaves(dfinal), strict=True):
        np.testing.assert_array_equal(ours, given)
    assert not any(np.any(array) for array in (dx, *gradients.values()))


# Windows of a long sequence


@each_kind
def test_windows_that_pass_the_gradient_on_equal_the_whole(kind: str) -> None:
    layer = make(kind, num_layers=2)
    x, state = normal(1, 3, 7, FEATURES), some_state(layer, 3)
    lengths = np.array([7, 2, 5])
    (y, final), cache = layer.forward(x, state, lengths)
    dy, dfinal = random_like(2, (y, final))
    (dx, dstate), gradients = layer.backward((dy, dfinal), cache)

    caches, running = [], state
    for start in range(0, 7, 3):
        own_lengths = np.clip(lengths - start, 0, 3)
        (own_y, running), own_cache = layer.forward(x[:, start : start + 3], running, own_lengths)
        assert_close(own_y, y[:, start : start + 3], "float64", "y")
        caches.append((start, own_cache))
    sums = {name: np.zeros_like(array) for name, array in gradients.items()}
    drunning = dfinal
    for start, own_cache in reversed(caches):
        own_dy = dy[:, start : start + 3]
        (own_dx, drunning), own = layer.backward((own_dy, drunning), own_cache)
        assert_close(own_dx, dx[:, start : start + 3], "float64", "dx")
        for name in sums:
            sums[name] += own[name]
    for ours, theirs in zip(leaves((running, drunning)), leaves((final, dstate)), strict=True):
        assert_close(ours, theirs, "float64", "state")
    for name in sums:
        assert_close(sums[name], gradients[name], "float64", name)


@each_kind
def test_truncated_backpropagation_cuts_the_gradient_between_windows(kind: str) -> None:
    """With dstate None the state of the window before is a constant: a gradient by differences."""
    layer = make(kind)
    x = normal(1, 2, 6, FEATURES)
    dy = normal(2, 2, 6, HIDDEN)
    first = {name: array.copy() for name, array in layer.parameters.items()}
    directions = {name: normal(i, *array.shape) for i, (name, array) in enumerate(first.items())}
    (_, before), _ = layer.forward(x[:, :3])

    def value(step: float) -> float:
        layer.update_parameters({name: first[name] + step * directions[name] for name in first})
        outputs = (layer.forward(x[:, :3])[0][0], layer.forward(x[:, 3:], before)[0][0])
        return dot(outputs, (dy[:, :3], dy[:, 3:]))

    expected = (value(1e-5) - value(-1e-5)) / 2e-5
    layer.update_parameters(first)
    state, total = None, dict.fromkeys(first, 0.0)
    for start in (0, 3):
        (_, state), cache = layer.forward(x[:, start : start + 3], state)
        _, gradients = layer.backward((dy[:, start : start + 3], None), cache)
        total = {name: total[name] + gradients[name] for name in first}
    found = sum(float(np.sum(total[name] * directions[name])) for name in first)
    assert_close(found, expected, "finite differences")


# Settings


def test_dropout_is_between_layers_and_in_training_only() -> None:
    layer = make("GRU", num_layers=2, dropout=0.5)
    x = normal(1, 3, 5, FEATURES)
    state = layer.generators["rng"].bit_generator.state
    (inference, _), _ = layer.forward(x)
    assert layer.generators["rng"].bit_generator.state == state
    (first, _), cache = layer.forward(x, training=True)
    (second, _), _ = layer.forward(x, training=True)
    assert not np.array_equal(first, second)
    layer.generators["rng"].bit_generator.state = state
    np.testing.assert_array_equal(layer.forward(x, training=True)[0][0], first)
    assert [dropped is None for dropped in cache.dropouts] == [True, False]

    alone = make("GRU", dropout=0.5)
    (trained, _), _ = alone.forward(x, training=True)
    np.testing.assert_array_equal(trained, alone.forward(x)[0][0])
    assert make("GRU").generators == {}
    assert inference.shape == first.shape


def test_first_weights_are_uniform_within_pytorch_s_bound() -> None:
    layer = GRU(30, 25, rng=np.random.default_rng(0))
    for name, array in layer.parameters.items():
        assert array.dtype == np.float32
        assert 0.18 < np.abs(array).max() <= 0.2, name
        assert abs(array.mean()) < 0.03, name


def test_forget_bias_is_what_the_forget_gates_start_with() -> None:
    layer = make("LSTM", num_layers=2, forget_bias=1.0)
    drawn = make("LSTM", num_layers=2)
    forget = slice(HIDDEN, 2 * HIDDEN)
    for number in (0, 1):
        both = layer.parameters[f"bias_ih_l{number}"] + layer.parameters[f"bias_hh_l{number}"]
        np.testing.assert_array_equal(both[forget], np.ones(HIDDEN))
    for name, array in drawn.parameters.items():
        rest = np.delete(layer.parameters[name], np.r_[forget], axis=0)
        np.testing.assert_array_equal(rest, np.delete(array, np.r_[forget], axis=0))


# Biases

BIASES: list[tuple[bool | str, tuple[str, ...]]] = [
    (True, ("bias_ih", "bias_hh")),
    (False, ()),
    *BIAS_MODES.items(),
]


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize(("bias", "names"), BIASES)
def test_a_bias_mode_has_its_arrays_and_no_others(
    kind: str, bias: bool | str, names: tuple[str, ...]
) -> None:
    layer = make(kind, num_layers=2, bias=bias)
    rows = layer.gates * HIDDEN
    found = {name: array for name, array in layer.parameters.items() if name.startswith("bias")}
    assert list(found) == [f"{name}_l{number}" for number in (0, 1) for name in names]
    assert {array.shape for array in found.values()} <= {(rows,)}
    without = make(kind, num_layers=2, bias="none").flops((7, FEATURES))
    assert layer.flops((7, FEATURES)) - without == 7 * 2 * rows * len(names)
    (_, _), cache = layer.forward(normal(1, 2, 3, FEATURES))
    _, gradients = layer.backward((normal(2, 2, 3, HIDDEN), None), cache)
    assert list(gradients) == list(layer.parameters)


@pytest.mark.parametrize(("bias", "names"), [(True, 1), (False, 0), ("input", 1), ("none", 0)])
def test_leaky_units_have_no_recurrent_bias(bias: bool | str, names: int) -> None:
    found = make("LeakyRNN", bias=bias).parameters
    assert list(found) == ["weight_ih_l0", "bias_ih_l0"][: 1 + names]


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_only_a_gru_tells_its_two_single_biases_apart(kind: str) -> None:
    """By b_hn, which the reset gate multiplies."""
    of_input, of_state = make(kind, bias="input"), make(kind, bias="recurrent")
    arrays = of_input.parameters
    of_state.update_parameters(
        {name.replace("bias_ih", "bias_hh"): array for name, array in arrays.items()}
    )
    x = normal(1, 3, 5, FEATURES)
    one, other = (layer.forward(x)[0][0] for layer in (of_input, of_state))
    if kind == "GRU":
        assert np.abs(one - other).max() > 0.01
    else:
        assert_close(one, other, "float64", "y")


@pytest.mark.parametrize("mode", ["input", "recurrent"])
def test_forget_bias_goes_to_the_bias_that_is_there(mode: str) -> None:
    layer = make("LSTM", num_layers=2, bias=mode, forget_bias=1.0)
    biases = [array for name, array in layer.parameters.items() if name.startswith("bias")]
    for bias in biases:
        np.testing.assert_array_equal(bias[HIDDEN : 2 * HIDDEN], np.ones(HIDDEN))
    assert len(biases) == 2


def test_alpha_is_a_buffer_and_is_not_trained() -> None:
    layer = LeakyRNN(3, 4, rng=np.random.default_rng(0), alpha=0.25)
    np.testing.assert_array_equal(layer.buffers["alpha"], np.full(4, 0.25, np.float32))
    assert list(layer.parameters) == ["weight_ih_l0", "bias_ih_l0"]


def test_in_a_sequence_of_layers_only_y_goes_on() -> None:
    rng = np.random.default_rng(0)
    lstm = LSTM(FEATURES, HIDDEN, rng=rng, bidirectional=True, dtype=F64)
    model = Sequential(lstm, LastStep(bidirectional=True), Dense(2 * HIDDEN, 3, rng=rng, dtype=F64))
    x = normal(1, 3, 5, FEATURES)
    y, _ = model.forward(x)
    (_, (h, _)), _ = lstm.forward(x)
    both = np.concatenate((h[0], h[1]), axis=1)
    np.testing.assert_array_equal(y, model.layers["2"].forward(both)[0])
    assert next(iter(model.parameters)) == "0.weight_ih_l0"
    (row, *_) = model.rows((5, FEATURES))
    assert (row.layer, row.output_shape) == ("LSTM", (5, 2 * HIDDEN))


def test_flops_are_those_of_the_products_and_little_else() -> None:
    layer = LSTM(64, 256, 2, rng=np.random.default_rng(0))
    products = 2 * 4 * 256 * (64 + 256) + 2 * 4 * 256 * (256 + 256)
    biases, others = 2 * 2 * 4 * 256, 2 * 13 * 256
    assert layer.flops((100, 64)) == 100 * (products + biases + others)


def test_lengths_may_be_a_list() -> None:
    layer = make("RNN")
    x = normal(1, 2, 3, FEATURES)
    np.testing.assert_array_equal(
        layer.forward(x, lengths=[1, 3])[0][0], layer.forward(x, lengths=np.array([1, 3]))[0][0]
    )


# Errors


def pair(*shape: int) -> tuple[np.ndarray, np.ndarray]:
    return normal(0, *shape), normal(0, *shape)


WRONG_CALLS: list[tuple[type[Exception], str, str, Mapping[str, Any]]] = [
    (ShapeError, "LSTM", r"x has shape \(3, 4\); allowed: \(N, T, 4\)", {"x": normal(0, 3, 4)}),
    (
        ShapeError,
        "GRU",
        r"x has shape \(3, 2, 7\); allowed: \(N, T, 4\)",
        {"x": normal(0, 3, 2, 7)},
    ),
    (
        ShapeError,
        "LSTM",
        r"h of state has shape \(1, 3, 5\); allowed: \(2, 3, 5\), as \(layers · directions, N",
        {"state": pair(1, 3, 5)},
    ),
    (ShapeError, "RNN", r"h of state has shape \(2, 4, 5\)", {"state": normal(0, 2, 4, 5)}),
    (
        ArgumentError,
        "LSTM",
        r"state is a ndarray; allowed: a pair \(h, c\)",
        {"state": pair(2, 3, 5)[0]},
    ),
    (ArgumentError, "GRU", "state is a tuple; allowed: one array", {"state": pair(2, 3, 5)}),
    (ArgumentError, "RNN", "lengths go from 1 to 3; allowed: 0 to 2", {"lengths": [1, 2, 3]}),
    (ArgumentError, "RNN", "lengths go from -1 to 2; allowed: 0 to 2", {"lengths": [1, -1, 2]}),
    (ShapeError, "RNN", r"lengths has shape \(2,\); allowed: \(3,\)", {"lengths": [1, 2]}),
    (
        ArgumentError,
        "RNN",
        "lengths is an array of float64 and shape",
        {"lengths": [1.0, 2.0, 2.0]},
    ),
]


@pytest.mark.parametrize(("error", "kind", "message", "call"), WRONG_CALLS)
def test_a_wrong_call_is_refused(
    error: type[Exception], kind: str, message: str, call: Mapping[str, Any]
) -> None:
    with pytest.raises(error, match=message):
        make(kind, num_layers=2).forward(**{"x": normal(0, 3, 2, FEATURES), **call})


WRONG_SETTINGS: list[tuple[str, dict[str, Any], str]] = [
    ("RNN", {"num_layers": 0}, "RNN: num_layers is 0; allowed: 1 or more"),
    ("GRU", {"dropout": 1.5}, "GRU: dropout is 1.5; allowed: 0 to 1"),
    ("RNN", {"nonlinearity": "gelu"}, "RNN: nonlinearity is 'gelu'; allowed: tanh, relu"),
    ("LSTM", {"proj_size": 5}, r"LSTM: proj_size is 5; allowed: 0 \(none\) to 4"),
    ("LSTM", {"bias": False, "forget_bias": 1.0}, "forget_bias is 1.0; allowed without bias: None"),
    ("LSTM", {"bias": "none", "forget_bias": 1.0}, "forget_bias is 1.0; allowed without bias"),
    (
        "GRU",
        {"bias": "single"},
        "GRU: bias is 'single'; allowed: True, False, none, input, recurrent, double",
    ),
    ("LSTM", {"bias": 2}, "LSTM: bias is 2; allowed: True, False, none, input, recurrent, double"),
    ("RNN", {"bias": None}, "RNN: bias is None; allowed: True, False, none"),
    ("LeakyRNN", {"bias": "double"}, "LeakyRNN: bias is 'double'; allowed: True, False, none, inp"),
]


@pytest.mark.parametrize(("kind", "settings", "message"), WRONG_SETTINGS)
def test_a_wrong_setting_is_refused(kind: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make(kind, **settings)


def test_other_errors_say_what_is_allowed() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ShapeError, match=r"LeakyRNN: alpha has shape \(2,\); allowed: .* \(3,\)"):
        LeakyRNN(2, 3, rng=rng, alpha=[0.1, 0.2])
    with pytest.raises(ArgumentError, match=r"LeakyRNN: alpha is 1\.5; allowed: 0 to 1"):
        LeakyRNN(2, 3, rng=rng, alpha=1.5)
    layer = make("LSTM")
    (y, _), cache = layer.forward(normal(0, 3, 2, FEATURES))
    with pytest.raises(ArgumentError, match=r"LSTM: dy is a ndarray; allowed: \(dy, dstate\)"):
        layer.backward(y, cache)
    with pytest.raises(ShapeError, match=r"h of dstate has shape \(3, 5\); allowed: \(1, 3, 5\)"):
        layer.backward((y, pair(3, 5)), cache)
    with pytest.raises(ShapeError, match=r"LSTM: an example has shape \(4,\); allowed: \(T, 4\)"):
        layer.output_shape((4,))
    with pytest.raises(ShapeError, match=r"LastStep: an example has shape \(0, 4\); allowed"):
        LastStep().output_shape((0, 4))
