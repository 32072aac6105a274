"""SequenceClassifier: what is read from a sequence, PyTorch's numbers, ragged batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import HandgradError
from handgrad.models.sequence_classifier import SequenceClassifier
from tests.layers.gradients import check_destinations, check_gradients
from tests.tolerances import assert_close

F64 = np.float64
D, H, K = 4, 5, 3
LENGTHS = [3, 6, 0, 4]
POOLINGS = ["state", "mean", "max", "last"]

SETTINGS: dict[str, dict[str, Any]] = {
    "lstm": {"cell": "lstm", "num_layers": 2, "dropout": 0.3, "bidirectional": True},
    "projected lstm": {"cell": "lstm", "proj_size": 2, "head_dropout": 0.3},
    "gru": {"cell": "gru"},
    "rnn": {"cell": "rnn", "nonlinearity": "tanh", "bidirectional": True},
    "leaky_rnn": {"cell": "leaky_rnn", "alpha": 0.3},
}
each_setting = pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
each_pooling = pytest.mark.parametrize("pooling", POOLINGS)


def model(**settings: Any) -> SequenceClassifier:
    return SequenceClassifier(D, H, K, rng=np.random.default_rng(17), dtype=F64, **settings)


def some(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


@each_setting
@each_pooling
@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["full", "ragged"])
def test_gradients(settings: dict[str, Any], pooling: str, lengths: list[int] | None) -> None:
    classifier = model(pooling=pooling, **settings)
    check_gradients(classifier, some(4, 6, D), training=True, lengths=lengths)


@each_pooling
def test_gradients_go_where_they_are_sent(pooling: str) -> None:
    classifier = model(pooling=pooling, bidirectional=True)
    check_destinations(classifier, some(4, 6, D), training=True, lengths=LENGTHS)


def test_hg_check_finds_nothing_wrong() -> None:
    report = hg.check(model(bidirectional=True), some(4, 6, D), np.array(LENGTHS))
    assert report.ok, str(report)


@each_setting
@each_pooling
def test_a_ragged_batch_equals_every_sequence_alone(settings: dict[str, Any], pooling: str) -> None:
    classifier = model(pooling=pooling, **settings)
    x, dy = some(4, 6, D), some(4, K)
    for i, length in enumerate(LENGTHS):
        x[i, length:] = np.nan
    y, cache = classifier.forward(x, np.array(LENGTHS))
    dx, gradients = classifier.backward(dy, cache)
    totals = {name: np.zeros_like(array) for name, array in gradients.items()}
    for i, length in enumerate(LENGTHS):
        if length == 0:
            assert_close(y[i], classifier.head.bias, "float64")
            totals["head.bias"] += dy[i]
        else:
            own_y, own_cache = classifier.forward(x[i : i + 1, :length])
            own_dx, own = classifier.backward(dy[i : i + 1], own_cache)
            assert_close(y[i], own_y[0], "float64")
            assert_close(dx[i, :length], own_dx[0], "float64")
            totals = {name: totals[name] + own[name] for name in totals}
        np.testing.assert_array_equal(dx[i, length:], 0)
    for name, total in totals.items():
        assert_close(gradients[name], total, "float64", name)


def test_poolings_read_what_they_say() -> None:
    x, lengths = some(3, 6, D), np.array([2, 6, 4])
    for cell in ("lstm", "gru"):
        models = {p: model(pooling=p, cell=cell, bidirectional=True) for p in POOLINGS}
        (y, final), _ = models["state"].recurrent.forward(x, lengths=lengths)
        h = final[0] if cell == "lstm" else final
        steps = [y[i, :length] for i, length in enumerate(lengths)]
        read = {
            "state": np.concatenate([h[0], h[1]], axis=1),
            "mean": np.stack([s.mean(axis=0) for s in steps]),
            "max": np.stack([s.max(axis=0) for s in steps]),
            "last": np.stack([s[-1] for s in steps]),
        }
        for pooling, classifier in models.items():
            scores, _ = classifier.forward(x, lengths)
            assert_close(scores, classifier.head.forward(read[pooling])[0], "float64", pooling)
    one_way = [model(pooling=pooling).forward(x, lengths)[0] for pooling in ("state", "last")]
    assert_close(*one_way, "float64")


def test_weights_say_which_steps_were_read() -> None:
    x, lengths = some(3, 6, D), np.array([2, 6, 0])
    for pooling, per_feature in (("mean", 1), ("last", 1), ("max", H)):
        _, cache = model(pooling=pooling).forward(x, lengths)
        assert cache.weights.shape == (3, 6, per_feature)
        totals = cache.weights.sum(axis=1)
        assert_close(totals, np.repeat([[1.0], [1.0], [0.0]], per_feature, axis=1), "float64")
    assert model().forward(x, lengths)[1].weights is None


IN_TORCH = {
    "LSTM": {"num_layers": 2, "bidirectional": True},
    "GRU": {},
    "RNN": {"bidirectional": True},
}


@pytest.mark.parametrize(("kind", "settings"), IN_TORCH.items(), ids=IN_TORCH)
@pytest.mark.parametrize("pooling", ["state", "max"])
def test_equals_pytorch_s_packed_sequences(
    kind: str, settings: dict[str, Any], pooling: str
) -> None:
    torch = pytest.importorskip("torch")
    options = {"dtype": torch.float64}
    classifier = model(cell=kind.lower(), pooling=pooling, **settings)
    directions = 2 if settings.get("bidirectional") else 1
    theirs = torch.nn.ModuleDict(
        {
            "recurrent": getattr(torch.nn, kind)(D, H, batch_first=True, **settings, **options),
            "head": torch.nn.Linear(directions * H, K, **options),
        }
    )
    theirs.load_state_dict({name: torch.tensor(a) for name, a in classifier.parameters.items()})

    lengths, x, dy = [3, 6, 1, 4], some(4, 6, D), some(4, K)
    y, cache = classifier.forward(x, lengths)
    dx, gradients = classifier.backward(dy, cache)

    their_x = torch.tensor(x, requires_grad=True)
    rnn = torch.nn.utils.rnn
    packed = rnn.pack_padded_sequence(their_x, lengths, batch_first=True, enforce_sorted=False)
    outputs, final = theirs["recurrent"](packed)
    if pooling == "state":
        h = final[0] if kind == "LSTM" else final
        read = torch.cat(list(h[-directions:]), dim=-1)
    else:
        padded, _ = rnn.pad_packed_sequence(outputs, batch_first=True, padding_value=-np.inf)
        read = padded.max(dim=1).values
    their_y = theirs["head"](read)
    assert_close(y, their_y.detach(), "torch float64", "scores")
    inputs = [their_x, *theirs.parameters()]
    expected = torch.autograd.grad(their_y, inputs, torch.tensor(dy))
    for found, right in zip([dx, *gradients.values()], expected, strict=True):
        assert_close(found, right, "torch float64", "gradients")


def test_dropout_acts_before_the_head_and_in_training_only() -> None:
    classifier, x = model(head_dropout=0.5), some(4, 6, D)
    np.testing.assert_array_equal(classifier.forward(x)[0], model().forward(x)[0])
    first, second = (classifier.forward(x, training=True)[0] for _ in range(2))
    assert not np.array_equal(first, second)
    assert list(classifier.generators) == ["dropout.rng"]
    assert model().generators == {}


def test_names_sizes_and_the_table() -> None:
    classifier = model(bidirectional=True, proj_size=2, head_dropout=0.1)
    assert {name.split(".")[0] for name in classifier.parameters} == {"recurrent", "head"}
    assert classifier.parameters["head.weight"].shape == (K, 4)
    assert classifier.output_shape((6, D)) == (K,)
    rows = classifier.rows((6, D), "model")
    assert [(row.name, row.output_shape) for row in rows] == [
        ("model.recurrent", (6, 4)),
        ("model.head", (K,)),
    ]
    parameters = classifier.parameters.values()
    assert sum(row.parameters for row in rows) == sum(array.size for array in parameters)
    assert classifier.flops((6, D)) == sum(row.flops for row in rows)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"cell": "ltsm"}, "SequenceClassifier: cell is 'ltsm'; allowed: lstm, gru, rnn, leaky_rnn"),
    ({"cell": "leaky_rnn"}, "alpha is missing; allowed with cell 'leaky_rnn': 0 to 1"),
    ({"pooling": "sum"}, "pooling is 'sum'; allowed: state, mean, max, last"),
    ({"head_dropout": 2.0}, "p is 2.0; allowed: 0 to 1"),
]


@pytest.mark.parametrize(("settings", "message"), WRONG)
def test_a_wrong_setting_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(HandgradError, match=message):
        model(**settings)


def test_a_wrong_call_is_refused() -> None:
    with pytest.raises(HandgradError, match=r"LSTM: x has shape \(2, 3\); allowed: \(N, T, 4\)"):
        model().forward(some(2, 3))
    with pytest.raises(HandgradError, match="lengths go from 1 to 4; allowed: 0 to 3"):
        model().forward(some(2, 3, D), [1, 4])
    with pytest.raises(HandgradError, match=r"an example has shape \(4,\); allowed: \(T, 4\)"):
        model().output_shape((D,))
