"""Models that are read from, and written into, folders in the layout of Hugging Face."""

from __future__ import annotations

import os
from typing import Self

from handgrad.layers.base import Layer
from handgrad.layers.transformer import TransformerEncoder
from handgrad.lazy import public


class Pretrained(Layer):
    """A model with a layout of theirs."""

    blocks: TransformerEncoder

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike[str], **settings: object) -> Self:
        """The model of a folder with `config.json` and `model.safetensors`, or its parts.

        `settings` of the constructor go before those of the config, such as `dropout`, which is 0
        unless given here. Weights of 16 bits become float32. Nothing is downloaded. A warning names
        weights of the folder that the model has no place for.

        Raises DataError, in one sentence, for what is missing, damaged, of another architecture or
        has a setting without counterpart here.
        """
        model: Self = public("hf").load(cls, folder, **settings)
        return model

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write `config.json` and `model.safetensors` in float32, as `transformers` reads them.

        Raises ArgumentError for a setting that the layout has no entry for, RunError where the
        folder cannot be written.
        """
        public("hf").save(self, folder)
