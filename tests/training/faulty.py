"""A run under faults of the system: each system call of it fails once, or kills the process.

    LD_PRELOAD=faults.so python -m tests.training.faulty faults.so FOLDER [--every 7]

Every trial trains in a folder of its own, in a child process, while one call on its files fails (or
all from that one on, as on a full disk), and goes on without faults afterwards. A fault has to end
in a RunError or in nothing at all, and the weights have to be those of a run without any.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import os
import shutil
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from handgrad.errors import RunError
from handgrad.io.checkpoint import load_arrays
from handgrad.training import train
from tests.training import problem

KILL_BEFORE, KILL_AFTER = -1, -2
#: The fault, and whether the calls after it fail too.
KINDS = (
    (KILL_BEFORE, False),
    (KILL_AFTER, False),
    (errno.ENOSPC, True),
    (errno.EIO, False),
    (errno.EACCES, True),
    (errno.EMFILE, False),
)
DONE, REPORTED, WRONG = range(3)


def run(folder: Path, *, resume: bool) -> None:
    train(**problem.parts(2, checkpoint_steps=5), out=folder, resume=resume)


def in_child(action: Callable[[], None]) -> int:
    """The ending of a child that does this: DONE, REPORTED (by a RunError), WRONG or −signal."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = WRONG
        try:
            action()
            code = DONE
        except RunError as error:
            one_sentence = "\n" not in str(error) and "Errno" not in str(error)
            code = REPORTED if one_sentence else WRONG
            if not one_sentence:
                print(f"no sentence: {error}", file=sys.stderr)
        except BaseException as error:
            print(f"raw {type(error).__name__}: {error}", file=sys.stderr)
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def weights(folder: Path) -> dict[str, bytes]:
    arrays, _ = load_arrays(folder / "model.safetensors")
    return {name: array.tobytes() for name, array in arrays.items()}


def leftovers(folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob("*.partial")]


def trial(
    library: ctypes.CDLL, folder: Path, number: int, kind: int, *, sticky: bool
) -> tuple[int, str]:
    """The ending of the process with the fault, and the error of the trial; "" if there is none."""
    last = 1 << 30 if sticky else number

    def faulty() -> None:
        library.faults_arm(os.fsencode(folder), number, last, kind)
        run(folder, resume=False)

    ended = in_child(faulty)
    expected = (-signal.SIGKILL,) if kind < 0 else (DONE, REPORTED)
    if ended not in expected:
        return ended, f"ended with {ended}"
    if ended != DONE:
        # Without config.toml the run has never begun.
        begun = (folder / "config.toml").exists()
        again = in_child(lambda: run(folder, resume=begun))
        if again != DONE:
            return ended, f"could not be continued ({again})"
    left = leftovers(folder)
    return ended, f"leaves {left}" if left else ""


def main() -> int:
    warnings.simplefilter("error")
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=1)
    given = parser.parse_args()
    library = ctypes.CDLL(given.library)
    library.faults_count.restype = ctypes.c_long
    library.faults_arm.argtypes = (ctypes.c_char_p, ctypes.c_long, ctypes.c_long, ctypes.c_int)

    calls_path = given.folder / "calls"

    def count() -> None:
        folder = given.folder / "undisturbed"
        library.faults_arm(os.fsencode(folder), 1 << 30, 0, errno.EIO)
        run(folder, resume=False)
        calls_path.write_text(str(library.faults_count()))

    given.folder.mkdir(exist_ok=True)
    if in_child(count) != DONE:
        return 1
    calls = int(calls_path.read_text())
    expected = weights(given.folder / "undisturbed")
    trials, wrong, endings = 0, 0, Counter[str]()
    for kind, sticky in KINDS:
        for number in range(trials % given.every, calls, given.every):
            folder = given.folder / "disturbed"
            ended, what = trial(library, folder, number, kind, sticky=sticky)
            endings["killed" if ended < 0 else ("done", "reported", "wrong")[ended]] += 1
            if not what and weights(folder) != expected:
                what = "ended with other weights"
            if what:
                wrong += 1
                name = errno.errorcode.get(kind, "SIGKILL")
                print(f"{name} at call {number} of {calls}: {what}", flush=True)
            shutil.rmtree(folder, ignore_errors=True)
            trials += 1
    counted = ", ".join(f"{count} {ending}" for ending, count in sorted(endings.items()))
    print(f"{trials} trials at {calls} calls, {wrong} wrong: {counted}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
