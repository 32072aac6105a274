"""Training by JAX and XLA with the hand-written gradients: on CPUs, GPUs and TPUs.

    import handgrad.jax

    step = jax.jit(handgrad.jax.step(model, loss, optimizer))
    state = handgrad.jax.init(model, optimizer)
    state, metrics = step(state, (x, targets))
    handgrad.jax.load(model, state)

`step` is a pure function, in which the references of all ops run on JAX's arrays; `shard` lays a
state out over a mesh of devices. docs/jax.md says more. Needs JAX: `pip install 'handgrad[jax]'`.
"""

try:
    from handgrad.jax.sharding import RULES, shard, share
    from handgrad.jax.state import State, init, load
    from handgrad.jax.stepping import Metrics, forward, step
except ModuleNotFoundError as error:
    if error.name != "jax":
        raise
    raise ModuleNotFoundError(
        "handgrad.jax needs JAX; install it with: pip install 'handgrad[jax]'", name="jax"
    ) from None

__all__ = ["RULES", "Metrics", "State", "forward", "init", "load", "shard", "share", "step"]
