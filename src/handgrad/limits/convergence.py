"""Random networks of finite width beside their limit: how fast the kernels come together."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import ArgumentError
from handgrad.layers import LSTM, Dropout, Embedding
from handgrad.layers.base import Layer, walk
from handgrad.limits.kernel import VarianceLike, kernel, program
from handgrad.limits.variances import ParameterDistribution


class Convergence(NamedTuple):
    """The limit, and the squared distance of finite kernels from it as a fraction of it.

    `deviations` are means over networks, one per width; `slope` is that of their logarithms over
    the logarithm of the width: −1 where the kernel of a network is a mean over its units.
    """

    limit: Array
    widths: tuple[int, ...]
    deviations: tuple[float, ...]
    slope: float


def convergence(
    make: Callable[[int], Layer],
    x: Array,
    *,
    widths: Sequence[int] = (32, 64, 128, 256, 512),
    networks: int = 20,
    lengths: Array | None = None,
    weight_variance: VarianceLike = None,
    bias_variance: VarianceLike = None,
    samples: int = 65536,
    seed: int = 0,
) -> Convergence:
    """The kernel of networks `make(width)` with random weights, beside the limit of the first.

    Every network has `width` outputs too, so that its kernel y yᵀ/width is a mean over them. Its
    weights are drawn from normal distributions with the variances of the limit; BatchNorm takes the
    statistics of x, and dropout is off. Other arguments and errors are those of `limits.kernel`.
    """
    if len(widths) < 2 or min(widths) < 1 or networks < 1:
        raise ArgumentError(
            f"limits.convergence: {len(widths)} widths and {networks} networks; allowed: two "
            "widths or more, each from 1, and a network or more"
        )
    given: dict[str, Any] = {
        "weight_variance": weight_variance,
        "bias_variance": bias_variance,
        "lengths": lengths,
    }
    first = make(widths[0])
    limit = kernel(first, x, samples=samples, seed=seed, **given)
    if limit.ndim != 2:
        raise ArgumentError("limits.convergence: the model has several outputs; allowed: one")
    drawn = program(first, x, **given).drawn
    settings = {} if lengths is None else {"lengths": lengths}
    means = []
    for width in widths:
        found = []
        for number in range(networks):
            model = redrawn(make(width), drawn, np.random.default_rng((seed, width, number)))
            y, _ = model.forward_y(x, training=True, **settings)
            y = np.asarray(y, dtype=np.float64).reshape(len(x), -1)
            found.append(np.sum((y @ y.T / y.shape[1] - limit) ** 2) / np.sum(limit**2))
        means.append(float(np.mean(found)))
    slope = float(np.polyfit(np.log(widths), np.log(means), 1)[0])
    return Convergence(limit, tuple(widths), tuple(means), slope)


def redrawn(
    model: Layer, drawn: Mapping[str, ParameterDistribution], rng: np.random.Generator
) -> Layer:
    """A copy of the model in float64 with normal weights of these variances, without dropout.

    What layers fix stays as they fix it: the bias of forget gates, the row of a padding token.
    """
    twin = copy.deepcopy(model)
    for _, layer in walk(twin):
        if isinstance(layer, Dropout):
            layer.p = 0.0
        for name in (*layer.parameter_names, *layer.buffer_names):
            array = getattr(layer, name)
            if array is not None:
                setattr(layer, name, array.astype(np.float64))
    for name, array in twin.parameters.items():
        if name in drawn:
            columns = 1.0 if drawn[name].of_entry else float(np.prod(array.shape[1:]))
            deviation = np.sqrt(drawn[name].variance / columns)
            array[...] = rng.normal(0.0, deviation, array.shape)
    for _, layer in walk(twin):
        if isinstance(layer, Embedding) and layer.padding_idx is not None:
            layer.weight[layer.padding_idx] = 0.0
        if isinstance(layer, LSTM):
            layer.set_forget_bias()
    return twin
