"""Of every op, the inputs that have a gradient, and the same computation in PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np


class Equivalent(NamedTuple):
    """What an op differentiates, and the same in PyTorch: (functional, arrays, options) -> y.

    Of an op with several outputs, y is nested as the op's own.
    """

    gradients: tuple[str, ...]
    torch: Callable[[Any, Mapping[str, Any], Mapping[str, Any]], Any]


def _activated(F: Any, a: Any, options: Mapping[str, Any]) -> Any:
    activation = options.get("activation", "identity")
    if activation == "identity":
        return a
    if activation == "leaky_relu":
        return F.leaky_relu(a, options.get("negative_slope", 0.01))
    if activation == "gelu":
        return F.gelu(a, approximate=options.get("approximate", "none"))
    return {"relu": F.relu, "sigmoid": F.sigmoid, "tanh": F.tanh, "silu": F.silu}[activation](a)


def _convolved(convolution: str) -> Callable[..., Any]:
    def run(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
        settings = {name: value for name, value in options.items() if name != "activation"}
        return _activated(F, getattr(F, convolution)(**_as_input(arrays), **settings), options)

    return run


def _as_input(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """PyTorch's functional name of x."""
    return {"input" if name == "x" else name: array for name, array in arrays.items()}


def _standardized(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    x, axes = arrays["x"], options.get("axes", (-2, -1))
    centred = x - x.mean(dim=axes, keepdim=True)
    variance = (centred * centred).mean(dim=axes, keepdim=True)
    return centred / (variance + options.get("eps", 1e-5)).sqrt()


def _average_pooled(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    if options["kernel_size"] == "global":
        return F.adaptive_avg_pool2d(arrays["x"], 1)
    return F.avg_pool2d(arrays["x"], **options)


def _batch_normed(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    x, gamma, beta, mean, var = arrays.values()
    settings = {name: value for name, value in options.items() if name != "activation"}
    a = F.batch_norm(x, mean.clone(), var.clone(), gamma, beta, **settings)
    return _activated(F, a, options)


def _dropped(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    """PyTorch's formula on the mask that handgrad documents: kept where a float32 is at least p."""
    x, p = arrays["x"], options["p"]
    if not options.get("training", True) or p == 0.0:
        return x * 1.0
    draws = np.random.default_rng(options["rng"].number).random(tuple(x.shape), dtype=np.float32)
    scale = 1.0 / (1.0 - p) if p < 1.0 else 0.0
    return x * F.torch.from_numpy((draws >= p) * scale).to(x.dtype)


def _pairs_that_count(F: Any, scores: Any, arrays: Mapping[str, Any], options: Any) -> Any:
    """True where a query may look at a key, in the shape of the scores."""
    torch, (queries, keys) = F.torch, scores.shape[-2:]
    counts = torch.ones(tuple(scores.shape), dtype=torch.bool)
    if "mask" in arrays:
        counts = counts & arrays["mask"]
    if "lengths" in arrays:
        ones = (1,) * (len(scores.shape) - 1)
        counts = counts & (torch.arange(keys) < arrays["lengths"].reshape(-1, *ones))
    if options.get("causal", False):
        own = options.get("offset", 0) + torch.arange(queries)
        counts = counts & (torch.arange(keys) <= own[:, None])
    return counts


def _weights(F: Any, scores: Any, arrays: Mapping[str, Any], options: Any) -> Any:
    """Softmax over the pairs that count, 0 in rows without any."""
    counts = _pairs_that_count(F, scores, arrays, options)
    some = counts.any(dim=-1, keepdim=True)
    return F.softmax(scores.masked_fill(~counts & some, -F.torch.inf), dim=-1) * some


def _attended(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    """PyTorch's scaled_dot_product_attention; with dropout written out, on the documented mask."""
    torch, (q, k, v) = F.torch, (arrays[name] for name in "qkv")
    scale = options.get("scale") or q.shape[-1] ** -0.5
    bias = arrays.get("bias", torch.zeros((), dtype=q.dtype))
    scores = torch.zeros((*q.shape[:3], k.shape[2]), dtype=q.dtype) + bias
    p = options.get("dropout_p", 0.0)
    if p == 0.0:
        counts = _pairs_that_count(F, scores, arrays, options)
        scores = scores.masked_fill(~counts, -torch.inf)
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=scores, scale=scale, enable_gqa=True
        )
    served = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(served, dim=1) for x in (k, v))
    weights = _weights(F, scores + scale * q @ k.mT, arrays, options)
    return _dropped(F, {"x": weights}, {"p": p, "rng": options["rng"]}) @ v


def _additively_attended(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    """The concatenated form: v·tanh(W [s; h]) with W = [W_s, W_h]."""
    torch, s, h = F.torch, arrays["s"], arrays["h"]
    pairs = (s.shape[0], s.shape[1], h.shape[1])
    both = torch.cat(
        [s[:, :, None].expand(*pairs, s.shape[2]), h[:, None].expand(*pairs, h.shape[2])], dim=-1
    )
    weight = torch.cat([arrays["weight_s"], arrays["weight_h"]], dim=1)
    return _weights(F, torch.tanh(F.linear(both, weight)) @ arrays["v"], arrays, options) @ h


def _cosine_attended(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    s, h = arrays["s"], arrays["h"]
    unit_s, unit_h = (
        x / ((x * x).sum(dim=-1, keepdim=True) + options.get("eps", 1e-8)).sqrt() for x in (s, h)
    )
    return _weights(F, unit_s @ unit_h.mT, arrays, options) @ h


def _angles(F: Any, x: Any, options: Mapping[str, Any]) -> Any:
    """One angle per step and pair of features."""
    length, features = x.shape[-2:]
    exponent = F.torch.arange(0, features, 2, dtype=F.torch.float64) / features
    steps = options.get("offset", 0) + F.torch.arange(length, dtype=F.torch.float64)
    return F.torch.outer(steps, options.get("base", 10000.0) ** -exponent)


def _encoded(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    x = arrays["x"]
    angles = _angles(F, x, options)
    table = F.torch.zeros((x.shape[-2], 2 * angles.shape[1]), dtype=F.torch.float64)
    table[:, 0::2], table[:, 1::2] = F.torch.sin(angles), F.torch.cos(angles)
    return x + table[:, : x.shape[-1]].to(x.dtype)


def _rotated(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    """The pair of features as a complex number, times e^(iθ)."""
    first, second = arrays["x"].chunk(2, dim=-1)
    angles = _angles(F, arrays["x"], options)
    turn = F.torch.polar(F.torch.ones_like(angles), angles).to(F.torch.complex(first, second).dtype)
    turned = F.torch.complex(first, second) * turn
    return F.torch.cat([turned.real, turned.imag], dim=-1)


def _each_alone(
    cell: Callable[[Any, tuple[Any, ...]], tuple[Any, tuple[Any, ...]]],
    arrays: Mapping[str, Any],
    states: tuple[Any, ...],
    options: Mapping[str, Any],
    torch: Any,
) -> Any:
    """`cell(x, states) -> (y, states)` on every sequence alone, cut to its length; then padded."""
    x = arrays["x"]
    lengths = arrays["lengths"].tolist() if "lengths" in arrays else [x.shape[1]] * x.shape[0]
    reverse = options.get("reverse", False)
    ys, finals = [], []
    for n, length in enumerate(lengths):
        own, y = tuple(state[n : n + 1] for state in states), None
        if length > 0:
            sequence = x[n : n + 1, :length]
            y, own = cell(sequence.flip(1) if reverse else sequence, own)
            y = y.flip(1) if reverse else y
        features = states[0].shape[1]
        padding = torch.zeros((1, x.shape[1] - length, features), dtype=x.dtype)
        ys.append(padding if y is None else torch.cat((y, padding), dim=1))
        finals.append(own)
    if not ys:
        return torch.zeros((*x.shape[:2], states[0].shape[1]), dtype=x.dtype), states
    return torch.cat(ys), tuple(torch.cat(parts) for parts in zip(*finals, strict=True))


def _recurrent(kind: str) -> Callable[..., Any]:
    """torch.nn.RNN, GRU or LSTM of one layer with the case's weights."""

    def run(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
        torch, x, weight_hh = F.torch, arrays["x"], arrays["weight_hh"]
        rows, state_size = weight_hh.shape
        hidden = rows // {"RNN": 1, "GRU": 3, "LSTM": 4}[kind]
        settings = {"nonlinearity": options.get("nonlinearity", "tanh")} if kind == "RNN" else {}
        if "weight_hr" in arrays:
            settings["proj_size"] = state_size
        module = getattr(torch.nn, kind)(
            x.shape[2], hidden, batch_first=True, dtype=x.dtype, **settings
        )
        zeros = {name: torch.zeros(rows, dtype=x.dtype) for name in ("bias_ih", "bias_hh")}
        weights = {
            f"{name}_l0": array
            for name, array in (zeros | dict(arrays)).items()
            if name.startswith(("weight", "bias"))
        }
        h0 = arrays.get("h0", torch.zeros((len(x), state_size), dtype=x.dtype))
        c0 = arrays.get("c0", torch.zeros((len(x), hidden), dtype=x.dtype))

        def cell(sequence: Any, states: tuple[Any, ...]) -> Any:
            given = tuple(state[None] for state in states)
            arguments = (sequence, given if kind == "LSTM" else given[0])
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "LSTM with projections is not supported")
                y, final = torch.func.functional_call(module, weights, arguments)
            return y, tuple(state[0] for state in (final if kind == "LSTM" else (final,)))

        states = (h0, c0) if kind == "LSTM" else (h0,)
        y, final = _each_alone(cell, arrays, states, options, torch)
        return y, final if kind == "LSTM" else final[0]

    return run


def _leaky(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    torch, x, weight = F.torch, arrays["x"], arrays["weight_ih"]
    alpha = arrays.get("alpha", options.get("alpha"))
    h0 = arrays.get("h0", torch.zeros((len(x), len(weight)), dtype=x.dtype))

    def cell(sequence: Any, states: tuple[Any, ...]) -> Any:
        (h,), ys = states, []
        for a in F.linear(sequence, weight, arrays.get("bias_ih")).unbind(1):
            h = alpha * h + (1 - alpha) * torch.tanh(a)
            ys.append(h)
        return torch.stack(ys, dim=1), (h,)

    y, final = _each_alone(cell, arrays, (h0,), options, torch)
    return y, final[0]


def _squared_error(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    reduction = options.get("reduction", "mean")
    if reduction == "half_sum":
        return 0.5 * F.mse_loss(arrays["x"], arrays["target"], reduction="sum")
    return F.mse_loss(arrays["x"], arrays["target"], reduction=reduction)


EQUIVALENTS: Final = {
    "matmul": Equivalent(("a", "b"), lambda F, arrays, options: arrays["a"] @ arrays["b"]),
    "linear": Equivalent(
        ("x", "weight", "bias"), lambda F, arrays, options: F.linear(**_as_input(arrays))
    ),
    "dense": Equivalent(
        ("x", "weight", "bias"),
        lambda F, arrays, options: _activated(F, F.linear(**_as_input(arrays)), options),
    ),
    "relu": Equivalent(("x",), lambda F, arrays, options: F.relu(arrays["x"])),
    "leaky_relu": Equivalent(
        ("x",), lambda F, arrays, options: F.leaky_relu(arrays["x"], **options)
    ),
    "sigmoid": Equivalent(("x",), lambda F, arrays, options: F.sigmoid(arrays["x"])),
    "tanh": Equivalent(("x",), lambda F, arrays, options: F.tanh(arrays["x"])),
    "gelu": Equivalent(("x",), lambda F, arrays, options: F.gelu(arrays["x"], **options)),
    "silu": Equivalent(("x",), lambda F, arrays, options: F.silu(arrays["x"])),
    "softmax": Equivalent(
        ("x",), lambda F, arrays, options: F.softmax(arrays["x"], dim=options.get("axis", -1))
    ),
    "standardize": Equivalent(("x",), _standardized),
    "conv1d": Equivalent(("x", "weight", "bias"), _convolved("conv1d")),
    "conv2d": Equivalent(("x", "weight", "bias"), _convolved("conv2d")),
    "conv_transpose2d": Equivalent(("x", "weight", "bias"), _convolved("conv_transpose2d")),
    "max_pool2d": Equivalent(
        ("x",), lambda F, arrays, options: F.max_pool2d(arrays["x"], **options)
    ),
    "avg_pool2d": Equivalent(("x",), _average_pooled),
    "layer_norm": Equivalent(
        ("x", "gamma", "beta"),
        lambda F, arrays, options: F.layer_norm(
            arrays["x"], arrays["gamma"].shape, arrays["gamma"], arrays["beta"], **options
        ),
    ),
    "rms_norm": Equivalent(
        ("x", "gamma"),
        lambda F, arrays, options: F.rms_norm(
            arrays["x"], arrays["gamma"].shape, arrays["gamma"], options.get("eps", 1e-5)
        ),
    ),
    "batch_norm": Equivalent(("x", "gamma", "beta"), _batch_normed),
    "dropout": Equivalent(("x",), _dropped),
    "embedding": Equivalent(
        ("weight",),
        lambda F, arrays, options: F.embedding(arrays["tokens"], arrays["weight"], **options),
    ),
    "attention": Equivalent(("q", "k", "v", "bias"), _attended),
    "additive_attention": Equivalent(("s", "h", "weight_s", "weight_h", "v"), _additively_attended),
    "cosine_attention": Equivalent(("s", "h"), _cosine_attended),
    "positional_encoding": Equivalent(("x",), _encoded),
    "rotary": Equivalent(("x",), _rotated),
    "cross_entropy": Equivalent(
        ("x",), lambda F, arrays, options: F.cross_entropy(**_as_input(arrays), **options)
    ),
    "rnn": Equivalent(
        ("x", "weight_ih", "weight_hh", "bias_ih", "bias_hh", "h0"), _recurrent("RNN")
    ),
    "leaky_rnn": Equivalent(("x", "weight_ih", "bias_ih", "h0"), _leaky),
    "lstm": Equivalent(
        ("x", "weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr", "h0", "c0"),
        _recurrent("LSTM"),
    ),
    "gru": Equivalent(
        ("x", "weight_ih", "weight_hh", "bias_ih", "bias_hh", "h0"), _recurrent("GRU")
    ),
    "squared_error": Equivalent(("x",), _squared_error),
    "binary_cross_entropy": Equivalent(
        ("x",),
        lambda F, arrays, options: F.binary_cross_entropy_with_logits(
            **_as_input(arrays), **options
        ),
    ),
}
