"""Training on 8 devices as on one: a program, because JAX counts its devices once.

XLA_FLAGS=--xla_force_host_platform_device_count=8 python -m tests.jax.sharded
"""

from __future__ import annotations

import jax

import handgrad.jax as hgj
from handgrad.optimizers import Momentum
from tests.jax.cases import CASES
from tests.tolerances import assert_close

#: Models, and the devices along the axes "data" and "model" of their meshes.
MESHES = {
    "mlp": [(8, 1)],
    "batch-norm": [(8, 1)],
    "gpt": [(4, 2)],
}


def main() -> None:
    """Print the share of the parameters on a device, where steps are those of one device."""
    for case, meshes in MESHES.items():
        model, loss, inputs, targets = CASES[case]()
        batch = jax.tree.map(lambda array: array.repeat(2, axis=0), (inputs, targets))
        optimizer = Momentum(0.1)
        pure = hgj.step(model, loss, optimizer)
        alone, state = jax.jit(pure), hgj.init(model, optimizer)
        for _ in range(3):
            state, metrics = alone(state, batch)
        for sizes in meshes:
            mesh = jax.make_mesh(sizes, ("data", "model"))
            together = hgj.shard(hgj.init(model, optimizer), mesh)
            places = jax.tree.map(lambda array: array.sharding, together)
            step = jax.jit(pure, out_shardings=(places, None))
            for _ in range(3):
                together, found = step(together, hgj.share(batch, mesh))
            assert step._cache_size() == 1
            assert_close(found.loss, metrics.loss, "other arrays", f"{case}: loss")
            for name, array in state.parameters.items():
                assert_close(together.parameters[name], array, "other arrays", f"{case}: {name}")
            parts = [array.addressable_shards[0].data for array in together.parameters.values()]
            whole = sum(array.size for array in state.parameters.values())
            print(case, *sizes, sum(part.size for part in parts) / whole)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_disable_most_optimizations", True)
    main()
