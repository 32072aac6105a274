"""Losses."""

from __future__ import annotations

from tests.op_cases.case import add
from tests.op_cases.makers import few_values, labels, normal, probabilities, uniform

add("cross_entropy", "rows", {"x": normal(5, 7), "target": labels(7, 5)})
add("cross_entropy", "awkward", {"x": normal(5, 123), "target": labels(123, 5)})
add("cross_entropy", "one row", {"x": normal(1, 3), "target": labels(3, 1)})
add("cross_entropy", "no batch", {"x": normal(7), "target": labels(7)})
add("cross_entropy", "no batch probabilities", {"x": normal(7), "target": probabilities(7, axis=0)})
add("cross_entropy", "one class", {"x": normal(5, 1), "target": labels(1, 5)})
add("cross_entropy", "sequence", {"x": normal(3, 5, 7), "target": labels(5, 3, 7)})
add("cross_entropy", "images", {"x": normal(2, 5, 3, 4), "target": labels(5, 2, 3, 4)})
for _reduction in ("sum", "none"):
    add(
        "cross_entropy",
        _reduction,
        {"x": normal(5, 7), "target": labels(7, 5)},
        reduction=_reduction,
    )
    add(
        "cross_entropy",
        f"{_reduction} of images",
        {"x": normal(2, 5, 3, 4), "target": labels(5, 2, 3, 4, ignored=-100), "weight": uniform(5)},
        reduction=_reduction,
        label_smoothing=0.1,
    )
add("cross_entropy", "probabilities", {"x": normal(5, 7), "target": probabilities(5, 7, axis=1)})
add(
    "cross_entropy",
    "probabilities of a sequence",
    {"x": normal(3, 5, 7), "target": probabilities(3, 5, 7, axis=1), "weight": uniform(5)},
    label_smoothing=0.2,
)
add(
    "cross_entropy",
    "class weights",
    {"x": normal(11, 5), "target": labels(5, 11), "weight": uniform(5, low=0.2, high=2.0)},
)
add(
    "cross_entropy", "smoothing", {"x": normal(11, 5), "target": labels(5, 11)}, label_smoothing=0.1
)
add(
    "cross_entropy",
    "smoothing alone",
    {"x": normal(3, 5), "target": labels(5, 3)},
    label_smoothing=1.0,
)
add(
    "cross_entropy",
    "ignored and weighted and smoothed",
    {
        "x": normal(13, 5),
        "target": labels(5, 13, ignored=-100),
        "weight": uniform(5, low=0.2, high=2.0),
    },
    label_smoothing=0.1,
)
add(
    "cross_entropy",
    "ignored class",
    {"x": normal(13, 5), "target": labels(5, 13)},
    ignore_index=3,
)
add(
    "cross_entropy",
    "spread scores",
    {"x": uniform(5, 7, low=-300.0, high=300.0), "target": labels(7, 5)},
)
add(
    "cross_entropy",
    "empty batch",
    {"x": normal(0, 5), "target": labels(5, 0)},
    not_in_torch="PyTorch's mean over no targets is NaN; here it is 0",
)
add("cross_entropy", "large", {"x": normal(301, 131), "target": labels(131, 301)}, large=True)

for _reduction in ("mean", "sum", "none", "half_sum"):
    add(
        "squared_error",
        _reduction,
        {"x": normal(5, 7), "target": normal(5, 7)},
        reduction=_reduction,
    )
add("squared_error", "one value", {"x": normal(1), "target": normal(1)})
add("squared_error", "four axes", {"x": normal(2, 3, 5, 7), "target": normal(2, 3, 5, 7)})
add(
    "squared_error",
    "empty batch",
    {"x": normal(0, 7), "target": normal(0, 7)},
    not_in_torch="PyTorch's mean over no values is NaN; here it is 0",
)
add("squared_error", "large", {"x": normal(301, 131), "target": normal(301, 131)}, large=True)

for _reduction in ("mean", "sum", "none"):
    add(
        "binary_cross_entropy",
        _reduction,
        {"x": normal(5, 7), "target": uniform(5, 7)},
        reduction=_reduction,
    )
add(
    "binary_cross_entropy",
    "weights",
    {"x": normal(5, 7), "target": uniform(5, 7), "weight": uniform(5, 1), "pos_weight": uniform(7)},
)
add("binary_cross_entropy", "one value", {"x": normal(1), "target": uniform(1)})
add(
    "binary_cross_entropy",
    "spread logits",
    {"x": uniform(123, low=-300.0, high=300.0), "target": few_values(123, low=0)},
)
add(
    "binary_cross_entropy",
    "empty batch",
    {"x": normal(0, 7), "target": uniform(0, 7)},
    not_in_torch="PyTorch's mean over no values is NaN; here it is 0",
)
add(
    "binary_cross_entropy",
    "large",
    {"x": normal(301, 131), "target": uniform(301, 131)},
    large=True,
)
