"""The check that every native function begins with: what it refuses, in a sentence, and no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fuzz._bindings import TABLE
from handgrad import kernels

pytestmark = pytest.mark.skipif(kernels.native is None, reason="no compiled kernels")


def native(name: str, *arguments: Any) -> Any:
    return getattr(kernels.native, name)(*arguments)


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


def test_the_table_of_the_fuzzer_has_every_native_function() -> None:
    bound = {
        name for name, value in vars(kernels.native).items() if type(value).__name__ == "Kernel"
    }
    assert {form.partition(" ")[0] for form in TABLE} == bound


CONV = (2, 4, 5, 6, 6, 3, 2, 1, 1, 1, 0, 1, 1, 2, 5, 5)


def convolution(**changed: int) -> Callable[[], Any]:
    names = (
        *("batch", "channels", "height", "width", "filters", "kernel_h", "kernel_w"),
        *("stride_h", "stride_w", "pad_h", "pad_w", "dilation_h", "dilation_w"),
        *("groups", "out_h", "out_w"),
    )
    sizes = dict(zip(names, CONV, strict=True)) | changed
    x, weight, y = zeros(2, 4, 5, 6), zeros(6, 2, 3, 2), zeros(2, 6, 5, 5)
    return lambda: native(
        "conv2d_forward", x, weight, None, y, None, tuple(sizes.values()), 0, 0.01
    )


def dense(bias: Any = None, code: int = 0, **shapes: tuple[int, ...]) -> Callable[[], Any]:
    x, weight, y = (
        zeros(*shapes.get(name, shape))
        for name, shape in (("x", (2, 4)), ("weight", (3, 4)), ("y", (2, 3)))
    )
    return lambda: native("dense_forward", x, weight, bias, None, y, None, code, 0.01)


#: Calls that do not fit, and what is said.
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "one bias": (
        dense(bias=zeros(1)),
        r"dense_forward: bias has shape \(1,\); allowed: \(C = 3,\)",
    ),
    "other features": (
        dense(x=(2, 5)),
        r"dense_forward: x has shape \(2, 5\); allowed: \(... of N = 2, D = 4\)",
    ),
    "short output": (
        dense(y=(1, 3)),
        r"y has shape \(1, 3\); allowed: \(... of N = 2, C = 3\)",
    ),
    "no axes": (dense(x=()), r"x has shape \(\); allowed: "),
    "activation": (dense(code=99), "activation is 99; allowed: 0 to 9"),
    "groups": (convolution(groups=3), "groups is 3; allowed: a divisor of 4"),
    "no groups": (convolution(groups=0), "groups is 0; allowed: a divisor of 4"),
    "stride": (convolution(stride_h=0), r"stride is 0; allowed: 1 to 2147483647"),
    "dilation": (convolution(dilation_w=-1), "dilation is -1; allowed: 1 to"),
    "negative padding": (convolution(pad_h=-1), "padding is -1; allowed: 0 to 2147483647"),
    "huge padding": (convolution(pad_h=2**62), f"padding is {2**62}; allowed: 0 to 2147483647"),
    "windows beyond the image": (
        convolution(stride_w=2),
        "windows reach beyond the padded image; allowed: outputs whose windows lie in it",
    ),
    "sizes of no image": (convolution(height=2**40), r"x has shape \(2, 4, 5, 6\); allowed: "),
    "product beyond 2^63": (
        lambda: native("softmax_forward", zeros(2), zeros(2), 2**62, 2**62, 2),
        r"the sizes of x are negative or come to 2\^63 or more",
    ),
    "no width": (
        lambda: native("layer_norm_backward", *[zeros(0)] * 3, zeros(2, 2), *[None] * 4),
        r"statistics has 4 values; allowed: 1 \* 2",
    ),
    "values": (
        lambda: native("adam", *[zeros(3)] * 3, zeros(2), 1, 0.1, 0.9, 0.9, 0.1, 0.0, 1.0),
        "adam: a moment has 2 values; allowed: 3",
    ),
    "rows in pieces": (
        lambda: native("copy_features", zeros(2, 3, 8)[..., ::2], zeros(2, 3, 4)),
        "the last axis of x does not lie in one piece; allowed: neighbours side by side",
    ),
    "mask of dropout in pieces": (
        lambda: native(
            *("attention_forward", *[zeros(1, 1, 8, 2)] * 3, None, None, None),
            *(np.ones((1, 1, 8, 8), bool)[..., ::-1], 1.0, 1.0, False, 0),
            *(zeros(1, 1, 8, 2), zeros(1, 1, 8)),
        ),
        "the last axis of keep does not lie in one piece",
    ),
    "blank": (
        lambda: native(
            *("ctc_loss_forward", zeros(1, 2, 3), zeros(1, 0, dtype=np.int64), None, None),
            *(zeros(1, 2, 3, dtype=np.float64), zeros(1, 2, 2), zeros(1, dtype=np.float64)),
            *(zeros(1), zeros(), 3, True, False),
        ),
        "blank is 3; allowed: 0 to 2",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_fit_is_refused_in_a_sentence(what: str) -> None:
    call, sentence = REFUSED[what]
    with pytest.raises(ValueError, match=sentence):
        call()


def test_the_calls_beside_them_fit() -> None:
    convolution()()
    dense(bias=zeros(3))()


def test_many_rows_of_nothing_end_at_once() -> None:
    nothing = zeros(2**40, 3, 0)
    gamma, statistics = zeros(3), zeros(3, 2)
    native("softmax_forward", nothing, nothing, 2**40, 3, 0)
    native("batch_norm_backward", *[nothing] * 2, *[gamma] * 2, statistics, *[None] * 3, True, 0, 0)
    half = zeros(2**50, 0)
    native("swiglu_forward", half, half)
    kept, one, loss = zeros(4, 0), zeros(dtype=np.float64), zeros()
    sizes = (0, 1, 2**63 - 1)
    native(
        "cross_entropy_forward_probabilities", half, half, None, kept, loss, one, True, *sizes, 0
    )
    last = (kept, loss, one, True, 7, 2**62, 0, 0.1)
    native("cross_entropy_forward_indices", half, zeros(0, dtype=np.int64), None, *last, -100)


def test_a_pooling_of_more_positions_than_a_long_adds_is_refused() -> None:
    count, sizes = zeros(1, 1), (0, 2**63 - 1, 1, *[1] * 4, *[0] * 2, *[1] * 4)
    with pytest.raises(ValueError, match=f"an axis is {2**63 - 1}; allowed: 0 to {2**60}"):
        native("avg_pool2d_forward", zeros(0), count, zeros(0), sizes)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((zeros(3),), "relu_forward: 1 arguments are given; allowed: 2"),
        ((zeros(3), None), "argument 2 is of type NoneType .*a writeable array of f4"),
        ((zeros(3, dtype=np.int64), zeros(3)), "argument 1 is of type numpy.ndarray .*an array of"),
        ((zeros(3), zeros(3, dtype=np.float64)), "argument 2 is of type numpy.ndarray"),
        ((zeros(3, 2), zeros(2, 3).T), "argument 2 is of type numpy.ndarray .*C-contiguous"),
    ],
)
def test_an_argument_that_no_function_takes_is_named(arguments: Any, sentence: str) -> None:
    with pytest.raises(TypeError, match=sentence):
        native("relu_forward", *arguments)


@pytest.mark.parametrize("size", [2**63, 1.0, None, "1"])
def test_a_size_that_is_no_small_integer_is_refused(size: Any) -> None:
    sizes = (size, *CONV[1:])
    with pytest.raises(TypeError, match=r"argument 6 is of type tuple .*a tuple of 16 integers"):
        native("conv2d_forward", *[zeros(1)] * 2, None, zeros(1), None, sizes, 0, 0.01)


def test_a_kernel_takes_its_arguments_by_position() -> None:
    with pytest.raises(TypeError, match="by position"):
        kernels.native.relu_forward(x=zeros(3), y=zeros(3))  # type: ignore[union-attr]
    with pytest.raises(TypeError, match="cannot create"):
        type(kernels.native.relu_forward)()  # type: ignore[union-attr]


def test_services_take_no_other_objects() -> None:
    for junk in (None, 3, "x", [1.0]):
        with pytest.raises(TypeError):
            native("is_readable", junk, 0)
        with pytest.raises(TypeError):
            native("hold_same", [junk], [()])
        with pytest.raises(TypeError, match="a batch is a tuple of NumPy arrays"):
            native("Capture", (junk,), 1 << 20)
    with pytest.raises(ValueError, match="set_caches: a size is 0; allowed: 1 to"):
        native("set_caches", 32 << 10, 0, 1 << 20, 64)


def test_empty_arrays_of_objects_are_numpys() -> None:
    assert native("empty", 10000, object)[5000] is None
