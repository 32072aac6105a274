"""Norms."""

from __future__ import annotations

from tests.op_cases.case import NOTHING_TO_SUM, add
from tests.op_cases.makers import Maker, normal, uniform


def _normed(*shape: int, beta: bool = True) -> dict[str, Maker]:
    makers = {"x": normal(*shape, scale=2.0, offset=1.0), "gamma": normal(shape[-1])}
    return makers | ({"beta": normal(shape[-1])} if beta else {})


for _op in ("layer_norm", "rms_norm"):
    _beta = _op == "layer_norm"
    add(_op, "awkward", _normed(5, 123, beta=_beta))
    add(_op, "primes", _normed(17, 29, beta=_beta))
    add(_op, "one row", _normed(1, 13, beta=_beta))
    add(_op, "vector", _normed(13, beta=_beta))
    add(_op, "sequence", _normed(2, 3, 7, beta=_beta))
    add(_op, "one feature", _normed(5, 1, beta=_beta), eps=0.1)
    add(_op, "eps", _normed(3, 5, beta=_beta), eps=0.5)
    add(_op, "empty batch", _normed(0, 5, beta=_beta))
    add(_op, "no steps", _normed(3, 0, 5, beta=_beta), not_in_torch=NOTHING_TO_SUM)
    add(_op, "large", _normed(211, 257, beta=_beta), large=True)


def _batch_normed_makers(*shape: int) -> dict[str, Maker]:
    channels = shape[1]
    return {
        "x": normal(*shape, scale=2.0, offset=1.0),
        "gamma": normal(channels),
        "beta": normal(channels),
        "running_mean": normal(channels),
        "running_var": uniform(channels, low=0.5, high=2.0),
    }


for _training in (True, False):
    _mode = "training" if _training else "inference"
    add("batch_norm", f"{_mode} rows", _batch_normed_makers(13, 5), training=_training)
    add("batch_norm", f"{_mode} sequences", _batch_normed_makers(5, 3, 7), training=_training)
    add("batch_norm", f"{_mode} images", _batch_normed_makers(3, 5, 4, 7), training=_training)
    add("batch_norm", f"{_mode} one channel", _batch_normed_makers(1, 1, 3, 5), training=_training)
    add(
        "batch_norm",
        f"{_mode} eps and momentum",
        _batch_normed_makers(5, 3),
        training=_training,
        momentum=0.3,
        eps=0.1,
    )
    add(
        "batch_norm",
        f"{_mode} empty batch",
        _batch_normed_makers(0, 3, 5),
        training=_training,
        not_in_torch="PyTorch refuses an empty batch in training",
    )
    for _label, _shape in (("channels", (3, 0, 5)), ("places", (3, 5, 0)), ("columns", (3, 0))):
        add(
            "batch_norm",
            f"{_mode} no {_label}",
            _batch_normed_makers(*_shape),
            training=_training,
            not_in_torch=NOTHING_TO_SUM,
        )
    add(
        "batch_norm",
        f"{_mode} large",
        _batch_normed_makers(7, 13, 17, 19),
        training=_training,
        large=True,
    )
add("batch_norm", "inference one row", _batch_normed_makers(1, 5), training=False)
for _activation in ("relu", "leaky_relu", "sigmoid", "tanh", "gelu", "silu"):
    add(
        "batch_norm",
        f"training {_activation}",
        _batch_normed_makers(3, 5, 4, 7),
        training=True,
        activation=_activation,
    )
add(
    "batch_norm",
    "inference relu",
    _batch_normed_makers(13, 5),
    training=False,
    activation="relu",
)
