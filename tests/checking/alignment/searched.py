"""The search for changes of a planted pass."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from handgrad.checking.alignment.search import SourceSearch
from handgrad.checking.alignment.watched import WatchedTarget
from handgrad.checking.functions import forward_backward
from handgrad.checking.hypotheses import Draw
from handgrad.checking.trial import numeric_gradient, run
from handgrad.checking.work import Work
from tests.checking.alignment.passes import Planted, inputs, module, source


def searched(planted: Planted, folder: Path) -> SourceSearch:
    made = module(source(planted), folder)
    rng = np.random.default_rng(3)
    arrays = inputs(planted.name, rng)
    functions = forward_backward((made.forward, made.backward), arrays)
    named = dict(zip(functions.inputs, arrays, strict=True))
    runs = [run(functions, named, rng) for _ in range(2)]
    draws = []
    for done in runs:
        numeric = {n: numeric_gradient(functions, done, n, 2000, rng) for n in functions.gradients}
        right = {name: gradient for name, (gradient, _) in numeric.items()}
        allowed = {name: bound for name, (_, bound) in numeric.items()}
        draws.append(Draw(done.arrays, done.y, done.dy, done.gradients, right, allowed))
    first = draws[0]
    wrong = tuple(
        name
        for name in functions.gradients
        if not first.agrees(name, first.found[name], with_found=False)
    )
    return SourceSearch(WatchedTarget(functions, runs[0]), draws, runs, wrong, rng, Work(5.0))
