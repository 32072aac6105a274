"""Models by their names alone, small enough for a page: `hg.notes("gpt")`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad import losses, models
from handgrad.layers import Layer, TransformerBlock, TransformerEncoder


class NamedModel(NamedTuple):
    """A model with what `model_document` needs: the shape of an example, or several inputs."""

    model: Layer
    input_shape: tuple[int, ...] = ()
    inputs: tuple[Any, ...] = ()
    loss: Any = None


class ExampleSizes(NamedTuple):
    """The sizes of models in examples: `texts` in a batch, `others` the tokens of a second
    language, `layers` and `image` those of networks without tokens."""

    texts: int
    tokens: int
    others: int
    steps: int
    later: int
    width: int
    heads: int
    hidden: int
    blocks: int
    states: tuple[int, int]
    classifier: tuple[int, int, int]
    layers: tuple[int, ...]
    image: tuple[int, int, int]
    channels: tuple[int, ...]


#: In letters; the number of texts divides no other size.
_USUAL: Final = ExampleSizes(
    *(11, 50, 40, 7, 5, 16, 2, 64, 4),
    states=(6, 9),
    classifier=(12, 10, 5),
    layers=(64, 32, 10),
    image=(1, 28, 28),
    channels=(16, 32),
)
#: In numbers.
_SMALL: Final = ExampleSizes(
    *(2, 5, 4, 3, 2, 4, 2, 4, 1),
    states=(2, 2),
    classifier=(4, 3, 3),
    layers=(3, 4, 2),
    image=(1, 4, 4),
    channels=(2,),
)


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


def _of_tokens(make: Callable[..., Layer], sizes: ExampleSizes) -> NamedModel:
    settings = {
        "context": sizes.steps + 1,
        "width": sizes.width,
        "heads": sizes.heads,
        "hidden": sizes.hidden,
        "blocks": sizes.blocks,
    }
    model = make(sizes.tokens, rng=_rng(), **settings)
    loss = losses.CrossEntropy(class_axis=-1) if make is not models.Bert else None
    return NamedModel(model, (sizes.steps,), loss=loss)


def _block(sizes: ExampleSizes) -> NamedModel:
    model = TransformerBlock(sizes.width, sizes.heads, sizes.hidden, rng=_rng())
    return NamedModel(model, (sizes.steps, sizes.width))


def _encoder(sizes: ExampleSizes) -> NamedModel:
    model = TransformerEncoder(sizes.blocks, sizes.width, sizes.heads, sizes.hidden, rng=_rng())
    return NamedModel(model, (sizes.steps, sizes.width))


def _pairs(sizes: ExampleSizes) -> tuple[Any, ...]:
    """Texts of two languages, each with their lengths."""
    both = (sizes.steps, sizes.tokens), (sizes.later, sizes.others)
    found: list[Any] = []
    for steps, tokens in both:
        found.append(_rng().integers(0, tokens, (sizes.texts, steps)))
        found.append(np.maximum(steps - np.arange(sizes.texts) % 3, 1))
    return tuple(found)


def _seq2seq(sizes: ExampleSizes) -> NamedModel:
    embedding, hidden = sizes.states
    model = models.Seq2Seq(
        sizes.tokens, sizes.others, embedding=embedding, hidden=hidden, rng=_rng()
    )
    return NamedModel(model, inputs=_pairs(sizes), loss=losses.CrossEntropy(class_axis=-1))


def _transformer(sizes: ExampleSizes) -> NamedModel:
    model = models.Transformer(
        sizes.tokens,
        sizes.others,
        d_model=sizes.width,
        heads=sizes.heads,
        hidden=sizes.hidden,
        encoder_blocks=sizes.blocks,
        decoder_blocks=sizes.blocks,
        dropout=0.0,
        rng=_rng(),
    )
    return NamedModel(model, inputs=_pairs(sizes), loss=losses.CrossEntropy(class_axis=-1))


def _classifier(sizes: ExampleSizes) -> NamedModel:
    model = models.ClsEncoder(sizes.width, *sizes.classifier, rng=_rng())
    return NamedModel(model, (sizes.steps, sizes.width), loss=losses.CrossEntropy())


def _cnn(sizes: ExampleSizes) -> NamedModel:
    *_, hidden, classes = sizes.layers
    model = models.CNN(sizes.image, sizes.channels, classes, hidden=hidden, rng=_rng())
    return NamedModel(model, sizes.image, loss=losses.CrossEntropy())


def _mlp(sizes: ExampleSizes) -> NamedModel:
    model = models.MLP(sizes.layers, rng=_rng())
    return NamedModel(model, sizes.layers[:1], loss=losses.CrossEntropy())


MODELS: Final[Mapping[str, Callable[[ExampleSizes], NamedModel]]] = {
    "bert": partial(_of_tokens, models.Bert),
    "block": _block,
    "classifier": _classifier,
    "cnn": _cnn,
    "encoder": _encoder,
    "gpt": partial(_of_tokens, models.GPT),
    "llama": partial(_of_tokens, models.Llama),
    "mlp": _mlp,
    "seq2seq": _seq2seq,
    "transformer": _transformer,
}


def named_model(name: str, *, small: bool) -> NamedModel:
    """A model of MODELS; a small one can be written with its numbers."""
    return MODELS[name](_SMALL if small else _USUAL)
