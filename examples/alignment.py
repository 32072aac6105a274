"""Attention of a decoder
======================

The places a decoder looks at: its attention over a recurrent network of both directions.

The network learns to write words backwards. Before every letter the decoder compares its state with
the states of all letters that were read, and takes their mean, weighted by how well they match. No
one tells it where to look; the letter that it needs next is the one that it finds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from picture import Axes, Picture, output

import handgrad as hg

path = output(__doc__)

LETTERS = "abcdefghij"
END, START, LONGEST, STEPS = 10, 11, 7, 300
rng = np.random.default_rng(0)
model = hg.Seq2Seq(12, 12, embedding=12, hidden=24, rng=rng, dtype=np.float64)
loss = hg.losses.CrossEntropy(ignore_index=-1, class_axis=-1)
optimizer = hg.optimizers.Adam(0.005)
Batch = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]


def backwards(words: list[NDArray[Any]]) -> tuple[Batch, NDArray[Any]]:
    """The arguments of forward for these words, and the letters to write, each with its end."""
    lengths = np.array([len(word) for word in words])
    sources = np.full((len(words), LONGEST), END)
    inputs = np.full((len(words), LONGEST + 1), END)
    targets = np.full((len(words), LONGEST + 1), -1)
    for n, word in enumerate(words):
        sources[n, : len(word)] = word
        inputs[n, : len(word) + 1] = [START, *word[::-1]]
        targets[n, : len(word) + 1] = [*word[::-1], END]
    return (sources, lengths, inputs, lengths + 1), targets


def drawn_words(count: int) -> list[NDArray[Any]]:
    """Words of different letters, of any length from 2."""
    sizes = rng.integers(2, LONGEST + 1, count)
    return [rng.permutation(len(LETTERS))[:size] for size in sizes]


parameters = model.bind()
gradients = parameters.zeros_like()
losses = []
for _ in range(STEPS):
    batch, targets = backwards(drawn_words(32))
    logits, cache = model.forward(*batch, training=True)
    value, loss_cache = loss.forward(logits, targets)
    losses.append(float(value))
    model.backward(loss.backward(loss_cache), cache, gradients=gradients)
    optimizer.step(parameters, gradients)

new = drawn_words(200)
batch, targets = backwards(new)
logits, _ = model.forward(*batch)
counted = targets >= 0
share = float((logits.argmax(axis=-1) == targets)[counted].mean())
print(f"loss at the first step, and after {STEPS}: {losses[0]:.2f} {losses[-1]:.2f}")
print(f"letters of 200 new words that are written rightly: {share:.2f}")

shown = ["bfadgce", "hijca"]
batch, _ = backwards([np.array([LETTERS.index(letter) for letter in word]) for word in shown])
logits, cache = model.forward(*batch)
alpha = cache.attention  # of every word, the weights (T, S) of the letters for each that is written
for n, word in enumerate(shown):
    written = "".join(
        LETTERS[int(each)] if each < len(LETTERS) else "." for each in logits[n].argmax(axis=-1)
    )
    # The k-th letter that is written stands k from the end.
    least = min(alpha[n, k, len(word) - 1 - k] for k in range(len(word)))
    print(f"{word}: {written[: len(word)]}; least weight of a letter that is needed: {least:.2f}")

picture = Picture(900, 400, "Attention weights of a network that writes words backwards")
for n, (word, left) in enumerate(zip(shown, (70.0, 390.0), strict=True)):
    picture.text(left, 36, f"{word}, backwards", "ink", size=15, bold=True)
    for k in range(len(word)):
        picture.text(left + k * 34 + 16, 74, word[k], "ink", anchor="middle", bold=True)
        picture.text(left - 18, 80 + k * 34 + 22, word[::-1][k], "ink", anchor="middle", bold=True)
        for i in range(len(word)):
            place = left + i * 34, 80 + k * 34
            picture.rectangle(*place, 32, 32, "rule")
            picture.rectangle(*place, 32, 32, "blue", opacity=min(float(alpha[n, k, i]), 0.99))
picture.text(70, 350, "columns: letters read; rows: letters written; the darker, the more weight")
curve = Axes(picture, (660, 80, 190, 220), (0, STEPS), (0, 2.6))
curve.titles("Loss", "step", "")
curve.ticks({0: "0", STEPS: str(STEPS)}, {0: "0", 1: "1", 2: "2"})
curve.curve(range(STEPS), losses, "orange")
picture.save(path)
