"""The accuracies that the recipes promise, at full length."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from handgrad import kernels, recipes


def accuracy(name: str, out: Path) -> float:
    recipe = recipes.read(name)
    return recipes.build(recipe, recipes.load_task(recipe)).train(out)["test_accuracy"]


@pytest.mark.slow
@pytest.mark.skipif(kernels.native is None, reason="takes minutes without kernels")
def test_digits(tmp_path):
    assert accuracy("digits", tmp_path / "run") >= 0.98


@pytest.mark.data
@pytest.mark.skipif(kernels.native is None, reason="takes many minutes without kernels")
@pytest.mark.parametrize(("name", "least"), [("mnist-mlp", 0.978), ("mnist-cnn", 0.993)])
def test_mnist(tmp_path, name, least):
    if not (Path(os.environ.get("HANDGRAD_DATA", "")) / "mnist").is_dir():
        pytest.skip("needs HANDGRAD_DATA with the folder mnist")
    assert accuracy(name, tmp_path / "run") >= least
