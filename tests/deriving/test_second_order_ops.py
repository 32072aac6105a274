"""Every op to second order: beside PyTorch's double backward, and beside differences.

The products of the Jacobian and of the Hessian with vectors are derived from the op's reference
forward alone. PyTorch computes the same function by its counterpart in the table of samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import pytest

import handgrad as hg
from handgrad.deriving import Derivation
from handgrad.errors import ArgumentError
from handgrad.ops import OPS
from tests.ops.cases import CASES, Case, leaves

#: Inputs of ops that are refused, with a part of the sentence: a draw is no function of arrays.
REFUSED: Final = {"rng": "rng is a random generator"}
#: Ops of which PyTorch has no second derivative: differences judge them alone.
ONCE_IN_PYTORCH: Final = {"ctc_loss"}
#: Derivations of a minute, by polynomials of many pieces.
LONG: Final = {"erf", "gelu"}

SMOOTH: Final = [
    case for case in CASES if case.row.smooth and not case.row.large and not case.row.not_in_torch
]
FIRST: Final = list({case.op: case for case in reversed(SMOOTH)}.values())[::-1]
#: Samples that a derivation does not take, with the reason.
NOT_TAKEN: Final = {
    "geglu one vector": "an axis broadcast against weights of a matrix",
    "swiglu one vector": "an axis broadcast against weights of a matrix",
    "attention mask": "a branch on whether every row of the mask has a key",
}


def is_taken(case: Case) -> bool:
    """A tuple of numbers, such as a window, is read as the shape of an array."""
    tuples = any(isinstance(each, tuple) for each in case.options.values())
    return not tuples and f"{case.op} {case.label}" not in NOT_TAKEN


#: The further samples that the checker uses, but empty ones.
OTHERS: Final = [
    case
    for case in SMOOTH
    if case not in FIRST
    and case.op not in LONG
    and case.row in case.samples.rows
    and case.row.situation != "empty"
    and is_taken(case)
]

Arrays = list[np.ndarray]


class Order:
    """A case derived to second order, with directions at random."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.arrays = case.arrays()
        self.names = case.differentiable
        self.dy = list(leaves(case.random_like(case.forward(self.arrays)[0], "cotangent")))
        self.vectors = [case.random_like(self.arrays[n], f"along {n}") for n in self.names]

    @cached_property
    def derived(self) -> Derivation:
        settings = self.case.arguments(self.arrays).arguments
        return hg.derive(self.case.module, wrt=self.names, **settings)

    def jvp(self) -> Arrays:
        return self._called(self.derived.jvp, bare(self.vectors))

    def hvp(self) -> Arrays:
        return self._called(self.derived.hvp, bare(self.vectors), bare(self.dy))

    def _called(self, function: Any, *front: Any, arrays: Any = None) -> Arrays:
        found = function(*front, **(arrays or self.arrays), **self.case.options)
        return [np.asarray(each) for each in (found if isinstance(found, tuple) else (found,))]

    def forward_and_backward(self, step: float) -> tuple[Arrays, Arrays]:
        """The results and the gradients of the derivation, a step along the vectors."""
        moved = {
            n: self.arrays[n] + step * v for n, v in zip(self.names, self.vectors, strict=True)
        }
        y, cache = self.derived.forward(**(self.arrays | moved), **self.case.options)
        gradients = self.derived.backward(bare(self.dy), cache)
        several = gradients if isinstance(gradients, tuple) else (gradients,)
        return [np.asarray(each) for each in leaves(y)], [np.asarray(each) for each in several]

    def differences(self) -> tuple[Arrays, Arrays]:
        """Central differences of fourth order, of the results and of the gradients."""
        h = 1e-4
        ends = [self.forward_and_backward(step * h) for step in (-2, -1, 1, 2)]

        def slope(way: int) -> Arrays:
            return [
                (a - 8 * b + 8 * c - d) / (12 * h)
                for a, b, c, d in zip(*(end[way] for end in ends), strict=True)
            ]

        return slope(0), slope(1)

    def in_pytorch(self) -> tuple[Arrays, Arrays]:
        """The same by PyTorch, of which either is a double backward."""
        torch = pytest.importorskip("torch")
        tensors = {name: torch.tensor(array) for name, array in self.arrays.items()}
        xs = [tensors[name].requires_grad_() for name in self.names]
        # PyTorch's fused attention has no second derivative.
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            y = self.case.samples.torch(torch.nn.functional, tensors, self.case.options)
        ys = list(leaves(y))
        dys = [torch.tensor(dy, requires_grad=True) for dy in self.dy]
        first = torch.autograd.grad(
            ys, xs, dys, create_graph=True, materialize_grads=True, allow_unused=True
        )
        reached = [
            (dx, torch.tensor(v))
            for dx, v in zip(first, self.vectors, strict=True)
            if dx.requires_grad
        ]
        dxs, vectors = zip(*reached, strict=True)
        second = torch.autograd.grad(
            dxs, [*dys, *xs], vectors, materialize_grads=True, allow_unused=True
        )
        found = [each.detach().numpy() for each in second]
        return found[: len(dys)], found[len(dys) :]


def bare(several: Sequence[Any]) -> Any:
    """Arguments as a derivation takes them: the only one, or a tuple."""
    return several[0] if len(several) == 1 else tuple(several)


def assert_close(found: Arrays, wanted: Arrays) -> None:
    """Equal but for 1e-8 of the largest value."""
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape
        largest = np.max(np.abs(other), initial=0.0)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-8 * largest + 1e-10)


def check(case: Case) -> None:
    order = Order(case)
    refusals = [REFUSED[name] for name in case.options if name in REFUSED]
    if refusals:
        with pytest.raises(ArgumentError, match=refusals[0]):
            _ = order.derived
        return
    jvp, hvp = order.jvp(), order.hvp()
    of_results, of_gradients = order.differences()
    assert_close(jvp, of_results)
    assert_close(hvp, of_gradients)
    if case.op not in ONCE_IN_PYTORCH:
        along, second = order.in_pytorch()
        assert_close(jvp, along)
        assert_close(hvp, second)


def test_every_op_is_there() -> None:
    assert {case.op for case in FIRST} == set(OPS)


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.slow) if case.op in LONG else case for case in FIRST],
    ids=str,
)
def test_second_order(case: Case) -> None:
    check(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", OTHERS, ids=str)
def test_second_order_of_every_sample(case: Case) -> None:
    check(case)
