"""Small real files of every form, written as their publishers write them."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path

import numpy as np

from handgrad.data.idx import FILES

#: The number of images in each part of the sets below.
TRAIN, TEST = 12, 4


def idx_bytes(values: np.ndarray) -> bytes:
    header = struct.pack(f">BBBB{values.ndim}I", 0, 0, 8, values.ndim, *values.shape)
    return header + values.astype(np.uint8).tobytes()


def write_idx_set(folder: Path, *, compressed: bool = False, side: int = 28) -> None:
    rng = np.random.default_rng(0)
    for part, name in FILES.items():
        count = TRAIN if part.endswith("train") else TEST
        images = rng.integers(0, 256, (count, side, side))
        content = idx_bytes(images if part.startswith("x") else np.arange(count) % 10)
        if compressed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(content))
        else:
            (folder / name).write_bytes(content)


def write_cifar_batches(folder: Path) -> np.ndarray:
    """Six binary batches; returns the records of the first, label byte first."""
    rng = np.random.default_rng(1)
    names = [f"data_batch_{n}" for n in range(1, 6)] + ["test_batch"]
    first = None
    for name in names:
        records = rng.integers(0, 256, (3, 3073), dtype=np.uint8)
        records[:, 0] %= 10
        (folder / f"{name}.bin").write_bytes(records.tobytes())
        first = records if first is None else first
    return first


def write_cifar_sheets(folder: Path, *, rows: int = 3, labels: int | None = None) -> np.ndarray:
    """Six PNG sheets and their labels; returns the first sheet, (rows, 1024, 3)."""
    from PIL import Image

    rng = np.random.default_rng(2)
    names = [f"data_batch_{n}" for n in range(1, 6)] + ["test_batch"]
    first = None
    for name in names:
        sheet = rng.integers(0, 256, (rows, 1024, 3), dtype=np.uint8)
        Image.fromarray(sheet).save(folder / f"{name}.png")
        first = sheet if first is None else first
    count = 5 * rows if labels is None else labels
    (folder / "train_lables.json").write_text(json.dumps([i % 10 for i in range(count)]))
    (folder / "test_lables.json").write_text(json.dumps(list(range(rows))))
    return first


def write_image_folder(folder: Path, *, classes: tuple[str, ...] = ("cat", "dog")) -> None:
    """Five grey 8×8 images a class."""
    from PIL import Image

    rng = np.random.default_rng(3)
    for name in classes:
        (folder / name).mkdir(parents=True)
        for i in range(5):
            pixels = rng.integers(0, 256, (8, 8), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{i}.png")
