# mypy: ignore-errors

"""C. Gulino: Adam, dropout, layer norm and batch norm."""

from __future__ import annotations

import math

import numpy as np

import handgrad as hg
from docs.mistakes.row import Row, Verdict, checked, measured, normal, number

# Adam


def adam(gradients, corrections, eps):
    """The parameter after every step from 0, for α = 0.1, β₁ = 0.9, β₂ = 0.999."""
    theta, m, v = np.zeros(1), np.zeros(1), np.zeros(1)
    path = []
    for step, gradient in enumerate(gradients, start=1):
        m = 0.9 * m + (1 - 0.9) * gradient
        v = 0.999 * v + (1 - 0.999) * gradient**2
        first, second = corrections(step)
        with np.errstate(invalid="ignore"):
            theta = theta - 0.1 * (m / first) / (np.sqrt(v / second) + eps)
        path.append(float(theta[0]))
    return path


def correction_times_t():
    path = adam(3 * [2.0], lambda step: (1 - 0.9 * step, 1 - 0.999 * step), 1e-8)
    text = ", ".join(map(number, path))
    return Verdict(path == optimizer_path(3 * [2.0]), f"θ after steps 1, 2, 3: {text}")


def correction_to_the_power_t():
    path = adam(3 * [2.0], lambda step: (1 - 0.9**step, 1 - 0.999**step), 1e-8)
    text = ", ".join(map(number, path))
    same = np.allclose(path, optimizer_path(3 * [2.0]), rtol=1e-12)
    text += f", {'' if same else 'not '}as by hg.optimizers.Adam"
    return Verdict(same, f"θ after steps 1, 2, 3: {text}")


def without_eps():
    (theta,) = adam([0.0], lambda step: (1 - 0.9**step, 1 - 0.999**step), 0.0)
    return Verdict(theta == 0.0, f"θ after a step with gradient 0: {number(theta)}")


def with_eps():
    (theta,) = adam([0.0], lambda step: (1 - 0.9**step, 1 - 0.999**step), 1e-8)
    same = theta == optimizer_path([0.0])[0]
    return Verdict(same, f"θ after a step with gradient 0: {number(theta)}")


def optimizer_path(gradients):
    optimizer, parameters = hg.optimizers.Adam(0.1), {"theta": np.zeros(1)}
    path = []
    for gradient in gradients:
        optimizer.step(parameters, {"theta": np.array([gradient])})
        path.append(float(parameters["theta"][0]))
    return path


def root_of_v(gradients):
    v = 0.0
    for gradient in gradients:
        v = 0.999 * v + (1 - 0.999) * gradient**2
    return math.sqrt(v / (1 - 0.999 ** len(gradients)))


def v_as_deviation():
    found, expected = root_of_v(100 * [2.0]), np.std(100 * [2.0])
    text = f"for 100 gradients of 2: √v̂ = {found:.2f}, standard deviation {expected:.2f}"
    return Verdict(math.isclose(found, expected), text)


def v_as_raw_moment():
    found, expected = root_of_v(100 * [2.0]), math.sqrt(np.mean(np.square(100 * [2.0])))
    text = f"for 100 gradients of 2: √v̂ = {found:.2f}, root of the mean square {expected:.2f}"
    return Verdict(math.isclose(found, expected), text)


# Dropout, layer norm, batch norm


def dropout_without_scale():
    x, p, rng = np.ones(100_000), 0.3, np.random.default_rng(0)
    mask = (rng.random(x.shape) > p).astype(float)
    return of_mean((x * mask).mean())


def inverted_dropout():
    y, _ = hg.ops.dropout.forward(np.ones(100_000), 0.3, np.random.default_rng(0))
    return of_mean(y.mean())


def of_mean(mean):
    return Verdict(abs(mean - 1) < 0.01, f"for x = 1 and p = 0.3, y is {mean:.2f} on average")


def dropout_at_inference():
    (x,) = normal((5, 4))
    y, _ = hg.ops.dropout.forward(x, 0.3, training=False)
    same = np.array_equal(x, y)
    return Verdict(same, f"y is {'' if same else 'not '}x")


def returns_no_mask(x, p):
    mask = (np.random.default_rng(0).random(x.shape) > p).astype(x.dtype)
    return x * mask


def given_the_mask(mask, dout):
    return dout * mask


def without_the_mask(x, p):
    """The same for someone who keeps what there is: x and p."""
    return returns_no_mask(x, p), (x, p)


def draws_another_mask(dout, cache):
    x, p = cache
    mask = (np.random.default_rng(1).random(x.shape) > p).astype(x.dtype)
    return given_the_mask(mask, dout)


def returns_its_mask(x, p):
    mask = (np.random.default_rng(0).random(x.shape) > p).astype(x.dtype)
    return x * mask, mask


def takes_its_mask(dout, mask):
    return dout * mask


def x_and_p():
    return *normal((5, 4)), 0.3


def divided_by_variance(x, gamma, beta):
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    x_hat = (x - mean) / variance
    return gamma * x_hat + beta, hg.ops.layer_norm.forward(x, gamma, beta)[1]


