"""Kernels and settings used by many threads and tasks at once: each case has a name."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad import dispatch, kernels
from handgrad.dispatch import settings as module
from handgrad.errors import ArgumentError, ShapeError
from handgrad.training.step import TrainingStep
from tests.threads.program import needs_kernels, run
from tests.tolerances import HANGS

pytestmark = pytest.mark.slow

needs_unit = pytest.mark.skipif(
    kernels.native is None or kernels.native.bf16_unit == "none", reason="no unit for bf16"
)


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """No case leaves other settings behind, for this thread or for the process."""
    before = dispatch.current_settings(), hg.get_threads()
    yield
    process = module._process
    # Put back first, so that one case that fails is one.
    module._set(before[0])
    assert process == before[0]
    assert (dispatch.current_settings(), hg.get_threads()) == before


def together(*works: Callable[[], Any]) -> list[Any]:
    """The results of these, begun at once in a thread each; an error in one is raised."""
    barrier = threading.Barrier(len(works))

    def begin(work: Callable[[], Any]) -> Any:
        barrier.wait(HANGS)
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return [future.result(HANGS) for future in [pool.submit(begin, work) for work in works]]


def arrays(*shapes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


# Settings.


def test_01_overlapping_blocks_of_engines_in_two_threads() -> None:
    first, second = threading.Event(), threading.Event()

    def early() -> str:
        with hg.engine("reference"):
            first.set()
            second.wait(HANGS)
        return hg.get_engine()

    def late() -> tuple[str, str]:
        first.wait(HANGS)
        with hg.engine("auto"):
            inside = hg.get_engine()
            second.set()
        return inside, hg.get_engine()

    assert together(early, late) == ["auto", ("auto", "auto")]


@needs_unit
def test_02_precision_in_one_thread_is_not_another_s() -> None:
    a, b = arrays((200, 200), (200, 200))
    exact = hg.matmul(a, b).tobytes()
    with hg.precision("bf16"):
        rounded = hg.matmul(a, b).tobytes()
    assert exact != rounded

    def work(name: str, expected: bytes) -> bool:
        with hg.precision(name):
            return all(hg.matmul(a, b).tobytes() == expected for _ in range(200))

    assert all(together(*(lambda: work("bf16", rounded), lambda: work("float32", exact)) * 2))


@needs_kernels
def test_03_numbers_of_threads_in_overlapping_blocks() -> None:
    a, b = arrays((300, 300), (300, 300))
    expected = hg.matmul(a, b).tobytes()

    def work(count: int) -> bool:
        right = True
        for _ in range(50):
            with hg.threads(count):
                right &= hg.get_threads() == count and hg.matmul(a, b).tobytes() == expected
        return right

    assert all(together(*(lambda count=count: work(count) for count in (1, 2, 3, 5))))


def test_04_overlapping_blocks_in_two_tasks() -> None:
    async def task(name: str, count: int) -> list[tuple[str, int]]:
        seen = []
        for _ in range(20):
            with hg.engine(name), hg.threads(count):
                await asyncio.sleep(0)
                seen.append(dispatch.current_settings()[::2])
            await asyncio.sleep(0)
        return seen

    async def both() -> Any:
        return await asyncio.gather(task("reference", 2), task("auto", 3))

    assert asyncio.run(both()) == [[("reference", 2)] * 20, [("auto", 3)] * 20]


def test_05_what_a_task_sets_stays_in_the_task() -> None:
    async def task() -> str:
        hg.set_engine("reference")
        return hg.get_engine()

    async def main() -> tuple[str, str]:
        return await asyncio.create_task(task()), hg.get_engine()

    assert asyncio.run(main()) == ("reference", "auto")


def test_06_what_a_thread_sets_stays_in_the_thread() -> None:
    def work() -> str:
        hg.set_engine("reference")
        return hg.get_engine()

    assert together(work) == ["reference"]
    assert hg.get_engine() == "auto"


def test_07_what_the_program_sets_holds_in_threads_that_run_already() -> None:
    begun, changed = threading.Event(), threading.Event()

    def work() -> tuple[str, str]:
        before = hg.get_engine()
        begun.set()
        changed.wait(HANGS)
        return before, hg.get_engine()

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        begun.wait(HANGS)
        hg.set_engine("reference")
        changed.set()
        assert future.result(HANGS) == ("auto", "reference")
    hg.set_engine("auto")


def test_08_a_block_is_not_seen_by_threads_started_in_it() -> None:
    with hg.engine("reference"):
        assert together(hg.get_engine) == ["auto"]


def test_09_a_copied_context_takes_the_block_along() -> None:
    with hg.engine("reference"):
        context = contextvars.copy_context()
        assert together(lambda: context.run(hg.get_engine)) == ["reference"]
        assert asyncio.run(asyncio.to_thread(hg.get_engine)) == "reference"


def test_10_a_setting_in_a_block_ends_with_the_block() -> None:
    with hg.threads(2):
        hg.set_engine("reference")
        with hg.engine("auto"):
            hg.set_threads(3)
        assert dispatch.current_settings()[::2] == ("reference", 2)
    assert hg.get_engine() == "auto"


def test_11_an_error_ends_the_block_too() -> None:
    with pytest.raises(ZeroDivisionError), hg.engine("reference"), hg.threads(7):
        raise ZeroDivisionError
    for wrong in (lambda: hg.engine("fast"), lambda: hg.threads(0), lambda: hg.precision("half")):
        with pytest.raises(ArgumentError):
            wrong()


# Kernels.


@needs_kernels
def test_12_one_product_in_many_threads() -> None:
    a, b = arrays((400, 300), (300, 500))
    expected = hg.matmul(a, b).tobytes()
    results = together(*[lambda: [hg.matmul(a, b).tobytes() for _ in range(20)]] * 8)
    assert {one for many in results for one in many} == {expected}


@needs_kernels
def test_13_different_ops_in_many_threads() -> None:
    x, weight, w_ih, w_hh = arrays((8, 12, 16, 16), (24, 12, 3, 3), (128, 16), (128, 32))
    sequence, q = arrays((16, 20, 16), (2, 3, 70, 32))
    calls = (
        lambda: hg.ops.conv2d.forward(x, weight)[0],
        lambda: hg.ops.lstm.forward(sequence, w_ih, w_hh)[0][0],
        lambda: hg.ops.attention.forward(q, q, q)[0],
        lambda: hg.ops.max_pool2d.forward(x, 2)[0],
        lambda: hg.ops.softmax.forward(q)[0],
        lambda: hg.matmul(q, q.swapaxes(-1, -2)),
    )
    expected = [call().tobytes() for call in calls]
    for _ in range(10):
        assert [y.tobytes() for y in together(*calls)] == expected


@needs_kernels
def test_14_backward_of_one_cache_in_many_threads() -> None:
    x, w_ih, w_hh = arrays((16, 20, 24), (160, 24), (160, 40))
    y, cache = hg.ops.lstm.forward(x, w_ih, w_hh)

    def backward() -> bytes:
        dx, dw_ih, *_ = hg.ops.lstm.backward(y, cache)
        return bytes(dx.tobytes() + dw_ih.tobytes())

    assert len(set(together(*[backward] * 6))) == 1


@needs_kernels
def test_15_small_calls_that_keep_the_gil_beside_large_ones() -> None:
    small, large = arrays((8, 8), (500, 500))
    expected = hg.ops.relu.forward(small)[0].tobytes(), hg.matmul(large, large).tobytes()
    results = together(
        lambda: {hg.ops.relu.forward(small)[0].tobytes() for _ in range(3000)},
        lambda: {hg.matmul(large, large).tobytes() for _ in range(20)},
        lambda: {hg.ops.relu.forward(small)[0].tobytes() for _ in range(3000)},
    )
    assert results == [{expected[0]}, {expected[1]}, {expected[0]}]


@needs_kernels
def test_16_models_train_in_threads_of_their_own() -> None:
    def train() -> bytes:
        rng = np.random.default_rng(3)
        model = hg.MLP((20, 64, 5), rng=rng)
        gradients = model.bind().zeros_like()
        step = TrainingStep(model, hg.losses.CrossEntropy(), gradients)
        optimizer = hg.optimizers.Adam()
        for _ in range(30):
            x, target = rng.standard_normal((32, 20), np.float32), rng.integers(0, 5, 32)
            step((x,), target)
            optimizer.step(model.bind(), gradients)
        return bytes(model.bind().buffer.tobytes())

    assert set(together(*[train] * 4)) == {train()}


@needs_kernels
def test_17_a_step_is_captured_while_others_compute() -> None:
    a, x = arrays((64, 64), (16, 8))
    stop = threading.Event()
    target = np.arange(16) % 3

    def capture() -> int:
        rng = np.random.default_rng(0)
        model = hg.MLP((8, 16, 3), rng=rng)
        step = TrainingStep(model, hg.losses.CrossEntropy(), model.bind().zeros_like())
        values = {float(step((x,), target)) for _ in range(200)}
        stop.set()
        assert len(values) == 1
        return len(step._captured[0].calls)

    def compute() -> None:
        while not stop.is_set():
            hg.matmul(a, a)
            hg.ops.relu.forward(a)

    assert together(capture, compute, compute)[0] == capture()


@needs_kernels
def test_18_errors_in_some_threads_and_results_in_others() -> None:
    a, b = arrays((300, 200), (200, 100))
    expected = hg.matmul(a, b).tobytes()
    weight = a[:50]

    def wrong() -> int:
        found = 0
        for _ in range(100):
            for call in (
                lambda: hg.matmul(a, a),
                lambda: hg.ops.embedding.forward(np.array([0, 70]), weight),
            ):
                try:
                    call()
                except (ShapeError, ArgumentError):
                    found += 1
        return found

    def right() -> bool:
        return all(hg.matmul(a, b).tobytes() == expected for _ in range(50))

    assert together(wrong, right, wrong, right) == [200, True, 200, True]


@needs_kernels
def test_19_threads_that_come_and_go() -> None:
    a, b = arrays((200, 200), (200, 200))
    expected = hg.matmul(a, b).tobytes()
    for _ in range(20):
        assert together(*[lambda: hg.matmul(a, b).tobytes()] * 4) == [expected] * 4


@needs_kernels
def test_20_arrays_of_one_thread_end_in_another() -> None:
    (x,) = arrays((300, 300))

    def make() -> list[Any]:
        return [hg.ops.relu.forward(x)[0] for _ in range(50)]

    for _ in range(10):
        lists = together(make, make, make)
        together(*(many.clear for many in lists), hg.release_memory)
        gc.collect()


@needs_kernels
def test_21_memory_is_released_while_others_compute() -> None:
    a, b = arrays((300, 300), (300, 300))
    expected = hg.matmul(a, b).tobytes()
    stop = threading.Event()

    def work() -> bool:
        right = all(hg.matmul(a, b).tobytes() == expected for _ in range(100))
        stop.set()
        return right

    def release() -> None:
        while not stop.is_set():
            hg.release_memory()

    assert together(work, work, release)[:2] == [True, True]


AT_EXIT = """
import threading
import numpy as np
import handgrad as hg

a = np.ones((600, 600), np.float32)

def work():
    while True:
        hg.matmul(a, a)

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
hg.matmul(a, a)
"""


@needs_kernels
def test_22_the_program_ends_while_threads_compute() -> None:
    for _ in range(3):
        run("-c", AT_EXIT, HANDGRAD_THREADS="2")
