"""A forward and a backward, as the checker runs them, wherever they came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

Nested = Any  # an array, or a tuple of Nested


@dataclass(frozen=True)
class ForwardBackward:
    """One target: an op, a layer, a user's two functions, or what an adapter made of a framework's.

    Everything that goes in and comes out is a NumPy array. `forward(*arrays)` takes one array for
    every name in `inputs` and returns y (an array, or nested tuples of arrays) and a cache;
    `backward(dy, cache)`, with dy nested as y is, returns the gradients of `gradients`, in order:
    one bare, several as a tuple, None for an input that was not given.
    """

    name: str
    inputs: tuple[str, ...]
    gradients: tuple[str, ...]
    forward: Callable[..., tuple[Nested, Any]]
    backward: Callable[[Nested, Any], Any]
    #: Arrays that the target brings along, such as a module's weights, by their names in `inputs`.
    parameters: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    #: Arrays of the target that y depends on too, and whose gradients it does not give.
    unjudged: tuple[str, ...] = ()
    #: Sentences about how it is called, for the report; running it may add some.
    notes: Sequence[str] = ()
    #: Sentences about arguments of backward that forward makes and keeps to itself.
    withheld: tuple[str, ...] = ()
    #: The same called in other ways that its argument's name leaves open, where it is wrong in all.
    rivals: tuple[ForwardBackward, ...] = ()
    #: True where it is called in a way of its own, so that it is not compared with an op.
    is_adapted: bool = False
    #: A context in which that function computes as backward does, such as with 64 bits.
    context: Callable[[], AbstractContextManager[Any]] = nullcontext
    #: The name of the op that this is, or is meant to be, if known.
    op: str | None = None
    #: True where None for a gradient says that the input is a constant, as PyTorch has it.
    none_is_constant: bool = False
    #: False where only float32 goes in, as in a module that cannot be converted.
    takes_float64: bool = True
