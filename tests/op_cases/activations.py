"""Functions of one value, softmax and standardize."""

from __future__ import annotations

from tests.op_cases.case import NOTHING_TO_SUM, add
from tests.op_cases.makers import normal, uniform

for _op in ("relu", "leaky_relu", "sigmoid", "tanh", "gelu", "silu"):
    add(_op, "one value", {"x": normal(1)})
    add(_op, "awkward", {"x": normal(5, 123)})
    add(_op, "four axes", {"x": normal(2, 3, 5, 7)})
    add(_op, "no axes", {"x": normal()})
    add(_op, "empty", {"x": normal(0, 7)})
    add(_op, "no columns", {"x": normal(7, 0)}, not_in_torch=NOTHING_TO_SUM)
    add(_op, "wide", {"x": uniform(3, 41, low=-30.0, high=30.0)})
    add(_op, "large", {"x": normal(67, 1031)}, large=True)
add("leaky_relu", "steep", {"x": normal(5, 7)}, negative_slope=0.3)
add("leaky_relu", "negative slope below zero", {"x": normal(5, 7)}, negative_slope=-0.5)
add("gelu", "tanh form", {"x": normal(5, 123)}, approximate="tanh")
add("gelu", "tanh form wide", {"x": uniform(97, low=-30.0, high=30.0)}, approximate="tanh")

add("softmax", "one class", {"x": normal(3, 1)})
add("softmax", "awkward", {"x": normal(5, 123)})
add("softmax", "one row", {"x": normal(1, 17)})
add("softmax", "vector", {"x": normal(7)})
add("softmax", "first axis", {"x": normal(5, 7)}, axis=0)
add("softmax", "middle axis", {"x": normal(2, 3, 5)}, axis=1)
add("softmax", "negative axis", {"x": normal(2, 3, 5)}, axis=-2)
add("softmax", "spread scores", {"x": uniform(3, 11, low=-300.0, high=300.0)})
add("softmax", "empty batch", {"x": normal(0, 5)})
add(
    "softmax",
    "nothing beside the axis",
    {"x": normal(5, 3, 0)},
    axis=1,
    not_in_torch=NOTHING_TO_SUM,
)
add("softmax", "large", {"x": normal(301, 211)}, large=True)

add("standardize", "one matrix", {"x": normal(5, 7, scale=3.0, offset=2.0)})
add("standardize", "batch", {"x": normal(3, 5, 123)})
add("standardize", "one axis", {"x": normal(5, 7)}, axes=-1)
add("standardize", "first axis", {"x": normal(5, 7)}, axes=0)
add("standardize", "two outer axes", {"x": normal(3, 5, 7)}, axes=(0, 2))
add("standardize", "all axes", {"x": normal(2, 3, 5)}, axes=(0, 1, 2))
add("standardize", "eps", {"x": normal(3, 4)}, eps=0.5)
add("standardize", "one value", {"x": normal(2, 1, 1)}, eps=0.1)
add("standardize", "empty batch", {"x": normal(0, 3, 5)})
add(
    "standardize",
    "nothing beside the axes",
    {"x": normal(3, 0, 5)},
    axes=(0, 2),
    not_in_torch=NOTHING_TO_SUM,
)
add("standardize", "no axes", {"x": normal(3, 4)}, axes=(), not_in_torch=NOTHING_TO_SUM)
add("standardize", "large", {"x": normal(37, 31, 41)}, large=True)
