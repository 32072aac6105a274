"""matmul, linear and dense."""

from __future__ import annotations

from tests.op_cases.case import NOTHING_TO_SUM, add
from tests.op_cases.makers import Maker, normal


def _affine(*shape: int, out: int, bias: bool = True) -> dict[str, Maker]:
    makers = {"x": normal(*shape), "weight": normal(out, shape[-1], scale=0.5)}
    return makers | ({"bias": normal(out)} if bias else {})


add("matmul", "one by one", {"a": normal(1, 1), "b": normal(1, 1)})
add("matmul", "awkward", {"a": normal(5, 123), "b": normal(123, 3)})
add("matmul", "primes", {"a": normal(17, 29), "b": normal(29, 37)})
add("matmul", "around a register tile", {"a": normal(15, 33), "b": normal(33, 65)})
add("matmul", "one row", {"a": normal(1, 31), "b": normal(31, 123)})
add("matmul", "one column", {"a": normal(123, 31), "b": normal(31, 1)})
add("matmul", "inner one", {"a": normal(7, 1), "b": normal(1, 5)})
add("matmul", "inner empty", {"a": normal(3, 0), "b": normal(0, 5)})
add("matmul", "no rows", {"a": normal(0, 4), "b": normal(4, 5)})
add("matmul", "no columns", {"a": normal(3, 4), "b": normal(4, 0)}, not_in_torch=NOTHING_TO_SUM)
add("matmul", "nothing at all", {"a": normal(0, 0), "b": normal(0, 0)}, not_in_torch=NOTHING_TO_SUM)
add(
    "matmul",
    "batch, inner empty",
    {"a": normal(2, 3, 0), "b": normal(2, 0, 5)},
    not_in_torch=NOTHING_TO_SUM,
)
add("matmul", "batch", {"a": normal(2, 3, 5, 7), "b": normal(2, 3, 7, 4)})
add("matmul", "batch empty", {"a": normal(0, 5, 7), "b": normal(0, 7, 4)})
_BROADCASTS = "a *batch annotation cannot say that axes broadcast or that one is missing"
add(
    "matmul",
    "batch broadcast",
    {"a": normal(3, 1, 5, 7), "b": normal(2, 7, 4)},
    not_annotated=_BROADCASTS,
)
add("matmul", "vector on the left", {"a": normal(7), "b": normal(7, 4)}, not_annotated=_BROADCASTS)
add("matmul", "vector on the right", {"a": normal(5, 7), "b": normal(7)}, not_annotated=_BROADCASTS)
add("matmul", "two vectors", {"a": normal(7), "b": normal(7)}, not_annotated=_BROADCASTS)
add("matmul", "tiles", {"a": normal(5, 7), "b": normal(7, 3)}, tile=(2, 3))
add("matmul", "large", {"a": normal(257, 401), "b": normal(401, 131)}, large=True)

for _op in ("linear", "dense"):
    add(_op, "one by one", _affine(1, 1, out=1))
    add(_op, "awkward", _affine(5, 123, out=3))
    add(_op, "primes", _affine(17, 29, out=37))
    add(_op, "one row", _affine(1, 31, out=123))
    add(_op, "no bias", _affine(5, 3, out=7, bias=False))
    add(_op, "one vector", _affine(5, out=3))
    add(_op, "sequence", _affine(2, 3, 5, out=7))
    add(_op, "empty batch", _affine(0, 5, out=3))
    add(_op, "no outputs", _affine(4, 5, out=0), not_in_torch=NOTHING_TO_SUM)
    add(_op, "no inputs", _affine(4, 0, out=3), not_in_torch=NOTHING_TO_SUM)
    add(_op, "no inputs, no bias", _affine(2, 3, 0, out=3, bias=False), not_in_torch=NOTHING_TO_SUM)
    add(_op, "nothing at all", _affine(0, 0, out=0), not_in_torch=NOTHING_TO_SUM)
add("linear", "large", _affine(211, 300, out=129), large=True)
for _activation in ("relu", "leaky_relu", "sigmoid", "tanh", "gelu", "silu"):
    add("dense", _activation, _affine(5, 13, out=11), activation=_activation)
add("dense", "steep leak", _affine(5, 7, out=3), activation="leaky_relu", negative_slope=0.3)
add("dense", "gelu tanh form", _affine(5, 7, out=3), activation="gelu", approximate="tanh")
add("dense", "relu no bias", _affine(1, 5, out=3, bias=False), activation="relu")
for _activation in ("relu", "gelu"):
    add(
        "dense",
        f"{_activation} no outputs",
        _affine(4, 5, out=0),
        activation=_activation,
        not_in_torch=NOTHING_TO_SUM,
    )
    add(
        "dense",
        f"{_activation} no inputs",
        _affine(4, 0, out=3),
        activation=_activation,
        not_in_torch=NOTHING_TO_SUM,
    )
add("dense", "large", _affine(211, 300, out=129), activation="gelu", large=True)
