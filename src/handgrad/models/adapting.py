"""Put low-rank matrices beside the Dense layers of a model, and into them again."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np

from handgrad.errors import ArgumentError
from handgrad.layers.base import Layer, walk
from handgrad.layers.dense import Dense
from handgrad.layers.lora import LoRADense
from handgrad.models.decoder_only import DecoderOnly
from handgrad.ops.arguments import check_choice

BIASES: Final = ("none", "all", "lora_only")
ALL: Final = "all-linear"

M = TypeVar("M", bound=Layer)


@dataclass(frozen=True)
class Adaptation:
    """The settings of `adapt`, which an adapted model keeps as its attribute `adaptation`."""

    rank: int
    alpha: float
    targets: tuple[str, ...]
    dropout: float
    bias: str


def adapt(
    model: M,
    *,
    rank: int = 8,
    alpha: float = 16.0,
    targets: Sequence[str] | str = ("q_proj", "v_proj"),
    dropout: float = 0.0,
    bias: str = "none",
    seed: int = 0,
) -> M:
    """Freeze a model and put a LoRADense in the place of its Dense layers; in place.

    In peft's words these are r, lora_alpha, target_modules, lora_dropout and bias. `targets` are
    the ends of layers' names, whole parts such as "q_proj" or "attention.inner.q_proj", or
    "all-linear" for every Dense layer but the head. `bias` says which biases are trained beside A
    and B: "none", "all", or "lora_only", those of adapted layers. `seed` draws A and dropout.

    Raises ArgumentError for a model that is adapted already, a target that no Dense layer has, and
    settings that are not possible; then nothing has been changed.
    """
    check_choice("adapt", "bias", bias, BIASES)
    if is_adapted(model):
        raise ArgumentError("adapt: the model is adapted already; allowed: one that is not")
    targets = (targets,) if isinstance(targets, str) else tuple(targets)
    found = _found(model, targets)
    rng = np.random.default_rng(seed)
    adapted = {
        id(layer): LoRADense(layer, rank=rank, alpha=alpha, dropout=dropout, rng=rng.spawn(1)[0])
        for layer in found.values()
    }
    model.freeze()
    _replace(model, adapted)
    for _, layer in walk(model):
        if isinstance(layer, LoRADense):
            layer.frozen = ("weight",) if bias == "lora_only" else ("weight", "bias")
        if bias == "all":
            layer.frozen = tuple(name for name in layer.frozen if not name.startswith(_BIASES))
    vars(model)["adaptation"] = Adaptation(rank, float(alpha), targets, dropout, bias)
    return model


#: The beginnings of the names of biases.
_BIASES: Final = ("bias", "beta")


def merge(model: M) -> M:
    """Make an adapted model one like before, with W + (alpha/rank) B A for each W; in place.

    Every parameter is trained again. Raises ArgumentError for a model that is not adapted.
    """
    check_adapted("merge", model)
    layers = [layer for _, layer in walk(model) if isinstance(layer, LoRADense)]
    _replace(model, {id(layer): layer.merged() for layer in layers})
    del vars(model)["adaptation"]
    return model.unfreeze()


def is_adapted(model: Layer) -> bool:
    """Return whether `adapt` has been called on this model."""
    return "adaptation" in vars(model)


def check_adapted(what: str, model: Layer) -> None:
    """Raise ArgumentError unless the model is adapted."""
    if not is_adapted(model):
        raise ArgumentError(f"{what}: the model is not adapted; allowed: one of hg.lora.adapt")


def settings_of(model: Layer) -> dict[str, Any] | None:
    """The settings of `adapt` as plain values; None for a model that is not adapted."""
    found = vars(model).get("adaptation")
    return None if found is None else {**dataclasses.asdict(found), "targets": list(found.targets)}


def _found(model: Layer, targets: tuple[str, ...]) -> dict[str, Dense]:
    """The Dense layers that the targets name."""
    dense = {name: layer for name, layer in walk(model) if isinstance(layer, Dense)}
    if isinstance(model, DecoderOnly):
        dense.pop("head", None)  # the model multiplies by its weight itself
    found: dict[str, Dense] = {}
    for target in targets:
        named = {
            name: layer
            for name, layer in dense.items()
            if f".{name}".endswith(f".{target}") or (target == ALL and name != "head")
        }
        if not named:
            ends = dict.fromkeys(name.rpartition(".")[2] for name in dense)
            raise ArgumentError(
                f"adapt: targets has {target!r}; allowed: {', '.join(ends) or 'no layer'}, or {ALL}"
            )
        found |= named
    if not found:
        raise ArgumentError("adapt: targets is empty; allowed: one name or more")
    return found


def _replace(model: Layer, others: dict[int, Any]) -> None:
    """Put layers in the place of others, by the id of these, wherever a layer refers to them."""
    for layer in [each for _, each in walk(model)]:
        if isinstance(layer, LoRADense):
            continue
        for name, value in vars(layer).items():
            if id(value) in others:
                setattr(layer, name, others[id(value)])
            elif type(value) is tuple and any(id(each) in others for each in value):
                setattr(layer, name, tuple(others.get(id(each), each) for each in value))
        for name, child in layer.layers.items():
            if id(child) in others:
                layer.layers[name] = others[id(child)]  # type: ignore[index]


def adapted_layers(model: Layer) -> Iterator[tuple[str, LoRADense]]:
    """The adapted layers of a model, by name."""
    for name, layer in walk(model):
        if isinstance(layer, LoRADense):
            yield name, layer
