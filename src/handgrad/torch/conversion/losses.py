"""Losses of PyTorch as losses of handgrad: one way, because those of handgrad have no weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from torch import nn

from handgrad.losses import BinaryCrossEntropy, CrossEntropy, CTCLoss, Loss, SquaredError
from handgrad.torch.conversion.pair import ModulePath, computes_as, to_array


class _Read(NamedTuple):
    """The loss, the settings of one name on both sides, and those of them that are arrays."""

    loss: type[Loss]
    settings: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ()


_LOSSES: Final[Mapping[Any, _Read]] = {
    nn.MSELoss: _Read(SquaredError),
    nn.BCEWithLogitsLoss: _Read(BinaryCrossEntropy, arrays=("weight", "pos_weight")),
    nn.CrossEntropyLoss: _Read(CrossEntropy, ("label_smoothing", "ignore_index"), ("weight",)),
    nn.CTCLoss: _Read(CTCLoss, ("blank", "zero_infinity")),
}
NAMES: Final = tuple(kind.__name__ for kind in _LOSSES)


def convert_loss(module: Any, path: ModulePath) -> Loss | None:
    """The loss for a module; None where it is none of these losses.

    Raises ArgumentError for one with a forward of its own.
    """
    for kind, read in _LOSSES.items():
        if isinstance(module, kind):
            if not computes_as(module, kind):
                raise path.refusal(module, "has a forward of its own", f"nn.{kind.__name__}")
            settings = {name: getattr(module, name) for name in ("reduction", *read.settings)}
            for name in read.arrays:
                tensor = getattr(module, name)
                settings[name] = None if tensor is None else to_array(path, module, name, tensor)
            return read.loss(**settings)
    return None
