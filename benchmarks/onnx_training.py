"""One training step: handgrad beside the graph of `hg.export_training` in onnxruntime.

    python -m benchmarks.onnx_training [--only mlp;cnn] [--rounds 21] [--threads N] [--quick]

Both make the same steps on one batch, with Adam; see docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np

import handgrad as hg
from benchmarks import machine
from benchmarks.contender import Job
from benchmarks.onnx import measure, runtime_session
from benchmarks.peers import installed

#: Models by name, the shape of a batch, and how many classes or tokens there are.
MODELS: Final[dict[str, tuple[Callable[[Any], Any], tuple[int, ...], int]]] = {
    "mlp": (lambda rng: hg.MLP([64, 32, 10], rng=rng), (32, 64), 10),
    "cnn": (lambda rng: hg.CNN((1, 12, 12), [8, 16], 10, rng=rng), (16, 1, 12, 12), 10),
    "lstm": (lambda rng: hg.SequenceClassifier(8, 32, 4, rng=rng), (16, 20, 8), 4),
    "gpt": (
        lambda rng: hg.GPT(64, context=32, width=64, heads=4, blocks=2, rng=rng),
        (8, 32),
        64,
    ),
}
#: As many losses of both have to agree.
_STEPS: Final = 8


def _made(model: str) -> tuple[Any, Any, Any, tuple[Any, Any]]:
    make, shape, classes = MODELS[model]
    rng = np.random.default_rng(0)
    layer = make(rng)
    if len(shape) == 2 and model == "gpt":
        inputs, target = rng.integers(0, classes, (2, *shape))
        return layer, hg.losses.CrossEntropy(class_axis=-1), hg.optimizers.Adam(), (inputs, target)
    batch = rng.standard_normal(shape, np.float32), rng.integers(0, classes, shape[0])
    return layer, hg.losses.CrossEntropy(), hg.optimizers.Adam(), batch


def handgrad(model: str, threads: int) -> Job:
    layer, loss, optimizer, (x, target) = _made(model)
    hg.set_threads(threads)
    parameters = layer.bind()
    gradients = parameters.zeros_like()
    step = hg.training.TrainingStep(layer, loss, gradients)

    def once() -> float:
        value = step((x,), target)
        optimizer.step(parameters, gradients)
        return float(value)

    def run(count: int) -> None:
        for _ in range(count):
            once()

    return Job(run, version=hg.__version__, losses=tuple(once() for _ in range(_STEPS)))


def onnxruntime(model: str, threads: int) -> Job:
    layer, loss, optimizer, batch = _made(model)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "training.onnx"
        state = hg.export_training(layer, loss, optimizer, path, batch)
        session = runtime_session(path, threads)
    first = session.get_inputs()[0].name
    fixed = {first: batch[0], "target": batch[1], "lr": np.asarray(optimizer.lr, np.float32)}
    outputs = [f"new.{name}" for name in state]
    made = 0

    def once() -> float:
        nonlocal state, made
        given = {**fixed, **state, "step": np.asarray(made)}
        value, *new = session.run(["loss", *outputs], given)
        state, made = dict(zip(state, new, strict=True)), made + 1
        return float(value)

    def run(count: int) -> None:
        for _ in range(count):
            once()

    return Job(run, version=version("onnxruntime"), losses=tuple(once() for _ in range(_STEPS)))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.onnx_training", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", default=";".join(MODELS), help="models, with semicolons between")
    parser.add_argument("--rounds", type=int, default=21, help="turns of both")
    parser.add_argument("--threads", type=int, default=machine.cores(), help="of both")
    parser.add_argument("--quick", action="store_true", help="see that it runs; no figures")
    given = parser.parse_args()
    _, missing = installed(["onnxruntime"])
    if missing:
        sys.exit("\n".join(missing))
    noise = machine.warning(machine.load())
    if noise:
        print(f"Warning: {noise}.")
    rounds, seconds = (2, 0.01) if given.quick else (given.rounds, 0.3)
    for name in given.only.split(";"):
        if name not in MODELS:
            parser.error(f"--only has {name!r}; allowed: {'; '.join(MODELS)}")
        module = "benchmarks.onnx_training"
        found = measure(name, threads=given.threads, rounds=rounds, seconds=seconds, module=module)
        times = ", ".join(
            f"{who} {1000 * each['median']:.3g} ms" for who, each in found["contenders"].items()
        )
        print(f"{name}: {times}; {found['ratio']['median']:.3g} times")
    return 0


if __name__ == "__main__":
    sys.exit(main())
