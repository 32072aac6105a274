"""Sizes and settings, by letter, of calls of native functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

Letters = dict[str, Any]
Drawn = Callable[[np.random.Generator], Letters]

_SIZES: Final = (0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33)


def sizes(names: str) -> Drawn:
    def draw(rng: np.random.Generator) -> Letters:
        return {name: int(rng.choice(_SIZES)) for name in names}

    return draw


def sequences(rng: np.random.Generator) -> Letters:
    """Sizes of a recurrent layer; R rows are kept, one for each step that counts."""
    found = sizes("NTDHP")(rng)
    if rng.random() < 0.5:
        return {**found, "lens": None, "R": found["N"] * found["T"]}
    lengths = rng.integers(0, found["T"] + 1, found["N"])
    return {**found, "lens": lengths, "R": int(lengths.sum())}


def attention(rng: np.random.Generator) -> Letters:
    found = sizes("NTSdeGr")(rng)
    return {**found, "H": max(found["G"], 1) * max(found["r"], 1), "G": max(found["G"], 1)}


def groups(rng: np.random.Generator) -> Letters:
    found = sizes("Ncs")(rng)
    groups = int(rng.integers(1, 5))
    return {**found, "G": groups, "C": groups * found["c"]}


def classes(rng: np.random.Generator) -> Letters:
    found = sizes("NTL")(rng)
    return {**found, "C": int(rng.integers(2, 20))}


def tokens(rng: np.random.Generator) -> Letters:
    return {**sizes("NTD")(rng), "V": int(rng.integers(1, 20))}


def decoder(rng: np.random.Generator) -> Letters:
    found = sizes("NTHSA")(rng)
    score, cell = int(rng.integers(3)), int(rng.integers(3))
    size = found["A"] if score == 0 else found["H"]
    gates = found["H"] * (3 if cell == 2 else 1)
    width = gates + (size if score == 0 else 0)
    return {**found, "A": size, "G": gates, "W": width, "score": score, "cell": cell}


def _windows(rng: np.random.Generator, transposed: bool, pooled: bool) -> Letters:
    found: Letters = {"N": int(rng.choice((0, 1, 2, 3))), "g": int(rng.integers(1, 4))}
    found["C"], found["F"] = (found["g"] * int(rng.integers(0, 6)) for _ in "CF")
    sizes: dict[str, list[int]] = {"HW": [], "kl": [], "st": [], "pq": [], "de": [], "PQ": []}
    for _ in range(2):
        kernel, stride, dilation = (int(n) for n in rng.integers(1, 4, 3))
        reach = (kernel - 1) * dilation + 1
        padding = int(rng.integers(0, reach if pooled else 4))
        outputs = int(rng.integers(1, 9))
        size = (outputs - 1) * stride + reach - 2 * padding
        if not transposed:
            size += int(rng.integers(0, stride))
        if size < 1:
            kernel = stride = dilation = 1
            padding, size = 0, outputs
        for key, value in zip(
            sizes, (size, kernel, stride, padding, dilation, outputs), strict=True
        ):
            sizes[key].append(value)
    for names, values in sizes.items():
        found |= dict(zip(names, values, strict=True))
    kernels = (*sizes["kl"], *sizes["st"], *sizes["pq"], *sizes["de"])
    found["conv"] = (
        *(found[name] for name in "NCHWF"),
        *kernels,
        found["g"],
        *sizes["PQ"],
    )
    found["pool"] = (found["N"] * found["C"], *sizes["HW"], *kernels, *sizes["PQ"])
    return found


def convolution(rng: np.random.Generator) -> Letters:
    return _windows(rng, transposed=False, pooled=False)


def pooling(rng: np.random.Generator) -> Letters:
    return _windows(rng, transposed=False, pooled=True)
