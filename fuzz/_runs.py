"""Small runs of recipes, on data made here, for the surfaces that damage, kill and change them.

    python -m fuzz._runs RECIPE DATA FOLDER [--resume] [--faults LIBRARY NUMBER KIND]

trains one in a folder; with the library of tests/training/faults.c loaded (LD_PRELOAD) it is killed
at its NUMBER-th system call on that folder.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import sys
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from unittest import mock

from handgrad import recipes, training
from handgrad.errors import HandgradWarning
from handgrad.recipes.recipe import Recipe
from handgrad.recipes.runs import read_recipe
from handgrad.training.folder import Run
from tests.data.files import write_cifar_batches, write_idx_set

_IMAGES: Final = ("training.batch_size=4", "training.epochs=2")
_TEXTS: Final = ("training.batch_size=8", "training.epochs=2")

#: Settings that make each recipe small.
RECIPES: Final[dict[str, tuple[str, ...]]] = {
    "digits": (
        *("training.batch_size=256", "training.epochs=2"),
        *("model.layers[0].channels=2", "model.layers[2].channels=2"),
        *("model.layers[5].channels=2", "model.layers[10].features=4"),
    ),
    "mnist-mlp": _IMAGES,
    "mnist-cnn": _IMAGES,
    "mnist-rows-lstm": (*_IMAGES, "model.hidden_size=6"),
    "fashion-cnn": _IMAGES,
    "series-encoder": ("data.name=vectors", "training.batch_size=64", "training.epochs=2"),
    "text": (
        *_TEXTS,
        *("model.width=8", "model.heads=2", "model.blocks=1", "data.block=16", "data.blocks=24"),
    ),
    "translate": (
        *_TEXTS,
        *("data.unit=words", "model.d_model=8", "model.heads=2", "model.hidden=8"),
        *("model.encoder_blocks=1", "model.decoder_blocks=1", "model.shared=false"),
    ),
    "cifar-cnn": (*_IMAGES, "model.layers[0].channels=4"),
}
_VERSES: Final = "\n".join(
    f"{a} {b}\t{b.upper()} {a.upper()}"
    for a in ("one", "two", "six", "ten", "all")
    for b in ("dogs", "cats", "hens", "cows", "pigs", "fish", "bees", "owls")
)


def write_data(folder: Path) -> None:
    """The data of all recipes, where `data_of` finds them."""
    for name in ("images", "cifar"):
        (folder / name).mkdir(parents=True)
    write_idx_set(folder / "images", side=28)
    write_cifar_batches(folder / "cifar")
    (folder / "verses.tsv").write_text(_VERSES, encoding="utf-8")
    (folder / "text.txt").write_text(_VERSES * 3, encoding="utf-8")


def data_of(name: str, folder: Path) -> Path | None:
    """The data of a recipe, None where it has its own."""
    known = {"translate": "verses.tsv", "text": "text.txt", "cifar-cnn": "cifar"}
    if name in ("digits", "series-encoder"):
        return None
    return folder / known.get(name, "images")


def recipe_of(name: str) -> Recipe:
    recipe = recipes.read(name, RECIPES[name])
    return recipe.changed("data", size=None) if name == "translate" else recipe


def train(recipe: Recipe, data: Path | None, out: Path, *, resume: bool = False) -> dict[str, Any]:
    """Train, with a checkpoint every two steps."""
    built = recipes.build(recipe, recipes.load_task(recipe, data))
    config = replace(built.config, checkpoint_steps=2)
    return replace(built, config=config).train(out, resume=resume, progress="off")


def resume(data: Path | None, out: Path) -> dict[str, Any]:
    """Continue as `handgrad train --resume` does."""
    return train(read_recipe(out), data, out, resume=True)


class Sample:
    """A finished run, the same run before it was finished, another run of the same recipe."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.data = data_of(name, folder)
        self.finished = folder / name / "finished"
        self.unfinished = folder / name / "unfinished"
        self.other = folder / name / "other"
        save = Run.save

        def save_and_copy(run: Run, *given: Any) -> None:
            save(run, *given)
            if given[1]["step"] == 2:
                shutil.copytree(run.folder, self.unfinished)

        with mock.patch.object(Run, "save", save_and_copy):
            train(recipe_of(name), self.data, self.finished)
        train(recipe_of(name), self.data, self.other)
        self.weights = weights(self.finished)


def weights(folder: Path) -> dict[str, bytes]:
    """The weights of a run, all of whose files have been found undamaged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HandgradWarning)  # an unfinished run
        arrays, _ = Run(folder).load_model()
    return {name: array.tobytes() for name, array in arrays.items()}


_samples: dict[str, Sample] = {}
_data: list[Path] = []


def data_folder() -> Path:
    """A folder with the data, made once in a process."""
    if not _data:
        _data.append(Path(tempfile.mkdtemp(prefix="runs-")))
        write_data(_data[0])
    return _data[0]


def sample(name: str) -> Sample:
    """The runs of a recipe, made once in a process."""
    if name not in _samples:
        _samples[name] = Sample(name, data_folder())
    return _samples[name]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("recipe")
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--faults", nargs=3)
    given = parser.parse_args()
    data = data_of(given.recipe, given.data)
    recipe = read_recipe(given.folder) if given.resume else recipe_of(given.recipe)
    if given.faults:
        library = ctypes.CDLL(given.faults[0])
        number, kind = map(int, given.faults[1:])
        arm = library.faults_arm
        arm.argtypes = (ctypes.c_char_p, ctypes.c_long, ctypes.c_long, ctypes.c_int)
        arm(os.fsencode(given.folder), number, number, kind)
    print("ready", flush=True)
    try:
        train(recipe, data, given.folder, resume=given.resume)
    except training.Interrupted as stopped:
        print(stopped, file=sys.stderr)
        return stopped.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
