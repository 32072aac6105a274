"""Four learning rates
===================

Stochastic gradient descent at several learning rates: too small, good, too large, divergent.

The same small network (64 pixels, 32 tanh units, 10 classes), the same first weights and the same
batches of the handwritten digits that come with handgrad; only the rate α of θ ← θ − α ∇L differs.
"""

from __future__ import annotations

import numpy as np
from picture import Axes, Picture, output

import handgrad as hg

path = output(__doc__)

EPOCHS, BATCH, HIDDEN = 2, 32, 32

digits = hg.data.load("digits")
x = np.asarray(digits.x_train[:], np.float64).reshape(-1, 64)
y = digits.y_train
steps_per_epoch = len(x) // BATCH


def train(lr: float) -> list[float]:
    """The loss on all training digits before the first step, and after every second one."""
    rng = np.random.default_rng(0)
    model = hg.Sequential(
        hg.Dense(64, HIDDEN, activation="tanh", rng=rng, dtype=np.float64),
        hg.Dense(HIDDEN, 10, rng=rng, dtype=np.float64),
    )
    loss, sgd = hg.losses.CrossEntropy(), hg.optimizers.SGD(lr=lr)
    losses = []
    for _ in range(EPOCHS):
        order = rng.permutation(len(x))
        for step in range(steps_per_epoch):
            if step % 2 == 0:
                losses.append(float(loss.forward(model.forward(x)[0], y)[0]))
            batch = order[step * BATCH : (step + 1) * BATCH]
            scores, cache = model.forward(x[batch], training=True)
            _, loss_cache = loss.forward(scores, y[batch])
            _, gradients = model.backward(loss.backward(loss_cache), cache)
            sgd.step(model.parameters, gradients)
    losses.append(float(loss.forward(model.forward(x)[0], y)[0]))
    return losses


chosen = {0.01: "too small", 0.5: "good", 1.3: "too large", 3.0: "divergent"}
colours = dict(zip(chosen, ("green", "blue", "purple", "orange"), strict=True))
# None between 1.3 and 3: there the loss after two epochs is chaotic and hangs on the last bit.
rates = (0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.5, 0.7, 1.0, 1.3, 3.0, 5.0, 10.0)
curves = {lr: train(lr) for lr in rates}

print(f"cross-entropy of {len(x)} digits; that of a guess is ln 10 = {np.log(10):.2f}")
print("learning rate   at first  highest  after two epochs")
for lr, losses in curves.items():
    print(f"{lr:13g} {losses[0]:10.2f}{max(losses):9.2f}{losses[-1]:12.2f}   {chosen.get(lr, '')}")

picture = Picture(900, 430, "Loss against steps at four learning rates; last loss against the rate")
steps = range(0, EPOCHS * steps_per_epoch + 1, 2)
marks = {0.1: "0.1", 1.0: "1", 10.0: "10", 100.0: "100"}

axes = Axes(picture, (76, 60, 330, 310), (0, steps[-1]), (0.1, 200), log_y=True)
axes.ticks({k: str(k) for k in range(0, 81, 20)}, marks)
axes.titles("Four learning rates", "steps of gradient descent", "loss on all training digits")
for lr, name in chosen.items():
    axes.curve(steps, curves[lr], colours[lr], f"{lr:g}, {name}")
axes.names()

axes = Axes(picture, (586, 60, 280, 310), (0.001, 10), (0.1, 200), log_x=True, log_y=True)
axes.ticks({10.0**k: f"{10.0**k:g}" for k in range(-3, 2)}, dict.fromkeys(marks, ""))
axes.titles("Loss after two epochs", "learning rate")
axes.curve(rates, [losses[-1] for losses in curves.values()], "muted")
for lr in rates:
    point = axes.across(lr), axes.down(curves[lr][-1])
    picture.circle(*point, 5 if lr in chosen else 3, colours.get(lr, "muted"), "paper")
picture.save(path)
