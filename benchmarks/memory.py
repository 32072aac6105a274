"""Peak memory (VmHWM) of a whole process that trains the model of `mnist-cnn`.

    python -m benchmarks.memory handgrad|torch EXAMPLES

Each library in a fresh process: import it, hold as many random images as MNIST has in bytes, train
one epoch in batches of 128 with AdamW, then judge 10,000 others. Only peak memory is read.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Final

import numpy as np

from benchmarks.bursts import ROOT, environment
from benchmarks.machine import peak_bytes

EXAMPLES: Final = 60_000
TEST_EXAMPLES: Final = 10_000
BATCH: Final = 128
LEARNING_RATE: Final = 1e-3


def measure(peers: Iterable[str], *, threads: int, examples: int = EXAMPLES) -> dict[str, Any]:
    """Peak bytes of handgrad's process and of PyTorch's, where it is installed."""
    libraries = ["handgrad", *(name for name in peers if name == "torch")]
    found = {}
    for name in libraries:
        run = subprocess.run(
            [sys.executable, "-m", "benchmarks.memory", name, str(examples)],
            cwd=ROOT,
            env=environment(threads),
            check=True,
            capture_output=True,
            text=True,
        )
        found[name] = json.loads(run.stdout)
    return {"examples": examples, "threads": threads, "bytes": found}


def _images(examples: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (examples, 1, 28, 28), dtype=np.uint8)
    return images, rng.integers(0, 10, examples)


def _handgrad(examples: int) -> None:
    import handgrad as hg
    from handgrad import recipes

    images, labels = _images(examples)
    others, other_labels = _images(min(examples, TEST_EXAMPLES))
    classes = [str(i) for i in range(10)]
    recipe = recipes.read("mnist-cnn").changed("data", shape=[1, 28, 28], classes=classes)
    model = recipes.build_model(recipe)
    loss = hg.losses.CrossEntropy()
    optimizer = hg.optimizers.AdamW(lr=LEARNING_RATE)
    trainer = hg.Trainer(model, loss, optimizer, batch_size=BATCH, progress="off")
    judged_on = (hg.data.Pixels(others), other_labels)
    trainer.fit(hg.data.Pixels(images), labels, validation_data=judged_on, epochs=1)


def _torch(examples: int) -> None:
    """The usual loop, over tensors of bytes: a DataLoader would only add to it."""
    import torch
    from torch import nn

    images, labels = map(torch.from_numpy, _images(examples))
    others, other_labels = map(torch.from_numpy, _images(min(examples, TEST_EXAMPLES)))
    channels = (1, 16, 32, 64)
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(channels):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        layers += [nn.BatchNorm2d(outputs)]
    layers += [nn.Flatten(), nn.Dropout(0.3), nn.Linear(64 * 3 * 3, 128), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Dropout(0.3), nn.Linear(128, 10))
    loss = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, fused=True)
    for index in torch.randperm(examples).split(BATCH):
        optimizer.zero_grad(set_to_none=True)
        value = loss(model(images[index].float() / 255), labels[index])
        value.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for x, target in zip(others.split(256), other_labels.split(256), strict=True):
            loss(model(x.float() / 255), target).item()


if __name__ == "__main__":
    {"handgrad": _handgrad, "torch": _torch}[sys.argv[1]](int(sys.argv[2]))
    print(peak_bytes())
