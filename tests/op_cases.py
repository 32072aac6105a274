"""One list of op cases. It drives every test under tests/ops, and the golden files.

A case names an op, its arrays (made by a generator seeded from the case's name, so that adding a
case changes no other), its settings, and what it is exempt from, with the reason. `EQUIVALENTS`
holds, once per op, the inputs that have a gradient and the same computation in PyTorch.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any, Final, NamedTuple
from zlib import crc32

import numpy as np
import pytest

Maker = Callable[[np.random.Generator], np.ndarray]
Arrays = dict[str, np.ndarray]


class Seed(NamedTuple):
    """Stands for a generator among a case's options; every call gets a new one from this seed."""

    number: int


class Equivalent(NamedTuple):
    """What an op differentiates, and the same in PyTorch: (functional, arrays, options) -> y.

    Of an op with several outputs, y is nested as the op's own.
    """

    gradients: tuple[str, ...]
    torch: Callable[[Any, Mapping[str, Any], Mapping[str, Any]], Any]


@dataclass(frozen=True)
class Case:
    op: str
    label: str
    makers: Mapping[str, Maker]
    options: Mapping[str, Any] = field(default_factory=dict)
    #: Enough work for several threads and several tiles; too much for the slow checks.
    large: bool = False
    no_differences: str = ""
    not_in_torch: str = ""
    not_annotated: str = ""

    @property
    def id(self) -> str:
        return f"{self.op}-{self.label.replace(' ', '-')}"

    @property
    def module(self) -> ModuleType:
        return import_module(f"handgrad.ops.{self.op}")

    @property
    def gradient_names(self) -> tuple[str, ...]:
        return EQUIVALENTS[self.op].gradients

    @property
    def differentiable(self) -> tuple[str, ...]:
        """The inputs with a gradient that this case has."""
        return tuple(name for name in self.gradient_names if name in self.makers)

    def arrays(self, dtype: Any = np.float64) -> Arrays:
        rng = self._generator("arrays")
        made = {name: make(rng) for name, make in self.makers.items()}
        return {
            name: array.astype(dtype) if array.dtype.kind == "f" else array
            for name, array in made.items()
        }

    def random_like(self, array: Any, purpose: str, dtype: Any = np.float64) -> Any:
        """A cotangent or a direction: normal values in the shape of `array`, never ones.

        For outputs in nested tuples, as many cotangents, nested likewise.
        """
        rng = self._generator(purpose)
        return mapped(
            lambda each: np.asarray(rng.standard_normal(tuple(each.shape)), dtype=dtype), array
        )

    def arguments(self, arrays: Mapping[str, Any]) -> inspect.BoundArguments:
        """Arrays and options bound as forward takes them, positional ones by position."""
        options = {
            name: np.random.default_rng(value.number) if isinstance(value, Seed) else value
            for name, value in self.options.items()
        }
        return inspect.signature(self.module.forward).bind(**arrays, **options)

    def forward(self, arrays: Mapping[str, Any]) -> tuple[Any, Any]:
        arguments = self.arguments(arrays)
        return self.module.forward(*arguments.args, **arguments.kwargs)

    def backward(self, dy: Any, cache: Any, **keywords: Any) -> dict[str, Any]:
        """Gradients by the name of their input; None for an input that this case has not."""
        gradients = self.module.backward(dy, cache, **keywords)
        several = gradients if len(self.gradient_names) > 1 else (gradients,)
        return dict(zip(self.gradient_names, several, strict=True))

    def _generator(self, purpose: str) -> np.random.Generator:
        return np.random.default_rng(crc32(f"{self.id}/{purpose}".encode()))


def leaves(nested: Any) -> Iterator[Any]:
    """The arrays in nested tuples, such as the outputs of an op or its cache."""
    if isinstance(nested, tuple):
        for part in nested:
            yield from leaves(part)
    elif hasattr(nested, "shape"):
        yield nested


def mapped(change: Callable[[Any], Any], nested: Any) -> Any:
    """The same nesting with every array changed."""
    if isinstance(nested, tuple):
        return tuple(mapped(change, part) for part in nested)
    return change(nested)


def named_outputs(y: Any) -> dict[str, Any]:
    """The outputs by a name for messages: `y` where there is one, else `y[0]`, `y[1]`, ..."""
    several = list(leaves(y))
    return {"y": y} if not isinstance(y, tuple) else {f"y[{i}]": v for i, v in enumerate(several)}


def each(cases: Iterable[Case]) -> pytest.MarkDecorator:
    """Run a test once for every case, which it gets as `case`."""
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.id)


# Makers


def normal(*shape: int, scale: float = 1.0, offset: float = 0.0) -> Maker:
    return lambda rng: np.asarray(offset + scale * rng.standard_normal(shape))


def uniform(*shape: int, low: float = 0.0, high: float = 1.0) -> Maker:
    return lambda rng: np.asarray(rng.uniform(low, high, shape))


def integers(high: int, *shape: int) -> Maker:
    return lambda rng: np.asarray(rng.integers(0, high, shape))


def booleans(*shape: int, share: float = 0.6) -> Maker:
    """True in about this share of the places."""
    return lambda rng: np.asarray(rng.random(shape) < share)


def fixed(values: Any) -> Maker:
    """The same values every time, such as lengths."""
    return lambda rng: np.array(values)


def few_values(*shape: int, low: int = -1) -> Maker:
    """Whole numbers from `low` to 1, as floats: ties everywhere."""
    return lambda rng: rng.integers(low, 2, shape).astype(np.float64)


def probabilities(*shape: int, axis: int) -> Maker:
    def make(rng: np.random.Generator) -> np.ndarray:
        weights = rng.uniform(0.1, 1.0, shape)
        return weights / weights.sum(axis=axis, keepdims=True)

    return make


