"""A forked child computes: fork after the pool has started, while others compute, in any way."""

from __future__ import annotations

import os

import pytest

from tests.threads.program import needs_kernels, needs_linux, run

pytestmark = [needs_kernels, needs_linux, pytest.mark.slow]

#: Forks while threads compute; HANDGRAD_FORKS sets another number.
FORKS = os.environ.get("HANDGRAD_FORKS", "60")

WHILE_OTHERS_COMPUTE = """
import os
import signal
import sys
import threading
import time
import numpy as np
import handgrad as hg

rng = np.random.default_rng(0)
a, x = rng.standard_normal((300, 200), np.float32), rng.standard_normal((200, 150), np.float32)
layer = hg.Dense(200, 150, activation="tanh", rng=rng)
expected = hg.matmul(a, x).tobytes(), layer.forward(a)[0].tobytes()
stop = threading.Event()

def compute():
    while not stop.is_set():
        assert hg.matmul(a, x).tobytes() == expected[0]

def allocate():
    sizes = np.random.default_rng(threading.get_ident())
    while not stop.is_set():
        hg.ops.relu.forward(np.ones(int(sizes.integers(1, 100_000)), np.float32))

threads = [threading.Thread(target=work) for work in (compute, compute, allocate, allocate)]
for thread in threads:
    thread.start()
faults = []
for number in range(int(sys.argv[1])):
    child = os.fork()
    if child == 0:
        right = hg.matmul(a, x).tobytes(), layer.forward(a)[0].tobytes()
        os._exit(0 if right == expected else 1)
    end = time.monotonic() + 300
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            break
        time.sleep(0.0005)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        status = "hangs"
    if status != 0:
        faults.append((number, status))
stop.set()
for thread in threads:
    thread.join()
assert not faults, faults
"""


@pytest.mark.parametrize("threads", ["1", "2", "4"])
def test_every_child_computes_while_threads_of_its_parent_did(threads: str) -> None:
    run("-c", WHILE_OTHERS_COMPUTE, FORKS, HANDGRAD_THREADS=threads)


BEGIN = """
import multiprocessing
import os
import sys
import threading
import numpy as np
import handgrad as hg

rng = np.random.default_rng(0)
a = rng.standard_normal((300, 300), np.float32)

def product(_=None):
    return hg.matmul(a, a).tobytes()

def fork_and_check(expected, settings):
    child = os.fork()
    if child == 0:
        found = hg.get_engine(), hg.get_threads()
        os._exit(0 if product() == expected and found == settings else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""

CASES = {
    "after the pool has started": """
expected = product()
for _ in range(5):
    fork_and_check(expected, ("auto", 2))
assert product() == expected
""",
    "before the pool has started": """
with hg.threads(1):
    expected = product()
fork_and_check(expected, ("auto", 2))
assert product() == expected
""",
    "in a thread": """
expected = product()
thread = threading.Thread(target=fork_and_check, args=(expected, ("auto", 2)))
thread.start()
thread.join()
assert product() == expected
""",
    "within a block": """
expected = product()
with hg.engine("kernels"), hg.threads(3):
    fork_and_check(expected, ("kernels", 3))
fork_and_check(expected, ("auto", 2))
""",
    "a child of a child": """
expected = product()
child = os.fork()
if child == 0:
    assert product() == expected
    fork_and_check(expected, ("auto", 2))
    os._exit(0 if product() == expected else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
""",
    "workers forked before requests, as gunicorn does": """
expected = product()
model = hg.MLP((300, 64, 10), rng=rng)
answer = model.forward(a)[0].tobytes()
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        right = all(model.forward(a)[0].tobytes() == answer for _ in range(50))
        os._exit(0 if right else 1)
    children.append(child)
for child in children:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
""",
    "in a handler of a signal amid a kernel": """
import signal
expected = product()
large = rng.standard_normal((2500, 2500), np.float32)
parent = os.getpid()
statuses = []

def fork(number, frame):
    child = os.fork()
    if child == 0:
        with hg.threads(1):
            assert product() == expected
        return
    statuses.append(child)

signal.signal(signal.SIGUSR1, fork)
threading.Timer(0.2, os.kill, (parent, signal.SIGUSR1)).start()
outcome = 0
try:
    while not statuses and os.getpid() == parent:
        hg.matmul(large, large)
except RuntimeError as error:  # the child, whose kernel lost its threads
    outcome = 0 if "forked" in str(error) else 1
if os.getpid() != parent:
    os._exit(outcome if product() == expected else 1)
assert os.waitstatus_to_exitcode(os.waitpid(statuses[0], 0)[1]) == 0
""",
}


@pytest.mark.parametrize("case", CASES)
def test_a_child_computes(case: str) -> None:
    run("-c", BEGIN + CASES[case], HANDGRAD_THREADS="2")


MULTIPROCESSING = """
import multiprocessing
import sys
import numpy as np
import handgrad as hg

def product(seed):
    a = np.random.default_rng(seed).standard_normal((200, 200), np.float32)
    return hg.matmul(a, a).tobytes()

if __name__ == "__main__":
    expected = [product(seed) for seed in range(4)]
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        assert pool.map(product, range(4)) == expected
"""


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_processes_of_multiprocessing_compute(method: str, tmp_path: object) -> None:
    program = f"{tmp_path}/program.py"
    with open(program, "w", encoding="utf-8") as file:
        file.write(MULTIPROCESSING)
    run(program, method, HANDGRAD_THREADS="2")
