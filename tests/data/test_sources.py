from __future__ import annotations

import numpy as np
import pytest

from handgrad.data import Labelled, Sequences
from handgrad.errors import DataError

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
