"""The figures that the recipes promise, at full length."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from handgrad import kernels, recipes
from handgrad.recipes.promised import Promise


def keeps(name: str, out: Path) -> bool:
    recipe = recipes.read(name)
    promise = Promise.of(recipe.about)
    assert promise is not None
    return promise.is_kept(recipes.build(recipe, recipes.load_task(recipe)).train(out))


@pytest.mark.slow
@pytest.mark.skipif(kernels.native is None, reason="takes minutes without kernels")
@pytest.mark.parametrize("name", ["digits", "series-encoder"])
def test_a_promise_without_files(tmp_path, name):
    assert keeps(name, tmp_path / "run")


@pytest.mark.data
@pytest.mark.skipif(kernels.native is None, reason="takes many minutes without kernels")
@pytest.mark.parametrize("name", ["mnist-mlp", "mnist-cnn"])
def test_mnist(tmp_path, name):
    if not (Path(os.environ.get("HANDGRAD_DATA", "")) / "mnist").is_dir():
        pytest.skip("needs HANDGRAD_DATA with the folder mnist")
    assert keeps(name, tmp_path / "run")
