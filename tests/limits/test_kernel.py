"""The kernel of an infinitely wide network is what wide networks of the same layers come to."""

from __future__ import annotations

import numpy as np
import pytest

import handgrad as hg
from benchmarks.limit_networks import (
    BIAS,
    CASES,
    LENGTHS,
    SEQUENCES,
    VECTORS,
    WEIGHT,
    dense,
    feed_forward,
    output,
    recurrent,
    redrawn,
    rng,
    tangent,
)
from handgrad import limits
from handgrad.errors import HandgradError
from tests.tolerances import assert_close

GIVEN = {"weight_variance": WEIGHT, "bias_variance": BIAS}
#: A single network of this width differs from the limit by about 1/√width of it.
WIDTH, NETWORKS = 512, 4


def kernel_of(name: str, depth: int = 1, kind: str = "nngp") -> np.ndarray:
    case = CASES[name]
    model = case.make(depth)(16, 1)
    return limits.kernel(model, case.x, kind=kind, lengths=case.lengths, samples=1 << 14, **GIVEN)


def deviation(name: str, width: int, networks: int, limit: np.ndarray, depth: int = 1) -> float:
    """The squared distance of sampled kernels from the limit, as a fraction of it, on average."""
    case, found = CASES[name], []
    for seed in range(networks):
        y = output(redrawn(case.make(depth)(width, width), seed), case)
        found.append(np.sum((y @ y.T / width - limit) ** 2) / np.sum(limit**2))
    return float(np.mean(found))


@pytest.mark.parametrize("name", CASES)
def test_wide_networks_come_close(name: str) -> None:
    assert deviation(name, WIDTH, NETWORKS, kernel_of(name)) < 16.0 / WIDTH


@pytest.mark.slow
@pytest.mark.parametrize("name", ["relu", "tanh", "conv2d, flattened", "rnn", "attention, tied"])
def test_the_deviation_falls_with_the_width(name: str) -> None:
    """As 1/width, which is a slope of −1 of the logarithms."""
    widths, limit = (32, 128, 512), kernel_of(name)
    found = [deviation(name, width, 40, limit) for width in widths]
    slope = np.polyfit(np.log(widths), np.log(found), 1)[0]
    assert -1.3 < slope < -0.7, found


#: Batch statistics have no tangent kernel, and of a layer that stands twice in a model backward
#: gives two gradients that belong to one matrix.
WITHOUT_TANGENT = ("batch_norm", "one layer twice")


@pytest.mark.parametrize("name", [name for name in CASES if name not in WITHOUT_TANGENT])
def test_the_tangent_kernel_is_that_of_backward(name: str) -> None:
    """Σ variance(θ) ∂f/∂θ ∂f/∂θ over all parameters, by the layers' own backward."""
    case, limit = CASES[name], kernel_of(name, kind="ntk")
    found = [tangent(redrawn(case.make(1)(128, 1), seed), case) for seed in range(NETWORKS)]
    error = np.sum((np.mean(found, axis=0) - limit) ** 2) / np.sum(limit**2)
    assert error < 16.0 / 128


def test_one_layer_of_relu_is_the_arc_cosine_kernel() -> None:
    """Cho, Saul, Kernel methods for deep learning (2009), with angles by hand."""
    gram = WEIGHT * VECTORS @ VECTORS.T / VECTORS.shape[1] + BIAS
    size = np.sqrt(np.diag(gram))
    theta = np.arccos(np.clip(gram / np.outer(size, size), -1.0, 1.0))
    arc = np.outer(size, size) * (np.sin(theta) + (np.pi - theta) * np.cos(theta)) / (2 * np.pi)
    found = limits.kernel(feed_forward("relu", 1)(8, 1), VECTORS, **GIVEN)
    np.testing.assert_allclose(found, WEIGHT * arc + BIAS, rtol=1e-7)


def test_widths_and_drawn_values_do_not_matter() -> None:
    narrow, wide = feed_forward("gelu", 2)(3, 1), redrawn(feed_forward("gelu", 2)(70, 5), 1)
    one, other = (limits.kernel(each, VECTORS, **GIVEN) for each in (narrow, wide))
    assert np.array_equal(one, other)


def test_variances_are_those_of_the_initializers() -> None:
    """He's for ReLU: 2/fan_in; Xavier's for the read-out: 2/(fan_in + fan_out); biases are 0."""
    model = hg.Sequential(dense(6, 40, "relu"), dense(40, 10))
    found = limits.kernel(model, VECTORS)
    given = {"0.weight": 2.0, "1.weight": 40 * 2.0 / (40 + 10)}
    assert_close(limits.kernel(model, VECTORS, weight_variance=given), found, "float64")
    assert limits.kernel(model, VECTORS, bias_variance={"1.bias": 1.0})[0, 0] == pytest.approx(
        found[0, 0] + 1.0
    )


@pytest.mark.parametrize("name", ["relu", "rnn", "conv2d, global mean", "gru"])
def test_other_examples_are_columns_of_all(name: str) -> None:
    case = CASES[name]
    model = case.make(1)(8, 1)
    one, other = slice(0, 2), slice(2, None)
    given = {**GIVEN, "samples": 4096}
    lengths = [None if case.lengths is None else case.lengths[each] for each in (one, other)]
    whole = limits.kernel(model, case.x, lengths=case.lengths, **given)
    part = limits.kernel(
        model, case.x[one], case.x[other], lengths=lengths[0], lengths2=lengths[1], **given
    )
    assert_close(part, whole[one, other], "float64")
    diagonal = limits.diagonal(model, case.x, lengths=case.lengths, **given)
    assert_close(diagonal, np.diag(whole), "float64")


