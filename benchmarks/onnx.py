"""One example through a trained model: `hg.inference.Session` beside onnxruntime.

    python -m benchmarks.onnx [--only digits;lstm] [--rounds 21] [--threads N] [--quick] [--save]

Both run the same model, onnxruntime the file that `hg.export_onnx` writes of it, and see one
example at a time. One process answers at a time, in turns; see docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
from rich.console import Console

import handgrad as hg
from benchmarks import machine, results
from benchmarks.bursts import Contender, ContenderError, Spread
from benchmarks.contender import Job
from benchmarks.peers import installed
from benchmarks.tables import tables

#: Models by name, and the shape of an example: the recipe `digits`, a CNN of two convolutions on
#: 28 × 28 pixels, recurrent layers of 128 units on 100 steps of 64 features.
MODELS: Final[dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]]] = {
    "digits": (lambda rng: _digits(), (1, 8, 8)),
    "cnn": (lambda rng: hg.CNN((1, 28, 28), [32, 64], 10, rng=rng, hidden=128), (1, 28, 28)),
    "lstm": (lambda rng: hg.LSTM(64, 128, rng=rng), (100, 64)),
    "gru": (lambda rng: hg.GRU(64, 128, rng=rng), (100, 64)),
}
CONTENDERS: Final = ("handgrad", "onnxruntime")


def _digits() -> Any:
    from handgrad import recipes

    recipe = recipes.read("digits", [])
    return recipes.build(recipe, recipes.load_task(recipe)).model


def _made(model: str) -> tuple[Any, np.ndarray[Any, Any]]:
    make, shape = MODELS[model]
    rng = np.random.default_rng(0)
    return make(rng), rng.standard_normal((1, *shape), np.float32)


def handgrad(model: str, threads: int) -> Job:
    layer, x = _made(model)
    hg.set_threads(threads)
    session = hg.inference.Session(layer)
    session(x)

    def run(count: int) -> None:
        for _ in range(count):
            session(x)

    return Job(run, version=hg.__version__, losses=_first(session(x)))


def runtime_session(path: Path, threads: int) -> Any:
    """A session of onnxruntime on this file, with so many threads."""
    import onnxruntime as other

    options = other.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return other.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def onnxruntime(model: str, threads: int) -> Job:
    layer, x = _made(model)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        hg.export_onnx(layer, path, input_shape=x.shape[1:])
        session = runtime_session(path, threads)
    given = {session.get_inputs()[0].name: x}

    def run(count: int) -> None:
        for _ in range(count):
            session.run(None, given)

    return Job(run, version=version("onnxruntime"), losses=_first(session.run(None, given)[0]))


def _first(y: np.ndarray[Any, Any]) -> tuple[float, ...]:
    """Some of the outputs, by which the two are seen to compute the same."""
    return tuple(map(float, y.reshape(-1)[:8]))


def measure(
    model: str, *, threads: int, rounds: int, seconds: float, module: str = "benchmarks.onnx"
) -> dict[str, Any]:
    """Seconds of one example, or of what a module does for it, round by round."""
    found: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    with ExitStack() as stack:
        running = [
            stack.enter_context(
                Contender(name, module, {"model": model, "threads": threads}, threads=threads)
            )
            for name in CONTENDERS
        ]
        ours, theirs = (each.about["losses"] for each in running)
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
        counts = [max(1, round(seconds / each.seconds(20))) for each in running]
        for turn in range(rounds):
            pairs = list(zip(running, counts, strict=True))
            for each, count in pairs if turn % 2 == 0 else pairs[::-1]:
                found[each.name].append(each.seconds(count))
        versions = {each.name: each.about["version"] for each in running}
    ratios = [b / a for a, b in zip(found["handgrad"], found["onnxruntime"], strict=True)]
    return {
        "threads": threads,
        "contenders": {
            name: {"version": versions[name], **asdict(Spread.of(found[name]))}
            for name in CONTENDERS
        },
        "ratio": asdict(Spread.of(ratios)),
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.onnx", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", default=";".join(MODELS), help="models, with semicolons between")
    parser.add_argument("--rounds", type=int, default=21, help="turns of both")
    parser.add_argument("--threads", type=int, default=machine.cores(), help="of both")
    parser.add_argument("--quick", action="store_true", help="see that it runs; no figures")
    parser.add_argument("--save", action="store_true", help="write benchmarks/results")
    given = parser.parse_args()
    if given.quick and given.save:
        parser.error("--quick with --save; allowed: one of them, because quick figures are rough")
    if given.threads < 1 or given.rounds < 1:
        parser.error("--threads and --rounds; allowed: 1 or more")
    given.only = given.only.split(";")
    for name in given.only:
        if name not in MODELS:
            parser.error(f"--only has {name!r}; allowed: {'; '.join(MODELS)}")
    return given


def main() -> int:
    given = _arguments()
    _, missing = installed(["onnxruntime"])
    if missing:
        sys.exit("\n".join(missing))
    console = Console() if sys.stdout.isatty() else Console(width=140)
    load_before = machine.load()
    stolen = machine.Stolen()
    noise = machine.warning(load_before)
    if noise:
        console.print(f"Warning: {noise}.", style="bold")
    sizes = (
        {"rounds": 2, "seconds": 0.01} if given.quick else {"rounds": given.rounds, "seconds": 0.3}
    )
    found = {}
    try:
        for name in given.only:
            console.print(f"measuring {name}")
            found[name] = measure(name, threads=given.threads, **sizes)
    except ContenderError as error:
        print(f"benchmarks.onnx: {error}", file=sys.stderr)
        return 1
    result = {
        "date": date.today().isoformat(),
        "machine": machine.describe(["onnxruntime"]),
        "load": load_before,
        "stolen": stolen.share(),
        "sections": {"onnx": found},
    }
    for table in tables(result):
        console.print(table.rich())
    if given.save:
        for path in results.save(result):
            console.print(f"saved {path}")
        console.print("now run python -m benchmarks.readme")
    return 0


if __name__ == "__main__":
    sys.exit(main())
