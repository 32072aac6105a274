"""The entries of a config.json, each looked at before it is used.

An entry that nothing has looked at may change the numbers, so it is refused with its name, unless
it is known not to, or says what an absent one says. A null says that only where an absent entry is
null too, or says no; a size may be null, because the arrays have to fit what is taken for it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from handgrad.data.files import read_json
from handgrad.dispatch.values import shown
from handgrad.errors import DataError
from handgrad.escaping import listed, quoted

CONFIG: Final = "config.json"

_EXPECTED: Final = "the description of a model"
#: Entries that change no number of a forward: names and versions, tokens, labels, dropout, first
#: weights, generation, heads that are not read, memory, and what old files say to no effect.
_WITHOUT_EFFECT: Final = re.compile(
    r"_.*|architectures|auto_map|transformers(_|\.).*|unsloth_.*|(torch_)?dtype|tokenizer_class"
    r"|torchscript|is_llama_config|model_name|.*_token_ids?|prefix|id2label|label2id|num_labels"
    r"|problem_type|finetuning_task|task_specific_params|summary_.*|classifier_dropout|pooler_.*"
    r"|.*dropout(_prob)?|(attn|embd|resid)_pdrop|initializer_range|use_cache|output_.*|return_dict.*"
    r"|max_length|min_length|do_sample|num_beams|temperature|top_k|top_p|repetition_penalty"
    r"|gradient_checkpointing|chunk_size_feed_forward|pretraining_tp|reorder_and_upcast_attn|n_ctx"
    r"|tie_word_embeddings|directionality|length_penalty"
    r"|num_return_sequences|num_beam_groups|typical_p|early_stopping|(encoder_)?no_repeat_ngram_size"
    r"|diversity_penalty|bad_words_ids|(begin_)?suppress_tokens|remove_invalid_values|forced_.*"
    r"|exponential_decay_length_penalty|tf_legacy_loss|use_bfloat16|predict_special_tokens|layerdrop"
)


class Config:
    """A config.json. What its entries are not allowed to be ends in a DataError."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / CONFIG
        values, _ = read_json(self.path, _EXPECTED)
        if not isinstance(values, dict):
            raise DataError(f"{self.path} is no table; expected {_EXPECTED}")
        self.values: dict[str, Any] = values
        self._used: set[str] = set()

    def integer(self, name: str, default: int | None = None) -> int:
        """A size. Raises DataError where it is missing and there is no default."""
        value = self._value(name, None)
        value = default if value is None else value
        if type(value) is not int or value < 1:
            raise self.error(name, value, "a whole number from 1")
        return value

    def optional_integer(self, name: str) -> int | None:
        return None if self._value(name, None) is None else self.integer(name)

    def number(self, name: str, default: float) -> float:
        return self.positive(name, self._value(name, default))

    def positive(self, name: str, value: Any) -> float:
        """The value of an entry, or of one in a table, as a float."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (is_number and 0 < value <= sys.float_info.max):
            raise self.error(name, value, "a number above 0")
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        value = self._value(name, default)
        if not isinstance(value, bool):
            raise self.error(name, value, "true or false")
        return value

    def table(self, name: str) -> dict[str, Any]:
        """A table, empty where there is none."""
        value = self._value(name, {})
        if not isinstance(value, dict):
            raise self.error(name, value, "a table or null")
        return value

    def entry(self, name: str) -> Any:
        """The value of an entry as it is, None where there is none."""
        return self._value(name, None)

    def choice(self, name: str, allowed: Sequence[str], default: str | None = None) -> str:
        value = self._value(name, default)
        if value not in allowed:
            raise self.error(name, value, " or ".join(allowed))
        return str(value)

    def require(self, **needed: Any) -> None:
        """Raise DataError for an entry that is there and has another value."""
        for name, value in needed.items():
            found = self._value(name, value)
            if found != value:
                raise self.error(name, found, repr(value) if value is not None else "null")

    def without_effect(self) -> dict[str, Any]:
        """The entries that change no number of a forward, such as those of generation."""
        return {
            name: value
            for name, value in self.values.items()
            if name not in self._used and _WITHOUT_EFFECT.fullmatch(name)
        }

    def refuse_unread(self) -> None:
        """Raise DataError for what nothing has looked at, where it may change the numbers."""
        known = self._used | self.without_effect().keys()
        names = [
            quoted(name)
            for name, value in self.values.items()
            if name not in known and not (value is None or value is False or value in ("", [], {}))
        ]
        if names:
            raise DataError(
                f"{self.path}: nothing here knows {listed(names, 5)}; expected entries that are "
                "known, because others may change the numbers: take them out if they do not"
            )

    def error(self, name: str, found: Any, expected: str) -> DataError:
        text = "missing" if found is None and name not in self.values else shown(found)
        return DataError(f"{self.path}: {name} is {text}; expected {expected}")

    def _value(self, name: str, default: Any) -> Any:
        self._used.add(name)
        found = self.values.get(name, default)
        return default if found is None and not default else found
