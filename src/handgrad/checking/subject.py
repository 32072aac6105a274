"""The subject of a check: a target, and the op that it is or is meant to be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np

from handgrad.checking.arguments import takes, wanted
from handgrad.checking.float_types import computes_as, in_float64
from handgrad.checking.functions import forward_backward, selected
from handgrad.checking.op_functions import op_module
from handgrad.checking.recognition import recognised
from handgrad.checking.reference import KnownOp, by_kind
from handgrad.checking.report import Fault
from handgrad.checking.sample_inputs import Setup
from handgrad.checking.trial import TrialRun, guarded, leaves, like_nested, same_outputs
from handgrad.errors import ArgumentError
from handgrad.forward_backward import ForwardBackward
from handgrad.targets import op_of


class CheckedTarget:
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
        #: The number of axes of each of the usual inputs.
        self.form: tuple[int, ...] = ()
        #: The names of the inputs whose first axis is one in the usual inputs, as a row's.
        self.rows: frozenset[str] | None = None

    @property
    def is_ops_own(self) -> bool:
        """Return whether nothing is written by the user."""
        return op_of(self.target) is not None

    def meet(self, usual: Setup) -> ModuleType | None:
        """Take in the usual inputs; returns the op that the target turns out to be by them.

        None where it is none, or where its op was known already.
        """
        module = None
        if self.op is None:
            functions, arrays = self.functions(usual)
            if not functions.is_adapted:
                module = op_module(recognised(functions, arrays))
            self.op = None if module is None else KnownOp(module)
        self.form = self._form(usual)
        return module

    def functions(self, setup: Setup) -> tuple[ForwardBackward, dict[str, np.ndarray]]:
        """The target for these inputs, and its arrays by the names of its arguments."""
        positional, keyword = by_kind(self.op.module if self.op else None, setup)
        functions = forward_backward(
            self.target,
            list(positional.values()),
            like=self.op.module if self.op and not self.is_ops_own else None,
            wrt=self.wrt,
            options={**setup.options, **keyword},
        )
        wanted(self.wrt or (), functions.inputs)
        if self.wrt is not None and set(functions.gradients) != set(self.wrt):
            functions = selected(functions, self.wrt)
        own = [name for name in functions.inputs if name not in functions.parameters]
        given = [array for array in positional.values() if isinstance(array, np.ndarray)]
        if len(own) != len(given):
            raise ArgumentError(
                f"check: {len(given)} inputs are given for {functions.name}; allowed: {len(own)}, "
                f"for {', '.join(own)}"
            )
        arrays = dict(zip(own, given, strict=True))
        brought = {
            name: np.array(array, dtype=np.float64 if array.dtype.kind == "f" else None)
            for name, array in {**functions.parameters, **setup.parameters}.items()
            if name in functions.parameters
        }
        arrays = {**arrays, **brought}
        if self.rows is None:
            self.rows = frozenset(name for name, each in arrays.items() if each.shape[:1] == (1,))
        rivals = tuple(self._judged(each, arrays) for each in functions.rivals)
        return replace(self._judged(functions, arrays), rivals=rivals), arrays

    def _judged(self, functions: ForwardBackward, arrays: dict[str, np.ndarray]) -> ForwardBackward:
        return in_float64(computes_as(guarded(functions, arrays, self.rows or ()), arrays))

    def different_forward(
        self, functions: ForwardBackward, done: TrialRun, setup: Setup
    ) -> list[Fault]:
        """The fault of a forward that gives something else than the op it is meant to be."""
        if self.op is None or self.is_ops_own or callable(self.target):
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

    def right(self, functions: ForwardBackward, done: TrialRun, setup: Setup) -> dict[str, Any]:
        """The known op's gradients by the target's names."""
        assert self.op is not None
        gradients = self.op.gradients(setup, done.dy)
        named = {functions.inputs[position]: each for position, each in gradients.items()}
        return {name: named[name] for name in functions.gradients}

    def applies(self, setup: Setup) -> bool:
        """Return whether the target, which may be less general, takes inputs of a known op."""
        if self.op is None or self.is_ops_own:
            return True
        same_form = self._form(setup) == self.form or not self.own_inputs
        forward = getattr(self.target, "forward", None)
        forward = self.target[0] if isinstance(self.target, tuple) else forward
        return same_form and (forward is None or takes(forward, setup.options))

    def _form(self, setup: Setup) -> tuple[int, ...]:
        """The number of axes of each input."""
        positional, _ = by_kind(self.op.module if self.op else None, setup)
        return tuple(np.ndim(array) for array in positional.values())
