"""The arguments of the algebra for a forward: what a derivation hands to it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from handgrad.deriving.algebra.steps import Simplification
from handgrad.program.node import Node, Program, World

DERIVE: Any = importlib.import_module("handgrad.deriving.deriving")


class Seen(NamedTuple):
    """A derivation with what went into the algebra and what came out."""

    derived: Any
    program: Program
    cotangents: list[Node]
    plain: list[Node]
    world: World
    simple: list[Node]
    steps: list[Simplification]


def seen(monkeypatch: pytest.MonkeyPatch, forward: Callable[..., Any], **given: Any) -> Seen:
    found: list[tuple[Any, ...]] = []
    original = DERIVE.simplified

    def spy(*arguments: Any) -> Any:
        out = original(*arguments)
        found.append((*arguments, *out))
        return out

    monkeypatch.setattr(DERIVE, "simplified", spy)
    derived = DERIVE.derive(forward, **given)
    program, cotangents, plain, _, world, simple, steps = found[-1]
    return Seen(derived, program, cotangents, plain, world, simple, steps)


def gradients(derived: Any, dy: Any, **arguments: Any) -> list[np.ndarray]:
    _, cache = derived.forward(**arguments)
    out = derived.backward(dy, cache)
    return list(out) if isinstance(out, tuple) else [out]
