"""Kill a training run at a random moment, resume it, compare its weights bit for bit.

    python -m benchmarks.kills [--kills 20] [--epochs 4] [--seed 0]

Each trial trains the `digits` recipe in a folder of its own, sends SIGKILL at a moment drawn from
the whole length of a run (start-up and report included), and resumes with the command line. All
trials must end with the weights of a run that was left alone. Exits with 1 where one does not.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from handgrad.training.checkpoint import load_arrays, load_checkpoint


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "handgrad", "train", *arguments]


def finish(arguments: list[str]) -> float:
    """Run to the end; the seconds it took."""
    began = time.perf_counter()
    ended = subprocess.run(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if ended.returncode:
        sys.exit(f"{' '.join(arguments)} exited with {ended.returncode}:\n{ended.stderr}")
    return time.perf_counter() - began


def weights(folder: Path) -> dict[str, bytes]:
    arrays, _ = load_arrays(folder / "model.safetensors")
    return {name: array.tobytes() for name, array in arrays.items()}


def reached(folder: Path) -> str:
    """Where a killed run was."""
    if (folder / "summary.json").exists():
        return "finished"
    if not (folder / "config.toml").exists():
        return "not started"
    saved = load_checkpoint(folder / "checkpoint" / "latest.safetensors")
    return f"checkpoint at step {saved[1]['step']}" if saved else "no checkpoint yet"


def main() -> int:
    parser = argparse.ArgumentParser(description="SIGKILL and resume, bit for bit.")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chance = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as place:
        undisturbed = Path(place) / "undisturbed"
        fresh = ["digits", "--epochs", str(given.epochs), "--out"]
        whole = finish(command(*fresh, str(undisturbed)))
        expected = weights(undisturbed)
        print(f"undisturbed run: {whole:.1f} s, {len(expected)} arrays")

        identical = 0
        for trial in range(1, given.kills + 1):
            folder = Path(place) / f"killed-{trial}"
            moment = chance.uniform(0, whole)
            process = subprocess.Popen(
                command(*fresh, str(folder)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            time.sleep(moment)
            process.send_signal(signal.SIGKILL)
            process.wait()
            found = reached(folder)
            if found == "not started":
                finish(command(*fresh, str(folder)))
            else:
                finish(command("--resume", str(folder)))
            same = weights(folder) == expected
            identical += same
            verdict = "identical" if same else "DIFFERENT"
            print(f"kill {trial:>2} at {moment:5.2f} s, {found}: {verdict}", flush=True)
    print(f"{identical} of {given.kills} runs ended bit-identical to the undisturbed one")
    return 0 if identical == given.kills else 1


if __name__ == "__main__":
    sys.exit(main())
