"""What is being checked: a target, and the op that it is or is meant to be."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from handgrad.checking.recognition import recognised
from handgrad.checking.reference import KnownOp, by_kind
from handgrad.checking.report import Fault
from handgrad.checking.situations import Setup
from handgrad.checking.targets import (
    computes_as,
    in_float64,
    is_op,
    is_op_name,
    op_module,
    pair_of,
    selected,
    takes,
    wanted,
)
from handgrad.checking.trial import Run, guarded, leaves, like_nested, same_outputs
from handgrad.errors import ArgumentError
from handgrad.pair import Pair


class Subject:
    """A target, the op that it is compared with where one is known, and the form of its inputs."""

    def __init__(
        self,
        target: Any,
        op: ModuleType | None = None,
        wrt: Sequence[str] | None = None,
        *,
        own_inputs: bool = True,
    ) -> None:
        self.target = target
        self.op = None if op is None else KnownOp(op)
        self.wrt = wrt
        #: The user says that it is this op, or nothing else can be meant.
        self.is_meant_as_op = op is not None
        self.own_inputs = own_inputs
        #: How many axes each of the usual inputs has.
        self.form: tuple[int, ...] = ()

    @property
    def is_ops_own(self) -> bool:
        """Whether nothing is written by the user."""
        return is_op(self.target) or is_op_name(self.target)

    def meet(self, usual: Setup) -> ModuleType | None:
        """Take in the usual inputs; returns the op that the target turns out to be by them.

        None where it is none, or where its op was known already.
        """
        module = None
        if self.op is None:
            module = op_module(recognised(*self.pair(usual)))
            self.op = None if module is None else KnownOp(module)
        self.form = self._form(usual)
        return module

    def pair(self, setup: Setup) -> tuple[Pair, dict[str, np.ndarray]]:
        """The target for these inputs, and its arrays by the names of its arguments."""
        positional, keyword = by_kind(self.op.module if self.op else None, setup)
        pair = pair_of(
            self.target,
            list(positional.values()),
            like=self.op.module if self.op and not is_op(self.target) else None,
            wrt=self.wrt,
            options={**setup.options, **keyword},
        )
        wanted(self.wrt or (), pair.inputs)
        if self.wrt is not None and set(pair.gradients) != set(self.wrt):
            pair = selected(pair, self.wrt)
        own = [name for name in pair.inputs if name not in pair.parameters]
        given = [array for array in positional.values() if isinstance(array, np.ndarray)]
        if len(own) != len(given):
            raise ArgumentError(
                f"check: {len(given)} inputs are given for {pair.name}; allowed: {len(own)}, "
                f"for {', '.join(own)}"
            )
        arrays = dict(zip(own, given, strict=True))
        brought = {
            name: np.array(array, dtype=np.float64 if array.dtype.kind == "f" else None)
            for name, array in pair.parameters.items()
        }
        arrays = {**arrays, **brought}
        return in_float64(computes_as(guarded(pair, arrays), arrays)), arrays

    def different_forward(self, pair: Pair, done: Run, setup: Setup) -> list[Fault]:
        """Where the target is meant to be an op: a forward that gives something else."""
        if self.op is None or is_op(self.target) or callable(self.target):
            return []
        y = self.op.forward(setup)[0]
        if same_outputs(done.y, y, rtol=1e-9, atol=1e-12):
            return []
        name = self.op.name
        shape, right = like_nested(done.y, np.shape), like_nested(y, np.shape)
        if shape != right:
            what = f"y has shape {shape}, {name}'s {right}"
        else:
            pairs = zip(leaves(y), leaves(done.y), strict=True)
            what = f"y differs by up to {max(np.max(np.abs(a - b)) for a, b in pairs):.3g}"
        message = f"forward is not that of {name}: {what}"
        return [Fault("", "forward differs", "", message, 1.0, setup.situation)]

    def right(self, pair: Pair, done: Run, setup: Setup) -> tuple[dict[str, Any], Any]:
        """The known op's gradients by the target's names, and the program of its backward."""
        assert self.op is not None
        gradients, program = self.op.gradients(setup, done.dy)
        named = {pair.inputs[position]: each for position, each in gradients.items()}
        return {name: named[name] for name in pair.gradients}, program

    def applies(self, setup: Setup) -> bool:
        """Whether a situation of a known op is one for the target, which may be less general."""
        if self.op is None or self.is_ops_own:
            return True
        same_form = self._form(setup) == self.form or not self.own_inputs
        forward = getattr(self.target, "forward", None)
        forward = self.target[0] if isinstance(self.target, tuple) else forward
        return same_form and (forward is None or takes(forward, setup.options))

    def _form(self, setup: Setup) -> tuple[int, ...]:
        """How many axes each input has."""
        positional, _ = by_kind(self.op.module if self.op else None, setup)
        return tuple(np.ndim(array) for array in positional.values())
