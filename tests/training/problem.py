"""A small problem that every piece of training state matters for, shared by the tests here.

Run as a program it trains in a folder, or resumes there:

    python -m tests.training.problem FOLDER [--resume] [--epochs N]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from handgrad import layers
from handgrad.data import Dataset
from handgrad.losses import CrossEntropy
from handgrad.optimizers import Adam, Cosine, Optimizer
from handgrad.training import Affine, Interrupted, RunConfig, train

EPOCHS = 4
BATCH = 16
CLASSES = 3


def data(count: int = 150, seed: int = 3) -> Dataset:
    """Pictures (1, 6, 6) of a bright bar whose row band is the class, with noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, CLASSES, count)
    x = rng.random((count, 1, 6, 6), dtype=np.float32) * 0.5
    for image, label in enumerate(y):
        x[image, 0, 2 * label : 2 * label + 2] += 0.5
    held = count // 5
    return Dataset("bars", x[held:], y[held:], x[:held], y[:held], tuple("abc"), x[:held], y[:held])


def model(seed: int = 5) -> layers.Layer:
    """Parameters, buffers (BatchNorm) and a generator of its own (Dropout)."""
    rng = np.random.default_rng(seed)
    return layers.Sequential(
        conv=layers.Conv2d(1, 4, 3, rng=rng, padding=1),
        norm=layers.BatchNorm(4),
        active=layers.Activation("relu"),
        flat=layers.Flatten(),
        drop=layers.Dropout(0.2, rng=np.random.default_rng(seed + 1)),
        out=layers.Dense(4 * 36, CLASSES, rng=rng),
    )


def parts(epochs: int = EPOCHS, **settings: Any) -> dict[str, Any]:
    """Every argument of `train` but the folder, built afresh."""
    optimizer: Optimizer = Adam(lr=5e-3)
    config: dict[str, Any] = {
        "epochs": epochs,
        "text": 'recipe = "bars"\n',
        "batch_size": BATCH,
        "seed": 11,
        "clip_norm": 5.0,
        "augment": Affine(rotation=5, shift=0.4),
        "early_stopping": 50,
        "progress": "off",
        "schedule": Cosine(5e-3, steps=epochs * 8),
    }
    return {
        "config": RunConfig(**{**config, **settings}),
        "model": model(),
        "loss": CrossEntropy(label_smoothing=0.05),
        "optimizer": optimizer,
        "data": data(),
    }


def main() -> int:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--resume", action="store_true")
    arguments.add_argument("--epochs", type=int, default=EPOCHS)
    given = arguments.parse_args()
    pieces = parts(given.epochs, checkpoint_every=0.02)
    print("ready", flush=True)
    try:
        train(**pieces, out=given.folder, resume=given.resume)
    except Interrupted as stopped:
        print(stopped, file=sys.stderr)
        return stopped.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
