"""A program of a user who lets mypy read it: every part of handgrad in the way the pages show it.

`tests/test_types.py` has `mypy --strict` read it, and runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, reveal_type

import numpy as np
import torch
from numpy.typing import NDArray

import handgrad as hg
import handgrad.torch

Floats = NDArray[np.float32]


# -- an op of one's own ---------------------------------------------------------------------------
def forward(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """log(1 + exp x)."""
    y = np.logaddexp(0.0, x)
    return y, x


def backward(dy: NDArray[np.float64], cache: NDArray[np.float64]) -> NDArray[np.float64]:
    dx: NDArray[np.float64] = dy / (1.0 + np.exp(-cache))
    return dx


def softplus(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The forward alone, of which `derive` finds the backward."""
    return np.logaddexp(0.0, x)


# -- a layer of one's own -------------------------------------------------------------------------
class ScaleCache(NamedTuple):
    x: hg.Array


class Scale(hg.layers.Layer):
    """y = s x, with one s for each feature."""

    parameter_names = ("weight",)

    def __init__(self, features: int) -> None:
        self.features = features
        self.weight: hg.Array = np.ones(features, np.float32)

    def forward(self, x: hg.Array, *, training: bool = False) -> tuple[hg.Array, ScaleCache]:
        return x * self.weight, ScaleCache(x)

    def backward(
        self,
        dy: hg.Array,
        cache: ScaleCache,
        *,
        gradients: Mapping[str, hg.Array] | None = None,
        input_gradient: bool = True,
    ) -> tuple[hg.Array | None, Mapping[str, hg.Array]]:
        dweight = np.sum(dy * cache.x, axis=0)
        if gradients is None:
            gradients = {"weight": dweight}
        else:
            gradients["weight"][...] = dweight
        return (dy * self.weight if input_gradient else None), gradients

    def output_shape(self, input_shape: tuple[int, ...]) -> tuple[int, ...]:
        return input_shape

    def flops(self, input_shape: tuple[int, ...]) -> int:
        return self.features


# -- a loss and a callback of one's own -----------------------------------------------------------
class Smoothed(hg.losses.CrossEntropy):
    """Cross-entropy with a tenth of the target spread over all classes."""

    def __init__(self) -> None:
        super().__init__(label_smoothing=0.1)


class Watch(hg.training.Callback):
    """Stop once the validation loss is below a threshold."""

    def __init__(self, enough: float) -> None:
        self.enough = enough
        self.losses: list[float] = []

    def on_epoch(self, trainer: hg.Trainer, record: Mapping[str, float]) -> None:
        self.losses.append(record["validation_loss"])
        if self.losses[-1] < self.enough:
            trainer.stop = True

    def state(self) -> Mapping[str, object]:
        return {"losses": self.losses}


def blobs(count: int, seed: int) -> tuple[Floats, NDArray[np.int64]]:
    """Points around the corners of a triangle, and which corner it is."""
    rng = np.random.default_rng(seed)
    corners = np.array([[0.0, 2.0], [2.0, -1.0], [-2.0, -1.0]], np.float32)
    labels = rng.integers(0, 3, count)
    x: Floats = (corners[labels] + 0.5 * rng.standard_normal((count, 2))).astype(np.float32)
    return x, labels


def train(folder: Path) -> float:
    x, y = blobs(300, 0)
    rng = np.random.default_rng(1)
    model = hg.Sequential(
        hg.Dense(2, 16, activation="relu", rng=rng), Scale(16), hg.Dense(16, 3, rng=rng)
    )
    reveal_type(model)
    watch = Watch(0.4)
    trainer = hg.Trainer(
        model, Smoothed(), hg.optimizers.Adam(1e-2), batch_size=32, callbacks=[watch], seed=0
    )
    history = trainer.fit(x, y, epochs=5, validation_split=0.2)
    reveal_type(history)
    reveal_type(history["loss"])
    scores = model(x)
    reveal_type(scores)
    right = float(np.mean(scores.argmax(axis=1) == y))
    reveal_type(right)

    plain = hg.MLP((2, 8, 3), rng=rng)
    path = folder / "plain.safetensors"
    hg.TrainedModel(plain, task="classification").save(path)
    loaded = hg.load(path)
    reveal_type(loaded)
    answers = loaded.predict(x[:5])
    reveal_type(answers)
    reveal_type(loaded.predict_proba(x[:5]))
    reveal_type(loaded.evaluate(x, y))
    return right


def one_step() -> None:
    """Forward, loss, backward and update, each by its name."""
    x, y = blobs(20, 2)
    model = hg.Sequential(hg.Dense(2, 4, activation="tanh", rng=np.random.default_rng(0)), Scale(4))
    loss = hg.losses.CrossEntropy()
    outputs, cache = model.forward(x, training=True)
    reveal_type(outputs)
    reveal_type(cache)
    value, loss_cache = loss.forward(outputs, y % 4)
    reveal_type(value)
    doutputs = loss.backward(loss_cache)
    reveal_type(doutputs)
    dx, gradients = model.backward(doutputs, cache)
    reveal_type(dx)
    reveal_type(gradients)
    hg.optimizers.SGD(0.1).step(model.parameters, gradients)
    y_op, op_cache = hg.ops.gelu.forward(x)
    reveal_type(y_op)
    reveal_type(hg.ops.gelu.backward(y_op, op_cache))


def explain(folder: Path) -> bool:
    x = np.random.default_rng(3).standard_normal((4, 3))
    report = hg.check((forward, backward), x)
    reveal_type(report)
    reveal_type(report.ok)
    reveal_type(report.to_dict())
    derivation = hg.derive(softplus, x=("N", "D"))
    reveal_type(derivation)
    dx = derivation.backward(np.ones_like(x), derivation.forward(x)[1])
    reveal_type(dx)
    notes = hg.notes((forward, backward), x)
    reveal_type(notes)
    notes.save(folder / "softplus.html")
    with hg.engine("reference"):
        y, _ = hg.ops.softmax.forward(x)
    reveal_type(hg.get_engine())
    reveal_type(y)
    return report.ok


def in_torch() -> torch.Tensor:
    """The same layers in a program of PyTorch, and models across."""
    module = torch.nn.Sequential(torch.nn.Linear(2, 4), handgrad.torch.LayerNorm(4))
    done = handgrad.torch.accelerate(module)
    reveal_type(done)
    layer = hg.from_torch(torch.nn.Linear(2, 3))
    reveal_type(layer)
    reveal_type(hg.to_torch(hg.Dense(2, 3, rng=np.random.default_rng(0))))
    y: torch.Tensor = module(torch.ones(5, 2))
    return y


def main() -> None:
    with TemporaryDirectory() as name:
        print(f"right: {train(Path(name)):.2f}; gradients ok: {explain(Path(name))}")
    one_step()
    print(tuple(in_torch().shape))


if __name__ == "__main__":
    main()
