"""ONNX: models to files that other runtimes run, and such files to models.

    hg.export_onnx(model, "model.onnx")
    hg.import_onnx("model.onnx").model
    hg.export_training(model, loss, optimizer, "training.onnx", (x, targets))

Needs onnx, which is loaded with the first call: `pip install 'handgrad[onnx]'`; docs/onnx.md says
more.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from handgrad.errors import ArgumentError

if TYPE_CHECKING:
    from handgrad.arrays import Array
    from handgrad.inference.trained import TrainedModel
    from handgrad.layers.base import Layer
    from handgrad.losses import Loss
    from handgrad.optimizers import Optimizer

__all__ = ["export_onnx", "export_training", "import_onnx"]


def export_onnx(
    model: Layer | TrainedModel,
    path: str | os.PathLike[str],
    *,
    input_shape: Sequence[int | None] | None = None,
    lengths: bool = False,
) -> None:
    """Write a model as ONNX, operators of version 17, computing what `model(x)` does.

    The batch and the steps of a sequence may have any length. `input_shape` is that of one example,
    in which None may be any length; it is needed where the first layer takes various shapes. With
    `lengths` the graph also takes how many steps of each sequence count, integers (N,): `lengths`,
    or `source_lengths` and `target_lengths`, as forward does. Inputs have the names of forward's
    arguments, tokens and lengths are int64, and the output is `y`.

    The metadata have the classes and the preprocessing of a trained model as JSON, and under
    "handgrad" what `hg.import_onnx` makes the same model of. What stands before the model, such as
    standardization, is not part of the graph.

    Raises ArgumentError for a layer that ONNX has no operators for, and RunError where the file
    cannot be written.
    """
    _check_installed("export_onnx")
    from handgrad.onnx.export.file import write

    write(model, path, input_shape, lengths)


def export_training(
    model: Layer,
    loss: Loss,
    optimizer: Optimizer,
    path: str | os.PathLike[str],
    batch: tuple[object, object],
    *,
    start: str | os.PathLike[str] | None = None,
) -> dict[str, Array]:
    """Write a training step as one ONNX graph: forward, loss, backward and the optimizer's update.

    The operators are standard ones of version 17, so that any runtime of ONNX trains with the file,
    also in a browser or on a phone. `batch` is an example, (inputs, targets), each one array or a
    tuple of them, whose shapes are those of the graph; the numbers in it do not matter. The graph's
    inputs are those of forward under their names, `target`, `lr`, `step` (the steps made so far,
    where the optimizer counts them), and the state: parameters and buffers under their own names,
    the optimizer's as `m.linear1.weight`. Its outputs are `loss` and the new state, each array as
    `new.<name>`.

    The state to start from comes back by name; with `start` it is also written there, as a graph
    without inputs whose outputs it is. Raises ArgumentError for a model that draws random numbers
    in training, and for a step with a function that has no rule, and RunError where a file cannot
    be written.
    """
    _check_installed("export_training")
    from handgrad.onnx.training.file import write

    return write(model, loss, optimizer, path, batch, start)


def import_onnx(
    path: str | os.PathLike[str],
    *,
    start: str | None = None,
    end: str | None = None,
    time_first: bool = False,
) -> TrainedModel:
    """The model in an ONNX file, as handgrad's layers; its `model` computes what the graph does.

    A file of `hg.export_onnx` gives back the model that was written, with its classes and
    preprocessing, as long as nobody changed its graph. Of other files those are read whose nodes
    follow one another as layers do, which gives a `Sequential`: convolutions, poolings, dense and
    recurrent layers, normalisations, activations. `start` and `end` are names of values, and ask
    for the part of the graph between the two. An RNN that PyTorch's newer exporter took apart into
    its steps becomes one layer. With `time_first` the value at the start is (T, N, features), as
    `batch_first=False` writes; the layers take (N, T, features) in its place, and give time behind
    the batch where the graph gives it in front.

    Nothing in a file runs. Raises DataError, in one sentence, for a file that is missing, damaged
    or not of ONNX, and for a graph with a node that no layer computes, which it names.
    """
    _check_installed("import_onnx")
    from handgrad.onnx.imports.file import read

    return read(path, start, end, time_first)


def _check_installed(name: str) -> None:
    if find_spec("onnx") is None:
        raise ArgumentError(
            f"{name}: onnx is not installed; allowed: after pip install 'handgrad[onnx]'"
        )
