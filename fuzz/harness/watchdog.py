"""The watchdog: starts workers, ends those that hang or grow, and collects what was found."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fuzz.harness.surface import FOLDER, MEMORY, PATIENCE, load
from fuzz.harness.worker import BEAT, Job, sanitized

_POLL: Final = 0.1
_SLOWER_SANITIZED: Final = 20.0
#: Seconds a worker may take to start: it imports NumPy, handgrad and the surface.
_STARTING: Final = 60.0
#: The lines of a worker's stderr that are kept with a fault.
_TAIL: Final = 60


def environment(**more: str) -> dict[str, str]:
    """This process's, with the project's root where modules are looked for.

    NumPy's OpenBLAS, with which references multiply, gets one thread: with several it hangs in a
    process that forks while it computes, as `fuzz/threads.py` does.
    """
    found = {"OPENBLAS_NUM_THREADS": "1", **os.environ, **more}
    search = (str(FOLDER.parent), found.get("PYTHONPATH", ""))
    found["PYTHONPATH"] = os.pathsep.join(filter(None, search))
    return found


def patience_factor() -> float:
    """The factor by which a case may be slower than on a quiet machine (HANDGRAD_FUZZ_PATIENCE)."""
    asked = float(os.environ.get("HANDGRAD_FUZZ_PATIENCE", "1"))
    return asked * (_SLOWER_SANITIZED if sanitized() else 1.0)


@dataclass
class Found:
    """All faults of one kind in one part of a surface; the first of them in full."""

    surface: str
    seed: int
    kind: str
    where: str
    number: int
    message: str
    program: str
    times: int = 1

    def text(self) -> str:
        """A Python file that shows the fault."""
        again = f"python -m fuzz --only {self.surface} --seed {self.seed} --case {self.number}"
        message = self.message.replace("\\", "\\\\").replace('"""', "'''").strip()
        head = f'"""{self.where}: {self.kind}\n\n{message}\n\nAgain: {again}\n"""\n\n'
        return head + self.program.rstrip() + "\n"


@dataclass
class Tally:
    """The result of a surface so far."""

    surface: str
    cases: int = 0
    seconds: float = 0.0
    found: dict[tuple[str, str], Found] = field(default_factory=dict)

    def line(self) -> str:
        times = sum(f.times for f in self.found.values())
        pace = self.cases / self.seconds if self.seconds else 0.0
        kinds = Counter(f.kind for f in self.found.values())
        listed = "".join(f"; {kind}: {count}" for kind, count in sorted(kinds.items()))
        return (
            f"{self.surface}: {self.cases:,} cases in {self.seconds:,.0f} s ({pace:,.0f} a second),"
            f" {times:,} faults, {len(self.found)} distinct{listed}"
        )


