from __future__ import annotations

import numpy as np
import pytest

from handgrad.data import Dataset, Ragged, Sequences, batch_order, with_validation
from handgrad.data.ragged import padded_to
from handgrad.errors import ArgumentError, DataError, ShapeError

RNG = np.random.default_rng(0)
LENGTHS = [3, 0, 5, 1]
ARRAYS = [RNG.normal(size=(length, 2)).astype(np.float32) for length in LENGTHS]


def test_a_batch_is_padded_to_its_longest():
    sequences = Sequences.of(ARRAYS, padding=-1)
    assert (len(sequences), sequences.shape, sequences.ndim) == (4, (4, 5, 2), 3)
    assert sequences.dtype == np.float32
    batch = sequences[[3, 0]]
    assert isinstance(batch, Ragged)
    assert batch.x.shape == (2, 3, 2)
    np.testing.assert_array_equal(batch.lengths, [1, 3])
    np.testing.assert_array_equal(batch.x[0, :1], ARRAYS[3])
    np.testing.assert_array_equal(batch.x[1], ARRAYS[0])
    assert (batch.x[0, 1:] == -1).all()


def test_batches_can_be_padded_to_a_multiple_but_not_beyond_the_longest_of_all():
    sequences = Sequences.of([np.ones(length) for length in (3, 9, 4, 5)], padding=-1)
    with padded_to(4):
        shapes = [sequences[index].x.shape for index in ([0], [0, 3], [1], [])]
        assert shapes == [(1, 4), (2, 8), (1, 9), (0, 0)]
        np.testing.assert_array_equal(sequences[[0]].x, [[1, 1, 1, -1]])
        assert sequences.take([0, 2]).lengths.tolist() == [3, 4]
    assert sequences[[0]].x.shape == (1, 3)


@pytest.mark.parametrize(
    ("index", "chosen"),
    [
        (slice(None), [0, 1, 2, 3]),
        (2, [2]),
        (np.array([True, False, False, True]), [0, 3]),
        ([], []),
        ([1], [1]),
    ],
)
def test_any_index_of_numpy(index, chosen):
    sequences = Sequences.of(ARRAYS)
    for batch in (sequences[index], sequences.take(index)[:]):
        assert len(batch.lengths) == len(chosen)
        for i, which in enumerate(chosen):
            np.testing.assert_array_equal(batch.x[i, : LENGTHS[which]], ARRAYS[which])
            assert (batch.x[i, LENGTHS[which] :] == 0).all()


@pytest.mark.parametrize(
    ("values", "lengths", "message"),
    [
        (np.zeros(3), [1, 1], "add up to 2 and there are 3 steps"),
        (np.zeros(1), [2, -1], "lengths from 0"),
        (np.zeros(1), [], "add up to 0 and there are 1 steps"),
    ],
)
def test_lengths_have_to_add_up(values, lengths, message):
    with pytest.raises(ShapeError, match=message):
        Sequences(values, np.array(lengths))


def test_steps_have_to_be_alike():
    with pytest.raises(ShapeError, match=r"one step has shape \(2,\) or \(3,\)"):
        Sequences.of([np.zeros((1, 3)), np.zeros((4, 2))])
    with pytest.raises(ArgumentError, match="there are none"):
        Sequences.of([])


@pytest.mark.parametrize("pool", [1, 4, 1000])
def test_an_order_has_every_example_once_and_depends_on_the_generator_alone(pool):
    lengths = RNG.integers(1, 50, 103)
    order = batch_order(lengths, 10, np.random.default_rng(3), pool)
    assert sorted(order) == list(range(103))
    np.testing.assert_array_equal(order, batch_order(lengths, 10, np.random.default_rng(3), pool))
    assert not np.array_equal(order, batch_order(lengths, 10, np.random.default_rng(4), pool))


def test_pools_bring_similar_lengths_together_and_shuffle_the_batches():
    lengths = RNG.permutation(100)
    order = batch_order(lengths, 10, np.random.default_rng(0), pool=10)
    batches = lengths[order].reshape(10, 10)
    assert (np.ptp(batches, axis=1) == 9).all()
    assert (np.diff(batches[:, 0]) < 0).any()


def test_the_batch_that_is_not_full_is_the_last():
    lengths = RNG.integers(1, 9, 7)
    order = batch_order(lengths, 3, np.random.default_rng(1), pool=2)
    assert len(order) == 7
    assert len(batch_order(lengths[:0], 3, np.random.default_rng(1))) == 0


@pytest.mark.parametrize(("size", "pool", "name"), [(0, 1, "batch_size"), (1, 0, "pool")])
def test_numbers_below_1_are_refused(size, pool, name):
    with pytest.raises(ArgumentError, match=f"{name} is 0; allowed: an integer from 1"):
        batch_order(np.ones(3, dtype=int), size, np.random.default_rng(0), pool)


def test_a_dataset_of_sequences_is_divided_like_any_other():
    train = Sequences.of([np.full((1 + i % 4, 2), i, np.float32) for i in range(20)])
    test = Sequences.of([np.zeros((9, 2), np.float32)] * 2)
    data = Dataset("toy", train, np.arange(20) % 2, test, np.array([0, 1]), ("even", "odd"))
    assert data.input_shape == (4, 2)
    divided = with_validation(data, 0.2, seed=0)
    assert (len(divided.x_train), len(divided.x_validation)) == (16, 4)
    first = divided.x_validation[:].x[:, 0, 0]
    np.testing.assert_array_equal(first % 2, divided.y_validation)


def test_a_dataset_of_sequences_needs_the_same_channels():
    train, test = (Sequences.of([np.zeros((3, channels))]) for channels in (2, 4))
    with pytest.raises(DataError, match=r"test examples have shape \(3, 4\); expected \(3, 2\)"):
        Dataset("toy", train, np.array([0]), test, np.array([0]), ("a",))
