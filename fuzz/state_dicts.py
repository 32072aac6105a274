"""State dicts as PyTorch has them, and as it has not, loaded into layers."""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np

from fuzz._judge import check_sentence
from fuzz._operands import Operand, evaluated, junk, random_layout, sprinkle
from fuzz.harness import Case, Fault
from handgrad.errors import HandgradError
from handgrad.interop.state_dict import from_torch
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
    *("0", "1", "weight", "bias", "layers", "self_attn", "multihead_attn", "linear1", "linear2"),
    *("out_proj", "norm1", "norm2", "norm3", "norm", "in_proj_weight", "in_proj_bias", "bias_k"),
    *("q_proj_weight", "k_proj_weight", "running_mean", "num_batches_tracked", "", "é", "x" * 300),
)


def _packed(prefix: str, width: int) -> dict[str, tuple[int, ...]]:
    return {
        f"{prefix}in_proj_weight": (3 * width, width),
        f"{prefix}in_proj_bias": (3 * width,),
        f"{prefix}out_proj.weight": (width, width),
        f"{prefix}out_proj.bias": (width,),
    }


def _block(prefix: str, width: int, hidden: int, crosses: bool) -> dict[str, tuple[int, ...]]:
    found = _packed(f"{prefix}self_attn.", width)
    if crosses:
        found |= _packed(f"{prefix}multihead_attn.", width)
    found |= {
        f"{prefix}linear1.weight": (hidden, width),
        f"{prefix}linear1.bias": (hidden,),
        f"{prefix}linear2.weight": (width, hidden),
        f"{prefix}linear2.bias": (width,),
    }
    for number in range(1, 4 if crosses else 3):
        found |= {f"{prefix}norm{number}.{kind}": (width,) for kind in ("weight", "bias")}
    return found


@functools.cache
def _layer(kind: int, dtype: str) -> tuple[Layer, dict[str, tuple[int, ...]]]:
    """A layer, and the shapes of the state_dict of PyTorch's counterpart."""
    rng = np.random.default_rng(0)
    ours: dict[str, Any] = {"rng": rng, "dtype": np.dtype(dtype)}
    if kind == 0:
        layer: Layer = MultiHeadAttention(4, 2, **ours)
        return layer, _packed("", 4)
    if kind == 1:
        return TransformerBlock(4, 2, 6, **ours), _block("", 4, 6, False)
    if kind == 2:
        layer = TransformerEncoder(2, 4, 2, 6, **ours)
        shapes = {**_block("layers.0.", 4, 6, False), **_block("layers.1.", 4, 6, False)}
        return layer, shapes
    if kind == 3:
        layer = TransformerDecoder(1, 4, 2, 6, **ours)
        return layer, _block("layers.0.", 4, 6, True)
    if kind == 4:
        layer = Sequential(Dense(3, 4, **ours), Embedding(5, 3, **ours))
    else:
        layer = Sequential(Conv2d(2, 3, 2, **ours), BatchNorm(3, dtype=dtype), LayerNorm(3))
    return layer, {name: tuple(array.shape) for name, array in layer.parameters.items()}


def draw(rng: np.random.Generator) -> Case:
    kind, dtype = int(rng.integers(6)), str(rng.choice(("float32", "float64")))
    layer, shapes = _layer(kind, dtype)
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
        arrays = from_torch(state)
        layer.update_parameters(arrays)
    except HandgradError as error:
        check_sentence(error)
        for name, array in layer.parameters.items():
            if array.tobytes() != before[name].tobytes():
                raise Fault("changed in part", f"{name} was changed by a refused load") from None
        return
    for name, array in layer.parameters.items():
        wanted = np.asarray(arrays[name])
        if wanted.dtype.kind not in "fiu" or wanted.shape != array.shape:
            raise Fault("silent mismatch", f"{name} is {wanted.dtype} {wanted.shape}")
        if wanted.astype(array.dtype).tobytes() != array.tobytes():
            raise Fault("silent mismatch", f"{name} has other values")
        if np.any(np.isinf(array) & np.isfinite(wanted)):
            raise Fault("silent mismatch", f"{name} overflowed")
