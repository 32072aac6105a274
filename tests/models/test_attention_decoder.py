"""The attention decoder: its gradients, ragged memories, and decoding step by step."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from handgrad import dispatch
from handgrad.errors import ArgumentError, HandgradError, ShapeError
from handgrad.models.attention_decoder import AttentionDecoder
from handgrad.models.decoder_cells import CELLS
from handgrad.models.decoder_scores import SCORES
from tests.layers.gradients import check_destinations, check_gradients
from tests.tolerances import assert_close

each_score = pytest.mark.parametrize("score", SCORES)
each_cell = pytest.mark.parametrize("cell", CELLS)
LENGTHS = np.array([5, 2, 0])


def make(score: str = "additive", cell: str = "gru", inputs: int = 3) -> AttentionDecoder:
    rng = np.random.default_rng(1)
    memory = 4 if score == "additive" else 6
    decoder = AttentionDecoder(inputs, memory, 6, rng=rng, score=score, cell=cell, dtype=np.float64)
    for array in decoder.parameters.values():
        array[...] = rng.normal(0.0, 0.6, array.shape)
    return decoder


def some(decoder: AttentionDecoder, steps: int = 4) -> tuple[np.ndarray, ...]:
    """e, h and s0 of three sequences."""
    rng = np.random.default_rng(2)
    inputs, memory, hidden = decoder.sizes.values()
    return tuple(
        rng.standard_normal(shape) for shape in ((3, steps, inputs), (3, 5, memory), (3, hidden))
    )


@each_score
@each_cell
@pytest.mark.parametrize("inputs", [3, 0])
def test_gradients_match_differences(score: str, cell: str, inputs: int) -> None:
    decoder = make(score, cell, inputs)
    check_gradients(decoder, *some(decoder), training=True, lengths=LENGTHS)
    check_gradients(decoder, *some(decoder), training=False)


@each_score
@each_cell
def test_gradients_go_where_they_are_sent(score: str, cell: str) -> None:
    decoder = make(score, cell)
    check_destinations(decoder, *some(decoder), training=True, lengths=LENGTHS)


@each_score
def test_what_stands_behind_the_end_of_a_memory_has_no_influence(score: str) -> None:
    decoder = make(score)
    e, h, s0 = some(decoder)
    y, cache = decoder.forward(e, h, s0, LENGTHS)
    dy = np.random.default_rng(3).standard_normal(y.shape)
    (_, dh, _), gradients = decoder.backward(dy, cache)
    behind = np.arange(5) >= LENGTHS[:, None]
    np.testing.assert_array_equal(dh[behind], 0.0)
    np.testing.assert_array_equal(cache.alpha[:, behind], 0.0)
    h[behind] = 7.0
    again, again_cache = decoder.forward(e, h, s0, LENGTHS)
    np.testing.assert_array_equal(again, y)
    _, again_gradients = decoder.backward(dy, again_cache)
    for name, gradient in gradients.items():
        np.testing.assert_array_equal(again_gradients[name], gradient)


def test_an_empty_memory_gives_a_context_of_0() -> None:
    decoder = make()
    _, cache = decoder.forward(*some(decoder), LENGTHS)
    np.testing.assert_array_equal(cache.c[:, 2], 0.0)


@each_score
@each_cell
def test_steps_give_what_forward_gives(score: str, cell: str) -> None:
    decoder = make(score, cell)
    e, h, s0 = some(decoder)
    y, cache = decoder.forward(e, h, s0, LENGTHS)
    memory = decoder.remember(h, LENGTHS)
    s = s0
    for j in range(e.shape[1]):
        s, alpha = decoder.step(e[:, j], s, memory)
        assert_close(s, y[:, j], "float64", "s")
        assert_close(alpha, cache.alpha[j], "float64", "alpha")


def test_no_steps_and_no_sequences_are_fine() -> None:
    decoder = make()
    e, h, s0 = some(decoder, steps=0)
    y, cache = decoder.forward(e, h, s0)
    assert y.shape == (3, 0, 6)
    (de, dh, ds0), _ = decoder.backward(y, cache)
    assert (de.shape, dh.shape, ds0.shape) == (e.shape, h.shape, s0.shape)
    y, cache = decoder.forward(*(array[:0] for array in some(decoder)))
    assert y.shape == (0, 4, 6)
    _, gradients = decoder.backward(y, cache)
    assert all(not gradient.any() for gradient in gradients.values())


@each_score
def test_flops_grow_with_the_steps_except_for_the_keys(score: str) -> None:
    decoder = make(score)
    memory = (5, decoder.sizes["h"])
    none, four, eight = (decoder.flops(((steps, 3), memory)) for steps in (0, 4, 8))
    assert 0 < none < four
    assert four - none == eight - four


def test_flops_and_shape_of_an_example() -> None:
    decoder = make("dot")
    score = 5 * 6 + 4 * 2 * 5 * 6  # h/√d, and the products of 4 steps with 5 keys
    attention = 4 * 5 * (5 + 2 * 6)
    cell = 4 * (2 * 18 * (9 + 6) + 2 * 18 + 11 * 6)
    assert decoder.flops(((4, 3), (5, 6))) == score + attention + cell
    assert decoder.output_shape(((4, 3), (5, 6))) == (4, 6)


def test_what_does_not_fit_is_refused() -> None:
    decoder = make()
    e, h, s0 = some(decoder)
    with pytest.raises(ShapeError, match=r"e has shape \(3, 4, 2\); allowed: \(3, T, 3\)"):
        decoder.forward(e[:, :, :2], h, s0)
    with pytest.raises(ShapeError, match=r"h has shape \(3, 5, 3\); allowed: \(N, S, 4\)"):
        decoder.forward(e, h[:, :, :3], s0)
    with pytest.raises(ShapeError, match=r"s0 has shape \(2, 6\); allowed: \(3, 6\)"):
        decoder.forward(e, h, s0[:2])
    with pytest.raises(ArgumentError, match="lengths go from 0 to 6; allowed: 0 to 5"):
        decoder.forward(e, h, s0, np.array([0, 6, 1]))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"hidden": 0}, "hidden is 0; allowed: 1 to 2147483647"),
        ({"memory": -1}, "memory is -1; allowed: 1 to 2147483647"),
        ({"inputs": None}, "inputs is None; allowed: an integer"),
        ({"hidden": 2.0}, r"hidden is 2\.0; allowed: an integer"),
        ({"rng": None}, r"rng is None; allowed: a numpy\.random\.Generator"),
    ],
)
def test_sizes_are_looked_at_first(settings: dict[str, Any], sentence: str) -> None:
    given = {"inputs": 3, "memory": 4, "hidden": 4, "rng": np.random.default_rng(0)} | settings
    with pytest.raises(ArgumentError, match=f"AttentionDecoder: {sentence}"):
        AttentionDecoder(**given)


@pytest.mark.parametrize("on", ["auto", "reference"])
def test_what_is_no_array_is_refused(on: str) -> None:
    decoder = make()
    e, h, s0 = some(decoder)
    with dispatch.engine(on):
        for given in (
            (None, h, s0),
            (e, "abc", s0),
            (e, h, s0.tolist()),
            (e, h[:, :0], s0),
            (e, h, s0, [1.0, 2, 3]),
            (e, h, s0, np.array([1.0, 2.0, 3.0])),
            (e, h, s0, np.array([1, 2**64 - 1, 3], np.uint64)),
        ):
            with pytest.raises(HandgradError, match=r"^AttentionDecoder: .*; allowed: "):
                decoder.forward(*given)
        y, cache = decoder.forward(e, h, s0)
        for dy in (None, 3, y[:1], y.astype(np.int64)):
            with pytest.raises(HandgradError, match=r"^AttentionDecoder: dy .*; allowed: "):
                decoder.backward(dy, cache)
        with pytest.raises(ArgumentError, match="the cache is None; allowed"):
            decoder.backward(y, None)
        memory = decoder.remember(h)
        for step in ((e[:, 0, :2], s0), (e[:2, 0], s0), (e[:, 0], s0[:, :2]), (None, s0)):
            with pytest.raises(HandgradError, match=r"^AttentionDecoder: .*; allowed: "):
                decoder.step(*step, memory)


@pytest.mark.parametrize("on", ["auto", "reference"])
def test_lengths_changed_after_forward_change_nothing(on: str) -> None:
    decoder = make()
    e, h, s0 = some(decoder)
    lengths = np.array([3, 5, 1])
    with dispatch.engine(on):
        y, cache = decoder.forward(e, h, s0, lengths)
        (_, expected, _), _ = decoder.backward(y, cache)
        lengths[:] = [2**62, -5, 5]
        (_, found, _), _ = decoder.backward(y, cache)
    np.testing.assert_array_equal(found, expected)


@each_score
@pytest.mark.parametrize("on", ["kernels", "reference"])
def test_a_cache_can_be_pickled(score: str, on: str) -> None:
    decoder = make(score)
    with dispatch.engine(on):
        y, cache = decoder.forward(*some(decoder), LENGTHS)
        dy = np.random.default_rng(3).standard_normal(y.shape)
        before, after = (
            decoder.backward(dy, each) for each in (cache, pickle.loads(pickle.dumps(cache)))
        )
    for expected, found in zip(before[0], after[0], strict=True):
        assert expected.tobytes() == found.tobytes()
    assert all(before[1][name].tobytes() == after[1][name].tobytes() for name in before[1])


@pytest.mark.parametrize("field", ["states", "alpha", "step", "keys"])
def test_a_cache_that_was_changed_is_refused(field: str) -> None:
    decoder = make()
    with dispatch.engine("kernels"):
        y, cache = decoder.forward(*some(decoder))
        short = getattr(cache.steps, field)[:1]
        kept = cache.steps.kept._replace(**{field: short})
        changed = cache._replace(steps=cache.steps._replace(kept=kept))
        with pytest.raises(ArgumentError, match="the cache was changed since forward"):
            decoder.backward(np.ones_like(y), changed)


@each_score
def test_arrays_may_lie_any_way(score: str) -> None:
    decoder = make(score)
    arrays = some(decoder)
    expected, cache = decoder.forward(*arrays)
    _, gradients = decoder.backward(expected, cache)
    for lay in (np.asfortranarray, lambda a: np.repeat(a, 2, -1)[..., ::2], misaligned):
        y, cache = decoder.forward(*map(lay, arrays))
        np.testing.assert_array_equal(y, expected)
        _, found = decoder.backward(lay(y), cache)
        for name, gradient in gradients.items():
            np.testing.assert_array_equal(found[name], gradient)


def misaligned(array: np.ndarray) -> np.ndarray:
    memory = np.zeros(array.nbytes + 1, np.uint8)
    moved = memory[1:].view(array.dtype).reshape(array.shape)
    moved[...] = array
    return moved
