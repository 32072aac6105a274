"""One training step in each library: forward, cross-entropy, backward, fused Adam."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import numpy as np

from benchmarks import workloads
from benchmarks.bursts import compare
from benchmarks.contender import Job
from benchmarks.machine import resident_bytes
from benchmarks.peers import precision

LEARNING_RATE: Final = 1e-3
#: Steps before the first burst; their losses show that all contenders compute the same.
FIRST_STEPS: Final = 5
#: The distance from handgrad's float32 losses that those of a contender may have.
SAME_LOSS: Final = {"float32": 1e-3, "bf16": 3e-2}

Sizes = Mapping[str, Any]


def measure(
    workload: str, peers: Iterable[str], sizes: Sizes | None = None, **settings: Any
) -> dict[str, Any]:
    """handgrad and its peers on one workload; `differs` names those whose losses are others."""
    arguments = {"workload": workload, "sizes": dict(sizes or {})}
    names = contenders(workloads.load(workload, **arguments["sizes"]), peers)
    found = compare([(name, arguments) for name in names], "benchmarks.steps", **settings)
    own = np.array(found["contenders"]["handgrad"]["losses"])
    found["differs"] = [
        name
        for name, about in found["contenders"].items()
        if not same_losses(own, np.array(about["losses"]), precision(name))
    ]
    return found


def same_losses(own: np.ndarray, theirs: np.ndarray, precision: str) -> bool:
    """In bf16, where losses fall steeply, the largest of them says what is near."""
    near = SAME_LOSS[precision]
    within = near * own.max() if precision == "bf16" else near * np.abs(own)
    return bool(np.all(np.abs(theirs - own) <= within))


def contenders(described: workloads.Workload, peers: Iterable[str]) -> list[str]:
    """handgrad, in bf16 too where it can and a peer does, and the peers that have this workload."""
    names = [name for name in peers if name != "sklearn" or described.layers is not None]
    bf16 = any(precision(name) == "bf16" for name in names) and multiplies_bf16()
    return ["handgrad", *(["handgrad-bf16"] if bf16 else []), *names]


def multiplies_bf16() -> bool:
    """Return whether this handgrad trains in bf16 on this CPU."""
    import handgrad as hg
    from handgrad import kernels

    return hasattr(hg, "precision") and getattr(kernels.native, "bf16_unit", "none") != "none"


def _job(step: Callable[[], Any], wait: Callable[[Any], Any], **about: Any) -> Job:
    before = resident_bytes()
    losses = tuple(float(step()) for _ in range(FIRST_STEPS))

    def run(count: int) -> None:
        for _ in range(count - 1):
            step()
        wait(step())

    return Job(run, losses=losses, before=before, **about)


def _first_parameters(described: workloads.Workload) -> list[np.ndarray]:
    return described.for_peers(described.handgrad(np.random.default_rng(0)).parameters)


def handgrad(workload: str, sizes: Sizes) -> Job:
    return _handgrad(workload, sizes, nullcontext)


def handgrad_bf16(workload: str, sizes: Sizes) -> Job:
    import handgrad as hg

    return _handgrad(workload, sizes, lambda: hg.precision("bf16"))


def _handgrad(
    workload: str, sizes: Sizes, precisely: Callable[[], AbstractContextManager[Any]]
) -> Job:
    import handgrad as hg
    from handgrad.training.choices import engine_name

    described = workloads.load(workload, **sizes)
    inputs, target = described.examples()
    model = described.handgrad(np.random.default_rng(0))
    parameters = model.bind()
    gradients = parameters.zeros_like()
    loss = hg.losses.CrossEntropy(class_axis=1 if target.ndim == 1 else -1)
    optimizer = hg.optimizers.Adam(lr=LEARNING_RATE)
    loss_and_gradients = hg.training.TrainingStep(model, loss, gradients)

    def step() -> Any:
        with precisely():
            value = loss_and_gradients(inputs, target)
            optimizer.step(parameters, gradients)
        return value

    version = f"{hg.__version__}, {engine_name()}"
    return _job(step, lambda value: value, version=version, flops=described.flops(model))


def torch(workload: str, sizes: Sizes) -> Job:
    return torch_job(workload, sizes)


def torch_compile(workload: str, sizes: Sizes) -> Job:
    """Forward and loss compiled, and with them backward; the fused Adam is one kernel already."""
    # Helpers that compile would go on while this process is stopped.
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    return torch_job(workload, sizes, compiled=True)


def torch_bf16(workload: str, sizes: Sizes) -> Job:
    """Parameters, gradients and Adam in float32, and by autocast the products in bf16."""
    return torch_job(workload, sizes, autocast=True)


def torch_job(
    workload: str,
    sizes: Sizes,
    *,
    compiled: bool = False,
    autocast: bool = False,
    change: Callable[[Any], None] = lambda module: None,
) -> Job:
    """The workload's module in a training loop of PyTorch, after `change` has had it."""
    import torch as library
    from torch.nn.functional import cross_entropy

    described = workloads.load(workload, **sizes)
    arrays, classes = described.examples()
    inputs = tuple(None if x is None else library.from_numpy(x) for x in arrays)
    target = described.torch_target(inputs, library.from_numpy(classes))
    model = described.torch()
    change(model)
    with library.no_grad():
        first = _first_parameters(described)
        for parameter, values in zip(model.parameters(), first, strict=True):
            parameter.copy_(library.from_numpy(values))
    optimizer = library.optim.Adam(model.parameters(), lr=LEARNING_RATE, fused=True)

    def loss_of(*inputs: Any) -> Any:
        with library.autocast("cpu", library.bfloat16, enabled=autocast):
            scores = model(*inputs)
            return cross_entropy(scores.flatten(0, -2), target, ignore_index=workloads.IGNORED)

    if compiled:
        loss_of = library.compile(loss_of)

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        value = loss_of(*inputs)
        value.backward()
        optimizer.step()
        return value.detach()

    return _job(step, lambda value: value, version=library.__version__)


