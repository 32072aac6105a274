"""The machine's own limit: multiply-adds in registers, on all the threads of a comparison.

    python -m benchmarks.peak [SECONDS]

The meter is part of handgrad's native module and uses its instruction set; for bf16 that is the
unit that `hg.matmul` multiplies with (`bf16_unit`: amx or avx512_bf16).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any

from benchmarks.bursts import ROOT, environment


def measure(threads: int, seconds: float) -> dict[str, Any]:
    """FLOP/s for each precision, and the bf16 unit; only `missing` where there is no meter."""
    command = [sys.executable, "-m", "benchmarks.peak", str(seconds)]
    found = subprocess.run(
        command, cwd=ROOT, env=environment(threads), check=True, capture_output=True, text=True
    )
    read: dict[str, Any] = json.loads(found.stdout)
    return read


def highest(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """The better of two measurements, before and after a run: a limit is what was once reached."""
    return {
        name: max(value, second[name]) if isinstance(value, float) else value
        for name, value in first.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peak", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("seconds", type=float, nargs="?", default=0.5, help="for each precision")
    seconds = parser.parse_args().seconds
    if not seconds > 0:
        parser.error(f"seconds is {seconds:g}; allowed: more than 0")
    from handgrad import dispatch, kernels

    native = kernels.native
    if native is None or not hasattr(native, "peak"):
        reason = kernels.reason or "this build of handgrad has no peak meter"
        print(json.dumps({"missing": f"percent of peak is left out: {reason}"}))
        return
    unit = native.bf16_unit
    precisions = ["float32"] + (["bf16"] if unit != "none" else [])
    found = {name: max(native.peak(name, seconds / 5) for _ in range(5)) for name in precisions}
    # dispatch has read HANDGRAD_THREADS: the native module alone would take every core.
    print(json.dumps({**found, "bf16_unit": unit, "threads": dispatch.get_threads()}))


if __name__ == "__main__":
    main()
