"""handgrad: neural networks with every gradient written out.

    import handgrad as hg

    rng = np.random.default_rng(0)
    model = hg.Sequential(hg.Dense(64, 32, activation="relu", rng=rng), hg.Dense(32, 10, rng=rng))
    y, cache = model.forward(x)
    loss, loss_cache = hg.losses.CrossEntropy().forward(y, target)
    dy = hg.losses.CrossEntropy().backward(loss_cache)
    dx, gradients = model.backward(dy, cache)

Every op is `hg.ops.<name>.forward` and `.backward`; everything else is built from them. Names are
loaded when first used, so that importing handgrad costs little, and so that the command line can
say in one sentence that HANDGRAD_ENGINE or HANDGRAD_ISA is wrong.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from handgrad import data, initializers, layers, losses, models, ops, optimizers, training
    from handgrad.checking import CheckReport, check
    from handgrad.derivation.notes import Notes, notes
    from handgrad.dispatch import (
        SKIP,
        engine,
        get_engine,
        get_precision,
        get_threads,
        precision,
        set_engine,
        set_precision,
        set_threads,
        threads,
    )
    from handgrad.layers import (
        GRU,
        LSTM,
        RNN,
        Activation,
        AddNorm,
        AvgPool2d,
        BatchNorm,
        Conv1d,
        Conv2d,
        ConvTranspose2d,
        Dense,
        Dropout,
        Embedding,
        FeedForward,
        Flatten,
        LastStep,
        LayerNorm,
        LeakyRNN,
        LearnedPositions,
        MaxPool2d,
        MultiHeadAttention,
        PositionalEncoding,
        Residual,
        RMSNorm,
        Sequential,
        Standardize,
        TransformerBlock,
        TransformerDecoder,
        TransformerEncoder,
    )
    from handgrad.memory import release_memory
    from handgrad.models import (
        CNN,
        GPT,
        MLP,
        ClsEncoder,
        Seq2Seq,
        SequenceClassifier,
        SequenceTagger,
        Transformer,
        TwoLayerNet,
    )
    from handgrad.products import matmul
    from handgrad.training import Trainer

__version__ = "0.2.0"

__all__ = [
    "CNN",
    "GPT",
    "GRU",
    "LSTM",
    "MLP",
    "RNN",
    "SKIP",
    "Activation",
    "AddNorm",
    "AvgPool2d",
    "BatchNorm",
    "CheckReport",
    "ClsEncoder",
    "Conv1d",
    "Conv2d",
    "ConvTranspose2d",
    "Dense",
    "Dropout",
    "Embedding",
    "FeedForward",
    "Flatten",
    "LastStep",
    "LayerNorm",
    "LeakyRNN",
    "LearnedPositions",
    "MaxPool2d",
    "MultiHeadAttention",
    "Notes",
    "PositionalEncoding",
    "RMSNorm",
    "Residual",
    "Seq2Seq",
    "SequenceClassifier",
    "SequenceTagger",
    "Sequential",
    "Standardize",
    "Trainer",
    "Transformer",
    "TransformerBlock",
    "TransformerDecoder",
    "TransformerEncoder",
    "TwoLayerNet",
    "check",
    "data",
    "engine",
    "get_engine",
    "get_precision",
    "get_threads",
    "initializers",
    "layers",
    "losses",
    "matmul",
    "models",
    "notes",
    "ops",
    "optimizers",
    "precision",
    "release_memory",
    "set_engine",
    "set_precision",
    "set_threads",
    "threads",
    "training",
]

_MODULES: Final = frozenset(
    {"data", "initializers", "layers", "losses", "models", "ops", "optimizers", "training"}
)
_MODELS: Final = (
    "CNN",
    "GPT",
    "MLP",
    "ClsEncoder",
    "Seq2Seq",
    "SequenceClassifier",
    "SequenceTagger",
    "Transformer",
    "TwoLayerNet",
)
_HOMES: Final = {
    **dict.fromkeys(_MODELS, "handgrad.models"),
    "matmul": "handgrad.products",
    "CheckReport": "handgrad.checking",
    "Trainer": "handgrad.training",
    "check": "handgrad.checking",
    "Notes": "handgrad.derivation.notes",
    "notes": "handgrad.derivation.notes",
    "release_memory": "handgrad.memory",
    **dict.fromkeys(("SKIP", "engine", "get_engine", "set_engine"), "handgrad.dispatch"),
    **dict.fromkeys(("get_precision", "precision", "set_precision"), "handgrad.dispatch"),
    **dict.fromkeys(("get_threads", "threads", "set_threads"), "handgrad.dispatch"),
}


def __getattr__(name: str) -> Any:
    """Load a name of `__all__` when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module 'handgrad' has no attribute {name!r}")
    if name in _MODULES:
        found: Any = import_module(f"handgrad.{name}")
    else:
        found = getattr(import_module(_HOMES.get(name, "handgrad.layers")), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
