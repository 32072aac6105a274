"""A step by replayed calls gives the bits of the step that was not captured, or is not captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad import dispatch, kernels
from handgrad.errors import ArgumentError, ShapeError
from handgrad.training import step as module
from handgrad.training.step import TrainingStep

needs_kernels = pytest.mark.skipif(kernels.native is None, reason="no kernels in this installation")

Build = Callable[[np.random.Generator, Any], tuple[hg.layers.Layer, tuple[int, ...]]]


def dense(rng: np.random.Generator, dtype: Any) -> tuple[hg.layers.Layer, tuple[int, ...]]:
    return hg.MLP((7, 5, 3), rng=rng, activation="gelu", dtype=dtype), (7,)


def layers(rng: np.random.Generator, dtype: Any) -> tuple[hg.layers.Layer, tuple[int, ...]]:
    model = hg.layers.Sequential(
        hg.layers.Dense(6, 5, rng=rng, dtype=dtype),
        hg.layers.LayerNorm(5, dtype=dtype),
        hg.layers.Activation("tanh"),
        hg.layers.Dense(5, 4, rng=rng, bias=False, dtype=dtype),
        hg.layers.RMSNorm(4, dtype=dtype),
        hg.layers.Activation("softmax"),
    )
    return model, (6,)


def convolutions(rng: np.random.Generator, dtype: Any) -> tuple[hg.layers.Layer, tuple[int, ...]]:
    model = hg.layers.Sequential(
        hg.layers.Conv2d(2, 3, 3, rng=rng, padding=1, activation="relu", dtype=dtype),
        hg.layers.MaxPool2d(2),
        hg.layers.Conv2d(3, 4, 2, rng=rng, dtype=dtype),
        hg.layers.AvgPool2d("global"),
        hg.layers.Flatten(),
        hg.layers.Dense(4, 3, rng=rng, dtype=dtype),
    )
    return model, (2, 8, 8)


def one_axis(rng: np.random.Generator, dtype: Any) -> tuple[hg.layers.Layer, tuple[int, ...]]:
    model = hg.layers.Sequential(
        hg.layers.Conv1d(3, 4, 3, rng=rng, dtype=dtype),
        hg.layers.MaxPool1d(2),
        hg.layers.ConvTranspose1d(4, 5, 3, rng=rng, dtype=dtype),
        hg.layers.AvgPool1d(2),
        hg.layers.Flatten(),
        hg.layers.Dense(5 * 3, 3, rng=rng, dtype=dtype),
    )
    return model, (3, 10)


def prepared(build: Build, loss: Any = None, dtype: Any = np.float32) -> tuple[Any, ...]:
    model, example = build(np.random.default_rng(3), dtype)
    gradients = model.bind().zeros_like()
    return (
        model,
        TrainingStep(model, loss or hg.losses.CrossEntropy(), gradients),
        gradients,
        example,
    )


def batch(rng: np.random.Generator, rows: int, example: tuple[int, ...], dtype: Any) -> Any:
    return rng.standard_normal((rows, *example)).astype(dtype), rng.integers(0, 3, rows)


def check_same_bits(model: Any, step: TrainingStep, gradients: Any, x: Any, target: Any) -> None:
    seen: list[Any] = []
    value = step((x,), target, lambda *both: seen.extend(each.copy() for each in both))
    outputs, value_seen = seen
    value, found = value.copy(), gradients.buffer.copy()
    gradients.buffer[...] = np.nan
    expected, cache = model.forward(x, training=True)
    loss, loss_cache = step.loss.forward(expected, target)
    model.backward(step.loss.backward(loss_cache), cache, gradients=gradients)
    np.testing.assert_array_equal(outputs, expected)
    np.testing.assert_array_equal(value, loss)
    np.testing.assert_array_equal(value_seen, loss)
    np.testing.assert_array_equal(found, gradients.buffer)


@needs_kernels
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("build", [dense, layers, convolutions, one_axis])
def test_replayed_steps_have_the_same_bits(build: Build, dtype: Any) -> None:
    model, step, gradients, example = prepared(build, dtype=dtype)
    rng = np.random.default_rng(5)
    for rows in (5, 5, 3, 5, 3, 1, 5, 1):
        check_same_bits(model, step, gradients, *batch(rng, rows, example, dtype))
    assert step.captures == 3


@needs_kernels
@pytest.mark.parametrize(
    "options",
    [
        {"label_smoothing": 0.1},
        {"weight": np.array([0.5, 2.0, 1.0], np.float32)},
        {"ignore_index": 1},
        {"reduction": "sum"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_every_kind_of_mean_is_taken_over_the_new_targets(options: Any) -> None:
    model, step, gradients, example = prepared(dense, hg.losses.CrossEntropy(**options))
    rng = np.random.default_rng(6)
    for _ in range(4):
        check_same_bits(model, step, gradients, *batch(rng, 6, example, np.float32))
    assert step.captures == 1


@needs_kernels
def test_probabilities_as_targets() -> None:
    model, step, gradients, example = prepared(dense)
    rng = np.random.default_rng(7)
    for _ in range(3):
        x, _ = batch(rng, 4, example, np.float32)
        check_same_bits(model, step, gradients, x, rng.dirichlet(np.ones(3), 4).astype(np.float32))
    assert step.captures == 1


@needs_kernels
def test_batches_that_lie_otherwise() -> None:
    model, step, gradients, example = prepared(dense)
    rng = np.random.default_rng(8)
    for number in range(6):
        x, target = batch(rng, 4, example, np.float32)
        if number % 3 == 1:
            x = np.asfortranarray(x)
        if number % 3 == 2:
            target = target.astype(np.int32)
        check_same_bits(model, step, gradients, x, target)


class Doubled(hg.layers.Dense):
    """Derived from a capturable class, it does what that one does not."""

    def forward(self, x: Any, *, training: bool = False) -> Any:
        return super().forward(2 * x, training=training)


class Own(hg.layers.Layer):
    """A user's own layer: tanh(x) weightᵀ, by ops alone."""

    parameter_names = ("weight",)

    def __init__(self, size: int, rng: np.random.Generator, dtype: Any) -> None:
        self.weight = rng.standard_normal((size, size)).astype(dtype)

    def forward(self, x: Any, *, training: bool = False) -> Any:
        h, inner = hg.ops.tanh.forward(x)
        y, outer = hg.ops.linear.forward(h, self.weight)
        return y, (inner, outer)

    def backward(
        self, dy: Any, cache: Any, *, gradients: Any = None, input_gradient: bool = True
    ) -> Any:
        out = None if gradients is None else gradients["weight"]
        dh, dweight, _ = hg.ops.linear.backward(dy, cache[1], out=(None, out, hg.SKIP))
        dx = hg.ops.tanh.backward(dh, cache[0]) if input_gradient else None
        return dx, {"weight": dweight} if gradients is None else gradients


