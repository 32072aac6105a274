"""Memory that runs out in a kernel is a MemoryError; memory kept for later is given back."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.threads.memory_program import CASES
from tests.threads.program import needs_kernels, needs_linux, run

pytestmark = [needs_kernels, needs_linux, pytest.mark.slow]

compiler = shutil.which("cc")
needs_compiler = pytest.mark.skipif(compiler is None, reason="no C compiler")


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that makes allocations fail."""
    library = tmp_path_factory.mktemp("faults") / "failing_memory.so"
    source = Path(__file__).with_name("failing_memory.c")
    command = [str(compiler), "-O1", "-shared", "-fPIC", str(source), "-o", str(library), "-ldl"]
    subprocess.run(command, check=True)
    return library


def fail_all(faults: Path, *arguments: str) -> list[int]:
    """The numbers of failed allocations and of those that raised, for each number of threads."""
    program = ("-m", "tests.threads.memory_program", str(faults), *arguments)
    return [int(word) for word in run(*program, LD_PRELOAD=str(faults)).split()]


@needs_compiler
@pytest.mark.parametrize("name", CASES)
def test_every_allocation_of_a_call_may_fail(faults: Path, name: str) -> None:
    assert min(fail_all(faults, name, "same", "1", "2")) > 0


@needs_compiler
@pytest.mark.parametrize("name", ["matmul", "lstm"])
def test_every_allocation_of_the_first_call_may_fail(faults: Path, name: str) -> None:
    """Threads that cannot be started are done without."""
    failed, raised = fail_all(faults, name, "fresh", "3")
    assert failed > raised > 0


SPARE = """
import resource
import numpy as np
import handgrad as hg
a = np.ones((3000, 3000), np.float32)
b = np.random.default_rng(0).standard_normal((300, 300)).astype(np.float32)
expected = hg.matmul(b, b).tobytes()
outcomes = []
for spare in (1, 5, 20, 36, 37, 38, 40, 42, 45, 50, 300):
    hg.release_memory()
    with open("/proc/self/status") as file:
        used = next(int(line.split()[1]) << 10 for line in file if line.startswith("VmSize"))
    resource.setrlimit(resource.RLIMIT_AS, (used + (spare << 20), resource.RLIM_INFINITY))
    try:
        assert hg.matmul(a, a)[0, 0] == 3000
        outcomes.append("right")
    except MemoryError as error:
        assert "could not get" in str(error) or "allocate" in str(error), error
        outcomes.append("MemoryError")
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert hg.matmul(b, b).tobytes() == expected
assert outcomes[0] == "MemoryError" and outcomes[-1] == "right", outcomes
"""


@pytest.mark.parametrize("threads", ["1", "2", "8"])
def test_a_product_with_little_memory_to_spare(threads: str) -> None:
    run("-c", SPARE, HANDGRAD_THREADS=threads)


START = """
import resource
import numpy as np
import handgrad as hg
a = np.random.default_rng(0).standard_normal((700, 700)).astype(np.float32)
with hg.threads(1):
    expected = hg.matmul(a, a).tobytes()
soft, hard = resource.getrlimit(resource.RLIMIT_AS)
with open("/proc/self/status") as file:
    used = next(int(line.split()[1]) << 10 for line in file if line.startswith("VmSize"))
resource.setrlimit(resource.RLIMIT_AS, (used + (20 << 20), hard))
with hg.threads(64):
    assert hg.matmul(a, a).tobytes() == expected
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert hg.matmul(a, a).tobytes() == expected
"""


def test_threads_that_cannot_be_started_are_done_without() -> None:
    run("-c", START)


PEAK = """
import numpy as np
import handgrad as hg

def used():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS"))

x, small = np.ones((1000, 50_000), np.float32), np.ones((64, 64), np.float32)
before = used()
kept = [hg.ops.relu.forward(x)[0] for _ in range(5)]
peak = used()
del kept
{after}
assert peak > before + 900, (before, peak)
assert used() < before + 60, (before, used())
"""


@pytest.mark.parametrize(
    "after",
    [
        "hg.release_memory()",
        "while used() >= before + 60: hg.matmul(small, small)",
    ],
    ids=["release_memory", "small work"],
)
def test_a_peak_is_given_back(after: str) -> None:
    run("-c", PEAK.format(after=after))


SCRATCH = """
import numpy as np
import handgrad as hg

def used():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS"))

weight = np.ones((4, 4, 3, 3), np.float32)
x = np.ones((4, 4, 2000, 2000), np.float32)
before = used()
for _ in range(3):
    hg.ops.conv2d.forward(x, weight, padding=1)
hg.release_memory()
assert used() < before + 60, (before, used())
"""


def test_workspace_of_threads_is_given_back() -> None:
    run("-c", SCRATCH, HANDGRAD_THREADS="4")


STEADY = """
import resource
import numpy as np
import handgrad as hg

model = hg.MLP((784, 512, 512, 10), rng=np.random.default_rng(0))
x = np.ones((128, 784), np.float32)

def step():
    y, cache = model.forward(x, training=True)
    model.backward(y, cache)

for _ in range(3):
    step()

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(60):
        step()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

# The system may take pages back, or move them, while neighbours need memory: not each time.
assert any(faults() < 100 for _ in range(5))
"""


def test_steady_training_touches_no_fresh_pages() -> None:
    run("-c", STEADY)


SHAPES = """
import numpy as np
import handgrad as hg
from handgrad.training.step import TrainingStep

def used():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS"))

rng = np.random.default_rng(0)
model = hg.MLP((16, 64, 10), rng=rng)
step = TrainingStep(model, hg.losses.CrossEntropy(), model.bind().zeros_like())
sizes = []
for rows in range(1, 2001):
    step((rng.standard_normal((rows, 16), np.float32),), rng.integers(0, 10, rows))
    if rows % 200 == 0:
        sizes.append(used())
# The memory kept for reuse is the most: half of what was in use, or 32 MB.
assert max(sizes) - sizes[0] < 120, sizes
assert sizes[-1] < sizes[0] + 80, sizes
"""


def test_a_step_of_2000_batch_shapes_does_not_grow() -> None:
    run("-c", SHAPES)
