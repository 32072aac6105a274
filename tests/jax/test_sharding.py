"""States and batches on several devices."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import ArgumentError
from tests.jax.cases import mlp

jax = pytest.importorskip("jax")
hgj = pytest.importorskip("handgrad.jax")

FLAGS = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}


@pytest.mark.slow
def test_8_devices_give_the_result_of_one() -> None:
    command = [sys.executable, "-m", "tests.jax.sharded"]
    done = subprocess.run(
        command, env={**os.environ, **FLAGS}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = [line.rpartition(" ") for line in done.stdout.splitlines()]
    shares = {name: float(share) for name, _, share in lines}
    assert shares["mlp 8 1"] == shares["batch-norm 8 1"] == 1.0
    assert shares["gpt 4 2"] < 0.7


def test_a_rule_that_does_not_fit_is_refused() -> None:
    model, _, _, _ = mlp()
    state = hgj.init(model, hg.optimizers.SGD())
    mesh = jax.make_mesh((1,), ("data",))
    with pytest.raises(ArgumentError, match=r"^jax.shard: linear1.weight of shape \(7, 5\): the "):
        hgj.shard(state, mesh, {"weight": ("model",)})
    with pytest.raises(ArgumentError, match=r"linear1.bias .*: the rule has 2 axes; allowed: at m"):
        hgj.shard(state, mesh, {"bias": ("data", None)})


def test_one_device() -> None:
    model, loss, inputs, targets = mlp()
    optimizer = hg.optimizers.Adam()
    mesh = jax.make_mesh((1, 1), ("data", "model"))
    state = hgj.shard(hgj.init(model, optimizer), mesh)
    for name, array in state.parameters.items():
        np.testing.assert_array_equal(array, model.parameters[name])
        assert array.sharding == state.slots["m"][name].sharding
    x, y = hgj.share((inputs, targets), mesh)
    assert len(x[0].sharding.device_set) == 1
    jax.jit(hgj.step(model, loss, optimizer))(state, (x, y))