class OwnCapturable(Own):
    capturable = True


class OwnDerived(OwnCapturable):
    """Does not repeat what it is derived from."""


class OwnAgain(OwnDerived):
    capturable = True


class OwnDropping(Own):
    """Declares what is not so, but computes by an op whose kernel draws, and says so."""

    capturable = True

    def forward(self, x: Any, *, training: bool = False) -> Any:
        y, cache = super().forward(x)
        return hg.ops.dropout.forward(y, 0.5, np.random.default_rng(0))[0], cache


class OwnSumming(Own):
    """As well, with a residual that no kernel adds."""

    capturable = True

    def forward(self, x: Any, *, training: bool = False) -> Any:
        h, inner = hg.ops.tanh.forward(x, residual=np.zeros_like(x))
        y, outer = hg.ops.linear.forward(h, self.weight)
        return y, (inner, outer)


class OwnElsewhere(OwnCapturable):
    """Holds its weight in a list, where nobody would see another one in its place."""

    capturable = True

    @property
    def weight(self) -> Any:
        return self.held[0]

    @weight.setter
    def weight(self, array: Any) -> None:
        self.held = [array]


class OwnLoss(hg.losses.CrossEntropy):
    """May do anything."""


def own(kind: type[Own]) -> Build:
    def build(rng: np.random.Generator, dtype: Any) -> tuple[hg.layers.Layer, tuple[int, ...]]:
        return hg.layers.Sequential(kind(4, rng, dtype), kind(4, rng, dtype)), (4,)

    return build


def doubled(rng: np.random.Generator, dtype: Any) -> tuple[hg.layers.Layer, tuple[int, ...]]:
    return hg.layers.Sequential(Doubled(4, 3, rng=rng, dtype=dtype)), (4,)