def divided_by_deviation(x, gamma, beta):
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    x_hat = (x - mean) / np.sqrt(variance + 1e-5)
    return gamma * x_hat + beta, hg.ops.layer_norm.forward(x, gamma, beta)[1]


def variance_of_a_row(forward):
    x = 10.0 * np.array([[1.0, -1.0, 1.0, -1.0]])
    variance = forward(x, np.ones(4), np.zeros(4))[0].var()
    text = f"a row of variance 100 comes out with variance {variance:.2f}"
    return Verdict(abs(variance - 1) < 1e-6, text)


def row_divided_by_variance():
    return variance_of_a_row(divided_by_variance)


def row_divided_by_deviation():
    return variance_of_a_row(divided_by_deviation)


def dataset_statistics(x, gamma, beta, mean, var, *, training):
    """Mean and variance of the whole dataset, in training too."""
    y = gamma * (x - mean) / np.sqrt(var + 1e-5) + beta
    cache = hg.ops.batch_norm.forward(x, gamma, beta, mean, var, training=training)[1]
    return y, cache


def batch_statistics(x, gamma, beta, mean, var, *, training):
    y = gamma * (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 1e-5) + beta
    cache = hg.ops.batch_norm.forward(x, gamma, beta, mean, var, training=training)[1]
    return y, cache


def batch_and_running():
    x, gamma, beta = normal((6, 3), (3,), (3,))
    return 2 * x + 1, gamma, beta, np.zeros(3), np.ones(3)


BATCH_NORM = {"like": "batch_norm", "wrt": ("x", "gamma", "beta"), "training": True}
ROWS = (
    Row(
        "Adam: bias correction, ε, and what v is",
        "1 − βT is negative from the second step on, or for any longer horizon T; the sum of "
        "the weights is 1 − βᵗ. A gradient that was always 0 needs ε. v is a mean of squares, "
        "from which no mean has been subtracted.",
        (
            measured("μ̂ = μ/(1 − β₁T), v̂ = v/(1 − β₂T)", correction_times_t),
            measured("θ = θ − α μ̂/√v̂", without_eps),
            measured("√v̂ is a standard deviation", v_as_deviation),
        ),
        (
            measured(
                "μ̂ = μ/(1 − β₁ᵗ), v̂ = v/(1 − β₂ᵗ)",
                correction_to_the_power_t,
            ),
            measured("θ = θ − α μ̂/(√v̂ + ε)", with_eps),
            measured("v̂ is the second raw moment", v_as_raw_moment),
        ),
    ),
    Row(
        "Dropout",
        "Values are switched off and nothing makes up for them, so a network trained with the "
        "mask sees other means without it.",
        (measured("y = x · mask", dropout_without_scale),),
        (
            measured("y = x · mask/(1 − p) in training", inverted_dropout),
            measured("y = x at inference", dropout_at_inference),
            checked("its backward, as hg.ops.dropout has it", "dropout"),
        ),
    ),
    Row(
        "Dropout: what forward returns",
        "dropout_backward asks for the mask, and dropout_forward has kept it to itself. A mask "
        "that is drawn anew is another mask. The scale is left as the notes have it here.",
        (
            checked(
                "dropout_forward(x, p) returns x · mask",
                (returns_no_mask, given_the_mask),
                x_and_p,
                wrt=("x",),
            ),
            checked(
                "the same, backward draws a mask of its own",
                (without_the_mask, draws_another_mask),
                x_and_p,
                wrt=("x",),
            ),
        ),
        (
            checked(
                "dropout_forward(x, p) returns x · mask and mask",
                (returns_its_mask, takes_its_mask),
                x_and_p,
                wrt=("x",),
            ),
        ),
    ),
    Row(
        "Layer norm",
        "Divided by the variance, a row still depends on its scale, the other way round; and a "
        "constant row needs ε.",
        (
            checked(
                "x̂ = (x − μ)/σ²",
                (divided_by_variance, hg.ops.layer_norm.backward),
                ((5, 4), (4,), (4,)),
                like="layer_norm",
            ),
            measured("the same", row_divided_by_variance),
        ),
        (
            checked(
                "x̂ = (x − μ)/√(σ² + ε)",
                (divided_by_deviation, hg.ops.layer_norm.backward),
                ((5, 4), (4,), (4,)),
                like="layer_norm",
            ),
            measured("the same", row_divided_by_deviation),
        ),
    ),
    Row(
        "Batch norm",
        "In training the statistics are those of the batch, and gradients flow through them; "
        "the running average is for inference.",
        (
            checked(
                "μ, σ² of the whole dataset",
                (dataset_statistics, hg.ops.batch_norm.backward),
                batch_and_running,
                **BATCH_NORM,
            ),
        ),
        (
            checked(
                "μ, σ² of the batch",
                (batch_statistics, hg.ops.batch_norm.backward),
                batch_and_running,
                **BATCH_NORM,
            ),
            checked("batch and running statistics, as hg.ops.batch_norm has them", "batch_norm"),
        ),
    ),
)
