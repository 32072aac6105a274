"""The metrics of every epoch arrive in the files that TensorBoard reads."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad import layers
from handgrad.errors import ArgumentError
from handgrad.losses import CrossEntropy
from handgrad.optimizers import SGD
from handgrad.training import TensorBoard, Trainer


def trained(folder: Path) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 4)).astype(np.float32), rng.integers(0, 2, 40)
    trainer = Trainer(
        layers.Sequential(layers.Dense(4, 2, rng=rng)),
        CrossEntropy(),
        SGD(lr=0.1),
        batch_size=10,
        callbacks=[TensorBoard(folder)],
        progress="off",
    )
    return trainer.fit(x, y, validation_data=(x, y), epochs=2).epochs


def test_every_number_is_written_at_its_step(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    from tensorboardX.proto.event_pb2 import Event
    from tensorboardX.record_writer import masked_crc32c

    epochs = trained(tmp_path / "board")
    (file,) = (tmp_path / "board").iterdir()
    content, found, at = file.read_bytes(), {}, 0
    while at < len(content):
        length = int.from_bytes(content[at : at + 8], "little")
        payload = content[at + 12 : at + 12 + length]
        checksum = content[at + 12 + length : at + 16 + length]
        assert masked_crc32c(payload) == int.from_bytes(checksum, "little")
        event = Event.FromString(payload)
        for value in event.summary.value:
            found[value.tag, event.step] = value.simple_value
        at += 16 + length
    for record in epochs:
        step = record["step"]
        assert found["loss/training", step] == pytest.approx(record["loss"])
        assert found["loss/validation", step] == pytest.approx(record["validation_loss"])
        assert found["accuracy/validation", step] == pytest.approx(record["validation_accuracy"])
        assert found["learning_rate", step] == pytest.approx(0.1)
    assert [record["step"] for record in epochs] == [4, 8]


def test_without_tensorboardx_the_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ArgumentError, match=r"pip install 'handgrad\[tensorboard\]'"):
        TensorBoard(tmp_path)