def with_dropout(rng: np.random.Generator, dtype: Any) -> tuple[hg.layers.Layer, tuple[int, ...]]:
    return hg.MLP((4, 6, 3), rng=rng, dropout=0.5, dtype=dtype), (4,)


@pytest.mark.parametrize("build", [doubled, with_dropout])
def test_what_does_more_than_calls_of_kernels_is_not_captured(build: Build) -> None:
    _, step, gradients, example = prepared(build)
    rng = np.random.default_rng(9)
    step((batch(rng, 4, example, np.float32)[0],), np.array([0, 1, 2, 0]))
    assert step.captures == 0
    assert np.all(np.isfinite(gradients.buffer))


@needs_kernels
@pytest.mark.parametrize(
    ("kind", "captures"),
    [
        (Own, 0),
        (OwnCapturable, 2),
        (OwnDerived, 0),
        (OwnAgain, 2),
        (OwnDropping, 0),
        (OwnSumming, 0),
        (OwnElsewhere, 0),
    ],
)
def test_an_own_layer_is_captured_where_it_says_so(kind: type[Own], captures: int) -> None:
    model, step, gradients, example = prepared(own(kind))
    rng = np.random.default_rng(16)
    for rows in (5, 5, 3, 5, 3):
        check_same_bits(model, step, gradients, *batch(rng, rows, example, np.float32))
    assert step.captures == captures


@needs_kernels
def test_an_own_loss_is_not_captured_unless_it_says_so() -> None:
    assert hg.losses.CrossEntropy.capturable
    model, step, gradients, example = prepared(dense, OwnLoss())
    rng = np.random.default_rng(17)
    for _ in range(2):
        check_same_bits(model, step, gradients, *batch(rng, 4, example, np.float32))
    assert step.captures == 0


@needs_kernels
def test_batches_that_are_no_plain_arrays_are_not_captured() -> None:
    class Optional(OwnCapturable):
        """With a second input that may be None."""

        capturable = True

        def forward(self, x: Any, lengths: Any = None, *, training: bool = False) -> Any:
            assert lengths is None
            return super().forward(x)

    rng = np.random.default_rng(18)
    model = Optional(4, rng, np.float32)
    step = TrainingStep(model, hg.losses.CrossEntropy(), model.bind().zeros_like())
    x, target = batch(rng, 5, (4,), np.float32)
    for _ in range(2):
        assert np.isfinite(step((x, None), target))
    assert step.captures == 0
    step((x,), target)
    assert step.captures == 1


@needs_kernels
@pytest.mark.parametrize(
    "inner",
    [hg.losses.CrossEntropy(reduction="none"), hg.losses.SquaredError(reduction="none")],
    ids=["cross_entropy", "squared_error"],
)
def test_weights_that_come_with_the_targets_are_replayed(inner: Any) -> None:
    loss = hg.losses.Weighted(inner)
    model, step, gradients, example = prepared(dense, loss)
    rng = np.random.default_rng(23)
    for rows in (4, 4, 6, 4):
        x, target = batch(rng, rows, example, np.float32)
        if isinstance(inner, hg.losses.SquaredError):
            target = rng.standard_normal((rows, 3)).astype(np.float32)
        weight = rng.random(target.shape).astype(np.float32)
        value, found = float(step((x,), (target, weight))), gradients.buffer.copy()
        outputs, cache = model.forward(x, training=True)
        expected, loss_cache = loss.forward(outputs, target, weight)
        model.backward(loss.backward(loss_cache), cache, gradients=gradients)
        assert value == expected
        np.testing.assert_array_equal(found, gradients.buffer)
    assert step.captures == 2


@needs_kernels
def test_a_first_batch_in_another_byte_order() -> None:
    model, step, gradients, example = prepared(dense)
    rng = np.random.default_rng(19)
    for number in range(3):
        x, target = batch(rng, 4, example, np.float32)
        if number == 0:
            x = x.astype(">f4")
        check_same_bits(model, step, gradients, x, target)


@needs_kernels
def test_the_reference_is_not_captured() -> None:
    _, step, _, example = prepared(dense)
    with hg.engine("reference"):
        x, target = batch(np.random.default_rng(0), 4, example, np.float32)
        step((x,), target)
    assert step.captures == 0


