"""The values that a right backward computes: those of the derived one, on the same inputs and dy.

The user's forward is traced as it was called, and swept back from dy. Adjoints, what each use of a
value adds to its own, their partial sums and the forward's values are right wherever they stand.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from handgrad.checking.trial import leaves
from handgrad.deriving.reverse import depends, sweep
from handgrad.deriving.traced import has_cache, results_of
from handgrad.program import primitives as primitives
from handgrad.program.node import Node, Program, World, replaced, within
from handgrad.program.sizes import Size
from handgrad.program.trace import Tracer
from handgrad.program.trace import run as run_traced

#: Nodes of a forward that is swept.
_MOST: Final = 3000
#: Objects within objects of which the arrays are inputs too.
_DEEP: Final = 5
_RELATIVE: Final = 1e-7
#: The sweep is believed where it is this close to the differences.
_VOUCHED: Final = 1e-4


class RightValues:
    """Arrays by their number of elements; a value is looked up in any shape, or transposed."""

    def __init__(self, values: Iterable[Any]) -> None:
        rows: dict[int, dict[bytes, np.ndarray]] = {}
        for each in values:
            array = np.asarray(each)
            if array.dtype.kind == "f" and array.size and np.isfinite(array).all():
                for turned in (array, array.T) if array.ndim > 1 else (array,):
                    row = turned.astype(np.float64).ravel()
                    rows.setdefault(row.size, {}).setdefault(row.tobytes(), row)
        self._rows = {size: np.stack([*each.values()]) for size, each in rows.items()}

    def like(self, value: np.ndarray) -> np.ndarray:
        """The right values of the shape's size, (number, elements)."""
        return self._rows.get(value.size, np.empty((0, value.size)))

    def has(self, value: Any, relative: float = _RELATIVE) -> bool | None:
        """Return whether a value is one of them; None where it is too plain to tell."""
        array = np.asarray(value)
        if array.dtype.kind != "f" or not np.isfinite(array).all() or not np.ptp(array, axis=None):
            return None
        rows = self._rows.get(array.size)
        if rows is None:
            return False
        own = array.astype(np.float64).ravel()
        apart = np.max(np.abs(rows - own), axis=1)
        return bool(np.min(apart) <= relative * np.max(np.abs(own)))


def right_values(
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    dy: Any,
    rights: Mapping[str, np.ndarray],
) -> RightValues | None:
    """The values of a forward and of the derived backward; None where it cannot be derived.

    rights: gradients by differences, of which each has to be among them.
    """
    inputs: list[Node] = []
    world = World()
    with within(world), np.errstate(all="ignore"):
        world.events = []
        try:
            # A layer that is called is no plain object, and keeps the arrays that it is handed.
            own = copy.deepcopy(dict(arguments))
            given = {name: _traced(value, inputs) for name, value in own.items()}
            result = run_traced(function, given)
            outputs = results_of(result[0] if has_cache(result, Tracer) else result, function)
            found = _swept(world, inputs, outputs, dy)
        except Exception:  # of a form that has no derivation
            return None
    pool = RightValues(found)
    known = [right for right in rights.values() if np.isfinite(right).all()]
    return pool if all(pool.has(each, _VOUCHED) is not False for each in known) else None


def _swept(world: World, inputs: list[Node], outputs: list[Node], dy: Any) -> list[Any]:
    body = Program(inputs, outputs).body
    cotangents = [each for each in leaves(dy) if each.dtype.kind == "f"]
    if len(body) > _MOST or len(cotangents) != len(outputs):
        return []
    world.events = None
    for node in body:
        # No loop is rolled up here, so that each round's counters are numbers.
        rounds = {f"t{depth}": i for depth, (_, i) in enumerate(node.rounds)}
        node.attrs = {key: replaced(each, rounds) for key, each in node.attrs.items()}
        node.shape = tuple(size.at(rounds) for size in node.shape)
    live = depends(body, inputs)
    adjoint: dict[int, Node] = {}
    for output, given in zip(outputs, cotangents, strict=True):
        if id(output) in live:
            seed = Node("input", (), {}, output.shape, "f", given.reshape(output.value.shape))
            adjoint[id(output)] = adjoint[id(output)] + seed if id(output) in adjoint else seed
    sweep(body, adjoint, live)
    return [n.value for n in (*inputs, *body, *adjoint.values(), *world.known.values())]


def _traced(value: Any, inputs: list[Node], depth: int = 0) -> Any:
    """An argument with its arrays of floats as inputs of the program, those of an object too."""
    if depth > _DEEP:
        return value
    inner = partial(_traced, inputs=inputs, depth=depth + 1)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        sizes = tuple(map(Size.of, value.shape))
        inputs.append(Node("input", (), {}, sizes, "f", value))
        return Tracer(inputs[-1])
    if type(value) in (tuple, list):
        return type(value)(map(inner, value))
    if type(value) is dict:
        return {key: inner(each) for key, each in value.items()}
    if hasattr(value, "__dict__") and not callable(value) and not isinstance(value, type):
        twin = copy.copy(value)
        vars(twin).update({key: inner(each) for key, each in vars(value).items()})
        return twin
    return value