def labels(classes: int, *shape: int, ignored: int | None = None) -> Maker:
    """Class indices, about a third of them `ignored` if given."""

    def make(rng: np.random.Generator) -> np.ndarray:
        target = np.asarray(rng.integers(0, classes, shape))
        if ignored is None:
            return target
        return np.where(rng.random(shape) < 0.35, ignored, target)

    return make


# PyTorch


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


# Cases

_CASES: list[Case] = []
_EXEMPTIONS = ("large", "no_differences", "not_in_torch", "not_annotated")
_TIES = "where values tie, the derivative jumps"
_PADDING = "the row of the padding is treated as a constant though y shows it"


def _add(op: str, label: str, makers: Mapping[str, Maker], /, **rest: Any) -> None:
    exempt = {key: rest.pop(key) for key in _EXEMPTIONS if key in rest}
    _CASES.append(Case(op, label, makers, rest, **exempt))


def _affine(*shape: int, out: int, bias: bool = True) -> dict[str, Maker]:
    makers = {"x": normal(*shape), "weight": normal(out, shape[-1], scale=0.5)}
    return makers | ({"bias": normal(out)} if bias else {})


_add("matmul", "one by one", {"a": normal(1, 1), "b": normal(1, 1)})
_add("matmul", "awkward", {"a": normal(5, 123), "b": normal(123, 3)})
_add("matmul", "primes", {"a": normal(17, 29), "b": normal(29, 37)})
_add("matmul", "around a register tile", {"a": normal(15, 33), "b": normal(33, 65)})
_add("matmul", "one row", {"a": normal(1, 31), "b": normal(31, 123)})
_add("matmul", "one column", {"a": normal(123, 31), "b": normal(31, 1)})
_add("matmul", "inner one", {"a": normal(7, 1), "b": normal(1, 5)})
_add("matmul", "inner empty", {"a": normal(3, 0), "b": normal(0, 5)})
_add("matmul", "no rows", {"a": normal(0, 4), "b": normal(4, 5)})
_add("matmul", "batch", {"a": normal(2, 3, 5, 7), "b": normal(2, 3, 7, 4)})
_add("matmul", "batch empty", {"a": normal(0, 5, 7), "b": normal(0, 7, 4)})
_BROADCASTS = "a *batch annotation cannot say that axes broadcast or that one is missing"
_add(
    "matmul",
    "batch broadcast",
    {"a": normal(3, 1, 5, 7), "b": normal(2, 7, 4)},
    not_annotated=_BROADCASTS,
)
_add("matmul", "vector on the left", {"a": normal(7), "b": normal(7, 4)}, not_annotated=_BROADCASTS)
_add(
    "matmul", "vector on the right", {"a": normal(5, 7), "b": normal(7)}, not_annotated=_BROADCASTS
)
_add("matmul", "two vectors", {"a": normal(7), "b": normal(7)}, not_annotated=_BROADCASTS)
_add("matmul", "tiles", {"a": normal(5, 7), "b": normal(7, 3)}, tile=(2, 3))
_add("matmul", "large", {"a": normal(257, 401), "b": normal(401, 131)}, large=True)

for _op in ("linear", "dense"):
    _add(_op, "one by one", _affine(1, 1, out=1))
    _add(_op, "awkward", _affine(5, 123, out=3))
    _add(_op, "primes", _affine(17, 29, out=37))
    _add(_op, "one row", _affine(1, 31, out=123))
    _add(_op, "no bias", _affine(5, 3, out=7, bias=False))
    _add(_op, "one vector", _affine(5, out=3))
    _add(_op, "sequence", _affine(2, 3, 5, out=7))
    _add(_op, "empty batch", _affine(0, 5, out=3))
_add("linear", "large", _affine(211, 300, out=129), large=True)
for _activation in ("relu", "leaky_relu", "sigmoid", "tanh", "gelu", "silu"):
    _add("dense", _activation, _affine(5, 13, out=11), activation=_activation)
_add("dense", "steep leak", _affine(5, 7, out=3), activation="leaky_relu", negative_slope=0.3)
_add("dense", "gelu tanh form", _affine(5, 7, out=3), activation="gelu", approximate="tanh")
_add("dense", "relu no bias", _affine(1, 5, out=3, bias=False), activation="relu")
_add("dense", "large", _affine(211, 300, out=129), activation="gelu", large=True)

for _op in ("relu", "leaky_relu", "sigmoid", "tanh", "gelu", "silu"):
    _add(_op, "one value", {"x": normal(1)})
    _add(_op, "awkward", {"x": normal(5, 123)})
    _add(_op, "four axes", {"x": normal(2, 3, 5, 7)})
    _add(_op, "no axes", {"x": normal()})
    _add(_op, "empty", {"x": normal(0, 7)})
    _add(_op, "wide", {"x": uniform(3, 41, low=-30.0, high=30.0)})
    _add(_op, "large", {"x": normal(67, 1031)}, large=True)
_add("leaky_relu", "steep", {"x": normal(5, 7)}, negative_slope=0.3)
_add("leaky_relu", "negative slope below zero", {"x": normal(5, 7)}, negative_slope=-0.5)
_add("gelu", "tanh form", {"x": normal(5, 123)}, approximate="tanh")
_add("gelu", "tanh form wide", {"x": uniform(97, low=-30.0, high=30.0)}, approximate="tanh")

