"""`hg.load`: the model in a file, or of the run in a folder."""

from __future__ import annotations

import os

from handgrad.errors import DataError
from handgrad.inference.trained import TrainedModel
from handgrad.io.checkpoint import load_arrays
from handgrad.io.files import read_trained
from handgrad.paths import as_path
from handgrad.training.config import is_of_program
from handgrad.training.folder import PROGRAM, Run


def load(path: str | os.PathLike[str]) -> TrainedModel:
    """The model in a file of `model.save`, or of the run in a folder.

    A run that is not finished gives the model of its last checkpoint, with a warning.

    Nothing in a file runs: its description names layers of handgrad and their settings.
    Raises RunError or DataError, in one sentence, for a file or folder that is missing, damaged or
    of another kind, and for one that holds weights alone.
    """
    location = as_path("load", path)
    if os.path.isdir(location):
        run = Run(location)
        if is_of_program(run.read_config()):
            run.resume_command = PROGRAM
        return read_trained(run.model, *run.load_model())
    if not os.path.lexists(location):
        raise DataError(
            f"{location} does not exist; expected the folder of a run or a .safetensors file"
        )
    return read_trained(location, *load_arrays(location, follow=True))
