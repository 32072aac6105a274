"""State dicts with right names and arrays, and with wrong ones, loaded into layers."""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np

from fuzz._judge import check_sentence
from fuzz._operands import Operand, evaluated, junk, random_layout, sprinkle
from fuzz.harness import Case, Fault
from handgrad.errors import HandgradError
from handgrad.layers import (
    BatchNorm,
    Conv2d,
    Dense,
    Embedding,
    Layer,
    LayerNorm,
    MultiHeadAttention,
    Sequential,
    TransformerBlock,
    TransformerDecoder,
    TransformerEncoder,
)

PATIENCE = 10.0
_PARTS: Final = (
    *("0", "1", "weight", "bias", "gamma", "beta", "attention", "cross_attention", "feed_forward"),
    *("inner", "norm", "linear1", "linear2", "q_proj", "o_proj", "self_attn", "in_proj_weight"),
    *("running_mean", "num_batches_tracked", "", "é", "x" * 300),
)


@functools.cache
def _layer(kind: int, dtype: str) -> Layer:
    ours: dict[str, Any] = {"rng": np.random.default_rng(0), "dtype": np.dtype(dtype)}
    if kind == 0:
        return MultiHeadAttention(4, 2, **ours)
    if kind == 1:
        return TransformerBlock(4, 2, 6, **ours)
    if kind == 2:
        return TransformerEncoder(2, 4, 2, 6, **ours)
    if kind == 3:
        return TransformerDecoder(1, 4, 2, 6, **ours)
    if kind == 4:
        return Sequential(Dense(3, 4, **ours), Embedding(5, 3, **ours))
    return Sequential(Conv2d(2, 3, 2, **ours), BatchNorm(3, dtype=dtype), LayerNorm(3))


def draw(rng: np.random.Generator) -> Case:
    kind, dtype = int(rng.integers(6)), str(rng.choice(("float32", "float64")))
    layer = _layer(kind, dtype)
    shapes = {name: tuple(array.shape) for name, array in layer.parameters.items()}
    state: dict[Any, Any] = {}
    code: list[str] = []

    def put(name: Any, value: Any, text: str) -> None:
        state[name] = value
        code.append(f"    {name!r}: {text},")

    wrong = int(rng.choice(4, p=(0.35, 0.4, 0.2, 0.05)))
    damaged = set(rng.integers(0, len(shapes), wrong).tolist())
    for number, (name, shape) in enumerate(shapes.items()):
        values = rng.standard_normal(shape).astype(rng.choice(("f4", "f8", "f2")))
        if rng.random() < 0.1:
            values = sprinkle(values, rng)
        operand = Operand(values)
        operand.lay(random_layout(rng))
        if number not in damaged:
            put(name, operand.array(), operand.code())
            continue
        way = int(rng.integers(4))
        if way == 0:
            continue
        if way == 1:
            text = junk(rng, values)
            put(name, evaluated(text, values), text)
        elif way == 2:
            words = [str(_PARTS[i]) for i in rng.integers(0, len(_PARTS), rng.integers(1, 5))]
            put(".".join(words), values, f"np.ones({shape})")
        else:
            put(name, values, f"np.ones({shape})")
            text = junk(rng, None)
            key = evaluated(text)
            hashable = getattr(type(key), "__hash__", None) is not None
            put(key if hashable and rng.random() < 0.3 else f"{name}x", values, text)
    whole = evaluated(junk(rng, None)) if rng.random() < 0.03 else state

    def run() -> None:
        with np.errstate(all="ignore"):
            _load(layer, whole)

    program = "import numpy as np\n\nstate = {\n" + "\n".join(code) + "\n}\n"
    return Case(type(layer).__name__, run, program)


def _load(layer: Layer, state: Any) -> None:
    before = {name: array.copy() for name, array in layer.parameters.items()}
    try:
        layer.update_parameters(state)
    except HandgradError as error:
        check_sentence(error)
        for name, array in layer.parameters.items():
            if array.tobytes() != before[name].tobytes():
                raise Fault("changed in part", f"{name} was changed by a refused load") from None
        return
    for name, array in layer.parameters.items():
        wanted = np.asarray(state[name])
        if wanted.dtype.kind not in "fiu" or wanted.shape != array.shape:
            raise Fault("silent mismatch", f"{name} is {wanted.dtype} {wanted.shape}")
        if wanted.astype(array.dtype).tobytes() != array.tobytes():
            raise Fault("silent mismatch", f"{name} has other values")
        if np.any(np.isinf(array) & np.isfinite(wanted)):
            raise Fault("silent mismatch", f"{name} overflowed")
