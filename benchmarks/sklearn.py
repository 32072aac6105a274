"""handgrad.sklearn's perceptrons beside scikit-learn's: accuracy and seconds of whole fits.

    python -m benchmarks.sklearn [--only digits,…] [--seeds 10] [--threads N] [--quick] [--save]

Both have the same arguments, scikit-learn's defaults, and the same split and standardised data for
each seed. One process fits at a time, in turns; its score is that on the quarter of the examples
that it has not seen. `--save` adds to benchmarks/results; see docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from dataclasses import asdict
from datetime import date
from importlib import import_module
from typing import Any, Final

from rich.console import Console

from benchmarks import machine, results
from benchmarks.bursts import Contender, ContenderError, Spread
from benchmarks.contender import Job
from benchmarks.peers import installed, library_version
from benchmarks.tables import tables

#: The data sets, and whether their targets are classes; all come with scikit-learn but the last,
#: which it generates.
SETS: Final = {
    "iris": True,
    "wine": True,
    "breast_cancer": True,
    "digits": True,
    "diabetes": False,
    "20,000 × 100": True,
}
CONTENDERS: Final = ("handgrad", "sklearn")


def load(data: str) -> tuple[Any, Any]:
    """X and y of a data set."""
    from sklearn import datasets

    if data == "20,000 × 100":
        return datasets.make_classification(
            20_000, 100, n_informative=30, n_classes=2, flip_y=0.05, random_state=0
        )
    return getattr(datasets, f"load_{data}")(return_X_y=True)


def handgrad(data: str, epochs: int) -> Job:
    import handgrad

    return _job("handgrad.sklearn", data, epochs, handgrad.__version__)


def sklearn(data: str, epochs: int) -> Job:
    return _job("sklearn.neural_network", data, epochs, library_version("sklearn"))


def _job(module: str, data: str, epochs: int, version: str) -> Job:
    """A step is a fit with the next seed; the job is judged by the score of the last one."""
    import warnings

    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    warnings.simplefilter("ignore")  # that 200 epochs are not the end is the default's matter
    estimator = getattr(import_module(module), "MLPClassifier" if SETS[data] else "MLPRegressor")
    X, y = load(data)
    x_train, x_test, y_train, y_test = X, X, y, y
    seed, model = -1, estimator(max_iter=1).fit(X, y)

    def prepare() -> None:
        nonlocal x_train, x_test, y_train, y_test, seed
        seed += 1
        x_train, x_test, y_train, y_test = train_test_split(
            X, y, random_state=seed, stratify=y if SETS[data] else None
        )
        scaler = StandardScaler().fit(x_train)
        x_train, x_test = scaler.transform(x_train), scaler.transform(x_test)

    def run(count: int) -> None:
        nonlocal model
        for _ in range(count):
            model = estimator(max_iter=epochs, random_state=seed).fit(x_train, y_train)

    def judge() -> float:
        score = float(model.score(x_test, y_test)) if seed >= 0 else 0.0
        prepare()
        return score

    return Job(run, version=version, judge=judge)


def measure(data: str, *, threads: int, seeds: int, epochs: int) -> dict[str, Any]:
    """Scores and seconds of both, seed by seed."""
    seconds: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    scores: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    with ExitStack() as stack:
        running = [
            stack.enter_context(
                Contender(
                    name,
                    "benchmarks.sklearn",
                    {"data": data, "epochs": epochs},
                    threads=threads,
                    warm=False,
                )
            )
            for name in CONTENDERS
        ]
        for each in running:
            each.judged()  # splits for the first seed
        for seed in range(seeds):
            for each in running if seed % 2 == 0 else running[::-1]:
                seconds[each.name].append(each.seconds(1))
                scores[each.name].append(each.judged())
    ratios = [
        theirs / ours for ours, theirs in zip(seconds["handgrad"], seconds["sklearn"], strict=True)
    ]
    return {
        "threads": threads,
        "seeds": seeds,
        "epochs": epochs,
        "score": "accuracy" if SETS[data] else "R²",
        "contenders": {
            each.name: {
                "version": each.about["version"],
                "scores": scores[each.name],
                **asdict(Spread.of(seconds[each.name])),
            }
            for each in running
        },
        "ratio": asdict(Spread.of(ratios)),
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sklearn", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", default=";".join(SETS), help="data sets, with semicolons between")
    parser.add_argument("--seeds", type=int, default=10, help="splits and first weights")
    parser.add_argument("--threads", type=int, default=machine.cores(), help="of both")
    parser.add_argument("--quick", action="store_true", help="see that it runs; no figures")
    parser.add_argument("--save", action="store_true", help="write benchmarks/results")
    given = parser.parse_args()
    if given.quick and given.save:
        parser.error("--quick with --save; allowed: one of them, because quick figures are rough")
    if given.threads < 1 or given.seeds < 1:
        parser.error("--threads and --seeds; allowed: 1 or more")
    given.only = given.only.split(";")
    for name in given.only:
        if name not in SETS:
            parser.error(f"--only has {name!r}; allowed: {'; '.join(SETS)}")
    return given


def main() -> int:
    given = _arguments()
    here, missing = installed(["sklearn"])
    if not here:
        sys.exit("\n".join(missing))
    console = Console() if sys.stdout.isatty() else Console(width=140)
    load_before = machine.load()
    stolen = machine.Stolen()
    noise = machine.warning(load_before)
    if noise:
        console.print(f"Warning: {noise}.", style="bold")
    sizes = {"seeds": 2 if given.quick else given.seeds, "epochs": 5 if given.quick else 200}
    found = {}
    try:
        for name in given.only:
            console.print(f"measuring {name}")
            found[name] = measure(name, threads=given.threads, **sizes)
    except ContenderError as error:
        print(f"benchmarks.sklearn: {error}", file=sys.stderr)
        return 1
    result = {
        "date": date.today().isoformat(),
        "machine": machine.describe(["sklearn"]),
        "load": load_before,
        "stolen": stolen.share(),
        "sections": {"sklearn": found},
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
