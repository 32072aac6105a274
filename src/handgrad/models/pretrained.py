"""Models that are read from, and written into, folders in the layout of Hugging Face."""

from __future__ import annotations

import os
from typing import Any, Self

from handgrad.layers.base import Layer
from handgrad.layers.transformer import TransformerEncoder
from handgrad.lazy import public


class Pretrained(Layer):
    """A model with a layout of theirs."""

    # A slot, because it is no setting: what a model computes does not depend on it.
    __slots__ = ("_kept_entries",)
    _kept_entries: dict[str, object]

    blocks: TransformerEncoder

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A layer of its own that keeps the entries of its folder."""
        twin = super().__deepcopy__(memo)
        twin.kept_entries = dict(self.kept_entries)
        return twin

    @property
    def kept_entries(self) -> dict[str, object]:
        """Entries of the config.json it was read from that change no number, such as end tokens."""
        return getattr(self, "_kept_entries", {})

    @kept_entries.setter
    def kept_entries(self, entries: dict[str, object]) -> None:
        self._kept_entries = entries

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

        What a folder says beside the numbers, such as the tokens that end a text, is kept by a
        model that was read from it, and written again.

        Raises ArgumentError for a setting that the layout has no entry for, RunError where the
        folder cannot be written.
        """
        public("hf").save(self, folder)
