"""Every model with a loss and a batch, small, for the steps of JAX and of this engine alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

import handgrad as hg

Case = tuple[hg.layers.Layer, Any, tuple[Any, ...], Any]

LENGTHS: Final = np.array([5, 3, 0, 1])


def _rng() -> np.random.Generator:
    return np.random.default_rng(7)


def _x(*shape: int) -> np.ndarray:
    return _rng().normal(size=shape)


def _tokens(high: int, *shape: int) -> np.ndarray:
    return _rng().integers(0, high, shape)


def _each() -> hg.losses.CrossEntropy:
    return hg.losses.CrossEntropy()


def _every_step() -> hg.losses.CrossEntropy:
    return hg.losses.CrossEntropy(class_axis=-1)


def _settings(**others: Any) -> dict[str, Any]:
    return {"rng": _rng(), "dtype": np.float64, **others}


def mlp() -> Case:
    return hg.MLP([5, 7, 3], **_settings()), _each(), (_x(4, 5),), _tokens(3, 4)


def cnn() -> Case:
    return hg.CNN((1, 8, 8), [2, 3], 3, **_settings()), _each(), (_x(4, 1, 8, 8),), _tokens(3, 4)


def batch_norm() -> Case:
    layers = (
        hg.Conv2d(1, 4, 3, bias=False, **_settings()),
        hg.BatchNorm(4, dtype=np.float64),
        hg.Activation("relu"),
        hg.MaxPool2d(2),
        hg.Flatten(),
        hg.Dense(36, 3, **_settings()),
    )
    return hg.Sequential(*layers), _each(), (_x(4, 1, 8, 8),), _tokens(3, 4)


def two_layer_net() -> Case:
    return hg.TwoLayerNet(5, 4, 8, 3, **_settings()), _each(), (_x(4, 5, 4),), _tokens(3, 4)


def cls_encoder() -> Case:
    return hg.ClsEncoder(4, 8, 6, 3, **_settings()), _each(), (_x(4, 5, 4),), _tokens(3, 4)


def tagger(cell: str, **others: Any) -> Callable[[], Case]:
    def make() -> Case:
        model = hg.SequenceTagger(4, 6, 3, cell=cell, **_settings(**others))
        return model, _every_step(), (_x(4, 5, 4), LENGTHS), _tokens(3, 4, 5)

    return make


def classifier(pooling: str) -> Callable[[], Case]:
    def make() -> Case:
        model = hg.SequenceClassifier(4, 6, 3, pooling=pooling, bidirectional=True, **_settings())
        return model, _each(), (_x(4, 5, 4), LENGTHS), _tokens(3, 4)

    return make


def gpt(**others: Any) -> Callable[[], Case]:
    def make() -> Case:
        model = hg.GPT(11, context=6, width=8, blocks=2, heads=2, **_settings(**others))
        return model, _every_step(), (_tokens(11, 2, 6),), _tokens(11, 2, 6)

    return make


def llama() -> Case:
    sizes = {"context": 6, "width": 8, "blocks": 2, "heads": 2, "hidden": 12, "kv_heads": 1}
    model = hg.Llama(11, qk_norm=True, **_settings(**sizes))
    return model, _every_step(), (_tokens(11, 2, 6),), _tokens(11, 2, 6)


def bert(pooling: str) -> Callable[[], Case]:
    def make() -> Case:
        sizes = {"context": 6, "width": 8, "blocks": 1, "heads": 2, "pooling": pooling}
        model = hg.Bert(11, **_settings(**sizes))
        return model, _each(), (_tokens(11, 4, 6), _tokens(2, 4, 6)), _tokens(8, 4)

    return make


def seq2seq(**others: Any) -> Callable[[], Case]:
    def make() -> Case:
        model = hg.Seq2Seq(11, 7, embedding=4, hidden=6, **_settings(**others))
        inputs = _tokens(11, 4, 5), LENGTHS, _tokens(7, 4, 2), np.array([2, 1, 0, 2])
        return model, _every_step(), inputs, _tokens(7, 4, 2)

    return make


def transformer() -> Case:
    sizes = {"d_model": 8, "heads": 2, "hidden": 16, "encoder_blocks": 1, "decoder_blocks": 1}
    model = hg.Transformer(9, 9, dropout=0.0, shared=True, tied=True, **_settings(**sizes))
    inputs = _tokens(9, 4, 5), LENGTHS, _tokens(9, 4, 3)
    return model, _every_step(), inputs, _tokens(9, 4, 3)


CASES: Final[dict[str, Callable[[], Case]]] = {
    "mlp": mlp,
    "cnn": cnn,
    "batch-norm": batch_norm,
    "two-layer-net": two_layer_net,
    "cls-encoder": cls_encoder,
    "lstm": tagger("lstm", num_layers=2, proj_size=3),
    "gru": tagger("gru", learn_h0=True),
    "rnn": tagger("rnn", bidirectional=True),
    "classifier": classifier("max"),
    "gpt": gpt(tied=True),
    "seq2seq": seq2seq(),
    "transformer": transformer,
}
#: Other settings, whose steps are traced and not compiled, which takes far longer.
TRACED: Final[dict[str, Callable[[], Case]]] = {
    "leaky-rnn": tagger("leaky_rnn", alpha=0.3),
    "rnn-two-layers": tagger("rnn", num_layers=2, bias="input"),
    "classifier-state": classifier("state"),
    "classifier-mean": classifier("mean"),
    "classifier-last": classifier("last"),
    "gpt-rotary": gpt(positions="rotary", kv_heads=1, bias=False),
    "gpt-sinusoidal": gpt(positions="sinusoidal"),
    "llama": llama,
    "bert-mean": bert("mean"),
    "bert-first": bert("first"),
    "seq2seq-cosine": seq2seq(score="cosine", cell="sigmoid", feed=False),
    "seq2seq-dot": seq2seq(score="dot", cell="tanh", encoder="lstm"),
}