def jax(workload: str, sizes: Sizes) -> Job:
    import jax as library
    from jax import numpy as jnp

    described = workloads.load(workload, **sizes)
    arrays, classes = described.examples()
    inputs = tuple(None if x is None else jnp.asarray(x) for x in arrays)
    target = jnp.asarray(classes)
    parameters = [jnp.asarray(values) for values in _first_parameters(described)]
    zeros = [jnp.zeros_like(p) for p in parameters]
    _, statistics = library.eval_shape(described.jax, parameters, *inputs)
    running = [jnp.zeros(s.shape, s.dtype) for s in statistics]

    def loss(parameters: Any, inputs: Any, target: Any) -> Any:
        scores, statistics = described.jax(parameters, *inputs)
        chosen = jnp.take_along_axis(scores, jnp.maximum(target, 0)[..., None], -1)[..., 0]
        losses = library.nn.logsumexp(scores, axis=-1) - chosen
        counts = target != workloads.IGNORED
        return jnp.sum(losses * counts) / jnp.sum(counts), statistics

    def adam(t: Any, p: Any, g: Any, m: Any, v: Any) -> Any:
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        m_hat, v_hat = m / (1 - 0.9**t), v / (1 - 0.999**t)
        return p - LEARNING_RATE * m_hat / (jnp.sqrt(v_hat) + 1e-8), m, v

    def update(state: Any, inputs: Any, target: Any) -> Any:
        t, parameters, m, v, running = state
        t = t + 1
        gradient = library.value_and_grad(loss, has_aux=True)
        (value, statistics), gradients = gradient(parameters, inputs, target)
        swept = [adam(t, *arrays) for arrays in zip(parameters, gradients, m, v, strict=True)]
        parameters, m, v = (list(arrays) for arrays in zip(*swept, strict=True))
        running = [0.9 * r + 0.1 * s for r, s in zip(running, statistics, strict=True)]
        return (t, parameters, m, v, running), value

    compiled = library.jit(update, donate_argnums=0)
    state = (jnp.float32(0), parameters, zeros, [z.copy() for z in zeros], running)

    def step() -> Any:
        nonlocal state
        state, value = compiled(state, inputs, target)
        return value

    return _job(step, library.block_until_ready, version=library.__version__)


def sklearn(workload: str, sizes: Sizes) -> Job:
    """MLPClassifier with a call of partial_fit for a step, without its penalty on the weights."""
    import sklearn as library
    from sklearn.neural_network import MLPClassifier

    described = workloads.load(workload, **sizes)
    assert described.layers is not None
    (x,), target = described.examples()
    model = MLPClassifier(
        described.layers[1:-1],
        batch_size=len(x),
        learning_rate_init=LEARNING_RATE,
        alpha=0.0,
        shuffle=False,
    )
    # The first call makes weights and optimizer; the weights are then replaced, and without
    # `_optimizer` the next call makes a new one for them.
    model.partial_fit(x, target, classes=np.arange(workloads.CLASSES))
    first = _first_parameters(described)
    model.coefs_ = [np.array(weight.T, order="C") for weight in first[0::2]]
    model.intercepts_ = [bias.copy() for bias in first[1::2]]
    del model._optimizer

    def step() -> Any:
        model.partial_fit(x, target)
        return model.loss_

    return _job(step, lambda value: value, version=library.__version__)