_add("softmax", "one class", {"x": normal(3, 1)})
_add("softmax", "awkward", {"x": normal(5, 123)})
_add("softmax", "one row", {"x": normal(1, 17)})
_add("softmax", "vector", {"x": normal(7)})
_add("softmax", "first axis", {"x": normal(5, 7)}, axis=0)
_add("softmax", "middle axis", {"x": normal(2, 3, 5)}, axis=1)
_add("softmax", "negative axis", {"x": normal(2, 3, 5)}, axis=-2)
_add("softmax", "spread scores", {"x": uniform(3, 11, low=-300.0, high=300.0)})
_add("softmax", "empty batch", {"x": normal(0, 5)})
_add("softmax", "large", {"x": normal(301, 211)}, large=True)

_add("standardize", "one matrix", {"x": normal(5, 7, scale=3.0, offset=2.0)})
_add("standardize", "batch", {"x": normal(3, 5, 123)})
_add("standardize", "one axis", {"x": normal(5, 7)}, axes=-1)
_add("standardize", "first axis", {"x": normal(5, 7)}, axes=0)
_add("standardize", "two outer axes", {"x": normal(3, 5, 7)}, axes=(0, 2))
_add("standardize", "all axes", {"x": normal(2, 3, 5)}, axes=(0, 1, 2))
_add("standardize", "eps", {"x": normal(3, 4)}, eps=0.5)
_add("standardize", "one value", {"x": normal(2, 1, 1)}, eps=0.1)
_add("standardize", "empty batch", {"x": normal(0, 3, 5)})
_add("standardize", "large", {"x": normal(37, 31, 41)}, large=True)


