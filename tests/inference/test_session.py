from __future__ import annotations

import threading

import numpy as np
import pytest

import handgrad as hg
from handgrad import kernels
from handgrad.inference import Session
from handgrad.layers import walk
from tests.layers.cases import CASES, Case
from tests.rows import rows

needs_kernels = pytest.mark.skipif(kernels.native is None, reason="no kernels to replay")
RNG = np.random.default_rng(0)

MODELS = {
    "mlp": (lambda rng: hg.MLP([5, 7, 3], rng=rng), (5,)),
    "cnn": (lambda rng: hg.CNN((2, 8, 9), [4, 6], 3, rng=rng, batch_norm=True), (2, 8, 9)),
    "dropout": (lambda rng: hg.MLP([5, 7, 3], rng=rng, dropout=0.5), (5,)),
    "lstm": (lambda rng: hg.LSTM(4, 6, rng=rng), (7, 4)),
    "gru": (lambda rng: hg.GRU(4, 6, rng=rng, num_layers=2), (7, 4)),
    "rnn": (lambda rng: hg.RNN(4, 6, rng=rng, bidirectional=True), (7, 4)),
    "last": (
        lambda rng: hg.Sequential(hg.LSTM(4, 6, rng=rng), hg.LastStep(), hg.Dense(6, 3, rng=rng)),
        (7, 4),
    ),
    "tagger": (lambda rng: hg.SequenceTagger(4, 6, 3, rng=rng), (7, 4)),
    "residual": (lambda rng: hg.Residual(hg.Conv2d(2, 2, 3, padding=1, rng=rng)), (2, 8, 9)),
    "encoder": (lambda rng: hg.TransformerEncoder(2, 8, 2, 12, rng=rng, rotary=True), (7, 8)),
}


def check(model: hg.layers.Layer, session: Session, *batches: np.ndarray) -> None:
    """The session gives the bits of forward on batches that differ from the first."""
    for x in batches:
        found, kept = session(x), x.copy()
        np.testing.assert_array_equal(found, model.forward_y(x)[0])
        np.testing.assert_array_equal(x, kept)


@rows("case", CASES, ids=lambda case: case.name)
def test_every_layer_answers_as_forward_does(case: Case) -> None:
    model, first = case.make(np.random.default_rng(1)), case.batch()
    check(model, Session(model), first, np.flip(first, 0).copy(), np.roll(first, 1, 0), first[:1])


@needs_kernels
@pytest.mark.parametrize("name", MODELS)
def test_models_are_replayed(name: str) -> None:
    make, example = MODELS[name]
    model = make(np.random.default_rng(1))
    session = Session(model)
    batches = [RNG.standard_normal((n, *example), np.float32) for n in (1, 1, 3, 1, 3)]
    check(model, session, *batches)
    # Of several sequences the last steps are copied by NumPy.
    assert session.captures == (1 if name == "last" else 2)
    assert session.reason == ("an array was copied for a kernel" if name == "last" else "")


@needs_kernels
def test_tokens_are_replayed_and_wrong_ones_named() -> None:
    model = hg.Sequential(hg.Embedding(7, 4, rng=RNG), hg.GRU(4, 5, rng=RNG))
    session = Session(model)
    check(model, session, *(RNG.integers(0, 7, (2, 5)) for _ in range(3)))
    assert session.captures == 1
    with pytest.raises(hg.errors.ArgumentError, match="7"):
        session(np.full((2, 5), 7))
    check(model, session, RNG.integers(0, 7, (2, 5)))


@needs_kernels
def test_an_answer_stays_as_it_is() -> None:
    session = Session(hg.MLP([5, 3], rng=RNG))
    first = session(np.ones((1, 5), np.float32))
    kept = first.copy()
    session(np.zeros((1, 5), np.float32))
    np.testing.assert_array_equal(first, kept)


@pytest.mark.parametrize(
    "make", [lambda: hg.MLP([5, 4, 3], rng=RNG), lambda: hg.LSTM(5, 4, rng=RNG)]
)
def test_the_session_keeps_the_weights_that_it_was_made_with(make) -> None:
    model = make()
    shape = (1, 5) if isinstance(model, hg.MLP) else (1, 3, 5)
    session, x = Session(model), RNG.standard_normal(shape, np.float32)
    expected = model.forward_y(x)[0].copy()
    for array in model.parameters.values():
        array[...] = 0
    for _ in range(3):
        np.testing.assert_array_equal(session(x), expected)


def test_lengths_and_other_types_go_through_forward() -> None:
    model = hg.SequenceTagger(4, 6, 3, rng=RNG)
    session, x = Session(model), RNG.standard_normal((2, 7, 4), np.float32)
    for lengths in (np.array([7, 3]), np.array([2, 5])):
        np.testing.assert_array_equal(session(x, lengths), model(x, lengths))
    with pytest.warns(hg.errors.HandgradWarning):
        session(x.astype(np.float64))
    assert session.captures == 0


def test_what_is_not_replayed_is_named() -> None:
    session = Session(hg.Sequential(first=hg.Flatten(), second=hg.Standardize()))
    if kernels.native is not None:
        assert session.reason.startswith("second, a Standardize,")
    x = RNG.standard_normal((2, 3), np.float32)
    check(session.model, session, x, 2 * x)
    with pytest.raises(hg.errors.ArgumentError, match="Session: model is"):
        Session("digits")


@needs_kernels
def test_threads_take_turns() -> None:
    model = hg.MLP([64, 64, 10], rng=RNG)
    session = Session(model)
    inputs = RNG.standard_normal((4, 1, 64), np.float32)
    expected = [model(x) for x in inputs]
    wrong: list[int] = []

    def ask(i: int) -> None:
        same = [np.array_equal(session(inputs[i]), expected[i]) for _ in range(200)]
        wrong.extend([i] * same.count(False))

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_every_layer_says_what_it_promises() -> None:
    for _, layer in walk(hg.CNN((1, 4, 4), [2], 2, rng=RNG, batch_norm=True)):
        assert layer.capturable or layer.forward_capturable