@needs_kernels
def test_engine_and_precision_are_those_of_the_call() -> None:
    model, step, gradients, example = prepared(dense)
    rng = np.random.default_rng(10)
    check_same_bits(model, step, gradients, *batch(rng, 4, example, np.float32))
    with hg.engine("reference"):
        check_same_bits(model, step, gradients, *batch(rng, 4, example, np.float32))
    if kernels.native.bf16_unit != "none":
        with dispatch.precision("bf16"):
            for _ in range(2):
                check_same_bits(model, step, gradients, *batch(rng, 4, example, np.float32))


@needs_kernels
def test_a_target_out_of_range_is_named_as_ever() -> None:
    _, step, _, example = prepared(dense)
    x, target = batch(np.random.default_rng(11), 4, example, np.float32)
    step((x,), target)
    wrong = np.array([0, 1, 7, 2])
    with pytest.raises(ArgumentError) as first:
        hg.losses.CrossEntropy().forward(x[:, :3], wrong)
    with pytest.raises(ArgumentError) as second:
        step((x,), wrong)
    assert str(first.value) == str(second.value)


def test_what_no_step_can_be_made_of_is_one_sentence() -> None:
    model, step, gradients, example = prepared(dense)
    x, target = batch(np.random.default_rng(21), 4, example, np.float32)
    loss = hg.losses.CrossEntropy()
    with pytest.raises(ArgumentError, match="model is 3; allowed: a layer"):
        TrainingStep(3, loss, gradients)
    with pytest.raises(ArgumentError, match=r"gradients: 'linear1\.weight' is missing"):
        TrainingStep(model, loss, {})
    wrong = {**gradients, "linear2.bias": np.zeros(4, np.float32)}
    with pytest.raises(ShapeError, match=r"'linear2\.bias' has shape \(4,\); allowed: \(3,\)"):
        TrainingStep(model, loss, wrong)
    with pytest.raises(ArgumentError, match="inputs is an array of float32 and shape"):
        step(x, target)
    each = TrainingStep(model, hg.losses.CrossEntropy(reduction="none"), gradients)
    for _ in range(2):
        with pytest.raises(ShapeError, match=r"the loss has shape \(4,\); allowed: one number"):
            each((x,), target)


@needs_kernels
def test_a_parameter_that_replaces_another_is_noticed() -> None:
    model, step, gradients, example = prepared(dense)
    rng = np.random.default_rng(12)
    check_same_bits(model, step, gradients, *batch(rng, 4, example, np.float32))
    model.layers["linear1"].weight = rng.standard_normal((5, 7)).astype(np.float32)
    for _ in range(2):
        check_same_bits(model, step, gradients, *batch(rng, 4, example, np.float32))
    assert step.captures == 1


@needs_kernels
def test_a_setting_that_is_changed_is_noticed() -> None:
    """A callback may do so between two steps, of a layer, of its options and of the loss."""
    rng = np.random.default_rng(3)
    model, loss = layers(rng, np.float64)[0], hg.losses.CrossEntropy()
    x, targets = rng.normal(size=(4, 6)), rng.integers(4, size=4)
    parameters = model.bind()
    step = TrainingStep(model, loss, parameters.zeros_like())

    def values() -> list[bytes]:
        fresh = TrainingStep(model, loss, parameters.zeros_like())
        found = [step((x,), targets).tobytes(), fresh((x,), targets).tobytes()]
        for name, gradient in step.gradients.items():
            assert gradient.tobytes() == fresh.gradients[name].tobytes()
        return found

    first = values()
    model.layers["1"].eps = 0.5
    second = values()
    loss.options["label_smoothing"] = 0.25
    third = values()
    assert first[0] == first[1]
    assert second[0] == second[1]
    assert third[0] == third[1]
    assert len({first[0], second[0], third[0]}) == 3