def _conv1d(
    batch: int,
    channels: int,
    length: int,
    out: int,
    kernel: int,
    groups: int = 1,
    bias: bool = True,
) -> dict[str, Maker]:
    makers = {
        "x": normal(batch, channels, length),
        "weight": normal(out, channels // groups, kernel),
    }
    return makers | ({"bias": normal(out)} if bias else {})


_add("conv1d", "one by one", _conv1d(1, 1, 1, 1, 1))
_add("conv1d", "plain", _conv1d(2, 3, 11, 5, 3))
_add("conv1d", "no bias", _conv1d(1, 2, 7, 3, 2, bias=False))
_add("conv1d", "stride leaves steps out", _conv1d(2, 3, 12, 5, 3), stride=4)
_add("conv1d", "stride past the kernel", _conv1d(2, 1, 13, 2, 2), stride=(5,))
_add("conv1d", "padding", _conv1d(2, 3, 5, 4, 5), padding=4)
_add("conv1d", "dilation", _conv1d(1, 2, 17, 3, 3), dilation=(5,), stride=2, padding=3)
_add("conv1d", "groups", _conv1d(2, 6, 11, 9, 3, groups=3), groups=3, padding=1)
_add("conv1d", "depthwise", _conv1d(2, 5, 11, 10, 4, groups=5), groups=5, activation="silu")
_add("conv1d", "kernel as long as input", _conv1d(3, 2, 7, 5, 7), activation="relu")
_add("conv1d", "empty batch", _conv1d(0, 3, 11, 5, 3), padding=1)
_add("conv1d", "large", _conv1d(7, 13, 301, 37, 5), padding=2, large=True)


def _conv2d(
    batch: int,
    channels: int,
    size: tuple[int, int],
    out: int,
    kernel: tuple[int, int],
    groups: int = 1,
    bias: bool = True,
) -> dict[str, Maker]:
    makers = {
        "x": normal(batch, channels, *size),
        "weight": normal(out, channels // groups, *kernel),
    }
    return makers | ({"bias": normal(out)} if bias else {})


_add("conv2d", "one by one", _conv2d(1, 1, (1, 1), 1, (1, 1)))
_add("conv2d", "plain", _conv2d(2, 3, (5, 7), 4, (3, 2)))
_add("conv2d", "one channel", _conv2d(2, 1, (7, 9), 3, (3, 3)), padding=1)
_add("conv2d", "no bias", _conv2d(1, 2, (4, 5), 3, (2, 3), bias=False))
_add("conv2d", "pointwise", _conv2d(2, 7, (3, 5), 11, (1, 1)), activation="relu")
_add("conv2d", "stride leaves places out", _conv2d(2, 2, (8, 12), 3, (3, 2)), stride=(3, 4))
_add("conv2d", "stride two same", _conv2d(1, 3, (7, 8), 5, (3, 3)), stride=2, padding=1)
_add("conv2d", "padding beyond the kernel", _conv2d(1, 2, (3, 2), 2, (2, 2)), padding=(3, 2))
_add("conv2d", "dilation", _conv2d(1, 2, (9, 8), 3, (3, 2)), dilation=(2, 3), padding=(2, 1))
_add(
    "conv2d",
    "everything at once",
    _conv2d(2, 4, (11, 9), 6, (3, 2), groups=2),
    stride=(2, 3),
    padding=(1, 2),
    dilation=(3, 2),
    groups=2,
    activation="gelu",
)
_add("conv2d", "groups", _conv2d(2, 6, (5, 4), 9, (2, 3), groups=3), groups=3)
_add("conv2d", "depthwise", _conv2d(2, 5, (6, 5), 10, (3, 3), groups=5), groups=5, padding=1)
_add("conv2d", "kernel as large as input", _conv2d(3, 2, (4, 5), 7, (4, 5)))
_add("conv2d", "one row of pixels", _conv2d(1, 3, (1, 23), 5, (1, 3)), padding=(0, 1))
for _activation in ("relu", "leaky_relu", "sigmoid", "tanh", "silu"):
    _add("conv2d", _activation, _conv2d(1, 2, (5, 6), 3, (3, 3)), activation=_activation, padding=1)
_add("conv2d", "many channels", _conv2d(1, 17, (5, 5), 19, (3, 3)), padding=1)
_add("conv2d", "empty batch", _conv2d(0, 3, (5, 7), 4, (3, 2)), activation="relu")
_add("conv2d", "large", _conv2d(5, 13, (17, 19), 37, (3, 3)), padding=1, large=True)
_add("conv2d", "large strided", _conv2d(3, 16, (21, 20), 33, (3, 3)), stride=2, large=True)


def _transposed(
    batch: int,
    channels: int,
    size: tuple[int, int],
    out: int,
    kernel: tuple[int, int],
    groups: int = 1,
    bias: bool = True,
) -> dict[str, Maker]:
    makers = {
        "x": normal(batch, channels, *size),
        "weight": normal(channels, out // groups, *kernel),
    }
    return makers | ({"bias": normal(out)} if bias else {})


_add("conv_transpose2d", "one by one", _transposed(1, 1, (1, 1), 1, (1, 1)))
_add("conv_transpose2d", "plain", _transposed(2, 3, (4, 5), 5, (3, 2)))
_add("conv_transpose2d", "no bias", _transposed(1, 2, (3, 4), 3, (2, 3), bias=False))
_add("conv_transpose2d", "stride", _transposed(2, 3, (3, 4), 2, (2, 3)), stride=(2, 3))
_add("conv_transpose2d", "stride past the kernel", _transposed(1, 2, (3, 2), 3, (2, 1)), stride=4)
_add("conv_transpose2d", "padding", _transposed(1, 2, (5, 4), 3, (3, 4)), padding=(2, 1))
_add(
    "conv_transpose2d",
    "output padding",
    _transposed(2, 2, (3, 4), 3, (3, 2)),
    stride=(2, 3),
    padding=1,
    output_padding=(1, 2),
)
_add(
    "conv_transpose2d",
    "everything at once",
    _transposed(2, 4, (3, 4), 6, (2, 3), groups=2),
    stride=(3, 2),
    padding=(1, 2),
    output_padding=(2, 1),
    groups=2,
    dilation=(2, 3),
)
_add("conv_transpose2d", "depthwise", _transposed(1, 3, (4, 4), 6, (3, 3), groups=3), groups=3)
_add("conv_transpose2d", "empty batch", _transposed(0, 3, (4, 5), 5, (3, 2)))
_add("conv_transpose2d", "large", _transposed(3, 17, (11, 13), 23, (3, 3)), stride=2, large=True)

_add("max_pool2d", "one by one", {"x": normal(1, 1, 1, 1)}, kernel_size=1)
_add("max_pool2d", "plain", {"x": normal(2, 3, 6, 8)}, kernel_size=2)
_add("max_pool2d", "rows and columns left out", {"x": normal(2, 3, 7, 11)}, kernel_size=(2, 3))
_add("max_pool2d", "overlap", {"x": normal(1, 2, 7, 9)}, kernel_size=3, stride=1)
_add(
    "max_pool2d",
    "ties",
    {"x": few_values(2, 3, 7, 9)},
    kernel_size=3,
    stride=2,
    no_differences=_TIES,
)
_add(
    "max_pool2d",
    "ties with padding",
    {"x": few_values(2, 2, 5, 6)},
    kernel_size=3,
    padding=1,
    no_differences=_TIES,
)
_add(
    "max_pool2d", "padding", {"x": normal(2, 2, 5, 6)}, kernel_size=(2, 4), stride=2, padding=(1, 2)
)
_add(
    "max_pool2d",
    "dilation",
    {"x": normal(1, 2, 9, 8)},
    kernel_size=(3, 2),
    stride=(1, 2),
    padding=1,
    dilation=(2, 3),
)
_add(
    "max_pool2d", "stride past the kernel", {"x": normal(1, 1, 9, 7)}, kernel_size=2, stride=(4, 3)
)
_add("max_pool2d", "two columns", {"x": normal(2, 3, 8, 37)}, kernel_size=(2, 2), stride=(3, 2))
_add("max_pool2d", "empty batch", {"x": normal(0, 3, 6, 8)}, kernel_size=2)
_add("max_pool2d", "large", {"x": normal(7, 13, 26, 28)}, kernel_size=2, large=True)
_add(
    "max_pool2d",
    "large overlap",
    {"x": few_values(3, 5, 37, 41)},
    kernel_size=3,
    stride=2,
    large=True,
)

_add("avg_pool2d", "one by one", {"x": normal(1, 1, 1, 1)}, kernel_size=1)
_add("avg_pool2d", "plain", {"x": normal(2, 3, 6, 8)}, kernel_size=2)
_add("avg_pool2d", "rows and columns left out", {"x": normal(2, 3, 7, 11)}, kernel_size=(2, 3))
_add("avg_pool2d", "overlap", {"x": normal(1, 2, 7, 9)}, kernel_size=3, stride=1)
_add(
    "avg_pool2d", "padding", {"x": normal(2, 2, 5, 6)}, kernel_size=(2, 4), stride=2, padding=(1, 2)
)
_add(
    "avg_pool2d",
    "padding not counted",
    {"x": normal(2, 2, 5, 6)},
    kernel_size=(3, 4),
    stride=(2, 1),
    padding=(1, 2),
    count_include_pad=False,
)
_add(
    "avg_pool2d", "stride past the kernel", {"x": normal(1, 1, 9, 7)}, kernel_size=2, stride=(4, 3)
)
_add("avg_pool2d", "global", {"x": normal(2, 5, 7, 3)}, kernel_size="global")
_add("avg_pool2d", "empty batch", {"x": normal(0, 3, 6, 8)}, kernel_size=2)
_add("avg_pool2d", "large", {"x": normal(7, 13, 26, 28)}, kernel_size=2, large=True)


def _normed(*shape: int, beta: bool = True) -> dict[str, Maker]:
    makers = {"x": normal(*shape, scale=2.0, offset=1.0), "gamma": normal(shape[-1])}
    return makers | ({"beta": normal(shape[-1])} if beta else {})


for _op in ("layer_norm", "rms_norm"):
    _beta = _op == "layer_norm"
    _add(_op, "awkward", _normed(5, 123, beta=_beta))
    _add(_op, "primes", _normed(17, 29, beta=_beta))
    _add(_op, "one row", _normed(1, 13, beta=_beta))
    _add(_op, "vector", _normed(13, beta=_beta))
    _add(_op, "sequence", _normed(2, 3, 7, beta=_beta))
    _add(_op, "one feature", _normed(5, 1, beta=_beta), eps=0.1)
    _add(_op, "eps", _normed(3, 5, beta=_beta), eps=0.5)
    _add(_op, "empty batch", _normed(0, 5, beta=_beta))
    _add(_op, "large", _normed(211, 257, beta=_beta), large=True)


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
    _add("batch_norm", f"{_mode} rows", _batch_normed_makers(13, 5), training=_training)
    _add("batch_norm", f"{_mode} sequences", _batch_normed_makers(5, 3, 7), training=_training)
    _add("batch_norm", f"{_mode} images", _batch_normed_makers(3, 5, 4, 7), training=_training)
    _add("batch_norm", f"{_mode} one channel", _batch_normed_makers(1, 1, 3, 5), training=_training)
    _add(
        "batch_norm",
        f"{_mode} eps and momentum",
        _batch_normed_makers(5, 3),
        training=_training,
        momentum=0.3,
        eps=0.1,
    )
    _add(
        "batch_norm",
        f"{_mode} empty batch",
        _batch_normed_makers(0, 3, 5),
        training=_training,
        not_in_torch="PyTorch refuses an empty batch in training",
    )
    _add(
        "batch_norm",
        f"{_mode} large",
        _batch_normed_makers(7, 13, 17, 19),
        training=_training,
        large=True,
    )
_add("batch_norm", "inference one row", _batch_normed_makers(1, 5), training=False)
for _activation in ("relu", "leaky_relu", "sigmoid", "tanh", "gelu", "silu"):
    _add(
        "batch_norm",
        f"training {_activation}",
        _batch_normed_makers(3, 5, 4, 7),
        training=True,
        activation=_activation,
    )
_add(
    "batch_norm",
    "inference relu",
    _batch_normed_makers(13, 5),
    training=False,
    activation="relu",
)

_add("dropout", "half", {"x": normal(5, 123)}, p=0.5, rng=Seed(7))
_add("dropout", "a third", {"x": normal(3, 5, 7)}, p=0.3, rng=Seed(11))
_add("dropout", "all", {"x": normal(5, 7)}, p=1.0, rng=Seed(7))
_add("dropout", "none", {"x": normal(5, 7)}, p=0.0, rng=Seed(7))
_add("dropout", "inference", {"x": normal(5, 7)}, p=0.5, training=False)
_add("dropout", "one value", {"x": normal(1)}, p=0.2, rng=Seed(3))
_add("dropout", "empty", {"x": normal(0, 7)}, p=0.5, rng=Seed(7))
_add("dropout", "large", {"x": normal(67, 1031)}, p=0.1, rng=Seed(7), large=True)

_add("embedding", "sequence", {"tokens": integers(11, 3, 5), "weight": normal(11, 7)})
_add("embedding", "many repeats", {"tokens": integers(2, 123), "weight": normal(5, 3)})
_add("embedding", "one token", {"tokens": integers(3), "weight": normal(3, 5)})
_add("embedding", "one row", {"tokens": integers(1, 5), "weight": normal(1, 1)})
_add(
    "embedding",
    "padding",
    {"tokens": integers(4, 2, 9), "weight": normal(4, 5)},
    padding_idx=2,
    no_differences=_PADDING,
)
_add(
    "embedding",
    "padding from the end",
    {"tokens": integers(4, 9), "weight": normal(4, 5)},
    padding_idx=-1,
    no_differences=_PADDING,
)
_add("embedding", "empty", {"tokens": integers(4, 0, 3), "weight": normal(4, 5)})
_add("embedding", "large", {"tokens": integers(97, 7, 211), "weight": normal(97, 61)}, large=True)


def _heads(
    batch: int,
    heads: int,
    queries: int,
    features: int,
    *,
    groups: int | None = None,
    keys: int | None = None,
    values: int | None = None,
) -> dict[str, Maker]:
    """q, k and v, as many key-value heads, keys and features of a value as of q unless given."""
    shape = (batch, groups or heads, keys or queries)
    return {
        "q": normal(batch, heads, queries, features),
        "k": normal(*shape, features),
        "v": normal(*shape, values or features),
    }


_add("attention", "one by one", _heads(1, 1, 1, 1))
_add("attention", "awkward", _heads(1, 1, 5, 123, keys=3))
_add("attention", "primes", _heads(2, 3, 7, 5, keys=11, values=13))
_add("attention", "one query", _heads(2, 2, 1, 5, keys=7, values=3))
_add("attention", "one key", _heads(2, 2, 5, 3, keys=1))
_add("attention", "grouped heads", _heads(2, 6, 5, 4, groups=2, keys=7, values=3))
_add("attention", "one key-value head", _heads(2, 5, 3, 4, groups=1))
_add("attention", "scale", _heads(2, 3, 5, 4), scale=1.7)
_add("attention", "bias", {**_heads(2, 3, 5, 4, keys=7), "bias": normal(2, 3, 5, 7)})
_add(
    "attention",
    "bias of heads",
    {**_heads(2, 3, 5, 4), "bias": normal(3, 1, 5)},
    not_annotated=("an annotation for every number of axes would say nothing"),
)
_add("attention", "bias of pairs", {**_heads(2, 3, 5, 4, keys=7), "bias": normal(5, 7)})
_add("attention", "mask", {**_heads(2, 3, 5, 4, keys=7), "mask": booleans(2, 3, 5, 7)})
_add("attention", "mask of pairs", {**_heads(2, 3, 5, 4, keys=7), "mask": booleans(5, 7)})
_add("attention", "masked rows", {**_heads(2, 2, 7, 3), "mask": booleans(2, 1, 7, 7, share=0.2)})
_add("attention", "masked everywhere", {**_heads(1, 2, 3, 4), "mask": booleans(3, 3, share=0.0)})
_add("attention", "lengths", {**_heads(4, 2, 5, 3, keys=7), "lengths": fixed([7, 0, 3, 1])})
_add("attention", "causal", _heads(2, 3, 7, 4), causal=True)
_add("attention", "causal with more keys", _heads(2, 3, 3, 4, keys=8), causal=True)
_add("attention", "causal after others", _heads(2, 3, 3, 4, keys=8), causal=True, offset=5)
_add("attention", "causal before the keys", _heads(1, 2, 5, 3), causal=True, offset=-2)
_add(
    "attention",
    "everything at once",
    {
        **_heads(3, 4, 5, 4, groups=2, values=3),
        "bias": normal(1, 4, 5, 5),
        "mask": booleans(3, 1, 5, 5, share=0.8),
        "lengths": fixed([5, 2, 4]),
    },
    causal=True,
    scale=0.9,
    dropout_p=0.3,
    rng=Seed(7),
)
_add("attention", "dropout", _heads(2, 2, 5, 4, keys=7), dropout_p=0.5, rng=Seed(7))
_add("attention", "dropout of all", _heads(2, 2, 3, 4), dropout_p=1.0, rng=Seed(7))
_add("attention", "spread scores", _heads(2, 2, 5, 4), scale=10.0)
_add("attention", "empty batch", _heads(0, 2, 3, 4))
_add("attention", "no queries", _heads(2, 2, 0, 4, keys=3))
_add("attention", "large", _heads(3, 4, 67, 32, groups=2, keys=131), large=True)


def _states(batch: int, steps: int, size: int, others: int, other_size: int) -> dict[str, Maker]:
    return {"s": normal(batch, steps, size), "h": normal(batch, others, other_size)}


def _additive(
    batch: int, steps: int, size: int, others: int, other_size: int, hidden: int
) -> dict[str, Maker]:
    return {
        **_states(batch, steps, size, others, other_size),
        "weight_s": normal(hidden, size, scale=size**-0.5),
        "weight_h": normal(hidden, other_size, scale=other_size**-0.5),
        "v": normal(hidden),
    }


_add("additive_attention", "one by one", _additive(1, 1, 1, 1, 1, 1))
_add("additive_attention", "awkward", _additive(1, 5, 4, 123, 3, 7))
_add("additive_attention", "primes", _additive(3, 5, 7, 11, 2, 13))
_add("additive_attention", "one step", _additive(5, 1, 3, 7, 4, 2))
_add("additive_attention", "mask", {**_additive(2, 3, 4, 5, 3, 2), "mask": booleans(2, 3, 5)})
_add(
    "additive_attention",
    "masked rows",
    {**_additive(2, 7, 4, 5, 3, 2), "mask": booleans(1, 7, 5, share=0.2)},
)
_add("additive_attention", "lengths", {**_additive(3, 2, 3, 5, 4, 2), "lengths": fixed([5, 0, 2])})
_add(
    "additive_attention",
    "lengths and mask",
    {**_additive(3, 4, 3, 5, 4, 2), "mask": booleans(3, 1, 5), "lengths": fixed([1, 5, 3])},
)
_add("additive_attention", "empty batch", _additive(0, 3, 4, 5, 3, 2))
_add("additive_attention", "no steps", _additive(2, 0, 4, 5, 3, 2))
_add("additive_attention", "large", _additive(3, 31, 37, 41, 29, 43), large=True)

_add("cosine_attention", "one by one", _states(1, 1, 1, 1, 1))
_add("cosine_attention", "awkward", _states(1, 5, 123, 3, 123))
_add("cosine_attention", "primes", _states(3, 5, 7, 11, 7))
_add("cosine_attention", "one step", _states(5, 1, 3, 7, 3))
_add("cosine_attention", "mask", {**_states(2, 3, 4, 5, 4), "mask": booleans(2, 3, 5)})
_add(
    "cosine_attention",
    "masked rows",
    {**_states(2, 7, 4, 5, 4), "mask": booleans(1, 7, 5, share=0.2)},
)
_add("cosine_attention", "lengths", {**_states(3, 2, 3, 5, 3), "lengths": fixed([5, 0, 2])})
_add("cosine_attention", "eps", _states(2, 3, 4, 5, 4), eps=0.5)
_add("cosine_attention", "empty batch", _states(0, 3, 4, 5, 4))
_add("cosine_attention", "no steps", _states(2, 0, 4, 5, 4))
_add("cosine_attention", "large", _states(3, 67, 32, 131, 32), large=True)

for _op in ("positional_encoding", "rotary"):
    _add(_op, "one step", {"x": normal(2, 1, 6)})
    _add(_op, "awkward", {"x": normal(3, 5, 124)})
    _add(_op, "heads", {"x": normal(2, 3, 7, 10)})
    _add(_op, "one sequence", {"x": normal(11, 4)})
    _add(_op, "offset", {"x": normal(2, 5, 6)}, offset=1000)
    _add(_op, "before the start", {"x": normal(5, 6)}, offset=-3)
    _add(_op, "base", {"x": normal(2, 5, 6)}, base=100.0)
    _add(_op, "empty batch", {"x": normal(0, 5, 6)})
    _add(_op, "no steps", {"x": normal(2, 0, 6)})
    _add(_op, "large", {"x": normal(5, 67, 128)}, large=True)
_add("positional_encoding", "odd features", {"x": normal(2, 5, 7)})
_add("positional_encoding", "one feature", {"x": normal(2, 5, 1)})

_add("cross_entropy", "rows", {"x": normal(5, 7), "target": labels(7, 5)})
_add("cross_entropy", "awkward", {"x": normal(5, 123), "target": labels(123, 5)})
_add("cross_entropy", "one row", {"x": normal(1, 3), "target": labels(3, 1)})
_add("cross_entropy", "no batch", {"x": normal(7), "target": labels(7)})
_add(
    "cross_entropy", "no batch probabilities", {"x": normal(7), "target": probabilities(7, axis=0)}
)
_add("cross_entropy", "one class", {"x": normal(5, 1), "target": labels(1, 5)})
_add("cross_entropy", "sequence", {"x": normal(3, 5, 7), "target": labels(5, 3, 7)})
_add("cross_entropy", "images", {"x": normal(2, 5, 3, 4), "target": labels(5, 2, 3, 4)})
for _reduction in ("sum", "none"):
    _add(
        "cross_entropy",
        _reduction,
        {"x": normal(5, 7), "target": labels(7, 5)},
        reduction=_reduction,
    )
    _add(
        "cross_entropy",
        f"{_reduction} of images",
        {"x": normal(2, 5, 3, 4), "target": labels(5, 2, 3, 4, ignored=-100), "weight": uniform(5)},
        reduction=_reduction,
        label_smoothing=0.1,
    )
_add("cross_entropy", "probabilities", {"x": normal(5, 7), "target": probabilities(5, 7, axis=1)})
_add(
    "cross_entropy",
    "probabilities of a sequence",
    {"x": normal(3, 5, 7), "target": probabilities(3, 5, 7, axis=1), "weight": uniform(5)},
    label_smoothing=0.2,
)
_add(
    "cross_entropy",
    "class weights",
    {"x": normal(11, 5), "target": labels(5, 11), "weight": uniform(5, low=0.2, high=2.0)},
)
_add(
    "cross_entropy", "smoothing", {"x": normal(11, 5), "target": labels(5, 11)}, label_smoothing=0.1
)
_add(
    "cross_entropy",
    "smoothing alone",
    {"x": normal(3, 5), "target": labels(5, 3)},
    label_smoothing=1.0,
)
_add(
    "cross_entropy",
    "ignored and weighted and smoothed",
    {
        "x": normal(13, 5),
        "target": labels(5, 13, ignored=-100),
        "weight": uniform(5, low=0.2, high=2.0),
    },
    label_smoothing=0.1,
)
_add(
    "cross_entropy",
    "ignored class",
    {"x": normal(13, 5), "target": labels(5, 13)},
    ignore_index=3,
)
_add(
    "cross_entropy",
    "spread scores",
    {"x": uniform(5, 7, low=-300.0, high=300.0), "target": labels(7, 5)},
)
_add(
    "cross_entropy",
    "empty batch",
    {"x": normal(0, 5), "target": labels(5, 0)},
    not_in_torch="PyTorch's mean over no targets is NaN; here it is 0",
)
_add("cross_entropy", "large", {"x": normal(301, 131), "target": labels(131, 301)}, large=True)

for _reduction in ("mean", "sum", "none", "half_sum"):
    _add(
        "squared_error",
        _reduction,
        {"x": normal(5, 7), "target": normal(5, 7)},
        reduction=_reduction,
    )
_add("squared_error", "one value", {"x": normal(1), "target": normal(1)})
_add("squared_error", "four axes", {"x": normal(2, 3, 5, 7), "target": normal(2, 3, 5, 7)})
_add(
    "squared_error",
    "empty batch",
    {"x": normal(0, 7), "target": normal(0, 7)},
    not_in_torch="PyTorch's mean over no values is NaN; here it is 0",
)
_add("squared_error", "large", {"x": normal(301, 131), "target": normal(301, 131)}, large=True)

for _reduction in ("mean", "sum", "none"):
    _add(
        "binary_cross_entropy",
        _reduction,
        {"x": normal(5, 7), "target": uniform(5, 7)},
        reduction=_reduction,
    )
_add(
    "binary_cross_entropy",
    "weights",
    {"x": normal(5, 7), "target": uniform(5, 7), "weight": uniform(5, 1), "pos_weight": uniform(7)},
)
_add("binary_cross_entropy", "one value", {"x": normal(1), "target": uniform(1)})
_add(
    "binary_cross_entropy",
    "spread logits",
    {"x": uniform(123, low=-300.0, high=300.0), "target": few_values(123, low=0)},
)
_add(
    "binary_cross_entropy",
    "empty batch",
    {"x": normal(0, 7), "target": uniform(0, 7)},
    not_in_torch="PyTorch's mean over no values is NaN; here it is 0",
)
_add(
    "binary_cross_entropy",
    "large",
    {"x": normal(301, 131), "target": uniform(301, 131)},
    large=True,
)


def _sequences(
    batch: int,
    steps: int,
    features: int,
    hidden: int,
    *,
    gates: int = 1,
    projection: int | None = None,
    bias: bool = True,
    states: bool = True,
) -> dict[str, Maker]:
    """x, the weights of rnn, gru (3 gates) or lstm (4 gates), and initial states."""
    rows, size = gates * hidden, projection or hidden
    makers = {
        "x": normal(batch, steps, features),
        "weight_ih": normal(rows, features, scale=0.5),
        "weight_hh": normal(rows, size, scale=0.5),
    }
    if bias:
        makers |= {"bias_ih": normal(rows), "bias_hh": normal(rows)}
    if projection:
        makers["weight_hr"] = normal(projection, hidden, scale=0.7)
    if states:
        makers["h0"] = normal(batch, size)
    if states and gates == 4:
        makers["c0"] = normal(batch, hidden)
    return makers


def _leaky_sequences(
    batch: int, steps: int, features: int, hidden: int, *, bias: bool = True, states: bool = True
) -> dict[str, Maker]:
    makers = _sequences(batch, steps, features, hidden, bias=bias, states=states)
    return {name: makers[name] for name in ("x", "weight_ih", "bias_ih", "h0") if name in makers}


def _ragged(makers: dict[str, Maker], *lengths: int) -> dict[str, Maker]:
    return makers | {"lengths": fixed(lengths)}


for _op, _gates in (("rnn", 1), ("lstm", 4), ("gru", 3)):
    _add(_op, "one unit", _sequences(1, 1, 1, 1, gates=_gates))
    _add(_op, "awkward", _sequences(3, 5, 13, 7, gates=_gates))
    _add(_op, "one sequence", _sequences(1, 7, 3, 5, gates=_gates))
    _add(_op, "one step", _sequences(5, 1, 3, 4, gates=_gates))
    _add(_op, "no states", _sequences(2, 3, 4, 5, gates=_gates, states=False))
    _add(_op, "no bias", _sequences(2, 3, 4, 5, gates=_gates, bias=False))
    _add(_op, "weights only", _sequences(2, 3, 4, 3, gates=_gates, bias=False, states=False))
    _add(_op, "reverse", _sequences(2, 4, 3, 5, gates=_gates), reverse=True)
    _add(_op, "lengths", _ragged(_sequences(4, 5, 3, 4, gates=_gates), 5, 2, 1, 4))
    _add(_op, "all lengths full", _ragged(_sequences(2, 3, 3, 4, gates=_gates), 3, 3))
    _add(_op, "lengths of 0", _ragged(_sequences(3, 4, 3, 2, gates=_gates), 0, 4, 0))
    _add(_op, "nothing but padding", _ragged(_sequences(2, 3, 3, 2, gates=_gates), 0, 0))
    _add(
        _op,
        "lengths without states",
        _ragged(_sequences(3, 4, 2, 3, gates=_gates, states=False), 1, 4, 3),
    )
    _add(
        _op,
        "reverse lengths",
        _ragged(_sequences(4, 5, 3, 4, gates=_gates), 3, 5, 0, 2),
        reverse=True,
    )
    _add(_op, "empty batch", _sequences(0, 3, 4, 5, gates=_gates))
    _add(_op, "large", _ragged(_sequences(17, 23, 31, 29, gates=_gates), *range(7, 24)), large=True)
_add("rnn", "relu", _sequences(3, 5, 4, 6), nonlinearity="relu")
_add(
    "rnn",
    "relu reverse lengths",
    _ragged(_sequences(3, 5, 4, 6), 5, 3, 1),
    nonlinearity="relu",
    reverse=True,
)
_add("lstm", "projection", _sequences(3, 4, 5, 7, gates=4, projection=3))
_add("lstm", "projection to one", _sequences(2, 3, 4, 5, gates=4, projection=1))
_add("lstm", "projection alone", _sequences(2, 3, 4, 5, gates=4, projection=2, states=False))
_add(
    "lstm",
    "projection without bias",
    _sequences(2, 3, 4, 5, gates=4, projection=2, bias=False),
)
_add(
    "lstm",
    "projection reverse lengths",
    _ragged(_sequences(4, 5, 3, 4, gates=4, projection=3), 2, 5, 0, 4),
    reverse=True,
)

for _label, _sizes in (("one unit", (1, 1, 1, 1)), ("awkward", (3, 5, 13, 7))):
    _add("leaky_rnn", _label, _leaky_sequences(*_sizes), alpha=0.7)
_add("leaky_rnn", "one step", _leaky_sequences(5, 1, 3, 4), alpha=0.5)
_add(
    "leaky_rnn",
    "a rate per unit",
    _leaky_sequences(3, 4, 2, 5) | {"alpha": uniform(5)},
)
_add("leaky_rnn", "no memory", _leaky_sequences(2, 3, 4, 5), alpha=0.0)
_add("leaky_rnn", "memory only", _leaky_sequences(2, 3, 4, 5), alpha=1.0)
_add("leaky_rnn", "no states", _leaky_sequences(2, 3, 4, 5, states=False), alpha=0.3)
_add("leaky_rnn", "no bias", _leaky_sequences(2, 3, 4, 5, bias=False), alpha=0.3)
_add("leaky_rnn", "lengths", _ragged(_leaky_sequences(4, 5, 3, 4), 5, 2, 0, 4), alpha=0.6)
_add(
    "leaky_rnn",
    "reverse lengths",
    _ragged(_leaky_sequences(3, 5, 3, 4), 3, 5, 1) | {"alpha": uniform(4)},
    reverse=True,
)
_add("leaky_rnn", "empty batch", _leaky_sequences(0, 3, 4, 5), alpha=0.7)
_add(
    "leaky_rnn",
    "large",
    _ragged(_leaky_sequences(17, 23, 31, 29), *range(7, 24)),
    alpha=0.9,
    large=True,
)

CASES: Final = tuple(_CASES)
SMALL_CASES: Final = tuple(case for case in CASES if not case.large)
