"""Ctrl-C ends a long kernel within a second, and the next call works."""

from __future__ import annotations

import pytest

from tests.threads.program import needs_kernels, needs_linux, run

pytestmark = [needs_kernels, needs_linux, pytest.mark.slow]

PROGRAM = """
import os
import signal
import threading
import time
import numpy as np
import handgrad as hg
from handgrad.training.step import TrainingStep

rng = np.random.default_rng(0)
def arrays(*shapes):
    return [rng.standard_normal(shape, np.float32) * np.float32(0.05) for shape in shapes]

def product():
    a = np.ones((5000, 5000), np.float32)
    return lambda: hg.matmul(a, a)

def lstm():
    x, *weights = arrays((64, 300, 256), (2048, 256), (2048, 512), (2048,), (2048,))
    return lambda: hg.ops.lstm.forward(x, *weights)

def one_sequence():
    x, *weights = arrays((1, 20000, 256), (2048, 256), (2048, 512), (2048,), (2048,))
    return lambda: hg.ops.lstm.forward(x, *weights)

def convolution():
    x, weight = arrays((1, 128, 700, 700), (128, 128, 3, 3))
    return lambda: hg.ops.conv2d.forward(x, weight, padding=1)

def attention():
    q, k, v = arrays(*[(1, 2, 12000, 64)] * 3)
    return lambda: hg.ops.attention.forward(q, k, v)

def pooling():
    x, = arrays((1, 1, 900, 900))
    return lambda: hg.ops.max_pool2d.forward(x, 300, 1)

def captured():
    import handgrad.training.step as module
    module.MOST_BYTES = 1 << 40
    model = hg.MLP((800, 800, 10), rng=rng)
    step = TrainingStep(model, hg.losses.CrossEntropy(), model.bind().zeros_like())
    x, target = rng.standard_normal((20000, 800), np.float32), rng.integers(0, 10, 20000)
    step((x,), target)
    assert step.captures == 1
    return lambda: step((x,), target)

call = {name}()
calls = 0
sent = []
def send():
    # In the time of all threads of this process, which neighbours of the machine do not count in.
    sent.append(time.process_time())
    os.kill(os.getpid(), signal.SIGINT)

a, = arrays((300, 300))
expected = hg.matmul(a, a).tobytes()
try:
    threading.Timer(0.5, send).start()
    while calls < 1000:
        call()
        calls += 1
except KeyboardInterrupt:
    print(time.process_time() - sent[0])
assert hg.matmul(a, a).tobytes() == expected
"""


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize(
    "name",
    ["product", "lstm", "one_sequence", "convolution", "attention", "pooling", "captured"],
)
def test_ctrl_c_ends_a_long_kernel(name: str, threads: str) -> None:
    late = float(run("-c", PROGRAM.replace("{name}", name), HANDGRAD_THREADS=threads))
    assert late < 5


HANDLER = """
import os
import signal
import threading
import numpy as np
import handgrad as hg

rng = np.random.default_rng(0)
a = rng.standard_normal((3000, 3000), np.float32)
small = rng.standard_normal((200, 200), np.float32)
x = rng.standard_normal((32, 100, 64), np.float32)
weights = [rng.standard_normal(shape, np.float32) for shape in ((512, 64), (512, 128))]
expected, expected_small = hg.matmul(a, a).tobytes(), hg.matmul(small, small).tobytes()
expected_lstm = hg.ops.lstm.forward(x, *weights)[0][0].tobytes()
handled = 0

def handle(number, frame):
    global handled
    assert hg.get_threads() == {threads} and hg.get_precision() == "float32"
    assert hg.matmul(small, small).tobytes() == expected_small
    assert hg.ops.lstm.forward(x, *weights)[0][0].tobytes() == expected_lstm
    handled += 1

signal.signal(signal.SIGUSR1, handle)
stop = threading.Event()

def send():
    sent = 0
    while not stop.wait(0.06):
        if handled == sent:
            os.kill(os.getpid(), signal.SIGUSR1)
            sent += 1

thread = threading.Thread(target=send)
thread.start()
calls = 0
while handled < 8 and calls < 100:
    assert hg.matmul(a, a).tobytes() == expected
    calls += 1
stop.set()
thread.join()
assert handled >= 8
"""


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_handler_may_compute_amid_a_kernel(threads: str) -> None:
    run("-c", HANDLER.replace("{threads}", threads), HANDGRAD_THREADS=threads)


WHOLE = """
import os
import signal
import threading
import numpy as np
import handgrad as hg

parameters = {"weight": np.zeros(50_000_000, np.float32)}
gradients = {"weight": np.ones(50_000_000, np.float32)}
optimizer = hg.optimizers.SGD(lr=1.0)
try:
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    while True:
        optimizer.step(parameters, gradients)
except KeyboardInterrupt:
    pass
assert parameters["weight"].min() == parameters["weight"].max()
"""


def test_a_step_of_an_optimizer_is_done_as_a_whole() -> None:
    run("-c", WHOLE, HANDGRAD_THREADS="2")