class _Worker:
    """One running worker, restarted after the case that ended it."""

    def __init__(self, job: Job, folder: Path) -> None:
        self.job = job
        self.folder = folder
        module = load(job.surface)
        self.patience = getattr(module, "PATIENCE", PATIENCE) * patience_factor()
        self.memory = getattr(module, "MEMORY", MEMORY)
        self.done = 0
        self.finished = False
        self.end = time.monotonic() + job.seconds
        self.records: list[dict[str, Any]] = []
        self.next = job.first
        self.process: subprocess.Popen[bytes] | None = None
        self._start()

    def _start(self) -> None:
        seconds = max(self.end - time.monotonic(), 0.0)
        if self.next >= self.job.stop or seconds <= 0:
            self.finished = True
            return
        for old in self.folder.iterdir():
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        temporary = self.folder / "temporary"
        temporary.mkdir()
        (self.folder / "beat").write_bytes(BEAT.pack(self.next, -1, 0))
        job = self.job._replace(first=self.next, seconds=seconds, folder=str(self.folder))
        with open(self.folder / "errors", "wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "fuzz.harness.worker", "run", json.dumps(job)],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                env=environment(TMPDIR=str(temporary)),
                start_new_session=True,
            )
        self.beat = (self.next, -1)
        self.since = time.monotonic()

    def _kill(self, number: signal.Signals) -> None:
        assert self.process is not None
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            return

    def _resident_kib(self) -> int:
        assert self.process is not None
        try:
            status = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="utf-8")
        except OSError:
            return 0
        return int(status.split()[1]) * (os.sysconf("SC_PAGESIZE") >> 10)

    def stop(self) -> None:
        """End the worker and whatever it has started."""
        if self.process is not None:
            self._kill(signal.SIGKILL)
            self.process.wait()

    def poll(self) -> None:
        """Look at the worker once; end, record and restart as needed."""
        if self.finished or self.process is None:
            return
        now = time.monotonic()
        number, done, start_kib = BEAT.unpack((self.folder / "beat").read_bytes())
        if (number, done) != self.beat:
            self.beat, self.since = (number, done), now
        ended = self.process.poll()
        if ended is not None:
            self._over("crash", self._how(ended), number, done, ended)
        elif done >= 0 and self._resident_kib() - start_kib > 2 * (self.memory << 10) > 0:
            if sanitized():
                return
            grown = (self._resident_kib() - start_kib) >> 10
            message = f"the worker grew by {grown} MiB; allowed: {self.memory} MiB"
            self._end(signal.SIGABRT)
            self._over("memory", message, number, done, 1)
        elif now - self.since > (self.patience if done >= 0 else _STARTING * patience_factor()):
            self._end(signal.SIGABRT)  # faulthandler prints where it is
            self._over("hang", f"no end after {self.patience:g} s", number, done, 1)

    def _end(self, number: signal.Signals) -> None:
        assert self.process is not None
        os.kill(self.process.pid, number)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self._kill(signal.SIGKILL)
            self.process.wait()

    @staticmethod
    def _how(code: int) -> str:
        if code < 0:
            return f"the process ended with {signal.Signals(-code).name}"
        return f"the process ended with exit code {code}"

    def _over(self, kind: str, message: str, number: int, done: int, code: int) -> None:
        """The worker has ended: take what it wrote, and go on after the case it was at."""
        self._kill(signal.SIGKILL)  # what it started, and left
        written = self.folder / "faults"
        if written.exists():
            self.records += [json.loads(line) for line in written.read_text().splitlines()]
        self.done += max(done, 0)
        if number < 0 and code == 0:
            self.finished = True
            return
        lines = (self.folder / "errors").read_text(errors="replace").splitlines()
        tail = "\n".join(lines[-_TAIL:])
        if done < 0:
            raise RuntimeError(f"the worker of {self.job.surface} did not start:\n{tail}")
        self.done += 1
        drawn = self._describe(number)
        self.records.append(
            {"number": number, "kind": kind, "message": f"{message}\n\n{tail}", **drawn}
        )
        self.next = number + self.job.stride
        self._start()

    def _describe(self, number: int) -> dict[str, str]:
        command = ["describe", self.job.surface, str(self.job.seed), str(number)]
        done = subprocess.run(
            [sys.executable, "-m", "fuzz.harness.worker", *command],
            capture_output=True,
            text=True,
            env=environment(),
            timeout=_STARTING * patience_factor(),
        )
        if done.returncode:
            lines = "\n# ".join(done.stderr.splitlines())
            return {"where": "draw", "program": f"# Drawing the case fails:\n# {lines}"}
        drawn: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
        return drawn


def watch(
    surface: str, seed: int, seconds: float, stop: int, jobs: int = 1, first: int = 0
) -> Tally:
    """Run cases `first` to `stop` of a surface, `jobs` at a time, for so many seconds at most."""
    tally = Tally(surface)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fuzz-", ignore_cleanup_errors=True) as base:
        workers = []
        try:
            for j in range(jobs):
                folder = Path(base) / str(j)
                folder.mkdir()
                workers.append(
                    _Worker(Job(surface, seed, first + j, jobs, stop, seconds, ""), folder)
                )
            while not all(worker.finished for worker in workers):
                time.sleep(_POLL)
                for worker in workers:
                    worker.poll()
        finally:
            for worker in workers:
                worker.stop()
    tally.seconds = time.monotonic() - began
    for worker in workers:
        tally.cases += worker.done
        for record in worker.records:
            key = record["kind"], record["where"]
            if key in tally.found:
                tally.found[key].times += 1
            else:
                tally.found[key] = Found(surface, seed, **record)
    return tally


def write(tally: Tally, out: Path) -> list[Path]:
    """Write each distinct fault as a Python file of its own; their paths."""
    paths = []
    for found in tally.found.values():
        title = f"{found.where} {found.kind}".lower()
        name = "".join(c if c.isalnum() else "_" for c in title)[:80]
        path = out / tally.surface / f"{name}_{found.number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found.text())
        paths.append(path)
    return paths