def test_many_examples_are_computed_in_blocks() -> None:
    x = np.random.default_rng(1).standard_normal((300, 6))
    model = feed_forward("relu", 1)(8, 1)
    whole = limits.kernel(model, x, **GIVEN)
    assert np.array_equal(whole, whole.T)
    assert_close(
        whole[[0, 299]][:, [130, 299]],
        limits.kernel(model, x[[0, 299]], x[[130, 299]], **GIVEN),
        "float64",
    )
    assert limits.kernel(model, x[:0], **GIVEN).shape == (0, 0)


def test_what_stands_after_a_sequence_has_no_influence() -> None:
    model = recurrent("rnn", 2, bidirectional=True)(8, 1)
    found = limits.kernel(model, SEQUENCES, lengths=LENGTHS, **GIVEN)
    spoiled = SEQUENCES.copy()
    for row, length in zip(spoiled, LENGTHS, strict=True):
        row[length:] = 2.0
    assert_close(limits.kernel(model, spoiled, lengths=LENGTHS, **GIVEN), found, "float64")
    shorter = limits.kernel(model, SEQUENCES[1:2, :3], SEQUENCES[:1], **GIVEN)
    assert_close(shorter, found[1:2, :1], "float64")


def test_a_vector_for_every_position_has_a_kernel_of_all_pairs() -> None:
    model = hg.Sequential(hg.RNN(6, 8, rng=rng(), dtype=np.float64), dense(8, 1))
    found = limits.kernel(model, SEQUENCES, **GIVEN)
    assert found.shape == (4, 4, 4, 4)
    last = limits.kernel(
        recurrent("rnn", 1)(8, 1), SEQUENCES, weight_variance=WEIGHT, bias_variance=BIAS
    )
    assert_close(found[:, -1, :, -1], last, "float64")


def test_the_program_is_that_of_the_layers() -> None:
    found = limits.program(recurrent("rnn", 1)(8, 1), SEQUENCES, **GIVEN)
    kinds = [type(each).__name__ for each in found.variables]
    steps = SEQUENCES.shape[1]
    assert kinds.count("Nonlin") == steps
    assert kinds.count("MatMul") == steps + (steps - 1) + 1


REFUSED = {
    "attention with 1/√n": (
        lambda: hg.MultiHeadAttention(6, 2, rng=rng()),
        SEQUENCES,
        {},
        "scores stay random",
    ),
    "rotary": (
        lambda: hg.MultiHeadAttention(6, 1, rng=rng(), scale=0.1, rotary=True),
        SEQUENCES,
        {},
        "rotary",
    ),
    "softmax": (
        lambda: hg.Sequential(dense(6, 4), hg.Activation("softmax")),
        VECTORS,
        {},
        "divides by a sum",
    ),
    "a layer without a rule": (lambda: hg.SwiGLU(), VECTORS, {}, "SwiGLU has no rule; allowed:"),
    "an activation of the input": (
        lambda: hg.Activation("tanh"),
        VECTORS,
        {},
        "vector of the input",
    ),
    "tied head": (
        lambda: hg.GPT(11, context=4, width=8, blocks=1, heads=2, rng=rng()),
        np.zeros((2, 3), np.int64),
        {},
        "transpose",
    ),
    "kind": (lambda: dense(6, 1), VECTORS, {"kind": "gp"}, "kind"),
    "samples": (
        lambda: recurrent("gru", 1)(4, 1),
        SEQUENCES,
        {"samples": 1},
        "samples is 1; allowed: whole numbers from 2",
    ),
    "variance": (
        lambda: dense(6, 1),
        VECTORS,
        {"weight_variance": -1.0},
        "weight_variance is -1.0; allowed: 0 or more",
    ),
    "name": (
        lambda: dense(6, 1),
        VECTORS,
        {"bias_variance": {"b": 1.0}},
        "bias_variance has 'b'; allowed: bias",
    ),
    "features": (lambda: dense(5, 1), VECTORS, {}, "(..., 5)"),
    "NaN": (lambda: dense(6, 1), np.full((2, 6), np.nan), {}, "NaN"),
    "lengths": (
        lambda: recurrent("rnn", 1)(4, 1),
        SEQUENCES,
        {"lengths": np.array([5, 1, 1, 1])},
        "allowed: 1 to 4",
    ),
    "other shapes": (
        lambda: dense(6, 1),
        VECTORS,
        {"x2": np.zeros((2, 7))},
        "x2 has shape (2, 7)",
    ),
    "batch statistics": (
        lambda: CASES["batch_norm"].make(1)(4, 1),
        VECTORS,
        {"kind": "ntk"},
        "allowed with BatchNorm: 'nngp'",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_has_no_limit_is_refused_with_the_reason(case) -> None:
    make, x, settings, words = case
    with pytest.raises(HandgradError) as error:
        limits.kernel(make(), x, **settings)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
