"""Products in bfloat16: those of operands that were rounded first, summed in float32."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad import kernels
from handgrad.dispatch import get_precision
from handgrad.errors import ArgumentError, EngineError
from handgrad.losses import CrossEntropy
from handgrad.ops import conv2d, dense, linear, matmul
from handgrad.optimizers import Adam
from handgrad.training import Trainer
from tests.ops.cases import CASES, Case, each
from tests.tolerances import assert_close

UNIT = "none" if kernels.native is None else kernels.native.bf16_unit
needs_vectors = pytest.mark.skipif(
    UNIT != "avx512_bf16", reason="avx512_bf16 is not the unit in use here"
)
needs_unit = pytest.mark.skipif(UNIT == "none", reason="no avx512_bf16 or AMX in use here")

#: rows, columns, depth: tiles and vectors filled and not, odd sums, nothing, several steps and
#: rounds, a result that is streamed.
SIZES = (
    (1, 1, 1),
    (3, 5, 2),
    (14, 32, 32),
    (15, 33, 31),
    (29, 16, 7),
    (5, 17, 0),
    (0, 4, 3),
    (123, 101, 67),
    (2, 40, 1500),
    (37, 35, 2049),
    (530, 1000, 40),
)

CONVOLUTIONS = [
    case
    for case in CASES
    if case.op in ("conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d")
]


@pytest.fixture
def bf16() -> Iterator[None]:
    with hg.engine("kernels"), hg.precision("bf16"):
        yield


def rounded(x: np.ndarray) -> np.ndarray:
    """The nearest bfloat16 values, ties to even, as float64."""
    bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
    even = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    return (even & np.uint32(0xFFFF0000)).view(np.float32).astype(np.float64)


def some(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


@needs_unit
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("turned", ["", "a", "b", "ab"])
def test_a_product_is_that_of_rounded_operands(
    size: tuple[int, int, int], turned: str, bf16: None
) -> None:
    rows, columns, depth = size
    a, b = some(rows, depth), some(depth, columns, seed=1)
    a = a.T.copy().T if "a" in turned else a
    b = b.T.copy().T if "b" in turned else b
    assert_close(hg.matmul(a, b), rounded(a) @ rounded(b), "bf16", str(size))


@needs_unit
def test_batches_and_vectors(bf16: None) -> None:
    shapes = (((3, 4, 5), (5, 6)), ((2, 1, 4, 5), (3, 5, 6)), ((5,), (5, 6)), ((4, 5), (5,)))
    for left, right in shapes:
        a, b = some(*left), some(*right, seed=1)
        c, cache = matmul.forward(a, b)
        assert_close(c, rounded(a) @ rounded(b), "bf16", f"{left} {right}")
        dc = some(*c.shape, seed=2)
        _, reference = matmul.forward.reference(rounded(a), rounded(b))  # type: ignore[attr-defined]
        expected = matmul.backward.reference(rounded(dc), reference)  # type: ignore[attr-defined]
        for found, right_one in zip(matmul.backward(dc, cache), expected, strict=True):
            assert_close(found, right_one, "bf16", f"gradient, {left} {right}")


@needs_unit
@pytest.mark.parametrize("activation", ["identity", "relu", "gelu"])
def test_dense_keeps_its_bias_and_activation_in_float32(activation: str, bf16: None) -> None:
    x, weight, bias = some(3, 7, 13), some(19, 13, seed=1), some(19, seed=2)
    y, cache = dense.forward(x, weight, bias, activation=activation)
    wide = (rounded(x), rounded(weight), bias.astype(np.float64))
    expected, _ = dense.forward.reference(*wide, activation=activation)  # type: ignore[attr-defined]
    assert y.dtype == np.float32
    assert_close(y, expected, "bf16", "y")
    dy = some(*y.shape, seed=3)
    dx, dweight, dbias = dense.backward(dy, cache)
    # da, before it is rounded, is the gradient of the bias, row by row.
    rows = [
        dense.backward.reference(  # type: ignore[attr-defined]
            part.astype(np.float64)[None],
            dense.forward.reference(row[None], *wide[1:], activation=activation)[1],  # type: ignore[attr-defined]
        )[2]
        for part, row in zip(dy.reshape(-1, 19), wide[0].reshape(-1, 13), strict=True)
    ]
    da = np.array(rows)
    assert_close(dbias, da.sum(axis=0), "float32", "dbias")
    # One bit of da decides which way it is rounded, so its neighbours count too.
    kind = "bf16" if activation == "identity" else "bf16 of computed operands"
    assert_close(dx, (rounded(da) @ rounded(weight)).reshape(x.shape), kind, "dx")
    assert_close(dweight, rounded(da).T @ rounded(x).reshape(-1, 13), kind, "dweight")


@needs_unit
def test_a_linear_layer_is_a_dense_one(bf16: None) -> None:
    x, weight, bias = some(9, 13), some(19, 13, seed=1), some(19, seed=2)
    y, _ = linear.forward(x, weight, bias)
    assert_close(y, rounded(x) @ rounded(weight).T + bias, "bf16")


@needs_unit
@each([case for case in CONVOLUTIONS if "activation" not in case.options])
def test_a_convolution_is_that_of_rounded_operands(case: Case, bf16: None) -> None:
    arrays = case.arrays(np.float32)
    y, cache = case.forward(arrays)
    dy = case.random_like(y, "cotangent", np.float32)
    gradients = case.backward(dy, cache)
    with hg.precision("float32"), hg.engine("reference"):
        wide = {name: rounded(array) for name, array in arrays.items()}
        if "bias" in arrays:
            wide["bias"] = arrays["bias"].astype(np.float64)
        exact_y, exact_cache = case.forward(wide)
        expected = case.backward(rounded(dy), exact_cache)
        if "bias" in arrays:
            expected["bias"] = case.backward(dy.astype(np.float64), exact_cache)["bias"]
    assert_close(y, exact_y, "bf16", "y")
    for name in case.differentiable:
        assert_close(gradients[name], expected[name], "bf16", f"d{name}")


#: x, filters, kernel and options that fill tiles and do not: a lane, a pair or a row of positions
#: left over, two blocks of channels and of filters, rows that a stride brings together.
SHAPES: tuple[tuple[tuple[int, ...], int, tuple[int, int], dict[str, Any]], ...] = (
    ((2, 33, 5, 17), 33, (3, 3), {"padding": 1}),
    ((1, 66, 3, 40), 17, (1, 1), {}),
    ((1, 40, 7, 33), 49, (2, 3), {"stride": 2, "padding": 2}),
    ((1, 5, 11, 50), 16, (3, 2), {"stride": 3, "dilation": 2}),
    ((3, 1, 1, 1), 1, (1, 1), {}),
    ((2, 35, 9, 9), 70, (3, 3), {"groups": 5, "padding": (0, 2), "dilation": (3, 1)}),
    ((1, 2, 2, 70), 3, (2, 5), {"stride": (5, 4), "padding": (3, 0)}),
)
each_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


def convolved(x: Any, dy: Any, weight: Any, options: dict[str, Any]) -> tuple[Any, ...]:
    """y, dx and dweight of the kernel, and those of the reference for rounded operands."""
    y, cache = conv2d.forward(x, weight, **options)
    ours = (y, *conv2d.backward(dy, cache)[:2])
    with hg.precision("float32"), hg.engine("reference"), np.errstate(invalid="ignore"):
        y, cache = conv2d.forward(rounded(x), rounded(weight), **options)
        return *ours, y, *conv2d.backward(rounded(dy), cache)[:2]


def operands(shape: Any) -> tuple[Any, ...]:
    size, filters, kernel, options = shape
    x = some(*size)
    weight = some(filters, size[1] // options.get("groups", 1), *kernel, seed=1)
    return x, some(*conv2d.forward(x, weight, **options)[0].shape, seed=2), weight, options


@needs_unit
@each_shape
def test_convolutions_of_many_shapes(shape: Any, bf16: None) -> None:
    *ours, y, dx, dweight = convolved(*operands(shape))
    for name, found, expected in zip(("y", "dx", "dweight"), ours, (y, dx, dweight), strict=True):
        assert_close(found, expected, "bf16", name)


@needs_unit
@each_shape
def test_what_is_no_number_spreads_as_far_as_the_kernel(shape: Any, bf16: None) -> None:
    x, dy, weight, options = operands(shape)
    broken = x.copy()
    broken[0, 0, 0, -1], broken[-1, -1, -1, 0] = np.nan, np.inf
    y, _, dweight, exact_y, _, exact_dweight = convolved(broken, dy, weight, options)
    assert_close(y, exact_y, "bf16", "y")
    assert_close(dweight, exact_dweight, "bf16", "dweight")
    broken = dy.copy()
    broken[0, 0, 0, -1], broken[-1, -1, -1, 0] = np.nan, np.inf
    _, dx, dweight, _, exact_dx, exact_dweight = convolved(x, broken, weight, options)
    assert_close(dx, exact_dx, "bf16", "dx")
    assert_close(dweight, exact_dweight, "bf16", "dweight")


@needs_unit
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_conv2d_keeps_its_bias_and_activation_in_float32(activation: str, bf16: None) -> None:
    # Images of one position make it a dense layer.
    x, weight, bias = some(33, 3, 1, 1), some(19, 3, 1, 1, seed=1), some(19, seed=2)
    y, cache = conv2d.forward(x, weight, bias, activation=activation)
    as_dense, dense_cache = dense.forward(
        x[..., 0, 0], weight[..., 0, 0], bias, activation=activation
    )
    assert_close(y[..., 0, 0], as_dense, "bf16", "y")
    dy = some(*y.shape, seed=3)
    dx, dweight, dbias = conv2d.backward(dy, cache)
    expected = dense.backward(dy[..., 0, 0], dense_cache)
    for found, right_one in zip((dx[..., 0, 0], dweight[..., 0, 0], dbias), expected, strict=True):
        assert_close(found, right_one, "bf16 of computed operands", activation)


@needs_unit
def test_positions_that_no_window_reads_are_in_no_gradient(bf16: None) -> None:
    # Rows of three positions: the last has no partner, and beside it lies no number.
    x = some(1, 2, 4, 5)
    x[..., 4] = np.nan
    y, cache = conv2d.forward(x, some(3, 2, 2, 2, seed=1))
    dy = some(*y.shape, seed=2)
    dweight = conv2d.backward(dy, cache)[1]
    assert np.isnan(y[..., 3]).all()
    np.testing.assert_array_equal(np.isnan(dweight[0, 0]), [[False, True], [False, True]])


@needs_unit
def test_values_without_a_neighbour(bf16: None) -> None:
    a = np.array([[np.inf, 1.0], [np.nan, 1.0], [3.4e38, 1.0], [-0.0, 0.0]], dtype=np.float32)
    c = hg.matmul(a, np.array([[1.0], [0.0]], dtype=np.float32))
    np.testing.assert_array_equal(c, [[np.inf], [np.nan], [np.inf], [0.0]])


@needs_unit
def test_same_bits_with_1_2_and_4_threads(bf16: None) -> None:
    before = hg.get_threads()
    results = set()
    try:
        for number in (1, 2, 4):
            hg.set_threads(number)
            x, weight = some(515, 301), some(259, 301, seed=1)
            y, cache = dense.forward(x, weight, some(259, seed=2), activation="tanh")
            found = (y, *dense.backward(some(*y.shape, seed=3), cache))
            results.add(tuple(array.tobytes() for array in found))
    finally:
        hg.set_threads(before)
    assert len(results) == 1


@needs_unit
@each([case for case in CONVOLUTIONS if case.row.large])
def test_convolutions_have_the_same_bits_with_1_2_and_4_threads(case: Case, bf16: None) -> None:
    before = hg.get_threads()
    results = set()
    try:
        for number in (1, 2, 4):
            hg.set_threads(number)
            y, cache = case.forward(case.arrays(np.float32))
            gradients = case.backward(case.random_like(y, "cotangent", np.float32), cache)
            found = (y, *(gradients[name] for name in case.differentiable))
            results.add(tuple(array.tobytes() for array in found))
    finally:
        hg.set_threads(before)
    assert len(results) == 1


@needs_unit
def test_the_precision_of_a_convolution_is_that_of_each_call() -> None:
    x, weight = some(2, 3, 7, 8), some(5, 3, 3, 3, seed=1)
    dy = some(2, 5, 5, 6, seed=2)
    gradients = {}
    for name in ("float32", "bf16"):
        with hg.precision(name):
            _, cache = conv2d.forward(x, weight)
        for later in ("float32", "bf16"):
            with hg.precision(later):
                gradients[name, later] = conv2d.backward(dy, cache)[1]
    for later in ("float32", "bf16"):
        np.testing.assert_array_equal(gradients["float32", later], gradients["bf16", later])
    assert not np.array_equal(gradients["float32", "float32"], gradients["float32", "bf16"])


@needs_unit
def test_only_float32_is_rounded(bf16: None) -> None:
    a, b = some(5, 7).astype(np.float64), some(7, 9).astype(np.float64)
    np.testing.assert_array_equal(hg.matmul(a, b), matmul.forward(a, b)[0])
    assert_close(hg.matmul(a, b), a @ b, "float64")


@needs_unit
def test_the_precision_is_that_of_the_block() -> None:
    a, b = some(5, 7), some(7, 9, seed=1)
    plain = hg.matmul(a, b)
    with hg.precision("bf16"):
        assert get_precision() == "bf16"
        coarse = hg.matmul(a, b)
        assert not np.array_equal(coarse, plain)
        np.testing.assert_array_equal(hg.matmul(a, b, precision="float32"), plain)
    np.testing.assert_array_equal(hg.matmul(a, b), plain)
    np.testing.assert_array_equal(hg.matmul(a, b, precision="bf16"), coarse)
    out = np.empty_like(plain)
    assert hg.matmul(a, b, out=out, precision="bf16") is out
    np.testing.assert_array_equal(out, coarse)
    with pytest.raises(ArgumentError, match="allowed with precision='bf16': NumPy arrays of flo"):
        hg.matmul(a.astype(np.float64), b.astype(np.float64), precision="bf16")


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(ArgumentError, match="precision is 'fp8'; allowed: float32, bf16"):
        hg.set_precision("fp8")


def test_the_reference_has_no_precision() -> None:
    with hg.engine("reference"):
        with pytest.raises(EngineError, match="only kernels have; engine 'reference' computes"):
            hg.set_precision("bf16")
        hg.set_precision("float32")


def test_without_a_unit_bf16_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "native", None)
    with pytest.raises(EngineError, match=r"needs a CPU with avx512_bf16 or AMX .* no kernels"):
        hg.set_precision("bf16")


def info(**environment: str) -> Any:
    return subprocess.run(
        [sys.executable, "-m", "handgrad", "info"],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@needs_unit
@pytest.mark.slow
def test_the_environment_chooses() -> None:
    found = info(HANDGRAD_PRECISION="bf16")
    assert found.returncode == 0, found.stderr
    assert "\nprecision        bf16\n" in found.stdout
    found = info(HANDGRAD_PRECISION="bf16", HANDGRAD_BF16="none")
    assert found.returncode != 0
    assert "HANDGRAD_PRECISION is 'bf16', which needs a CPU with" in found.stderr
    assert "Traceback" not in found.stderr


@needs_unit
def test_training_ends_where_float32_does(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((4, 20))
    y = rng.integers(0, 4, 800)
    x = (centres[y] + 0.7 * rng.standard_normal((800, 20))).astype(np.float32)
    losses = {}
    for name in ("float32", "bf16"):
        model = hg.MLP([20, 32, 4], rng=np.random.default_rng(1))
        trainer = Trainer(
            model,
            CrossEntropy(),
            Adam(1e-2),
            precision=name,
            out=tmp_path / name,
            progress="off",
        )
        history = trainer.fit(x[:600], y[:600], validation_data=(x[600:], y[600:]), epochs=4)
        losses[name] = history["validation_loss"]
        assert trainer.parameters.buffer.dtype == np.float32
        summary = json.loads((tmp_path / name / "summary.json").read_text("utf-8"))
        assert summary["precision"] == name
        assert get_precision() == "float32"
    assert losses["bf16"] != losses["float32"]
    assert_close(losses["bf16"], losses["float32"], "bf16 training")
