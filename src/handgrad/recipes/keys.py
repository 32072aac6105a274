"""The keys that each table of a recipe has, and their allowed values."""

from __future__ import annotations

from typing import Any, Final

from handgrad.data.encoding import GIVEN
from handgrad.data.pairs import UNITS as PAIR_UNITS
from handgrad.data.text import UNITS as TEXT_UNITS
from handgrad.models.adapting import BIASES
from handgrad.models.decoder_cells import CELLS as DECODER_CELLS
from handgrad.models.decoder_scores import SCORES
from handgrad.models.seq2seq import ENCODERS
from handgrad.models.sequence_classifier import POOLINGS
from handgrad.models.sequence_tagger import CELLS
from handgrad.ops.activation import ACTIVATIONS
from handgrad.ops.rnn import NONLINEARITIES
from handgrad.recipes.constructors import BIAS, INITIALIZER, KEYS
from handgrad.recipes.schema import (
    Either,
    Flag,
    Integer,
    Key,
    Keys,
    Mapped,
    Real,
    Several,
    String,
    Tables,
)
from handgrad.training.review import FIGURES
from handgrad.training.settings import BACKENDS

_COUNT: Final = Integer(1)
_RATE: Final = Real(0, below=1)
_NOT_NEGATIVE: Final = Real(0)
_POSITIVE: Final = Real(above=0)
SECTIONS: Final = (
    "about",
    "data",
    "model",
    "loss",
    "optimizer",
    "schedule",
    "augmentation",
    "training",
)
#: Keys that every [data] has.
_DATA: Final[Keys] = {"name": Key(String(), required=True), "path": Key(String())}
#: Examples with one class each, or a number. shape, classes, maximum, target, columns, encoding,
#: mean, std and those of the targets are also what a run's config.toml keeps of its data;
#: class_weights are that alone.
_CLASSIFIED: Final[Keys] = {
    **_DATA,
    "validation": Key(_RATE),
    "shape": Key(Several(_COUNT, (1, 2, 3))),
    "maximum": Key(_POSITIVE),
    "resize": Key(Several(_COUNT, (2,))),
    "classes": Key(Several(String())),
    "target": Key(String()),
    "use": Key(Several(String())),
    "drop": Key(Several(String())),
    "kinds": Key(Mapped(String(GIVEN))),
    "columns": Key(Several(String())),
    "encoding": Key(String()),
    "standardize": Key(String(("all", "channels"))),
    "mean": Key(Several(Real(None))),
    "std": Key(Several(_POSITIVE)),
    "class_weights": Key(Several(_POSITIVE)),
    "target_mean": Key(Several(Real(None), (1,))),
    "target_std": Key(Several(_POSITIVE, (1,))),
}
#: A text to continue.
_TEXT: Final[Keys] = {
    **_DATA,
    "unit": Key(String(TEXT_UNITS)),
    "block": Key(_COUNT, required=True),
    "blocks": Key(_COUNT),
    "validation": Key(_RATE),
    "vocabulary": Key(_COUNT),
}
#: Pairs of texts, each of these sets with its own settings.
_VOCABULARIES: Final[Keys] = {"vocabularies": Key(Several(_COUNT, (2,)))}
_DATES: Final[Keys] = {
    **_DATA,
    **_VOCABULARIES,
    **dict.fromkeys(("train", "validation", "test"), Key(_COUNT)),
    "locales": Key(Several(String())),
    "ascii": Key(Flag()),
}
_PRONOUNCE: Final[Keys] = {
    **_DATA,
    **_VOCABULARIES,
    **dict.fromkeys(("stress", "alternates"), Key(Flag())),
    **dict.fromkeys(("validation", "test"), Key(_RATE)),
}
_PAIRS: Final[Keys] = {
    **_DATA,
    **_VOCABULARIES,
    "unit": Key(String(PAIR_UNITS)),
    "size": Key(_COUNT),
    "longest": Key(_COUNT),
    **dict.fromkeys(("validation", "test"), Key(_RATE)),
}


def data_keys(model: str, data: Any) -> Keys:
    """The keys of [data] for this type of model, and of this data."""
    match task_of(model):
        case "text":
            return _TEXT
        case "pairs":
            name = data.get("name", "") if isinstance(data, dict) else ""
            return {"dates": _DATES, "pronounce": _PRONOUNCE}.get(str(name), _PAIRS)
        case _:
            return _CLASSIFIED


def task_of(model: str) -> str:
    """The task of a type of model: "classification", "text" or "pairs"."""
    return _TASKS.get(model, "classification")


_TASKS: Final = {
    "gpt": "text",
    "pretrained": "text",
    "seq2seq": "pairs",
    "transformer": "pairs",
}


#: The seconds of a training on two cores, the figure that it reaches, a share of 1, and the Python
#: packages that it needs beside those of handgrad.
ABOUT: Final[Keys] = {
    "seconds": Key(_POSITIVE),
    "measure": Key(String(("accuracy", *FIGURES))),
    "expected": Key(_POSITIVE),
    "packages": Key(Several(String())),
}
TRAINING: Final = {
    "epochs": Key(_COUNT, required=True),
    "batch_size": Key(_COUNT),
    "seed": Key(Integer(0)),
    "accumulate": Key(_COUNT),
    "parts": Key(_COUNT),
    "exact": Key(Flag()),
    "sync_batch_norm": Key(Flag()),
    "clip_norm": Key(_POSITIVE),
    "precision": Key(String(("float32", "bf16"))),
    "backend": Key(String(BACKENDS)),
    "devices": Key(_COUNT),
    "early_stopping": Key(_COUNT),
    "keep_best": Key(Flag()),
    "class_weights": Key(Either(String(("balanced",)), Mapped(_POSITIVE))),
    "threshold": Key(Real(above=0, below=1)),
}

