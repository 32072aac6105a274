"""Accuracy of the recipes: `handgrad train` on real data, test accuracy and seconds of training.

`digits` over seeds 0 to 4, each with a split and first weights of its own; the recipes on MNIST
with seed 0, where HANDGRAD_DATA leads to it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from benchmarks.bursts import ROOT, environment

SEEDS: Final = {"digits": 5, "mnist-mlp": 1, "mnist-cnn": 1}


def measure(recipe: str, *, threads: int, quick: bool) -> dict[str, Any]:
    """Accuracy and seconds by seed; only `missing` where the data is not here."""
    if recipe != "digits" and not os.environ.get("HANDGRAD_DATA"):
        return {"missing": f"{recipe} is left out: HANDGRAD_DATA does not say where MNIST is"}
    seeds = 1 if quick else SEEDS[recipe]
    found = [train(recipe, seed, threads, ["--epochs", "1"] * quick) for seed in range(seeds)]
    return {
        "threads": threads,
        "accuracy": [summary["test_accuracy"] for summary in found],
        "seconds": [summary["seconds"] for summary in found],
    }


def train(recipe: str, seed: int, threads: int, extra: list[str]) -> dict[str, Any]:
    """The summary of a run of `handgrad train`."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        command = [sys.executable, "-m", "handgrad", "train", recipe, "--seed", str(seed)]
        subprocess.run(
            [*command, "--out", str(out), *extra],
            cwd=ROOT,
            env=environment(threads),
            check=True,
            capture_output=True,
        )
        summary: dict[str, Any] = json.loads((out / "summary.json").read_text("utf-8"))
        return summary
