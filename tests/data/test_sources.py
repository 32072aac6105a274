from __future__ import annotations

import numpy as np
import pytest

from handgrad.data import Labelled, Pixels, Sequences
from handgrad.data.sources import Arrays, as_source
from handgrad.errors import DataError, ShapeError

X = Sequences.of([np.full(1 + i % 5, i) for i in range(23)])


def test_an_epoch_visits_every_sequence_with_its_own_label():
    source = Labelled(X, np.arange(23))
    order = source.order(4, np.random.default_rng(0))
    assert len(source) == len(order) == 23
    seen = []
    for first in range(0, 23, 4):
        (x, lengths), labels = source.gather(order[first : first + 4])
        np.testing.assert_array_equal(x[:, 0], labels)
        np.testing.assert_array_equal(lengths, 1 + labels % 5)
        seen += labels.tolist()
    assert sorted(seen) == list(range(23))
    np.testing.assert_array_equal(source.every(), np.arange(23))


def test_every_sequence_needs_a_label():
    with pytest.raises(DataError, match="23 sequences and 22 labels"):
        Labelled(X, np.arange(22))


def test_arrays_are_gathered_in_their_type():
    pixels = Pixels(np.arange(24, dtype=np.uint8).reshape(6, 4), 255)
    for x, dtype in ((pixels, np.float64), (pixels[:], np.float32), (np.eye(6), np.float32)):
        source = Arrays(x, np.arange(6), dtype)
        index = np.array([4, 0, 5])
        (batch,), y = source.gather(index)
        assert batch.dtype == dtype
        np.testing.assert_array_equal(y, index)
        np.testing.assert_allclose(batch, np.asarray(x[:])[index], rtol=1e-6)
    (tokens,), _ = Arrays(np.arange(6), np.arange(6), np.float32).gather(index)
    assert tokens.dtype == np.int64


def test_an_epoch_of_arrays_visits_every_example():
    source = Arrays(np.arange(7.0), np.arange(7))
    order = source.order(3, np.random.default_rng(0))
    assert sorted(order.tolist()) == source.every().tolist() == list(range(7))
    sizes = [len(source.gather(order[first : first + 3])[1]) for first in (0, 3, 6)]
    assert sizes == [3, 3, 1]


def test_what_becomes_a_source():
    labelled = Labelled(X, np.arange(23))
    assert as_source(labelled, "train") is labelled
    assert isinstance(as_source((X, np.arange(23)), "train"), Labelled)
    assert isinstance(as_source((np.eye(3), [0, 1, 2]), "test"), Arrays)
    with pytest.raises(ShapeError, match="test data: x has 3 examples and y 2"):
        as_source((np.eye(3), [0, 1]), "test")
