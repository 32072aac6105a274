"""The model of the product: its counts on a machine of round numbers, and the plans it reads."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from typing import Any

import pytest

from benchmarks import matmul, model
from benchmarks.bursts import ROOT
from handgrad import kernels

#: 1 GFLOP/s on two threads, vectors of 16 values, and a byte in a nanosecond at any size.
ENGINE = model.Engine(mr=14, nr=32, l2=1 << 20, threads=2, peak=1e9)
PLAN: dict[str, Any] = {
    "transposed": False,
    "a_in_place": False,
    "pack_a_once": True,
    "pack_b_once": False,
    "kc": 50,
    "nc": 32,
    "down": 2,
    "across": 2,
}


def costs(size: model.Size, **changed: Any) -> model.Costs:
    return model.costs(size, {**PLAN, **changed}, ENGINE, lambda size: 1e9)


def test_what_a_product_does_besides_multiply_adds_is_counted() -> None:
    m, n, k = 28, 48, 100
    ideal = 2e-9 * m * n * k
    found = costs((m, n, k))
    assert found.edges == pytest.approx(0)
    # A once, B by each of two rows of blocks; what is copied is read and written.
    assert found.packing * ideal == pytest.approx(4e-9 * 2 * (m * k + 2 * k * n))
    assert found.sums * ideal == pytest.approx(4e-9 * 2 * m * n)
    assert found.result * ideal == pytest.approx(4e-9 * m * n)
    # Two sweeps over B, which take less than the multiply-adds.
    assert found.streams == 0
    assert found.share == pytest.approx(
        1 / (1 + found.edges + found.packing + found.sums + found.result)
    )


def test_edges_are_of_vectors_and_of_threads() -> None:
    assert costs((28, 49, 100)).edges == pytest.approx(64 / 49 - 1)
    assert costs((28, 48, 100), down=3, across=1).edges == pytest.approx(4 / 3 - 1)


def test_a_product_of_few_rows_waits_for_its_right_operand() -> None:
    m, n, k = 1, 48, 100
    found = costs((m, n, k))
    assert found.streams * 2e-9 * m * n * k == pytest.approx(4e-9 * n * k - 2e-9 * m * n * k)


def test_a_transposed_product_is_counted_as_the_one_that_is_computed() -> None:
    assert costs((48, 28, 100), transposed=True) == costs((28, 48, 100))


@pytest.mark.skipif(kernels.native is None, reason="there are no kernels")
@pytest.mark.parametrize("size", list(product((1, 37, 1024), (1, 100, 2048), (1, 384, 2064))))
def test_every_product_has_a_plan_that_covers_it(size: model.Size) -> None:
    plan = kernels.native.plan_product(*size)
    m, n, k = size if not plan["transposed"] else (size[1], size[0], size[2])
    assert 1 <= plan["kc"] <= k + 7
    assert plan["nc"] >= 1
    assert plan["down"] <= m
    assert plan["across"] <= n
    assert not (plan["a_in_place"] and plan["pack_a_once"])
    assert model.described(plan).startswith(f"KC {plan['kc']}, NC {plan['nc']}, C")


@pytest.mark.skipif(kernels.native is None, reason="there are no kernels")
def test_a_size_that_is_none_is_one_sentence() -> None:
    with pytest.raises(ValueError, match="plan_product: a size is 0; allowed: 1 to"):
        kernels.native.plan_product(3, 0, 4)
    command = [sys.executable, "-m", "benchmarks.model", "3×4"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 2
    assert "a size is '3×4'; allowed: M×N×K such as 1024×768×512" in ended.stderr


@pytest.mark.parametrize("name", ["numpy", "blis"])
def test_a_library_of_products_runs_as_often_as_it_is_asked(name: str) -> None:
    if name not in matmul.always("float32"):
        pytest.skip("the system has no BLIS")
    job = getattr(matmul, name)([300, 200, 100], "float32")
    job.run(50)
    assert job.version
    assert matmul.always("bf16") == ()
