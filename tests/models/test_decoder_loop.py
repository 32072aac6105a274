"""The kernel of a decoder's steps gives what their Python gives, on any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad
from handgrad import kernels
from handgrad.dispatch import engine, set_engine
from handgrad.errors import EngineError
from handgrad.models import decoder_loop, decoder_scores
from handgrad.models.attention_decoder import AttentionDecoder
from handgrad.models.decoder_cells import CELLS
from handgrad.models.decoder_scores import SCORES, rows
from tests.kernels.test_recurrence_bf16 import Rounding
from tests.test_precision import bf16, needs_unit
from tests.tolerances import assert_close

__all__ = ["bf16"]

if kernels.native is not None:
    from handgrad.kernels import decoder_loop as kernel_loop

pytestmark = pytest.mark.skipif(kernels.native is None, reason="no compiled kernels")

each_score = pytest.mark.parametrize("score", SCORES)
each_cell = pytest.mark.parametrize("cell", CELLS)
#: Sequences, steps, keys, and features of inputs, memory and state.
SIZES = (
    (3, 4, 5, 3, 6, 6),
    (1, 1, 1, 1, 1, 1),
    (31, 7, 13, 0, 18, 37),
    (17, 3, 33, 5, 70, 64),
    (2, 0, 4, 3, 5, 7),
    (0, 3, 4, 3, 5, 7),
)


class Operand(np.ndarray):
    """Float64 values with the products of bfloat16 operands, which are ordinary arrays again."""

    def __matmul__(self, other: Any) -> Any:
        return np.asarray(self.view(Rounding) @ other)

    def __rmatmul__(self, other: Any) -> Any:
        return np.asarray(other @ self.view(Rounding))


def run(
    score: str, cell: str, sizes: tuple[int, ...], dtype: Any, *, ragged: bool
) -> dict[str, np.ndarray]:
    """Everything that forward and backward give, by name."""
    batch, steps, keys, inputs, memory, hidden = sizes
    if score != "additive":
        memory = hidden
    rng = np.random.default_rng(1)
    decoder = AttentionDecoder(inputs, memory, hidden, rng=rng, score=score, cell=cell, dtype=dtype)
    shapes = (batch, steps, inputs), (batch, keys, memory), (batch, hidden)
    e, h, s0 = (rng.standard_normal(shape).astype(dtype) for shape in shapes)
    dy = rng.standard_normal((batch, steps, hidden)).astype(dtype)
    lengths = rng.integers(0, keys + 1, batch) if ragged else None
    y, cache = decoder.forward(e, h, s0, lengths)
    (de, dh, ds0), gradients = decoder.backward(dy, cache)
    found = {"y": y, "alpha": cache.alpha, "c": cache.c, "de": de, "dh": dh, "ds0": ds0}
    return found | {f"d{name}": gradient for name, gradient in gradients.items()}


@each_score
@each_cell
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("ragged", [False, True])
def test_kernel_is_reference(
    score: str, cell: str, sizes: tuple[int, ...], dtype: str, ragged: bool
) -> None:
    with engine("kernels"):
        found = run(score, cell, sizes, np.dtype(dtype), ragged=ragged)
    with engine("reference"):
        expected = run(score, cell, sizes, np.dtype(dtype), ragged=ragged)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert_close(found[name], value, dtype, name)


@needs_unit
@each_score
@each_cell
@pytest.mark.parametrize("sizes", SIZES)
def test_in_bf16_products_with_the_weights_are_those_of_rounded_operands(
    score: str,
    cell: str,
    sizes: tuple[int, ...],
    bf16: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those of the steps, and the gradients of the weights: the reference makes them of `rows`."""
    for module in (decoder_loop, decoder_scores):
        monkeypatch.setattr(module, "rows", lambda x: rows(x).view(Operand))
    batch, steps, keys, inputs, memory, hidden = sizes
    memory = memory if score == "additive" else hidden
    rng = np.random.default_rng(1)
    decoder = AttentionDecoder(inputs, memory, hidden, rng=rng, score=score, cell=cell)
    gates = len(decoder.cell.bias_hh)
    widths = (batch, steps, gates), (batch, keys, hidden), (batch, keys, gates), (batch, hidden)
    arrays = [rng.standard_normal(shape, dtype=np.float32) for shape in widths]
    dy = rng.standard_normal((batch, steps, hidden), dtype=np.float32)
    y, cache = kernel_loop.forward(decoder.score, decoder.cell, *arrays, None)
    *found, gradients = kernel_loop.backward(dy, cache)
    for layer in (decoder.score, decoder.cell):
        for name in layer.parameter_names:
            kind = Operand if name in ("weight_s", "weight_hh") else np.ndarray
            setattr(layer, name, getattr(layer, name).astype(np.float64).view(kind))
    exact = [array.astype(np.float64) for array in arrays]
    expected_y, cache = decoder_loop.forward(decoder.score, decoder.cell, *exact, None)
    *expected, right = decoder_loop.backward(dy.astype(np.float64), cache)
    found += [y, *(gradients[name] for name in sorted(right))]
    expected += [expected_y, *(right[name] for name in sorted(right))]
    for position, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert_close(one, np.asarray(other), "bf16 of computed operands", f"result {position}")


