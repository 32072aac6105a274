"""A training step on traced arrays: the program, with a name for each input and output."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.dispatch import engine
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError
from handgrad.layers.base import Layer
from handgrad.layers.twins import twin
from handgrad.losses import Loss
from handgrad.onnx.training.arrays import TracedArray, unwrapped
from handgrad.optimizers import Optimizer
from handgrad.program.node import Node, Program, World, within
from handgrad.program.sizes import Size

#: Before the name of a part of the state that the step has changed.
NEW = "new."


class TracedStep(NamedTuple):
    """A program whose inputs and outputs have these names; `state` are the values to start from.

    drawn: further inputs, which the graph draws itself.
    """

    program: Program
    inputs: dict[str, Node]
    drawn: list[Node]
    outputs: list[str]
    state: dict[str, Array]


class DrawnArrays(np.random.Generator):
    """Stands for the generators of a model: every array that is drawn is an input of the program.

    Random numbers decide in comparisons alone, so they may be of another type than the model.
    """

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))
        self.nodes: list[Node] = []

    def random(  # type: ignore[override]
        self, size: Any = None, dtype: Any = np.float64, out: None = None
    ) -> TracedArray:
        """Uniform numbers from 0 to 1."""
        found = _traced(f"random_{len(self.nodes)}", super().random(size or ()))
        self.nodes.append(found.node)
        return found


def traced_step(model: Layer, loss: Loss, optimizer: Optimizer, batch: Any) -> TracedStep:
    """The step on a batch like this one.

    Raises ArgumentError for a batch that is no pair, and for what layers and ops do that has no
    rule.
    """
    inputs, targets = _pair(batch)
    parameters, buffers = model.parameters, model.buffers
    kept = optimizer.state
    slots = {
        f"{slot}.{name}": kept.get(f"{slot}.{name}", np.zeros_like(array))
        for slot in optimizer.slots
        for name, array in parameters.items()
    }
    state: dict[str, Array] = {**parameters, **buffers, **slots}
    names = list(signature(model.forward).parameters)
    given = dict(zip(names, inputs, strict=False))
    given |= dict(zip(_targets(len(targets)), targets, strict=True))
    given |= {"step": np.asarray(optimizer.steps), "lr": np.asarray(optimizer.lr)}
    with within(World()), engine("reference"), np.errstate(all="ignore"):
        arrays = {name: _traced(name, array) for name, array in {**given, **state}.items()}
        drawn = DrawnArrays()
        value, changed = _run(model, loss, optimizer, arrays, len(inputs), len(targets), drawn)
        outputs = {"loss": value, **{NEW + name: array for name, array in changed.items()}}
        program = Program(
            [*(array.node for array in arrays.values()), *drawn.nodes],
            [unwrapped(array) for array in outputs.values()],
        )
    used = {id(operand) for node in program.body for operand in node.args}
    needless = {"step"} - ({"step"} if id(arrays["step"].node) in used else set())
    nodes = {name: array.node for name, array in arrays.items() if name not in needless}
    return TracedStep(program, nodes, drawn.nodes, list(outputs), state)


def _run(
    model: Layer,
    loss: Loss,
    optimizer: Optimizer,
    arrays: Mapping[str, Any],  # of TracedArray in the place of arrays
    inputs: int,
    targets: int,
    drawn: DrawnArrays,
) -> tuple[Any, dict[str, Any]]:
    """The loss, and the state after the step."""
    model_twin = twin(model, arrays, dict.fromkeys(model.generators, drawn))
    given = list(arrays.values())
    outputs, cache = model_twin.forward(*given[:inputs], training=True)
    value, loss_cache = loss.forward(outputs, *given[inputs : inputs + targets])
    if value.shape != ():
        raise ArgumentError(
            f"export_training: the loss has shape {value.shape}; allowed: one number, as by "
            "reduction='mean'"
        )
    doutputs = loss.backward(loss_cache)
    _, gradients = model_twin.backward(doutputs, cache, input_gradient=False)
    parameters = {name: arrays[name] for name in model.parameters}
    slots = {
        slot: {name: arrays[f"{slot}.{name}"] for name in parameters} for slot in optimizer.slots
    }
    new, after = optimizer.updated(
        parameters, gradients, slots, lr=arrays["lr"], step=arrays["step"] + 1
    )
    changed = {**new, **model_twin.buffers}
    for slot, named in after.items():
        changed |= {f"{slot}.{name}": array for name, array in named.items()}
    return value, changed


def _pair(batch: Any) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise ArgumentError(
            f"export_training: batch is {shown(batch)}; allowed: (inputs, targets), each one array "
            "or a tuple of them"
        )
    inputs, targets = (each if isinstance(each, tuple) else (each,) for each in batch)
    return tuple(map(np.asarray, inputs)), tuple(map(np.asarray, targets))


def _targets(count: int) -> list[str]:
    return ["target"] if count == 1 else [f"target_{i}" for i in range(count)]


def _traced(name: str, array: Array) -> TracedArray:
    """An input of the program; all floats are traced as doubles."""
    found = np.asarray(array)
    kind = {"f": "f", "i": "i", "u": "i", "b": "b"}.get(found.dtype.kind)
    if kind is None:
        raise ArgumentError(
            f"export_training: {name} is {shown(array)}; allowed: an array of numbers"
        )
    found = found.astype({"f": np.float64, "i": np.int64, "b": np.bool_}[kind])
    return TracedArray(Node("input", (), {}, tuple(map(Size.of, found.shape)), kind, found, name))
