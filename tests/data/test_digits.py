from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import handgrad.data
from handgrad import data
from handgrad.errors import DataError


def test_digits_are_all_there():
    digits = data.load("digits")
    assert digits.input_shape == (1, 8, 8)
    assert len(digits.x_train) + len(digits.x_test) == 1797
    assert digits.classes == tuple("0123456789")
    values = np.concatenate([digits.x_train[:], digits.x_test[:]])
    assert (values.min(), values.max()) == (0, 1)
    counts = np.bincount(np.concatenate([digits.y_train, digits.y_test]))
    np.testing.assert_array_equal(counts, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180])


def test_a_fifth_of_every_class_is_for_testing():
    digits = data.load("digits", seed=4)
    all_counts = np.bincount(digits.y_train) + np.bincount(digits.y_test)
    np.testing.assert_array_equal(np.bincount(digits.y_test), np.round(all_counts * 0.2))


def test_the_seed_draws_the_split():
    first, second = data.load("digits", seed=0), data.load("digits", seed=1)
    np.testing.assert_array_equal(first.x_test[:], data.load("digits", seed=0).x_test[:])
    assert not np.array_equal(first.x_test[:], second.x_test[:])


def test_digits_do_not_look_at_the_environment(monkeypatch):
    monkeypatch.setenv("HANDGRAD_DATA", "/nowhere")
    assert data.load("digits").name == "digits"


def test_a_damaged_installation_is_named(tmp_path, monkeypatch):
    content = bytearray((Path(handgrad.data.__file__).parent / "digits.npz").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "digits.npz").write_bytes(content)
    monkeypatch.setattr("handgrad.data.digits.__file__", str(tmp_path / "digits.py"))
    with pytest.raises(DataError, match=r"digits\.npz cannot be read: "):
        data.load("digits")


def test_the_attribution_is_carried():
    text = (Path(handgrad.data.__file__).parent / "ATTRIBUTION").read_text(encoding="utf-8")
    for word in ("Alpaydin", "Kaynak", "CC BY 4.0", "10.24432/C50P49"):
        assert word in text
