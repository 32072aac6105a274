"""One contender in a process of its own, which runs a burst of steps on request.

    python -m benchmarks.contender MODULE FUNCTION ARGUMENTS THREADS WARM

FUNCTION of MODULE, called with ARGUMENTS (JSON), returns a `Job`. The process answers on its
standard output, in lines of JSON: first what the job says about itself, then, for every number it
reads from its standard input, the seconds that so many steps took, and for 0 what `judge` gives.
WARM 1 runs a few steps more before those that are timed; a job that trains to an end wants 0.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from benchmarks.machine import peak_bytes, pin


class Job(NamedTuple):
    """`run(n)` does n steps and returns when the last is finished.

    version: of the library. flops: of one step's products. losses: of the first steps, by which the
    contenders are seen to compute the same. judge: what the job has reached. before: the bytes that
    the process held when its library was there and its first step was not yet taken.
    """

    run: Callable[[int], None]
    version: str
    flops: int = 0
    losses: tuple[float, ...] = ()
    judge: Callable[[], float] | None = None
    before: int = 0


def main() -> None:
    module, function, arguments, threads, warm = sys.argv[1:]
    # Whatever a library prints goes to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    pin(int(threads))

    def answer(value: Any) -> None:
        print(json.dumps(value), file=answers, flush=True)

    try:
        job: Job = getattr(import_module(module), function)(**json.loads(arguments))
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        answer({"failed": f"{type(error).__name__}: {reason}"})
        raise
    about = job._replace(run=None, judge=None)._asdict()
    answer({**about, "peak_bytes": peak_bytes()})
    for line in sys.stdin:
        count = int(line)
        if count == 0:
            assert job.judge is not None
            answer(job.judge())
            continue
        if warm == "1":
            job.run(max(1, count // 10))  # the others have had the caches meanwhile
        began = time.perf_counter()
        job.run(count)
        answer(time.perf_counter() - began)


if __name__ == "__main__":
    main()