LAYERS: Final[dict[str, Keys]] = {
    **KEYS,
    "residual": {"layers": Key(Tables(), required=True), "projection": Key(Tables())},
}
#: The settings of `handgrad.lora.adapt` for a model that is trained by LoRA.
ADAPTER: Final[Keys] = {
    "rank": Key(_COUNT),
    "alpha": Key(_POSITIVE),
    "targets": Key(Several(String())),
    "lora_dropout": Key(_RATE),
    "bias": Key(String(BIASES)),
}
MODELS: Final[dict[str, Keys]] = {
    "sequence_classifier": {
        "hidden_size": Key(_COUNT, required=True),
        "cell": Key(String(tuple(CELLS))),
        "num_layers": Key(_COUNT),
        "bidirectional": Key(Flag()),
        "dropout": Key(Real(0, 1)),
        "head_dropout": Key(Real(0, 1)),
        "pooling": Key(String(POOLINGS)),
        "bias": Key(BIAS),
        "learn_h0": Key(Flag()),
        "nonlinearity": Key(String(NONLINEARITIES)),
        "alpha": Key(Real(0, 1)),
        "proj_size": Key(_COUNT),
        "forget_bias": Key(Real(None)),
    },
    "cls_encoder": {
        "d1": Key(_COUNT, required=True),
        "d2": Key(_COUNT, required=True),
        "standardize": Key(String(("example", "none"))),
        "initializer": Key(INITIALIZER),
    },
    "two_layer_net": {
        "hidden": Key(_COUNT, required=True),
        "standardize": Key(String(("example", "none"))),
        "initializer": Key(INITIALIZER),
    },
    "seq2seq": {
        "embedding": Key(_COUNT, required=True),
        "hidden": Key(_COUNT, required=True),
        "decoder_hidden": Key(_COUNT),
        "score": Key(String(SCORES)),
        "encoder": Key(String(ENCODERS)),
        "cell": Key(String(DECODER_CELLS)),
        "feed": Key(Flag()),
        "num_layers": Key(_COUNT),
        "dropout": Key(Real(0, 1)),
        "bias": Key(BIAS),
        "learn_h0": Key(Flag()),
    },
    "transformer": {
        "d_model": Key(_COUNT),
        "heads": Key(_COUNT),
        "hidden": Key(_COUNT),
        "encoder_blocks": Key(_COUNT),
        "decoder_blocks": Key(_COUNT),
        "dropout": Key(Real(0, 1)),
        "norm": Key(String(("pre", "post"))),
        "activation": Key(String(ACTIVATIONS)),
        "positions": Key(String(("sinusoidal", "learned"))),
        "longest": Key(_COUNT),
        "shared": Key(Flag()),
        "tied": Key(Flag()),
    },
    "gpt": {
        "width": Key(_COUNT, required=True),
        "heads": Key(_COUNT, required=True),
        "blocks": Key(_COUNT, required=True),
        "hidden": Key(_COUNT),
        "dropout": Key(Real(0, 1)),
        "bias": Key(Flag()),
        "approximate": Key(String(("none", "tanh"))),
        "positions": Key(String(("learned", "rotary", "sinusoidal"))),
        "tied": Key(Flag()),
        "kv_heads": Key(_COUNT),
        "recompute": Key(Flag()),
    },
    "pretrained": {
        "folder": Key(String(), required=True),
        "method": Key(String(("lora", "full"))),
        **ADAPTER,
        "recompute": Key(Flag()),
    },
}
LOSSES: Final[dict[str, Keys]] = {
    "cross_entropy": {"label_smoothing": Key(Real(0, 1))},
    "mse": {},
}
_ADAM: Final[Keys] = {
    "lr": Key(_POSITIVE),
    "betas": Key(Several(_RATE, (2,))),
    "eps": Key(_NOT_NEGATIVE),
    "weight_decay": Key(_NOT_NEGATIVE),
}
_SGD: Final[Keys] = {"lr": Key(_POSITIVE), "weight_decay": Key(_NOT_NEGATIVE)}
OPTIMIZERS: Final[dict[str, Keys]] = {
    "sgd": _SGD,
    "momentum": {
        **_SGD,
        "momentum": Key(_RATE),
        "form": Key(String(("averaged", "classical"))),
    },
    "nesterov": {**_SGD, "momentum": Key(_RATE)},
    "rmsprop": {**_SGD, "alpha": Key(_RATE), "eps": Key(_NOT_NEGATIVE)},
    "adam": _ADAM,
    "adamw": _ADAM,
}
SCHEDULES: Final[dict[str, Keys]] = {
    "constant": {},
    "step": {"epochs": Key(_POSITIVE, required=True), "gamma": Key(_POSITIVE)},
    "cosine": {"eta_min": Key(_NOT_NEGATIVE), "warmup": Key(_POSITIVE)},
    "linear_warmup": {"epochs": Key(_POSITIVE, required=True), "start_factor": Key(Real(0, 1))},
    "one_cycle": {
        "pct_start": Key(_RATE),
        "div_factor": Key(_POSITIVE),
        "final_div_factor": Key(_POSITIVE),
    },
}
AUGMENTATIONS: Final[dict[str, Keys]] = {
    "affine": {
        "rotation": Key(_NOT_NEGATIVE),
        "scale": Key(_RATE),
        "shear": Key(_NOT_NEGATIVE),
        "shift": Key(_NOT_NEGATIVE),
        "elastic": Key(_NOT_NEGATIVE),
        "grid": Key(Integer(2)),
        "fill": Key(Real(None)),
    },
    "shift": {"pixels": Key(_COUNT, required=True), "fill": Key(Real(None))},
    "flip": {"probability": Key(Real(0, 1))},
}
