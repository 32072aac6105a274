"""The cost model of many ranks, and the page that it writes."""

from __future__ import annotations

import time

import numpy as np
import pytest

import handgrad as hg
from benchmarks.cluster import plan
from benchmarks.cluster.cost import (
    Layout,
    Machine,
    exposed,
    pays_to,
    step,
    strong,
    sum_seconds,
    weak,
)
from benchmarks.cluster.delayed import Delayed

MACHINE = Machine("node", 1e12, 1e11, 1e-5, 1e-10)
LAYOUT = Layout("small", width=256, blocks=4, steps=128, vocabulary=1000)


def test_a_layout_has_the_parameters_and_flops_of_the_model() -> None:
    rng = np.random.default_rng(0)
    model = hg.GPT(1000, context=128, width=256, heads=4, blocks=4, rng=rng)
    assert model.parameters.keys()
    assert LAYOUT.parameters == sum(array.size for array in model.parameters.values())
    products = 2 * 128 * (4 * 12 * 256**2 + 1000 * 256 + 4 * 2 * 128 * 256)
    assert LAYOUT.flops == pytest.approx(3 * products)


def test_the_sum_is_that_of_a_scatter_and_a_gather() -> None:
    assert sum_seconds(1e6, 1, MACHINE) == 0
    assert sum_seconds(1e6, 2, MACHINE) == pytest.approx(2e-5 + 1e-4)
    assert sum_seconds(1e6, 5, MACHINE) == pytest.approx(6e-5 + 1.6e-4)


def test_what_is_exposed_is_what_a_queue_leaves() -> None:
    """By small steps of time, in which the network works at the first bucket that is ready."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        ready = np.sort(rng.integers(0, 100, 6))
        sums = rng.integers(1, 40, 6)
        left, now = sums.tolist(), 0
        while any(left):
            first = next(i for i, each in enumerate(left) if each)
            if ready[first] <= now:
                left[first] -= 1
            now += 1
        assert exposed(ready.tolist(), sums.tolist(), 100) == max(0, now - 100)


def test_overlap_hides_and_ranks_cost() -> None:
    alone = step(LAYOUT, 8, 1, MACHINE)
    assert alone.exposed == alone.small == 0
    assert strong(LAYOUT, 64, 1, MACHINE) == weak(LAYOUT, 8, 1, MACHINE) == 1
    for ranks in (2, 8, 64):
        hidden = step(LAYOUT, 8, ranks, MACHINE)
        apart = step(LAYOUT, 8, ranks, MACHINE, overlap=False)
        assert hidden.exposed < apart.exposed
        assert hidden.compute == apart.compute == alone.compute
    efficiencies = [strong(LAYOUT, 64, 2**i, MACHINE) for i in range(7)]
    assert efficiencies == sorted(efficiencies, reverse=True)
    limit = pays_to(LAYOUT, 64, 64, MACHINE)
    assert strong(LAYOUT, 64, limit, MACHINE) >= 0.5 > strong(LAYOUT, 64, 2 * limit, MACHINE)


class _Done:
    def Iallreduce(self, in_place: object, bucket: np.ndarray) -> _Done:  # noqa: N802
        return self

    def Test(self) -> bool:  # noqa: N802
        return True

    def Wait(self) -> None:  # noqa: N802
        return None


def test_a_delayed_sum_is_not_done_before_its_time() -> None:
    communicator = Delayed(_Done(), 0.02, 1e-3)
    began = time.perf_counter()
    requests = [communicator.Iallreduce(None, np.zeros(10, np.uint8)) for _ in range(2)]
    assert not requests[1].Test()
    for request in requests:
        request.Wait()
    assert time.perf_counter() - began >= 2 * (0.02 + 0.01)
    assert requests[1].Test()
    assert [call.size for call in communicator.calls] == [10, 10]
    assert all(call.done > call.left for call in communicator.calls)


def test_the_page_is_the_plan_of_the_measurements() -> None:
    text = plan.PAGE.read_text("utf-8")
    assert plan.page(text, plan.measured()) == text
