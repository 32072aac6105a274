"""Wrong input is refused by every op in one sentence: what has which value, and what is allowed."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from handgrad import kernels
from handgrad.dispatch import engine, set_engine
from handgrad.errors import ArgumentError, EngineError, ShapeError
from handgrad.ops import linear, relu
from tests.ops.cases import CASES, Case, each
from tests.rows import rows

RNG = np.random.default_rng(0)


def some(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


IMAGE, KERNEL = some(2, 4, 5, 6), some(6, 4, 3, 2)
CLASSES = np.array([0, 2, 1])
QKV = (some(2, 4, 3, 5), some(2, 2, 6, 5), some(2, 2, 6, 7))
STATES = (some(2, 3, 4), some(2, 5, 6))
SCORED = (*STATES, some(7, 4), some(7, 6), some(7))
COSINE = (some(2, 3, 4), some(2, 5, 4))
SEQUENCES = some(3, 5, 4)
SPELT = np.array([[1, 2], [2, 2], [3, 1]])
RNN = (SEQUENCES, some(2, 4), some(2, 2), some(2), some(2))
LSTM = (SEQUENCES, some(8, 4), some(8, 2), some(8), some(8))
PROJECTED = (SEQUENCES, some(8, 4), some(8, 1), None, None, some(1, 2))
GRU = (SEQUENCES, some(6, 4), some(6, 2), some(6), some(6))
LEAKY = (SEQUENCES, some(2, 4), some(2))

WRONG_SHAPES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("matmul", (some(3, 4), some(5, 6)), {}),
    ("matmul", (some(2, 3, 4), some(3, 4, 5)), {}),
    ("matmul", (some(), some(3, 4)), {}),
    ("matmul", (some(4), some(4, 5)), {"tile": (2, 2)}),
    ("linear", (some(3, 4), some(5, 6)), {}),
    ("linear", (some(3, 4), some(4)), {}),
    ("linear", (some(3, 4), some(5, 4), some(4)), {}),
    ("dense", (some(3, 4), some(5, 6)), {}),
    ("dense", (some(), some(5, 4)), {}),
    ("dense", (some(3, 4), some(5, 4), some(5, 1)), {}),
    ("softmax", (some(3, 0),), {}),
    ("standardize", (some(3, 0),), {}),
    ("standardize", (some(3),), {"axes": None}),
    ("standardize", (some(3, 4, 0),), {"axes": None}),
    ("conv1d", (some(2, 4, 5, 6), some(6, 4, 3)), {}),
    ("conv1d", (some(2, 4, 5), some(6, 3, 3)), {}),
    ("conv1d", (some(2, 4, 5), some(6, 4, 6)), {}),
    ("conv1d", (some(2, 4, 5), some(6, 4, 0)), {}),
    ("conv2d", (some(4, 5, 6), KERNEL), {}),
    ("conv2d", (IMAGE, some(6, 4, 3)), {}),
    ("conv2d", (IMAGE, some(6, 3, 3, 2)), {}),
    ("conv2d", (IMAGE, KERNEL, some(4)), {}),
    ("conv2d", (IMAGE, some(6, 4, 6, 2)), {}),
    ("conv2d", (IMAGE, KERNEL), {"dilation": 3}),
    ("conv2d", (IMAGE, some(6, 4, 3, 2)), {"groups": 2}),
    ("conv_transpose2d", (IMAGE, some(3, 4, 3, 2)), {}),
    ("conv_transpose2d", (IMAGE, some(4, 3, 3, 2), some(4)), {}),
    ("conv_transpose2d", (some(1, 4, 1, 1), some(4, 3, 1, 1)), {"padding": 1}),
    ("conv_transpose1d", (some(2, 4, 5), some(3, 4, 3)), {}),
    ("conv_transpose1d", (some(2, 4, 5), some(4, 3, 3), some(4)), {}),
    ("conv_transpose1d", (some(1, 4, 1), some(4, 3, 1)), {"padding": 1}),
    ("max_pool1d", (IMAGE, 2), {}),
    ("max_pool1d", (some(2, 4, 5), 6), {}),
    ("max_pool1d", (some(2, 4, 5), 3), {"dilation": 3}),
    ("avg_pool1d", (IMAGE, 2), {}),
    ("avg_pool1d", (some(2, 4, 5), 6), {}),
    ("max_pool2d", (some(4, 5, 6), 2), {}),
    ("max_pool2d", (IMAGE, (6, 2)), {}),
    ("max_pool2d", (IMAGE, 3), {"dilation": 3}),
    ("avg_pool2d", (some(4, 5, 6), 2), {}),
    ("avg_pool2d", (IMAGE, (2, 7)), {}),
    ("layer_norm", (some(3, 4), some(3), some(4)), {}),
    ("layer_norm", (some(3, 4), some(4), some(4, 1)), {}),
    ("layer_norm", (some(3, 0), some(0), some(0)), {}),
    ("rms_norm", (some(3, 4), some(3)), {}),
    ("group_norm", (some(4), some(4), some(4)), {"num_groups": 2}),
    ("group_norm", (some(2, 4, 0), some(4), some(4)), {"num_groups": 2}),
    ("group_norm", (some(2, 4, 3), some(3), some(4)), {"num_groups": 2}),
    ("group_norm", (some(2, 4, 3), some(4), some(2)), {"num_groups": 2}),
    ("swiglu", (some(3, 5),), {}),
    ("swiglu", (some(),), {}),
    ("geglu", (some(7),), {}),
    ("batch_norm", (some(4), some(4), some(4), some(4), some(4)), {"training": True}),
    ("batch_norm", (some(3, 4), some(3), some(4), some(4), some(4)), {"training": True}),
    ("batch_norm", (some(3, 4), some(4), some(4), some(4), some(3)), {"training": False}),
    ("batch_norm", (some(1, 4), some(4), some(4), some(4), some(4)), {"training": True}),
    ("embedding", (CLASSES, some(4)), {}),
    ("attention", (some(2, 3, 5), *QKV[1:]), {}),
    ("attention", (some(2, 4, 3, 0), some(2, 2, 6, 0), QKV[2]), {}),
    ("attention", (QKV[0], some(2, 2, 6, 4), QKV[2]), {}),
    ("attention", (QKV[0], some(2, 2, 0, 5), some(2, 2, 0, 7)), {}),
    ("attention", (QKV[0], some(2, 3, 6, 5), some(2, 3, 6, 7)), {}),
    ("attention", (*QKV[:2], some(2, 2, 5, 7)), {}),
    ("attention", QKV, {"bias": some(2, 4, 3, 5)}),
    ("attention", QKV, {"mask": some(1, 2, 4, 3, 6) > 0}),
    ("attention", QKV, {"lengths": np.array([6, 6, 6])}),
    ("additive_attention", (some(2, 4), *SCORED[1:]), {}),
    ("additive_attention", (SCORED[0], some(3, 5, 6), *SCORED[2:]), {}),
    ("additive_attention", (*STATES, some(7, 3), *SCORED[3:]), {}),
    ("additive_attention", (*STATES, some(7, 4), some(8, 6), some(7)), {}),
    ("additive_attention", (*SCORED[:4], some(8)), {}),
    ("additive_attention", SCORED, {"mask": some(2, 5) > 0}),
    ("additive_attention", SCORED, {"lengths": np.array([5])}),
    ("cosine_attention", STATES, {}),
    ("cosine_attention", (some(2, 3, 4), some(2, 0, 4)), {}),
    ("cosine_attention", COSINE, {"lengths": np.array([5, 5, 5])}),
    ("positional_encoding", (some(4),), {}),
    ("rotary", (some(3, 5),), {}),
    ("rnn", (some(3, 4), *RNN[1:]), {}),
    ("rnn", (some(3, 0, 4), *RNN[1:]), {}),
    ("rnn", (some(3, 5, 3), *RNN[1:]), {}),
    ("rnn", (*RNN[:2], some(2), *RNN[3:]), {}),
    ("rnn", (*RNN[:2], some(2, 3), *RNN[3:]), {}),
    ("rnn", (*RNN[:3], some(3), RNN[4]), {}),
    ("rnn", RNN, {"h0": some(3, 4)}),
    ("rnn", RNN, {"h0": some(1, 2)}),
    ("rnn", RNN, {"lengths": np.array([5, 5])}),
    ("rnn", RNN, {"lengths": np.array([[5, 5, 5]])}),
    ("leaky_rnn", (some(5, 4), *LEAKY[1:]), {"alpha": 0.5}),
    ("leaky_rnn", (SEQUENCES, some(2, 3), some(2)), {"alpha": 0.5}),
    ("leaky_rnn", (SEQUENCES, some(2)), {"alpha": 0.5}),
    ("leaky_rnn", (*LEAKY[:2], some(4)), {"alpha": 0.5}),
    ("leaky_rnn", LEAKY, {"alpha": np.full(3, 0.5)}),
    ("leaky_rnn", LEAKY, {"alpha": 0.5, "h0": some(3, 4)}),
    ("lstm", (some(3, 4), *LSTM[1:]), {}),
    ("lstm", (*LSTM[:2], some(6, 2), *LSTM[3:]), {}),
    ("lstm", (*LSTM[:2], some(8, 1), *LSTM[3:]), {}),
    ("lstm", (SEQUENCES, some(2, 4), *LSTM[2:]), {}),
    ("lstm", (*LSTM[:4], some(2)), {}),
    ("lstm", (*PROJECTED[:5], some(1, 3)), {}),
    ("lstm", (*PROJECTED[:2], some(8, 2), None, None, some(1, 2)), {}),
    ("lstm", PROJECTED, {"h0": some(3, 2)}),
    ("lstm", PROJECTED, {"c0": some(3, 1)}),
    ("gru", (some(3, 4), *GRU[1:]), {}),
    ("gru", (*GRU[:2], some(4, 2), *GRU[3:]), {}),
    ("gru", (SEQUENCES, some(2, 4), *GRU[2:]), {}),
    ("gru", (*GRU[:3], some(2), some(6)), {}),
    ("gru", GRU, {"h0": some(3, 1)}),
    ("gru", GRU, {"lengths": np.array(5)}),
    ("cross_entropy", (some(3, 4), np.array([0, 1])), {}),
    ("cross_entropy", (some(3, 4), some(4, 3)), {}),
    ("cross_entropy", (some(), np.array(0)), {}),
    ("cross_entropy", (some(3, 4), CLASSES), {"weight": some(3)}),
    ("ctc_loss", (some(3, 4), SPELT), {}),
    ("ctc_loss", (some(3, 0, 4), SPELT), {}),
    ("ctc_loss", (some(2, 5, 4), SPELT), {}),
    ("ctc_loss", (SEQUENCES, SPELT[0]), {}),
    ("ctc_loss", (SEQUENCES, SPELT, np.array([5, 5])), {}),
    ("ctc_loss", (SEQUENCES, SPELT, None, np.array([[2, 2, 2]])), {}),
    ("squared_error", (some(3, 4), some(3, 1)), {}),
    ("binary_cross_entropy", (some(3, 4), some(3)), {}),
    ("binary_cross_entropy", (some(3, 4), some(3, 4)), {"weight": some(3)}),
]

WRONG_VALUES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("matmul", (some(3, 4), some(4, 5)), {"tile": (0, 2)}),
    ("dense", (some(3, 4), some(5, 4)), {"activation": "swish"}),
    ("dense", (some(3, 4), some(5, 4)), {"activation": "gelu", "approximate": "erf"}),
    ("gelu", (some(3),), {"approximate": "fast"}),
    ("softmax", (some(3, 4),), {"axis": 2}),
    ("standardize", (some(3, 4),), {"axes": (0, 2)}),
    ("standardize", (some(3, 4),), {"eps": -1.0}),
    ("conv1d", (some(2, 4, 5), some(6, 4, 3)), {"stride": (1, 1)}),
    ("conv1d", (some(2, 4, 5), some(6, 4, 3)), {"stride": 0}),
    ("conv2d", (IMAGE, KERNEL), {"stride": 0}),
    ("conv2d", (IMAGE, KERNEL), {"stride": 1.5}),
    ("conv2d", (IMAGE, KERNEL), {"padding": (0, -1)}),
    ("conv2d", (IMAGE, KERNEL), {"padding": "same"}),
    ("conv2d", (IMAGE, KERNEL), {"dilation": (1, 1, 1)}),
    ("conv2d", (IMAGE, KERNEL), {"groups": 0}),
    ("conv2d", (IMAGE, some(5, 2, 3, 2)), {"groups": 2}),
    ("conv2d", (IMAGE, KERNEL), {"activation": "softmax"}),
    ("conv_transpose2d", (IMAGE, some(4, 3, 3, 2)), {"groups": 3}),
    ("conv_transpose2d", (IMAGE, some(4, 3, 3, 2)), {"output_padding": 1}),
    ("conv_transpose1d", (some(2, 4, 5), some(4, 3, 3)), {"groups": 3}),
    ("conv_transpose1d", (some(2, 4, 5), some(4, 3, 3)), {"output_padding": 1}),
    ("conv_transpose1d", (some(2, 4, 5), some(4, 3, 3)), {"stride": (1, 1)}),
    ("max_pool1d", (some(2, 4, 5), (2, 2)), {}),
    ("max_pool1d", (some(2, 4, 5), "global"), {}),
    ("max_pool1d", (some(2, 4, 5), 2), {"padding": 2}),
    ("avg_pool1d", (some(2, 4, 5), "global"), {"stride": 2}),
    ("avg_pool1d", (some(2, 4, 5), 3), {"padding": 2}),
    ("max_pool2d", (IMAGE, 0), {}),
    ("max_pool2d", (IMAGE, "global"), {}),
    ("max_pool2d", (IMAGE, 2), {"padding": 2}),
    ("avg_pool2d", (IMAGE, 2), {"stride": 0}),
    ("avg_pool2d", (IMAGE, "global"), {"stride": 2}),
    ("avg_pool2d", (IMAGE, 3), {"padding": (0, 2)}),
    ("layer_norm", (some(3, 4), some(4), some(4)), {"eps": -1e-5}),
    ("rms_norm", (some(3, 4), some(4)), {"eps": float("nan")}),
    ("batch_norm", (some(3, 4), *(some(4) for _ in range(4))), {"training": True, "momentum": 2}),
    ("group_norm", (some(2, 4, 3), some(4), some(4)), {"num_groups": 3}),
    ("group_norm", (some(2, 4, 3), some(4), some(4)), {"num_groups": 0}),
    ("group_norm", (some(2, 4, 3), some(4), some(4)), {"num_groups": 2, "eps": -1.0}),
    ("geglu", (some(3, 4),), {"approximate": "erf"}),
    ("ctc_loss", (SEQUENCES, SPELT), {"blank": 4}),
    ("ctc_loss", (SEQUENCES, SPELT), {"blank": 1}),
    ("ctc_loss", (SEQUENCES, SPELT + 2), {}),
    ("ctc_loss", (SEQUENCES, SPELT, np.array([6, 5, 5])), {}),
    ("ctc_loss", (SEQUENCES, SPELT, None, np.array([2, -1, 2])), {}),
    ("ctc_loss", (SEQUENCES, SPELT), {"reduction": "average"}),
    ("dropout", (some(3, 4), 1.5, np.random.default_rng(0)), {}),
    ("dropout", (some(3, 4), 0.5), {}),
    ("dropout", (some(3, 4), 0.5, 17), {}),
    ("embedding", (np.array([0, 4]), some(4, 3)), {}),
    ("embedding", (np.array([-1, 2]), some(4, 3)), {}),
    ("embedding", (np.array([0.0]), some(4, 3)), {}),
    ("embedding", (CLASSES, some(4, 3)), {"padding_idx": 4}),
    ("attention", QKV, {"mask": np.ones((3, 6))}),
    ("attention", QKV, {"lengths": np.array([7, 6])}),
    ("attention", QKV, {"lengths": np.array([3, -1])}),
    ("attention", QKV, {"lengths": np.array([3.0, 2.0])}),
    ("attention", QKV, {"dropout_p": 1.5, "rng": RNG}),
    ("attention", QKV, {"dropout_p": 0.5}),
    ("additive_attention", SCORED, {"lengths": np.array([6, 5])}),
    ("additive_attention", SCORED, {"mask": np.ones((3, 5))}),
    ("cosine_attention", COSINE, {"lengths": np.array([5, 6])}),
    ("cosine_attention", COSINE, {"eps": -1.0}),
    ("positional_encoding", (some(3, 4),), {"base": 0.0}),
    ("rotary", (some(3, 4),), {"base": -1.0}),
    ("rnn", RNN, {"nonlinearity": "sigmoid"}),
    ("rnn", RNN, {"lengths": np.array([6, 5, 5])}),
    ("rnn", RNN, {"lengths": np.array([5, -1, 5])}),
    ("rnn", RNN, {"lengths": np.array([5.0, 5.0, 5.0])}),
    ("rnn", RNN, {"lengths": [5, 5, 5]}),
    ("leaky_rnn", LEAKY, {"alpha": 1.5}),
    ("leaky_rnn", LEAKY, {"alpha": np.array([0.5, -0.5])}),
    ("leaky_rnn", LEAKY, {"alpha": 0.5, "lengths": np.array([6, 5, 5])}),
    ("lstm", LSTM, {"lengths": np.array([6, 5, 5])}),
    ("gru", GRU, {"lengths": np.array([5, -1, 5])}),
    ("cross_entropy", (some(3, 4), np.array([0, 4, 1])), {}),
    ("cross_entropy", (some(3, 4), np.array([0, -1, 1])), {}),
    ("cross_entropy", (some(3, 4), np.array([0.0, 1.0, 2.0])), {}),
    ("cross_entropy", (some(3, 4), np.zeros((3, 4), dtype=int)), {}),
    ("cross_entropy", (some(3, 4), CLASSES), {"label_smoothing": 1.1}),
    ("cross_entropy", (some(3, 4), CLASSES), {"reduction": "average"}),
    ("squared_error", (some(3, 4), some(3, 4)), {"reduction": "half"}),
    ("binary_cross_entropy", (some(3, 4), some(3, 4)), {"reduction": "half_sum"}),
]


def assert_one_sentence(message: str, op: str) -> None:
    assert message.startswith(f"{op}: ")
    assert "; allowed" in message
    assert "\n" not in message
    assert not message.endswith(".")


@rows(("op", "args", "kwargs"), WRONG_SHAPES, by=lambda op, *_: op)
def test_a_wrong_shape_is_refused(op: str, args: Any, kwargs: Any) -> None:
    with pytest.raises(ShapeError) as caught:
        import_module(f"handgrad.ops.{op}").forward(*args, **kwargs)
    assert_one_sentence(str(caught.value), op)


@rows(("op", "args", "kwargs"), WRONG_VALUES, by=lambda op, *_: op)
def test_a_wrong_value_is_refused(op: str, args: Any, kwargs: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        import_module(f"handgrad.ops.{op}").forward(*args, **kwargs)
    assert_one_sentence(str(caught.value), op)


def _with_other_axes(case: Case) -> Iterator[dict[str, np.ndarray]]:
    """The arrays of a case, one of them at a time with nine axes, or with none."""
    arrays = case.arrays()
    for name, array in arrays.items():
        yield arrays | {name: array.reshape((1,) * (9 - array.ndim) + array.shape)}
        yield arrays | {name: array.reshape(-1)[:1].reshape(())}


@each([case for case in CASES if case.label == "usual" and hasattr(case.module, "validate")])
def test_every_op_that_checks_its_input_names_what_is_wrong(case: Case) -> None:
    refused = []
    for arrays in _with_other_axes(case):
        try:
            case.forward(arrays)
        except (ArgumentError, ShapeError) as error:
            refused.append(str(error))
    for given in (0, -1, 2.5, "wrong"):
        for name in set(inspect.signature(case.module.forward).parameters) - set(case.arrays()):
            bound = case.arguments(case.arrays())
            bound.arguments[name] = given
            try:
                case.module.forward(*bound.args, **bound.kwargs)
            except ArgumentError as error:
                refused.append(str(error))
    assert refused
    for message in refused:
        assert_one_sentence(message, case.op)


@pytest.mark.skipif(kernels.native is None, reason="the reference raises what NumPy raises")
@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("dense", (some(3, 4), some(5, 4), some(5))),
        ("layer_norm", (some(3, 4), some(4), some(4))),
        ("softmax", (some(3, 4),)),
        ("conv2d", (IMAGE, KERNEL)),
        ("max_pool2d", (IMAGE, 2)),
        ("cross_entropy", (some(3, 4), CLASSES)),
    ],
)
def test_a_wrong_dy_never_reaches_a_kernel(op: str, args: tuple[Any, ...]) -> None:
    module = import_module(f"handgrad.ops.{op}")
    y, cache = module.forward(*args)
    for wrong in (some(*y.shape, 2), np.asarray(y, dtype=np.float32)):
        with pytest.raises(ShapeError) as caught:
            module.backward(wrong, cache)
        assert_one_sentence(str(caught.value), op)


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(ArgumentError, match="engine is 'fast'; allowed: auto, kernels, reference"):
        set_engine("fast")


def test_the_kernels_engine_never_falls_back() -> None:
    if kernels.native is None:
        with pytest.raises(EngineError, match="engine 'kernels' is not available"):
            set_engine("kernels")
        return
    x, weight = some(3, 4), some(5, 4)
    with engine("kernels"), pytest.raises(EngineError, match="found an array of float16"):
        linear.forward(x.astype(np.float16), weight.astype(np.float16))
    with engine("kernels"), pytest.raises(EngineError, match="found arrays of float64 and float32"):
        linear.forward(x, weight.astype(np.float32))


def test_the_auto_engine_takes_what_the_kernels_do_not() -> None:
    y, cache = relu.forward(np.array([-1.0, 2.0], dtype=np.float16))
    assert y.dtype == np.float16
    assert isinstance(cache, relu.Cache)
