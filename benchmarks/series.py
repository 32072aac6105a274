"""The `series-encoder` recipe beside a logistic regression on the same numbers.

    python -m benchmarks.series [--seeds 3] [--data FOLDER ...]

Both learn the same training part, standardised alike, and are judged on the same test part: of
Careddu's two generators, and of every set of UEA series of one length that `--data` names. The
regression is scikit-learn's, on all steps and channels of a series in one row, with its strength
chosen by cross-validation.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.peers import installed


def encoder(changes: list[str], seed: int) -> tuple[float, Any]:
    """The recipe's accuracy, and the data that it was trained on."""
    from handgrad import recipes

    recipe = recipes.read("series-encoder", [*changes, f"training.seed={seed}"])
    task = recipes.load_task(recipe)
    with tempfile.TemporaryDirectory() as folder:
        built = recipes.build(recipe, task)
        summary = built.train(Path(folder) / "run", progress="off")
    return summary["test_accuracy"], task.data


def regression(data: Any) -> float:
    """Accuracy of a logistic regression on the same data."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    model = GridSearchCV(LogisticRegression(max_iter=2000), {"C": [1e-4, 1e-3, 1e-2, 1e-1, 1]})
    model.fit(data.x_train.reshape(len(data.x_train), -1), data.y_train)
    return float(model.score(data.x_test.reshape(len(data.x_test), -1), data.y_test))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.series", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", nargs="*", default=[], help="folders of .ts files")
    given = parser.parse_args()
    here, missing = installed(["sklearn"])
    if not here:
        sys.exit("\n".join(missing))
    sets = [("series", []), ("vectors", ["data.name=vectors"])]
    sets += [
        (Path(folder).name, [f"data.name={Path(folder).name}", f"data.path={folder}"])
        for folder in given.data
    ]
    for name, changes in sets:
        runs = [encoder(changes, seed) for seed in range(given.seeds)]
        ours = [100 * accuracy for accuracy, _ in runs]
        theirs = [100 * regression(data) for _, data in runs]
        print(
            f"{name:<14} CLS encoder {mean(ours):.1f} % ({min(ours):.1f}–{max(ours):.1f})  "
            f"logistic regression {mean(theirs):.1f} % ({min(theirs):.1f}–{max(theirs):.1f})",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
