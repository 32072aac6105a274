"""Results that the source documents report, trained again with the settings they give.

The recipes on MNIST need HANDGRAD_DATA, a folder with its IDX files; the text needs
HANDGRAD_TEXT, a file (Karpathy's setting is for the text of his char-rnn, tinyshakespeare), and
runs beside the same model in PyTorch, a hundred steps of one and then of the other.
"""

from __future__ import annotations

import os
from typing import Any, Final, NamedTuple

from benchmarks import accuracy, text
from benchmarks.peers import TITLES

STEPS: Final = 2000


class Headline(NamedTuple):
    """A document's network, and the figures it gives."""

    source: str
    network: str
    reported: str


HEADLINES: Final = {
    "series-encoder": Headline(
        "Careddu (undated)", "CLS encoder on generated series, SGD 0.1, 100 epochs", "none"
    ),
    "mnist-mlp-adam": Headline(
        "Gulino (2025)", "784-256-10, Adam 1e-3, batches of 64, 5 epochs", "none"
    ),
    "mnist-rows-lstm-sgd": Headline(
        "Yeung (2023)",
        "LSTM of 100 units on image rows, SGD 0.1, batches of 100, 19,800 updates",
        "98.30 % in 193 s",
    ),
    "text": Headline(
        "Karpathy, nanoGPT (2022)",
        "GPT of 4 blocks of 128, block 64, batches of 12, 2,000 updates",
        "loss 1.88 in about 180 s",
    ),
}


def measure(name: str, *, threads: int, quick: bool) -> dict[str, Any]:
    """The document's figures, and by library ours: text and seconds; or only `missing`."""
    headline = HEADLINES[name]
    if name == "text":
        path = os.environ.get("HANDGRAD_TEXT")
        if not path:
            return {"missing": f"{name} is left out: HANDGRAD_TEXT does not say where the text is"}
        steps = text.BURST if quick else STEPS
        found = {
            TITLES[library]: {"figure": f"loss {one['loss']:.3f}", "seconds": one["seconds"]}
            for library, one in text.measure(path, 0, steps, threads).items()
        }
    else:
        if name.startswith("mnist") and not os.environ.get("HANDGRAD_DATA"):
            return {"missing": f"{name} is left out: HANDGRAD_DATA does not say where MNIST is"}
        summary = accuracy.train(name, 0, threads, ["--epochs", "1"] * quick)
        figure = f"{summary['test_accuracy']:.2%}".replace("%", " %")
        found = {TITLES["handgrad"]: {"figure": figure, "seconds": summary["seconds"]}}
    return {**headline._asdict(), "threads": threads, "found": found}
