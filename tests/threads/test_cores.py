"""The number of threads where nobody says one, and numbers that are none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import handgrad as hg
from handgrad import kernels
from handgrad.dispatch import cores
from handgrad.errors import ArgumentError
from tests.threads.program import needs_kernels, needs_linux, run

SAY = "import handgrad as hg; print(hg.get_threads())"
AVAILABLE = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


@needs_kernels
@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"HANDGRAD_THREADS": "3"}, 3),
        ({"HANDGRAD_THREADS": "3", "OMP_NUM_THREADS": "5"}, 3),
        ({"HANDGRAD_THREADS": "0001024"}, 1024),
        ({"OMP_NUM_THREADS": "5"}, 5),
        ({"OMP_NUM_THREADS": " 4,2"}, 4),
    ],
    ids=str,
)
def test_the_environment_says(environment: dict[str, str], expected: int) -> None:
    assert int(run("-c", SAY, **environment)) == expected


@needs_kernels
@needs_linux
@pytest.mark.parametrize("wrong", ["", "0", "-1", "many", "1e3", "99999999999", ",2"])
def test_a_wrong_omp_num_threads_says_nothing(wrong: str) -> None:
    assert int(run("-c", SAY, OMP_NUM_THREADS=wrong)) <= AVAILABLE


@pytest.mark.parametrize(
    "wrong", ["", "0", "-1", "1025", "1000000", str(2**63), "9" * 10_000, "many", "3.5", "²", " 2"]
)
def test_a_wrong_handgrad_threads_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    monkeypatch.setenv("HANDGRAD_THREADS", wrong)
    with pytest.raises(
        ArgumentError, match=r"HANDGRAD_THREADS is .*; allowed: a whole number from"
    ):
        cores.default_threads()


@pytest.mark.parametrize(
    "wrong",
    [0, -1, 1025, 10**6, 2**63, 10**400, "many", "2", 3.5, True, None, [2], float("nan")],
    ids=lambda wrong: repr(wrong)[:20],
)
def test_a_wrong_number_is_one_sentence(wrong: Any) -> None:
    for call in (hg.set_threads, hg.threads):
        with pytest.raises(
            ArgumentError, match=r"threads is .*; allowed: a whole number from 1 to"
        ):
            call(wrong)


@needs_kernels
def test_the_most_threads_work() -> None:
    program = """
import numpy as np
import handgrad as hg
a = np.random.default_rng(0).standard_normal((400, 400)).astype(np.float32)
with hg.threads(1):
    expected = hg.matmul(a, a).tobytes()
with hg.threads(1024):
    assert hg.matmul(a, a).tobytes() == expected
assert hg.matmul(a, a).tobytes() == expected
"""
    run("-c", program)


@needs_kernels
@needs_linux
def test_affinity_is_honoured_at_the_start() -> None:
    core = min(os.sched_getaffinity(0))
    program = f"import os; os.sched_setaffinity(0, {{{core}}}); {SAY}"
    assert int(run("-c", program)) == 1


FOLLOW = """
import os
import time
import numpy as np
import handgrad as hg
from handgrad.dispatch import cores

a = np.ones((400, 400), np.float32)
hg.matmul(a, a)
before = os.sched_getaffinity(0)
one = {min(before)}

def masks():
    hg.matmul(a, a)
    return [os.sched_getaffinity(int(task)) for task in os.listdir("/proc/self/task")]

for allowed in (one, before):
    os.sched_setaffinity(0, allowed)
    time.sleep(1.2)
    with hg.threads(len(before)):
        assert all(mask == allowed for mask in masks()), masks()
    # In a container the control group may allow fewer cores than there are.
    expected = min(len(allowed), cores.default_threads()[0] or len(allowed))
    assert hg.get_threads() == expected, hg.get_threads()
"""


@needs_kernels
@needs_linux
def test_affinity_is_followed_by_the_workers() -> None:
    run("-c", FOLLOW, OPENBLAS_NUM_THREADS="1")


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 0),
        ({"proc/self/cgroup": "0::/\n"}, 0),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, 0),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 2),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "5000 100000\n"}, 1),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/b/cpu.max": "800000 100000\n",
                "sys/fs/cgroup/a/cpu.max": "300000 100000\n",
            },
            3,
        ),
        (
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/docker/x\n1:name=systemd:/docker/x\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "400000\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            },
            4,
        ),
        (
            {
                "proc/self/cgroup": "4:cpu:/x\n",
                "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000\n",
            },
            0,
        ),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "what 0\n"}, 0),
        ({"proc/self/cgroup": "nonsense\n"}, 0),
    ],
    ids=str,
)
def test_quotas_of_control_groups(tmp_path: Path, files: dict[str, str], expected: int) -> None:
    assert cores._quota(write(tmp_path, files)) == expected


@needs_kernels
def test_native_code_and_python_agree_on_the_most() -> None:
    assert kernels.native is not None
    assert kernels.native.most_threads == cores.MOST_THREADS
