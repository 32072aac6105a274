"""Mutation testing: small wrong changes to ops, kernels and layers that the tests notice.

    python -m tests.mutation --count 300 --seed 0 [--part ops] [--build]

Each mutant is one changed operator, sign, index or constant in a copy of the sources. The tests
that belong to its file run on it, and all quick ones where these pass. A mutant that no test
notices is printed, as is one that is only noticed by tests that do not end. Those of C++ are drawn
with --build, which needs CMake, Ninja, ccache and a compiler. Exit code 1 where more than one in a
hundred survived, 2 where the tests do not pass on the unchanged copy.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.mutation.mutants import Mutant, of_cpp, of_python

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = Path("src/handgrad")
#: C++ whose mathematics tests cover; the rest of core decides in which order, not what.
MATHS: Final = (
    "elementwise/activation.h",
    "gemm/epilogue.h",
    "rowwise/row_norm.h",
    "rowwise/rows.h",
    "elementwise/sweep.h",
    "simd/vectormath.h",
    "conv/pooling.h",
    "recurrent/decoder_cells.h",
    "recurrent/decoder_scores.h",
    "attention/state_attention.h",
)
#: Seconds for the tests of one file, of one part, and for all: several times what they take. A
#: mutant that loops for ever is noticed too.
PATIENCE: Final = (600, 2400, 7200)
WHOLE: Final = ["tests", "-n", "2"]
#: Mutants after which the counts so far are printed.
REPORT_EVERY: Final = 20


def candidates(part: str, builds: bool) -> list[Mutant]:
    """Every mutant of one part of the package; those of C++ where it can be built."""
    folder = ROOT / PACKAGE / part
    found = [m for file in sorted(folder.glob("*.py")) for m in of_python(file)]
    if part == "kernels":
        files = [*sorted(folder.glob("*.cpp")), *(folder / "core" / name for name in MATHS)]
        cpp = [m for file in files for m in of_cpp(file)] if builds else []
        # As many of the few adapters as of the kernels themselves would say little.
        return [*random.sample(found, min(len(found), len(cpp) // 4 or len(found))), *cpp]
    return found


def _tests_of(mutant: Mutant) -> list[list[str]]:
    """The arguments of pytest, quickest first."""
    name = mutant.file.stem
    part = mutant.file.relative_to(ROOT / PACKAGE).parts[0]
    first = {
        "ops": ["tests/ops", "tests/losses", "tests/kernels", "-k", name],
        "kernels": ["tests/ops", "tests/kernels", "tests/optimizers", "tests/models", "-k", name],
        "layers": [f"tests/layers/test_{name}.py", "tests/layers/test_gradients.py"],
    }[part]
    paths = [each for each in first if not each.startswith("tests/") or (ROOT / each).exists()]
    return [paths, ["tests/ops", "tests/kernels", "tests/layers"], WHOLE]


class Copy:
    """A copy of the project in which one file at a time is wrong."""

    def __init__(self, folder: Path, build: Path | None) -> None:
        self.folder = folder
        ignored = shutil.ignore_patterns(
            ".git", "build", "__pycache__", ".venv", "runs", ".*_cache"
        )
        shutil.copytree(ROOT, folder, ignore=ignored, dirs_exist_ok=True)
        self.build = None
        if build is not None:
            self.build = folder / "build"
            subprocess.run(
                [
                    "cmake",
                    "-S",
                    folder,
                    "-B",
                    self.build,
                    "-G",
                    "Ninja",
                    f"-DPython_EXECUTABLE={sys.executable}",
                    "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache",
                ],
                check=True,
                stdout=subprocess.DEVNULL,
            )
            self.compile()

    def compile(self) -> bool:
        from handgrad import kernels

        module = kernels.INSTRUCTION_SETS[kernels.instruction_set]
        made = subprocess.run(["ninja", "-C", str(self.build), module], capture_output=True)
        if made.returncode == 0:
            for file in (self.build or self.folder).glob(f"{module}*.so"):
                shutil.copy(file, self.folder / PACKAGE / "kernels")
        return made.returncode == 0

    def judge(self, mutant: Mutant) -> str:
        """`killed`, `endless`, `survived`, or `invalid` where it does not compile."""
        target = self.folder / mutant.file.relative_to(ROOT)
        right = target.read_text("utf-8")
        target.write_text(mutant.text(), "utf-8")
        try:
            if target.suffix != ".py" and not self.compile():
                return "invalid"
            for tests, patience in zip(_tests_of(mutant), PATIENCE, strict=True):
                verdict = self.run(tests, patience)
                if verdict != "survived":
                    return verdict
            return "survived"
        finally:
            target.write_text(right, "utf-8")

    def run(self, tests: list[str], patience: float) -> str:
        """The outcome of the copy as it is; see `judge`."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.folder / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        command += ["-m", "not slow", *tests]
        try:
            ran = subprocess.run(
                command, cwd=self.folder, env=environment, capture_output=True, timeout=patience
            )
        except subprocess.TimeoutExpired:
            return "endless"
        return "survived" if ran.returncode in (0, 5) else "killed"  # 5: no test of this name


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", choices=("ops", "kernels", "layers"), action="append")
    parser.add_argument("--build", action="store_true", help="compile mutants of C++ too")
    options = parser.parse_args()
    random.seed(options.seed)
    parts = options.part or ["ops", "kernels", "layers"]
    queues = {part: candidates(part, options.build) for part in parts}
    for queue in queues.values():
        random.shuffle(queue)
    counts = dict.fromkeys(("killed", "endless", "survived", "invalid"), 0)
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder), Path(folder) if options.build else None)
        if copy.run(WHOLE, PATIENCE[-1]) != "survived":
            print("the tests fail before anything is changed; they must pass", file=sys.stderr)
            return 2
        while sum(counts.values()) - counts["invalid"] < options.count and any(queues.values()):
            part = parts[sum(counts.values()) % len(parts)]
            if not queues[part]:
                parts.remove(part)
                continue
            mutant = queues[part].pop()
            verdict = copy.judge(mutant)
            counts[verdict] += 1
            if verdict != "killed":
                print(f"{verdict}: {mutant.describe(ROOT)}", flush=True)
            if sum(counts.values()) % REPORT_EVERY == 0:
                print(
                    ", ".join(f"{count} {verdict}" for verdict, count in counts.items()), flush=True
                )
    judged = sum(counts.values()) - counts["invalid"]
    killed = counts["killed"] + counts["endless"]
    print(f"{killed} of {judged} mutants killed, {counts['invalid']} did not compile")
    return int(counts["survived"] * 100 > judged)


if __name__ == "__main__":
    sys.exit(main())
