"""Descriptions of models in files with right checksums, damaged and hostile: `hg.load`."""

from __future__ import annotations

import copy
import json
import resource
from pathlib import Path
from shutil import rmtree
from typing import Any, Final

import numpy as np

import handgrad as hg
from fuzz._judge import check_sentence
from fuzz.harness import Case, Fault
from fuzz.harness.surface import scratch
from handgrad.errors import HandgradError
from handgrad.inference.preprocessing import Preprocessing, Scale, Standardization
from handgrad.io.checkpoint import save_arrays
from handgrad.io.description import known_layers
from handgrad.io.files import description
from handgrad.layers import Layer

PATIENCE = 20.0
MEMORY = 512
_ALLOWANCE: Final = 200 << 20

_JUNK: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1, 2, 3, 17, 2**20, 2**31, 2**40, 2**63, 2**70, 1e308, -0.5, 1.5),
    *("", "relu", "pre", "orthogonal", "eval", "os.system", "Layer", "__init__", "x" * 3000),
    *([], [1], [2**20, 2**20], [[[]]], {}, {"class": "Dense"}, {"class": "Dense", "settings": {}}),
    *({"dtype": "float32"}, {"dtype": "object"}, {"array": [1.0], "dtype": "float64"}),
    *({"initializer": "zeros", "settings": {}}, {"initializer": "pathlib.Path", "settings": {}}),
    {"initializer": "constant", "settings": {"value": 1}},
)


def _models() -> list[hg.TrainedModel]:
    rng = np.random.default_rng(0)
    cnn = hg.CNN((1, 6, 6), (2, 3), 4, rng=rng, batch_norm=True, dropout=0.1)
    residual = hg.Residual(hg.Dense(3, 3, rng=rng), hg.Dense(3, 3, rng=rng))
    leaky = hg.LeakyRNN(3, 2, rng=rng, alpha=[0.1, 0.5])
    steps = Preprocessing((Scale(255.0), Standardization((0.0,), (1.0,))))
    return [
        hg.TrainedModel(cnn, "classification", tuple("abcd"), (1, 6, 6), steps),
        hg.TrainedModel(hg.Sequential(residual, hg.LayerNorm(3)), "regression", columns=("a",)),
        hg.TrainedModel(hg.Sequential(leaky, hg.LastStep()), "binary"),
        hg.TrainedModel(
            hg.GPT(7, context=5, width=4, heads=2, blocks=2, rng=rng),
            "text",
            tokenizers={"tokens": hg.data.Symbols("abcdefg")},
        ),
        hg.TrainedModel(hg.SequenceClassifier(3, 4, 2, rng=rng, bidirectional=True)),
    ]


MODELS: Final = _models()


def _spots(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value in a description."""
    found = [path] if path else []
    keys = value if isinstance(value, dict) else range(len(value) if isinstance(value, list) else 0)
    return found + [spot for key in keys for spot in _spots(value[key], (*path, key))]


def _damage(entries: dict[str, Any], rng: np.random.Generator) -> None:
    spots = _spots(entries)
    *path, last = spots[int(rng.integers(len(spots)))]
    inside: Any = entries
    for key in path:
        inside = inside[key]
    way = rng.random()
    if way < 0.15 and isinstance(inside, dict):
        del inside[last]
    elif way < 0.3 and isinstance(inside, dict):
        names = ("rng", "seed", "*layers", "dtype", "initializer", "self", "x", "in_features")
        inside[names[int(rng.integers(len(names)))]] = _JUNK[int(rng.integers(len(_JUNK)))]
    elif way < 0.4:
        classes = list(known_layers())
        settings = copy.deepcopy(entries["model"].get("settings", {}))
        name = classes[int(rng.integers(len(classes)))]
        inside[last] = {"class": name, "settings": settings}
    else:
        inside[last] = copy.deepcopy(_JUNK[int(rng.integers(len(_JUNK)))])


def draw(rng: np.random.Generator) -> Case:
    trained = MODELS[int(rng.integers(len(MODELS)))]
    entries = json.loads(description(trained))
    for _ in range(int(rng.integers(0, 4))):
        if isinstance(entries.get("model"), dict):
            _damage(entries, rng)
    text = json.dumps(entries)
    if rng.random() < 0.1:
        at = int(rng.integers(len(text)))
        text = text[:at] + ("[" * 100_000 if rng.random() < 0.3 else "}") + text[at:]
    arrays = {**trained.model.parameters, **trained.model.buffers}

    def program() -> str:
        return (
            "from pathlib import Path\n\nimport handgrad as hg\n"
            "from fuzz.model_files import MODELS\n"
            "from handgrad.io.checkpoint import save_arrays\n\n"
            f"model = MODELS[{MODELS.index(trained)}].model\n"
            "arrays = {**model.parameters, **model.buffers}\n"
            f"save_arrays(Path('x.safetensors'), arrays, {{'handgrad': {text[:20000]!r}}})\n"
            "hg.load('x.safetensors')\n"
        )

    return Case("hg.load", lambda: _load(arrays, text), program)


def _load(arrays: dict[str, Any], text: str) -> None:
    """Load the file: a model of handgrad's layers with these arrays, or one sentence."""
    path = Path(scratch()) / "model.safetensors"
    save_arrays(path, arrays, {"handgrad": text})
    size = path.stat().st_size
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        found = hg.load(path)
    except HandgradError as error:
        check_sentence(error)
        return
    finally:
        rmtree(path.parent)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
        if grown > 4 * size + _ALLOWANCE:
            raise Fault("memory", f"{grown >> 20} MiB for a file of {size} bytes")
    model: Layer = found.model
    for name, array in {**model.parameters, **model.buffers}.items():
        if array.tobytes() != np.asarray(arrays[name]).tobytes():
            raise Fault("silent mismatch", f"{name!r} has other values")
