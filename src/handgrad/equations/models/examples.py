"""Models by their names alone, small enough for a page: `hg.notes("gpt")`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad import losses, models
from handgrad.layers import Layer, TransformerEncoder


class NamedModel(NamedTuple):
    """A model with what `model_document` needs: the shape of an example, or several inputs."""

    model: Layer
    input_shape: tuple[int, ...] = ()
    inputs: tuple[Any, ...] = ()
    loss: Any = None


#: So many texts, which divides no other size.
_TEXTS: Final = 11
#: So many tokens, steps of a text, features, heads, units of a feed-forward network, and blocks.
_TOKENS, _STEPS, _WIDTH, _HEADS, _HIDDEN, _BLOCKS = 50, 7, 16, 2, 64, 4
_SIZES: Final[Mapping[str, int]] = {
    "context": 8,
    "width": _WIDTH,
    "heads": _HEADS,
    "hidden": _HIDDEN,
    "blocks": _BLOCKS,
}


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


def _of_tokens(make: Callable[..., Layer], **settings: Any) -> NamedModel:
    model = make(_TOKENS, rng=_rng(), **_SIZES, **settings)
    loss = losses.CrossEntropy(class_axis=-1) if make is not models.Bert else None
    return NamedModel(model, (_STEPS,), loss=loss)


def _encoder() -> NamedModel:
    model = TransformerEncoder(_BLOCKS, _WIDTH, _HEADS, _HIDDEN, rng=_rng())
    return NamedModel(model, (_STEPS, _WIDTH))


def _texts(steps: int, tokens: int) -> tuple[Any, Any]:
    return _rng().integers(0, tokens, (_TEXTS, steps)), steps - np.arange(_TEXTS) % 3


def _seq2seq() -> NamedModel:
    model = models.Seq2Seq(_TOKENS, 40, embedding=6, hidden=9, rng=_rng())
    inputs = (*_texts(_STEPS, _TOKENS), *_texts(5, 40))
    return NamedModel(model, inputs=inputs, loss=losses.CrossEntropy(class_axis=-1))


def _transformer() -> NamedModel:
    model = models.Transformer(
        _TOKENS,
        40,
        d_model=_WIDTH,
        heads=_HEADS,
        hidden=_HIDDEN,
        encoder_blocks=_BLOCKS,
        decoder_blocks=_BLOCKS,
        dropout=0.0,
        rng=_rng(),
    )
    inputs = (*_texts(_STEPS, _TOKENS), *_texts(5, 40))
    return NamedModel(model, inputs=inputs, loss=losses.CrossEntropy(class_axis=-1))


def _classifier() -> NamedModel:
    model = models.ClsEncoder(_WIDTH, 12, 10, 5, rng=_rng())
    return NamedModel(model, (_STEPS, _WIDTH), loss=losses.CrossEntropy())


def _cnn() -> NamedModel:
    model = models.CNN((1, 28, 28), (16, 32), 10, rng=_rng())
    return NamedModel(model, (1, 28, 28), loss=losses.CrossEntropy())


def _mlp() -> NamedModel:
    model = models.MLP((64, 32, 10), rng=_rng())
    return NamedModel(model, (64,), loss=losses.CrossEntropy())


MODELS: Final[Mapping[str, Callable[[], NamedModel]]] = {
    "bert": lambda: _of_tokens(models.Bert),
    "classifier": _classifier,
    "cnn": _cnn,
    "encoder": _encoder,
    "gpt": lambda: _of_tokens(models.GPT),
    "llama": lambda: _of_tokens(models.Llama),
    "mlp": _mlp,
    "seq2seq": _seq2seq,
    "transformer": _transformer,
}
