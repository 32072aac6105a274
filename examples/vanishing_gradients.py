"""Gradients through time
======================

The reach of a gradient back in time: plain recurrence, leaky units, LSTM.

A loss is taken of the state after the last of 100 steps, and its gradient goes back step by step:
every backward pass of one step turns ∂L/∂h_t into ∂L/∂h_{t−1}. How long that vector still is,
after 1, 2, ..., 100 steps, says how much the network can learn from what it read long ago.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from picture import Axes, Picture, output, power_of_ten

import handgrad as hg

path = output(__doc__)

STEPS, BATCH, INPUTS, UNITS = 100, 16, 8, 64

rng = np.random.default_rng(0)
x = rng.standard_normal((BATCH, STEPS, INPUTS))
dh_last = rng.standard_normal((1, BATCH, UNITS))
zero = np.zeros((1, BATCH, UNITS))
Layer = hg.RNN | hg.LeakyRNN | hg.LSTM


def gradient_norms(layer: Layer) -> list[float]:
    """‖∂L/∂h_t‖ for t = 100, 99, ..., 0, over that of the last step; for an LSTM h and c as one."""
    is_lstm = isinstance(layer, hg.LSTM)
    state: Any = (zero, zero) if is_lstm else zero
    caches = []
    for t in range(STEPS):
        (_, state), cache = layer.forward(x[:, t : t + 1], state)
        caches.append(cache)
    dstate: Any = (dh_last, zero) if is_lstm else dh_last
    norms = [np.linalg.norm(dstate)]
    dy = np.zeros((BATCH, 1, UNITS))  # the loss looks at the last state alone
    for cache in reversed(caches):
        (_, dstate), _ = layer.backward((dy, dstate), cache)
        norms.append(np.linalg.norm(dstate))
    return [float(norm / norms[0]) for norm in norms]


def rnn(nonlinearity: str, radius: float) -> hg.RNN:
    """A recurrent network whose W_hh has this largest absolute eigenvalue, its spectral radius."""
    rng = np.random.default_rng(1)
    layer = hg.RNN(INPUTS, UNITS, nonlinearity=nonlinearity, rng=rng, dtype=np.float64)
    weight = rng.standard_normal((UNITS, UNITS))
    layer.parameters["weight_hh_l0"][:] = weight * radius / abs(np.linalg.eigvals(weight)).max()
    return layer


def leaky(alpha: float | NDArray[Any]) -> hg.LeakyRNN:
    """Leaky units h_t = α h_{t−1} + (1 − α) tanh(...): no matrix stands between two states."""
    rng = np.random.default_rng(1)
    return hg.LeakyRNN(INPUTS, UNITS, alpha=alpha, rng=rng, dtype=np.float64)


def lstm(bias: float) -> hg.LSTM:
    """An untrained LSTM: this bias sets its forget gates to about f = σ(bias), the α of a cell."""
    rng = np.random.default_rng(1)
    return hg.LSTM(INPUTS, UNITS, forget_bias=bias, rng=rng, dtype=np.float64)


spread = 1.0 - np.geomspace(0.5, 0.001, UNITS)  # α from 0.5 to 0.999, one for every unit
panels: dict[str, dict[str, Layer]] = {
    "Plain, spectral radius ρ": {
        "ReLU, ρ = 2": rnn("relu", 2.0),
        "tanh, ρ = 2": rnn("tanh", 2.0),
        "tanh, ρ = 0.9": rnn("tanh", 0.9),
        "tanh, ρ = 0.5": rnn("tanh", 0.5),
    },
    "Leaky units, rate α": {
        "α per unit": leaky(spread),
        "α = 0.99": leaky(0.99),
        "α = 0.9": leaky(0.9),
        "α = 0.5": leaky(0.5),
    },
    "LSTM, forget gates f": {
        f"f ≈ {1 / (1 + np.exp(-bias)):.2g}": lstm(bias) for bias in (5.0, 3.0, 1.0, 0.0)
    },
}
colours = ("orange", "blue", "purple", "green")
picture = Picture(900, 430, "Norm of the gradient by steps back in time, for three kinds of layer")
print(f"norm of the gradient, where 1 is that at the last step\n{'steps back':>30}", end="")
print("".join(f"{back:>9}" for back in (1, 10, 50, 100)), " factor per step")
for number, (title, layers) in enumerate(panels.items()):
    frame = (76 + 284 * number, 60, 168, 310)
    axes = Axes(picture, frame, (0, STEPS), (1e-16, 1e12), log_y=True)
    marks = {10.0**k: power_of_ten(k) if number == 0 else "" for k in range(-16, 13, 4)}
    axes.ticks({k: str(k) for k in (0, 50, 100)}, marks)
    of_what = "norm of ∂L/∂h (LSTM: h and c)" if number == 0 else ""
    axes.titles(title, "steps back from the loss", of_what)
    for (name, layer), colour in zip(layers.items(), colours, strict=True):
        norms = gradient_norms(layer)
        axes.curve(range(STEPS + 1), norms, colour, name)
        shown = "".join(f"{norms[back]:9.1e}" for back in (1, 10, 50, 100))
        print(f"{title.split(',')[0]:16}{name:14}{shown}{norms[100] ** (1 / STEPS):10.3f}")
    axes.names()
picture.save(path)
