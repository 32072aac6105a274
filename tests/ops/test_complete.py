"""Nothing is left out: every op has cases, golden values, a kernel and an entry in the list."""

from __future__ import annotations

import numpy as np
import pytest

import handgrad.ops
from handgrad import kernels
from handgrad.ops import OPS
from tests.golden.make import FILE
from tests.ops.cases import CASES, SMALL_CASES


@pytest.mark.parametrize("op", OPS)
def test_op_has_several_cases(op: str) -> None:
    assert sum(case.op == op for case in SMALL_CASES) >= 5


@pytest.mark.parametrize("op", OPS)
def test_op_has_golden_values(op: str) -> None:
    with np.load(FILE, allow_pickle=False) as golden:
        ids = [case.id for case in CASES if case.op == op and not case.row.not_in_torch]
        assert len(ids) >= 5
        assert set(ids) <= set(golden.files)


@pytest.mark.parametrize("op", OPS)
def test_op_has_a_kernel(op: str) -> None:
    assert kernels.native is None or kernels.has(op)


@pytest.mark.parametrize("op", OPS)
def test_op_is_a_module_with_forward_and_backward(op: str) -> None:
    module = getattr(handgrad.ops, op)
    assert callable(module.forward.reference)
    assert callable(module.backward.reference)
    assert module.Cache.__doc__
    assert not module.Cache.__doc__.startswith("Cache("), "the docstring says what is kept"
    for part in ("Forward:", "Backward:", "Shapes:", "Source:"):
        assert part in module.forward.__doc__, f"{op}: the docstring has no {part}"


def test_cases_have_names_of_their_own() -> None:
    assert len({case.id for case in CASES}) == len(CASES)


def test_cases_name_known_ops_only() -> None:
    assert {case.op for case in CASES} == set(OPS)