def same_bits(score: str, cell: str) -> bool:
    """Return whether 1, 2 and 4 threads give the same."""
    results = set()
    for number in (1, 2, 4):
        with handgrad.threads(number):
            found = run(score, cell, (31, 7, 13, 3, 18, 37), np.float32, ragged=True)
        results.add(tuple(array.tobytes() for array in found.values()))
    return len(results) == 1


@each_score
@each_cell
def test_same_bits_with_1_2_and_4_threads(score: str, cell: str) -> None:
    assert same_bits(score, cell)


@needs_unit
@each_score
def test_same_bits_in_bf16(score: str, bf16: None) -> None:
    assert same_bits(score, "gru")


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_keys_and_queries_may_be_far_from_0_infinite_or_missing(dtype: str, missing: bool) -> None:
    """Sequence by sequence beyond what powers of keys and queries can hold, and of both signs.

    The reference runs in float64 on the same numbers, for at these sizes two results in float32 are
    as far from each other as both their roundings together.
    """
    rng = np.random.default_rng(1)
    far = np.array([1.0, 10.0, 19.9, 21.0, 30.0, 30.0])[:, None, None]
    keys = (far * rng.uniform(-1, 1, (6, 5, 20))).astype(dtype)
    keys[-1, 0, 0], keys[-1, 3, 1] = np.inf, -np.inf
    if missing:
        keys[1, 2, 3] = np.nan
    shapes = (6, 4, 20), (6, 5, 20), (6, 20), (6, 4, 20)
    a, values, s0, dy = (rng.standard_normal(shape).astype(dtype) for shape in shapes)
    own = AttentionDecoder(0, 3, 20, rng=rng, cell="tanh", dtype=np.dtype(dtype))
    own.score.weight_s *= 20
    exact = AttentionDecoder(0, 3, 20, rng=rng, cell="tanh", dtype=np.dtype("float64"))
    for name, array in exact.parameters.items():
        array[...] = own.parameters[name]
    results = []
    for module, decoder in ((kernel_loop, own), (decoder_loop, exact)):
        inputs = [x.astype(decoder.score.weight_s.dtype) for x in (a, keys, values, s0, dy)]
        y, cache = module.forward(decoder.score, decoder.cell, *inputs[:4], None)
        *found, parameters = module.backward(inputs[4], cache)
        results.append([y, cache.alpha, *found, *(parameters[name] for name in sorted(parameters))])
    for actual, expected in zip(*results, strict=True):
        assert_close(actual, expected, dtype)


def test_a_loop_goes_back_to_the_module_it_was_made_by() -> None:
    decoder = AttentionDecoder(2, 3, 4, rng=np.random.default_rng(1))
    arrays = [np.ones(shape, np.float32) for shape in ((2, 3, 2), (2, 5, 3), (2, 4))]
    y, cache = decoder.forward(*arrays)
    with engine("reference"):
        _, gradients = decoder.backward(y, cache)
        _, expected = decoder.backward(*decoder.forward(*arrays))
    for name, gradient in gradients.items():
        assert_close(gradient, expected[name], "float32", name)


def test_types_without_a_kernel_are_refused_by_the_engine_of_kernels() -> None:
    decoder = AttentionDecoder(2, 3, 4, rng=np.random.default_rng(1), dtype=np.float16)
    arrays = [np.ones(shape, np.float16) for shape in ((2, 3, 2), (2, 5, 3), (2, 4))]
    decoder.forward(*arrays)
    with engine("auto"):
        set_engine("kernels")
        with pytest.raises(EngineError, match="an array of float16"):
            decoder.forward(*arrays)
