"""One training step in each library: forward, cross-entropy, backward, fused Adam."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from benchmarks import works
from benchmarks.bursts import compare
from benchmarks.contender import Job

LEARNING_RATE: Final = 1e-3
#: Steps before the first burst; their losses show that all contenders compute the same.
FIRST_STEPS: Final = 5
SAME_LOSS: Final = 1e-3


def measure(work: str, peers: Iterable[str], **settings: Any) -> dict[str, Any]:
    """handgrad and its peers on one work; `differs` names those whose losses are others."""
    contenders = [(name, {"work": work}) for name in ("handgrad", *peers)]
    found = compare(contenders, "benchmarks.steps", **settings)
    losses = {name: np.array(about["losses"]) for name, about in found["contenders"].items()}
    own = losses["handgrad"]
    found["differs"] = [
        name for name, theirs in losses.items() if not np.allclose(own, theirs, rtol=SAME_LOSS)
    ]
    return found


def _job(step: Callable[[], Any], wait: Callable[[Any], Any], **about: Any) -> Job:
    losses = tuple(float(step()) for _ in range(FIRST_STEPS))

    def run(count: int) -> None:
        for _ in range(count - 1):
            step()
        wait(step())

    return Job(run, losses=losses, **about)


def _first_parameters(described: works.Work) -> list[np.ndarray]:
    return list(described.handgrad(np.random.default_rng(0)).parameters.values())


def handgrad(work: str) -> Job:
    import handgrad as hg
    from handgrad.training.results import engine_name

    described = works.load(work)
    x, target = described.examples()
    model = described.handgrad(np.random.default_rng(0))
    parameters = model.bind()
    gradients = parameters.zeros_like()
    loss = hg.losses.CrossEntropy()
    optimizer = hg.optimizers.Adam(lr=LEARNING_RATE)

    def step() -> Any:
        y, cache = model.forward(x, training=True)
        value, loss_cache = loss.forward(y, target)
        dy = loss.backward(loss_cache)
        model.backward(dy, cache, gradients=gradients, input_gradient=False)
        optimizer.step(parameters, gradients)
        return value

    flops = described.batch * works.products(model, described.input_shape)
    version = f"{hg.__version__}, {engine_name()}"
    return _job(step, lambda value: value, version=version, flops=flops)


def torch(work: str) -> Job:
    import torch as library

    described = works.load(work)
    x, target = map(library.from_numpy, described.examples())
    model = described.torch()
    with library.no_grad():
        for place, values in zip(model.parameters(), _first_parameters(described), strict=True):
            place.copy_(library.from_numpy(values))
    loss = library.nn.CrossEntropyLoss()
    optimizer = library.optim.Adam(model.parameters(), lr=LEARNING_RATE, fused=True)

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        value = loss(model(x), target)
        value.backward()
        optimizer.step()
        return value.detach()

    return _job(step, lambda value: value, version=library.__version__)


def jax(work: str) -> Job:
    import jax as library
    from jax import numpy as jnp

    described = works.load(work)
    x, target = map(jnp.asarray, described.examples())
    parameters = [jnp.asarray(values) for values in _first_parameters(described)]
    zeros = [jnp.zeros_like(p) for p in parameters]
    _, statistics = described.jax(parameters, x)
    running = [jnp.zeros_like(s) for s in statistics]

    def loss(parameters: Any, x: Any, target: Any) -> Any:
        scores, statistics = described.jax(parameters, x)
        chosen = jnp.take_along_axis(library.nn.log_softmax(scores), target[:, None], 1)
        return -chosen.mean(), statistics

    def adam(t: Any, p: Any, g: Any, m: Any, v: Any) -> Any:
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        m_hat, v_hat = m / (1 - 0.9**t), v / (1 - 0.999**t)
        return p - LEARNING_RATE * m_hat / (jnp.sqrt(v_hat) + 1e-8), m, v

    def update(state: Any, x: Any, target: Any) -> Any:
        t, parameters, m, v, running = state
        t = t + 1
        gradient = library.value_and_grad(loss, has_aux=True)
        (value, statistics), gradients = gradient(parameters, x, target)
        swept = [adam(t, *arrays) for arrays in zip(parameters, gradients, m, v, strict=True)]
        parameters, m, v = (list(arrays) for arrays in zip(*swept, strict=True))
        running = [0.9 * r + 0.1 * s for r, s in zip(running, statistics, strict=True)]
        return (t, parameters, m, v, running), value

    compiled = library.jit(update, donate_argnums=0)
    state = (jnp.float32(0), parameters, zeros, [z.copy() for z in zeros], running)

    def step() -> Any:
        nonlocal state
        state, value = compiled(state, x, target)
        return value

    return _job(step, library.block_until_ready, version=library.__version__)
