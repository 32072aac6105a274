"""Paired bursts: contenders take turns, A B C B C A …, and only one process runs at a time."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.peers import library, precision

ROOT: Final = Path(__file__).parents[1]


class ContenderError(RuntimeError):
    """A contender's process ended; its own message stands on standard error."""


@dataclass(frozen=True)
class Spread:
    """A median with its quartiles."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        ordered = sorted(values)
        if len(ordered) == 1:
            return cls(ordered[0], ordered[0], ordered[0])
        low, median, high = statistics.quantiles(ordered, n=4, method="inclusive")
        return cls(median, low, high)


def environment(threads: int) -> dict[str, str]:
    """The environment of a contender: every library gets the same number of threads."""
    others = (f"{library}_NUM_THREADS" for library in ("OMP", "OPENBLAS", "MKL", "BLIS"))
    names = ("HANDGRAD_THREADS", *others)
    return os.environ | dict.fromkeys(names, str(threads))


class Contender:
    """The parent's side of `benchmarks.contender`; stopped by SIGSTOP except during a burst.

    A thread that spins while it waits for work, as those of OpenMP do, would otherwise run beside
    the next contender. warm: whether a few steps before those that are timed fill the caches.
    """

    def __init__(
        self,
        name: str,
        module: str,
        arguments: Mapping[str, Any],
        *,
        threads: int,
        warm: bool = True,
    ) -> None:
        function = name.partition(" ")[0].replace("-", "_")
        command = [sys.executable, "-m", "benchmarks.contender", module, function]
        self.name = name
        self._process = subprocess.Popen(
            [*command, json.dumps(dict(arguments)), str(threads), str(int(warm))],
            cwd=ROOT,
            env=environment(threads),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.about: dict[str, Any] = self._answer()
        if "failed" in self.about:
            raise ContenderError(
                f"{name} ended with exit code {self._close()}: {self.about['failed']}"
            )
        self._process.send_signal(signal.SIGSTOP)

    def __enter__(self) -> Contender:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._close()

    def _close(self) -> int:
        with self._process:
            return self._process.wait()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ContenderError(f"{self.name} ended with exit code {self._close()}")
        return json.loads(line)

    def seconds(self, steps: int) -> float:
        """Run so many steps; the seconds that one of them took."""
        return self._asked(steps) / steps

    def judged(self) -> float:
        """The result of the job, by its own judgement."""
        return self._asked(0)

    def _asked(self, number: int) -> float:
        assert self._process.stdin is not None
        self._process.send_signal(signal.SIGCONT)
        print(number, file=self._process.stdin, flush=True)
        answer: float = self._answer()
        self._process.send_signal(signal.SIGSTOP)
        return answer

    def steps_for(self, seconds: float) -> int:
        """The number of steps that make a burst of about this length."""
        one = self.seconds(max(1, int(0.1 * seconds / max(self.seconds(1), 1e-6))))
        return max(1, round(seconds / one))


def compare(
    contenders: Iterable[tuple[str, Mapping[str, Any]]],
    module: str,
    *,
    threads: int,
    rounds: int,
    burst: float,
) -> dict[str, Any]:
    """Time contenders (name, arguments) against handgrad, the first; the plain data of a result.

    Ratios are of bursts of the same round, so that a machine that slows down slows both; those in
    bf16 are against handgrad's in bf16, where there is one. A peer that fails does not end the
    comparison: `failed` says which and why.
    """
    failed: dict[str, str] = {}
    steps: dict[str, int] = {}
    times: dict[str, list[float]] = {}
    with ExitStack() as stack:
        running: list[Contender] = []

        def gone(name: str, error: ContenderError) -> None:
            if not running or name == running[0].name:
                raise error
            failed[name] = str(error)

        for name, arguments in contenders:
            try:
                contender = Contender(name, module, arguments, threads=threads)
                stack.enter_context(contender)
                steps[name] = contender.steps_for(burst)
            except ContenderError as error:
                gone(name, error)
            else:
                running.append(contender)
                times[name] = []
        for turn in range(rounds):
            first = turn % len(running)
            for contender in running[first:] + running[:first]:
                try:
                    times[contender.name].append(contender.seconds(steps[contender.name]))
                except ContenderError as error:
                    gone(contender.name, error)
                    running.remove(contender)
    first_name = running[0].name
    own = {precision(c.name): c.name for c in running if library(c.name) == first_name}
    return {
        "flops": running[0].about["flops"],
        "threads": threads,
        "rounds": rounds,
        "contenders": {
            contender.name: {
                "version": contender.about["version"],
                "losses": contender.about["losses"],
                "steps": steps[contender.name],
                "peak_bytes": contender.about["peak_bytes"],
                "grown_bytes": contender.about["peak_bytes"] - contender.about["before"],
                **asdict(Spread.of(times[contender.name])),
            }
            for contender in running
        },
        "ratios": {
            peer.name: asdict(
                Spread.of(
                    theirs / ours
                    for ours, theirs in zip(
                        times[own[precision(peer.name)]], times[peer.name], strict=True
                    )
                )
            )
            for peer in running
            if library(peer.name) != first_name and precision(peer.name) in own
        },
        "failed": failed,
    }
