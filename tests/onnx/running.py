"""Models and files of ONNX that stand for all, and what onnxruntime makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import handgrad as hg
from handgrad.layers import Layer, walk
from tests.layers.cases import CASES
from tests.layers.cases import Case as LayerCase

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

#: What a dimension that may be any is, in two calls.
SIZES = ({"batch": 1, "time": 3, "source_time": 4}, {"batch": 4, "time": 7, "source_time": 5})


class Case(NamedTuple):
    name: str
    make: Callable[[np.random.Generator], Layer]
    settings: Mapping[str, Any] = {}
    vocabulary: int = 7


def in_float32(model: Layer) -> Layer:
    """The model with its arrays rounded: onnxruntime convolves in no other type."""
    for _, layer in walk(model):
        for name in (*layer.parameter_names, *layer.buffer_names):
            array = getattr(layer, name)
            if array is not None:
                setattr(layer, name, array.astype(np.float32))
    return model


def _of_layers(case: LayerCase) -> Case:
    settings = {"input_shape": case.shape[1:]}
    return Case(case.name, lambda rng: in_float32(case.make(rng)), settings)


def _recurrent(kind: type[Layer], **settings: Any) -> Case:
    said = "-".join(f"{name}-{value}" for name, value in settings.items())
    return Case(f"{kind.__name__}-{said}", lambda rng: kind(4, 6, rng=rng, **settings))


def _random_states(model: Layer) -> Layer:
    rng = np.random.default_rng(3)
    for _, layer in walk(model):
        for name in getattr(layer, "learned_states", ()):
            getattr(layer, name)[...] = rng.standard_normal(getattr(layer, name).shape)
    return model


#: Pad has no rule: the operator of that name in this version wants the number of x's axes. Levels
#: are no normal values: tests/layers/test_column_embeddings.py exports a layer of such.
EXPORTED = [case for case in CASES if not case.name.startswith("pad-") and not case.levels]
LAYERS = [_of_layers(case) for case in EXPORTED]
RECURRENT = [
    _recurrent(kind, **settings)
    for kind, own in ((hg.RNN, {}), (hg.GRU, {}), (hg.LSTM, {}), (hg.LeakyRNN, {"alpha": 0.3}))
    for settings in (
        own,
        {**own, "num_layers": 2, "bidirectional": True, "learn_h0": True},
        {**own, "bias": "input"},
        {**own, "bias": False},
    )
] + [
    _recurrent(hg.GRU, bias="recurrent"),
    _recurrent(hg.RNN, nonlinearity="relu", bidirectional=True),
    _recurrent(hg.LSTM, proj_size=3),
    _recurrent(hg.LSTM, proj_size=3, num_layers=2, bidirectional=True, learn_h0=True),
]


def _seq2seq(**settings: Any) -> Case:
    said = "-".join(map(str, settings.values()))

    def make(rng: np.random.Generator) -> Layer:
        given = {"embedding": 4, "hidden": 5, **settings}
        return hg.Seq2Seq(given.pop("sources", 7), 7, rng=rng, **given)

    return Case(f"seq2seq-{said}", make)


def _transformer(**settings: Any) -> Case:
    def make(rng: np.random.Generator) -> Layer:
        sizes = {"d_model": 8, "heads": 2, "hidden": 12, "encoder_blocks": 2, "decoder_blocks": 2}
        return hg.Transformer(7, 7, rng=rng, **sizes, **settings)

    return Case(f"transformer-{'-'.join(map(str, settings.values()))}", make)


def _gpt(**settings: Any) -> Case:
    def make(rng: np.random.Generator) -> Layer:
        return hg.GPT(7, context=8, width=8, heads=2, blocks=2, rng=rng, **settings)

    return Case(f"gpt-{'-'.join(map(str, settings.values()))}", make)


def _bert(**settings: Any) -> Case:
    def make(rng: np.random.Generator) -> Layer:
        return hg.Bert(7, context=8, width=8, heads=2, blocks=2, rng=rng, **settings)

    return Case(f"bert-{'-'.join(map(str, settings.values()))}", make)


def _with_lengths(case: Case) -> list[Case]:
    return [case, case._replace(name=f"{case.name}-lengths", settings={"lengths": True})]


CELLS = {"lstm": {}, "gru": {}, "rnn": {}, "leaky_rnn": {"alpha": 0.2}}
ENCODERS = (("gru", "gru", "additive"), ("lstm", "tanh", "cosine"), ("rnn", "sigmoid", "dot"))
MODELS = [
    Case("mlp", lambda rng: hg.MLP([5, 7, 3], rng=rng, activation="gelu")),
    Case("cnn", lambda rng: hg.CNN((1, 8, 9), [4, 6], 3, rng=rng, batch_norm=True)),
    Case("two-layer-net", lambda rng: hg.TwoLayerNet(4, 5, 6, 3, rng=rng)),
    Case("cls-encoder", lambda rng: hg.ClsEncoder(5, 6, 7, 3, rng=rng)),
    Case("cls-encoder-raw", lambda rng: hg.ClsEncoder(5, 6, 7, 3, rng=rng, standardize=None)),
    _gpt(),
    _gpt(positions="rotary", kv_heads=1, tied=False),
    _gpt(positions="sinusoidal", approximate="tanh", bias=False),
    *_with_lengths(_bert(pooling="none", activation="relu")),
    *_with_lengths(_bert(pooling="first", approximate="tanh")),
    *_with_lengths(_bert(pooling="mean")),
    *_with_lengths(_bert(pooling="mean", normalize=True)),
    Case(
        "llama",
        lambda rng: hg.Llama(
            7, context=8, width=8, heads=2, kv_heads=1, hidden=12, blocks=2, rng=rng
        ),
    ),
    Case(
        "qk-norm",
        lambda rng: hg.MultiHeadAttention(
            8, 2, rng=rng, rotary=True, rotary_base=100.0, qk_norm=True, bias=("q_proj",)
        ),
    ),
    *(
        case
        for cell, own in CELLS.items()
        for case in _with_lengths(
            Case(
                f"tagger-{cell}",
                lambda rng, cell=cell, own=own: hg.SequenceTagger(
                    4, 5, 3, rng=rng, cell=cell, vocabulary=7, **own
                ),
            )
        )
    ),
    *(
        case
        for cell, pooling in zip(CELLS, ("state", "mean", "max", "last"), strict=True)
        for case in _with_lengths(
            Case(
                f"classifier-{pooling}",
                lambda rng, cell=cell, pooling=pooling: hg.SequenceClassifier(
                    *(4, 5, 3),
                    rng=rng,
                    cell=cell,
                    pooling=pooling,
                    bidirectional=True,
                    num_layers=2,
                    **CELLS[cell],
                ),
            )
        )
    ),
    *(
        each
        for encoder, cell, score in ENCODERS
        for each in _with_lengths(_seq2seq(encoder=encoder, cell=cell, score=score))
    ),
    *_with_lengths(_seq2seq(sources=None, encoder="rnn", cell="sigmoid", feed=False)),
    *_with_lengths(_transformer()),
    *_with_lengths(_transformer(norm="pre", positions="learned", shared=True, tied=True)),
]


def made(case: Case) -> Layer:
    """The model of a case, learned states not 0, dropout or statistics as at inference."""
    return _random_states(case.make(np.random.default_rng(1)))


def session(path: Path) -> Any:
    """onnxruntime's, silent about what its own optimizer does."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def feeds(of: Any, case: Case, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Random inputs of a session, where every length that may be any has the one in `sizes`."""
    rng = np.random.default_rng(7)
    found: dict[str, np.ndarray] = {}
    for each in of.get_inputs():
        shape = [sizes.get(axis, 8) if isinstance(axis, str) else axis for axis in each.shape]
        if each.name.endswith("lengths"):
            most = sizes["source_time" if each.name.startswith("source") else "time"]
            found[each.name] = rng.integers(0, most + 1, shape)
            found[each.name][0] = most
        elif each.type == "tensor(int64)":
            found[each.name] = rng.integers(0, case.vocabulary, shape)
        else:
            found[each.name] = rng.standard_normal(shape, np.float32)
    return found


def outputs(model: Layer, given: Mapping[str, np.ndarray]) -> np.ndarray:
    """What forward gives for inputs by its own names; of a recurrent layer y alone."""
    if isinstance(model, hg.Seq2Seq | hg.Transformer):
        names = ("sources", "source_lengths", "inputs", "target_lengths")
        return model(*(given.get(name) for name in names))
    if isinstance(model, hg.Bert):
        return model(given["tokens"], lengths=given.get("lengths"))
    y, _ = model.forward_y(*given.values())
    return y
