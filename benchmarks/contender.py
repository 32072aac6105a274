"""One contender in a process of its own, which runs a burst of steps whenever it is told to.

    python -m benchmarks.contender MODULE FUNCTION ARGUMENTS THREADS

FUNCTION of MODULE, called with ARGUMENTS (JSON), returns a `Job`. The process answers on its
standard output, in lines of JSON: first what the job says about itself, then, for every number it
reads from its standard input, the seconds that so many steps took.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple


class Job(NamedTuple):
    """`run(n)` does n steps and returns when the last is finished.

    version: of the library. flops: of one step's products. losses: of the first steps, by which the
    contenders are seen to compute the same.
    """

    run: Callable[[int], None]
    version: str
    flops: int = 0
    losses: tuple[float, ...] = ()


def main() -> None:
    module, function, arguments, threads = sys.argv[1:]
    # Whatever a library prints goes to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(threads)])

    def answer(value: Any) -> None:
        print(json.dumps(value), file=answers, flush=True)

    job: Job = getattr(import_module(module), function)(**json.loads(arguments))
    answer(job._replace(run=None)._asdict())
    for line in sys.stdin:
        count = int(line)
        job.run(max(1, count // 10))  # the others have had the caches meanwhile
        began = time.perf_counter()
        job.run(count)
        answer(time.perf_counter() - began)


if __name__ == "__main__":
    main()