@needs_kernels
def test_captures_of_many_shapes_are_bounded_in_bytes_and_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, step, gradients, example = prepared(dense)
    rng = np.random.default_rng(13)
    for rows in range(1, 8):
        check_same_bits(model, step, gradients, *batch(rng, rows, example, np.float32))
    assert step.captures == 7
    most = 2 * step.captured_bytes
    monkeypatch.setattr(module, "MOST_BYTES_TOGETHER", most)
    for rows in range(1, 100):
        check_same_bits(model, step, gradients, *batch(rng, rows, example, np.float32))
        assert step.captured_bytes <= most
        assert 0 < step.captures <= module.MOST_CAPTURES
    monkeypatch.setattr(module, "MOST_BYTES_TOGETHER", 1 << 30)
    for rows in range(1, 40):
        check_same_bits(model, step, gradients, *batch(rng, rows, example, np.float32))
    assert step.captures == module.MOST_CAPTURES


@needs_kernels
def test_the_capture_that_was_not_replayed_for_longest_makes_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, step, gradients, example = prepared(dense)
    rng = np.random.default_rng(15)
    monkeypatch.setattr(module, "MOST_CAPTURES", 2)
    for rows in (3, 4, 3, 5):
        check_same_bits(model, step, gradients, *batch(rng, rows, example, np.float32))
    kept = [len(captured.results[0]) for captured in step._captured]
    assert kept == [5, 3]


@needs_kernels
def test_large_steps_are_not_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(13)
    monkeypatch.setattr(module, "MOST_BYTES", 100)
    model, step, gradients, example = prepared(dense)
    for _ in range(2):
        check_same_bits(model, step, gradients, *batch(rng, 4, example, np.float32))
    assert step.captures == 0


def test_no_backward_where_the_loss_is_not_finite() -> None:
    _, step, gradients, example = prepared(dense)
    x, target = batch(np.random.default_rng(14), 4, example, np.float32)
    gradients.buffer[...] = 3
    x[0, 0] = np.nan
    value = step((x,), target)
    assert np.isnan(value)
    assert np.all(gradients.buffer == 3)
    assert step.captures == 0


def gpt(rng: np.random.Generator, dtype: Any) -> tuple[hg.layers.Layer, tuple[int, ...]]:
    return hg.GPT(5, context=7, width=4, heads=2, blocks=1, rng=rng, dtype=dtype), (7,)


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_are_seen_and_then_overwritten(engine: str, dtype: Any) -> None:
    loss = hg.losses.CrossEntropy(class_axis=-1)
    model, step, gradients, example = prepared(gpt, loss, dtype)
    rng = np.random.default_rng(15)
    tokens, target = rng.integers(0, 5, (3, *example)), rng.integers(0, 5, (3, *example))
    kept: list[Any] = []
    with hg.engine(engine):
        check_same_bits(model, step, gradients, tokens, target)
        step((tokens,), target, lambda *both: kept.extend(both))
        scores, _ = model.forward(tokens)
        dscores = loss.backward(loss.forward(scores, target)[1])
    np.testing.assert_array_equal(kept[0], dscores)


class Steep(hg.GPT):
    """A model that may well read its scores in backward."""


def test_scores_of_a_derived_class_are_left_alone() -> None:
    model = Steep(5, context=7, width=4, heads=2, blocks=1, rng=np.random.default_rng(3))
    gradients = model.bind().zeros_like()
    step = TrainingStep(model, hg.losses.CrossEntropy(class_axis=-1), gradients)
    tokens = np.arange(7)[None] % 5
    kept: list[Any] = []
    step((tokens,), tokens, lambda scores, value: kept.extend((scores, scores.copy())))
    np.testing.assert_array_equal(*kept)


class OwnFrugal(Own):
    backward_reads_output = False


class OwnFrugalCapturable(Own):
    capturable = True
    backward_reads_output = False


@pytest.mark.parametrize("kind", [Own, OwnFrugal, OwnFrugalCapturable])
def test_an_own_model_says_that_its_scores_may_be_overwritten(kind: type[Own]) -> None:
    rng = np.random.default_rng(20)
    model = kind(4, rng, np.float32)
    gradients = model.bind().zeros_like()
    step = TrainingStep(model, hg.losses.CrossEntropy(), gradients)
    for rows in (5, 5, 3):
        x, target = batch(rng, rows, (4,), np.float32)
        check_same_bits(model, step, gradients, x, target)
        kept: list[Any] = []
        step((x,), target, lambda *both, kept=kept: kept.extend((both[0], both[0].copy())))
        gone = not np.array_equal(*kept)
        assert gone == (kind is OwnFrugal or (kind is OwnFrugalCapturable and not kernels.native))
