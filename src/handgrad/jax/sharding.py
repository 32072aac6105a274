"""A state over several devices: replicated for data parallelism, split for tensor parallelism.

XLA's partitioner (GSPMD) finds from the places of state and batch what each device computes and
what they exchange.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeAlias, TypeVar

import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from handgrad.errors import ArgumentError
from handgrad.jax.state import State

Tree = TypeVar("Tree")

#: Regular expressions for names of parameters, and the axis of the mesh for each of their axes.
Rules: TypeAlias = Mapping[str, tuple[str | None, ...]]

#: Weights (out, in) and tables (tokens, features) are split by rows, and the weights that end a
#: branch by columns: so what stands between the two is split too, by heads or by hidden units, and
#: is exchanged once, in a sum. Source: Shoeybi et al., Megatron-LM: training multi-billion
#: parameter language models using model parallelism (2020), section 3.
RULES: Final[Rules] = {
    r"(o_proj|linear2)\.weight$": (None, "model"),
    r"(^|\.)weight[^.]*$": ("model",),
}


def shard(state: State, mesh: Mesh, rules: Rules | None = None) -> State:
    """The state on all devices of the mesh.

    The first rule whose expression is found in a parameter's name says which of its axes are split
    over which axes of the mesh; all others, and all else in the state, are whole on each device.
    The optimizer's slots lie as their parameters do. Without `rules` they are those of `RULES`,
    over the axis "model" of the mesh if it has one, where the parameter's axes divide by it.

    Raises ArgumentError where a rule of your own names an axis that the mesh has not, or does not
    fit the shape of a parameter.
    """
    mesh = _automatic(mesh)
    found = {
        name: NamedSharding(mesh, _spec(name, tuple(array.shape), mesh, rules))
        for name, array in state.parameters.items()
    }
    whole = NamedSharding(mesh, PartitionSpec())
    places = State(
        found,
        dict.fromkeys(state.buffers, whole),
        dict.fromkeys(state.slots, found),
        dict.fromkeys(state.keys, whole),
        steps=whole,
        learning_rate=whole,
    )
    return State(*jax.device_put(tuple(state), tuple(places)))


def share(batch: Tree, mesh: Mesh, axis: str = "data") -> Tree:
    """The batch with its examples divided among the devices along an axis of the mesh.

    A batch that does not divide is whole on each device, and each computes all of it.
    """
    mesh, count = _automatic(mesh), mesh.shape[axis]
    divides = all(array.shape[0] % count == 0 for array in jax.tree.leaves(batch))
    return jax.device_put(batch, NamedSharding(mesh, PartitionSpec(axis if divides else None)))


def _automatic(mesh: Mesh) -> Mesh:
    """The mesh with axes that the partitioner decides about, which `jax.make_mesh` leaves to us."""
    return Mesh(mesh.devices, mesh.axis_names, axis_types=(AxisType.Auto,) * len(mesh.shape))


def _spec(name: str, shape: tuple[int, ...], mesh: Mesh, rules: Rules | None) -> PartitionSpec:
    """The axis of the mesh for each axis of a parameter."""
    for pattern, axes in (RULES if rules is None else rules).items():
        if re.search(pattern, name):
            refusal = _refusal(shape, axes, mesh)
            if refusal is None:
                return PartitionSpec(*axes)
            if rules is not None:
                raise ArgumentError(f"jax.shard: {name} of shape {shape}: {refusal}")
            break
    return PartitionSpec()


def _refusal(shape: tuple[int, ...], axes: tuple[str | None, ...], mesh: Mesh) -> str | None:
    """Why a parameter cannot be split so; None where it can."""
    unknown = [axis for axis in axes if axis is not None and axis not in mesh.shape]
    if unknown:
        return f"the rule has the axis {unknown[0]!r}; allowed: {', '.join(mesh.shape)}"
    if len(axes) > len(shape):
        return f"the rule has {len(axes)} axes; allowed: at most {len(shape)}"
    for size, axis in zip(shape, axes, strict=False):
        if axis is not None and size % mesh.shape[axis] != 0:
            return f"{size} is split over {mesh.shape[axis]} devices; allowed: a multiple of them"
    return None
