"""The deviation of random networks from their limit: its slope over the width, by layer.

    python -m benchmarks.limits [--only lstm,…] [--depths 1,2,3,4] [--widths 64,256,1024,4096]
                                [--networks 20] [--digits] [--ntk]

The squared distance of a network's kernel from the limit, as a fraction of it, falls as 1/width:
the slope of the logarithms is −1. Widths at which a network has more than 10⁸ parameters are left
out. `--digits` takes the time of the kernel of 1,000 digits through five convolutions, and the
accuracy of inference with it. `--ntk` compares the tangent kernel with J Jᵀ of the layers' own
backward, as a mean over networks of width 4,096. Exit code 1 where a slope is off by more than 0.2,
or a tangent kernel by more than three times the sampling error.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any, Final

import numpy as np
from rich.console import Console
from rich.table import Table

import handgrad as hg
from benchmarks.limit_networks import BIAS, CASES, WEIGHT, redrawn, rng, tangent
from handgrad.data import digits
from handgrad.limits import GaussianProcess, convergence

MOST_PARAMETERS: Final = 10**8
#: Draws where a kernel has no closed form: their error has to be small beside that of the widest
#: networks.
SAMPLES: Final = 1 << 20
SLOPE: Final = 0.2
#: Networks whose tangent kernel is taken, with their depth.
TANGENTS: Final = {"relu": 2, "erf": 2, "conv1d": 2, "rnn": 1, "layer_norm": 1}
TANGENT_WIDTH: Final = 4096
#: The deviation of a tangent kernel that is allowed, as a multiple of its sampling error.
ALLOWED: Final = 3.0


def measure(name: str, depth: int, widths: list[int], networks: int) -> tuple[list[float], float]:
    """The deviation at each width that is not too large, and the slope."""
    case = CASES[name]
    make = case.make(depth)
    fitting = [w for w in widths if _parameters(make(16, 16)) * (w / 16) ** 2 < MOST_PARAMETERS]
    found = convergence(
        lambda width: make(width, width),
        case.x,
        widths=fitting,
        networks=networks,
        lengths=case.lengths,
        weight_variance=WEIGHT,
        bias_variance=BIAS,
        samples=SAMPLES,
    )
    return list(found.deviations), found.slope


def _parameters(model: Any) -> int:
    return sum(array.size for array in model.parameters.values())


def of_tangents(networks: int) -> bool:
    """A table of tangent kernels beside those of networks; False where one is too far off."""
    table = Table("network", "depth", "parameters", "deviation", "sampling error")
    good = True
    for name, depth in TANGENTS.items():
        case = CASES[name]
        settings = {"weight_variance": WEIGHT, "bias_variance": BIAS, "lengths": case.lengths}
        limit = hg.limits.kernel(case.make(depth)(16, 1), case.x, kind="ntk", **settings)
        model = case.make(depth)(TANGENT_WIDTH, 1)
        found = np.stack([tangent(redrawn(model, seed), case) for seed in range(networks)])
        size = np.sum(limit**2)
        deviation = np.sqrt(np.sum((found.mean(axis=0) - limit) ** 2) / size)
        error = np.sqrt(np.sum(found.var(axis=0, ddof=1)) / networks / size)
        good = good and bool(deviation <= ALLOWED * error)
        cells = f"{_parameters(model):,}", f"{deviation:.2%}", f"{error:.2%}"
        table.add_row(name, str(depth), *cells)
        print(f"{name}: off by {deviation:.2%}, sampling error {error:.2%}", flush=True)
    Console().print(table)
    return good


def of_digits(examples: int = 1000) -> None:
    """Time of a kernel, and accuracy on the test part."""
    data = digits.load()
    chosen = np.arange(examples)
    layers = [
        hg.Conv2d(1 if i == 0 else 8, 8, 3, padding=1, rng=rng(), activation="relu")
        for i in range(5)
    ]
    model = hg.Sequential(*layers, hg.Flatten(), hg.Dense(512, 10, rng=rng()))
    x, test = data.x_train[chosen], data.x_test[np.arange(len(data.y_test))]
    targets = np.eye(10)[data.y_train[chosen]] - 0.1
    before = time.perf_counter()
    process = GaussianProcess(model, alpha=1e-4, bias_variance=0.1).fit(x, targets)
    seconds = time.perf_counter() - before
    accuracy = np.mean(process.predict(test).argmax(axis=1) == data.y_test)
    print(
        f"kernel of {examples} × {examples} digits through five convolutions and flattening, and "
        f"its factor: {seconds:.1f} s on {hg.get_threads()} threads; accuracy on {len(test)} test "
        f"digits {accuracy:.1%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", default=";".join(CASES), help="cases, with semicolons between")
    parser.add_argument("--depths", default="1,2,3,4")
    parser.add_argument("--widths", default="64,256,1024,4096")
    parser.add_argument("--networks", type=int, default=20)
    parser.add_argument("--digits", action="store_true")
    parser.add_argument("--ntk", action="store_true")
    given = parser.parse_args()
    if given.ntk:
        sys.exit(not of_tangents(given.networks))
    if given.digits:
        of_digits()
        return
    names = given.only.split(";")
    unknown = [name for name in names if name not in CASES]
    if unknown:
        sys.exit(f"limits: --only has {unknown[0]!r}; allowed: {'; '.join(CASES)}")
    widths = [int(each) for each in given.widths.split(",")]
    table = Table("network", "depth", *(str(width) for width in widths), "slope")
    off = 0
    for name in names:
        for depth in map(int, given.depths.split(",")):
            deviations, slope = measure(name, depth, widths, given.networks)
            cells = [f"{each:.1e}" for each in deviations]
            cells += ["–"] * (len(widths) - len(cells))
            off += abs(slope + 1.0) > SLOPE
            table.add_row(name, str(depth), *cells, f"{slope:.2f}")
            print(f"{name}, {depth}: {slope:.2f}", flush=True)
    Console().print(table)
    sys.exit(bool(off))


if __name__ == "__main__":
    main()
