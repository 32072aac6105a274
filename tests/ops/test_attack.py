"""Every op with every argument wrong in every way: one sentence or a right answer, never else.

Nothing here is particular to an op: what is tried follows from the signature of its forward. An
answer counts as right where the other engine gives the same, see `assert_same`.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pytest

from handgrad import kernels, ops
from handgrad.dispatch import SKIP, engine
from handgrad.errors import ArgumentError, HandgradError, ShapeError
from tests.ops.cases import (
    SMALL_CASES,
    UNMASKED_CASES,
    Arrays,
    Case,
    each,
    each_float,
    leaves,
    mapped,
)
from tests.rows import rows


def _values(case: Case) -> int:
    return sum(array.size for array in case.arrays().values())


#: The small case of every op with the most values.
ONE_PER_OP: Final = tuple({case.op: case for case in sorted(SMALL_CASES, key=_values)}.values())


class Stranger:
    """An object that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("not to be shown")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not to be compared")

    __hash__ = object.__hash__


def _array(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape)


#: Values that no parameter takes, or few; sizes that no memory holds.
WRONG: Final[dict[str, Any]] = {
    "None": None,
    "text": "same",
    "empty text": "",
    "bytes": b"x",
    "yes": True,
    "no": False,
    "zero": 0,
    "two": 2,
    "minus one": -1,
    "2**28": 2**28,
    "2**31": 2**31,
    "2**62": 2**62,
    "2**63": 2**63,
    "-2**63": -(2**63),
    "10**5000": 10**5000,
    "one and a half": 1.5,
    "NaN": float("nan"),
    "inf": float("inf"),
    "1e300": 1e300,
    "1e-300": 1e-300,
    "complex": 1j,
    "np.int64": np.int64(2),
    "np.uint64": np.uint64(2**64 - 100),
    "np.float32": np.float32(0.1),
    "np.float16": np.float16(0.1),
    "np.longdouble": np.longdouble("1e4000"),
    "np.bool_": np.bool_(True),
    "np.str_": np.str_("none"),
    "np.datetime64": np.datetime64("2026-01-01"),
    "list": [1, 2],
    "nested list": [[1.0], [2.0, 3.0]],
    "tuple": (1, 2),
    "long tuple": (1,) * 9,
    "huge tuple": (2, 2**63),
    "big tuple": (2**40, 2**40),
    "floats in a tuple": (1.0, 2.0),
    "empty tuple": (),
    "dict": {"a": 1},
    "set": {1},
    "slice": slice(None),
    "ellipsis": ...,
    "type": float,
    "function": len,
    "stranger": Stranger(),
    "generator of another kind": np.random.RandomState(0),
    "0-d": np.array(2.0),
    "0-d integer": np.array(2),
    "no values": np.zeros((0,)),
    "vector": _array(3),
    "matrix": _array(3, 4),
    "many axes": _array(*(1,) * 9),
    "integers": np.arange(12).reshape(3, 4),
    "uint64": np.full((3,), 2**64 - 100, np.uint64),
    "int64 edge": np.full((3,), -(2**63)),
    "booleans": np.ones((3, 4), bool),
    "float16": _array(3, 4).astype(np.float16),
    "longdouble": _array(3, 4).astype(np.longdouble),
    "complex array": _array(3, 4) + 1j,
    "object array": np.array([[1, "a"], [None, 2.0]], dtype=object),
    "text array": np.array(["a", "b"]),
    "dates": np.array(["2026-01-01"], dtype="M8[D]"),
    "structured": np.zeros(3, dtype=[("a", "f4"), ("b", "i4")]),
    "np.matrix": _array(3, 4).view(np.matrix),
    "masked": np.ma.masked_array(_array(3, 4), mask=np.eye(3, 4)),
    "not a number array": np.full((3, 4), np.nan),
    "wide without values": np.zeros((0, 2**40)),
    "long without values": np.zeros((2**40, 0)),
    "zero strides": np.broadcast_to(np.float64(1.5), (3, 4)),
}

#: Ways to lay an array of a case out, or to write its values in another type.
FORMS: Final[dict[str, Callable[[np.ndarray], Any]]] = {
    "list": lambda a: a.tolist(),
    "memoryview": lambda a: memoryview(a),
    "float32": lambda a: a.astype(np.float32) if a.dtype.kind == "f" else a.astype(np.int32),
    "float16": lambda a: a.astype(np.float16) if a.dtype.kind == "f" else a.astype(np.int8),
    "longdouble": lambda a: a.astype(np.longdouble) if a.dtype.kind == "f" else a.astype("u8"),
    "integers": lambda a: a.astype(np.int64),
    "floats": lambda a: a.astype(np.float64),
    "booleans": lambda a: a.astype(bool),
    "complex": lambda a: a.astype(np.complex128),
    "objects": lambda a: a.astype(object),
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "np.matrix": lambda a: a.view(np.matrix) if a.ndim == 2 else a,
    "masked": lambda a: np.ma.masked_array(a),
    "one more axis": lambda a: a[None],
    "one axis less": lambda a: a.reshape(-1),
    "no rows": lambda a: a[:0] if a.ndim else a,
    "no columns": lambda a: a[..., :0] if a.ndim else a,
    "one column more": lambda a: np.concatenate([a, a[..., :1]], -1) if a.ndim and a.size else a,
    "all the same": lambda a: np.broadcast_to(a.reshape(-1)[0], a.shape) if a.size else a,
    "read-only": lambda a: np.broadcast_to(a, a.shape),
    "Fortran": np.asfortranarray,
    "backwards": lambda a: a[::-1].copy()[::-1] if a.ndim else a,
}


def outcome(call: Callable[[], Any]) -> Any:
    """The result of the call; None for an error of ours, whose message is one sentence.

    Where that is all that is wrong, memory may run out, and Python's own error says so.
    """
    refused = ""
    try:
        with np.errstate(all="ignore"):
            return call()
    except MemoryError:
        return None
    except HandgradError as error:
        refused = str(error)
    assert "; allowed" in refused, refused
    assert "\n" not in refused
    assert len(refused) < 800
    return None


def both_engines(call: Callable[[], Any]) -> Iterator[Any]:
    for name in ("reference", "auto") if kernels.native is not None else ("reference",):
        with engine(name):
            yield outcome(call)


def finish(case: Case, answer: Any) -> None:
    """Backward of what forward gave, which has to work as far as memory goes."""
    if answer is not None:
        y, cache = answer
        dy = mapped(lambda array: np.ones(array.shape, array.dtype), y)
        with np.errstate(all="ignore"):
            try:
                gradients = case.module.backward(dy, cache)
            except MemoryError:  # a reference has a row of numbers for 2**40 rows of no values
                return
        assert all(isinstance(array, np.ndarray | np.generic) for array in leaves(gradients))


@pytest.mark.slow
@rows("wrong", WRONG)
@each(ONE_PER_OP)
def test_a_wrong_argument_is_one_sentence(case: Case, wrong: str) -> None:
    bound = case.arguments(case.arrays())
    for name in bound.signature.parameters:
        arguments = copy.copy(bound)
        arguments.arguments = {**case.arguments(case.arrays()).arguments, name: WRONG[wrong]}
        for answer in both_engines(
            lambda bound=arguments: case.module.forward(*bound.args, **bound.kwargs)
        ):
            finish(case, answer)


@rows("form", FORMS)
@each(ONE_PER_OP)
def test_another_form_of_an_array_is_one_sentence(case: Case, form: str) -> None:
    arrays = case.arrays()
    for name in arrays:
        changed = {**arrays, name: FORMS[form](arrays[name])}
        answers = list(both_engines(lambda changed=changed: case.forward(changed)))
        for answer in answers:
            finish(case, answer)
        if answers[0] is None or answers[-1] is None:
            assert answers == [None] * len(answers), name
            continue
        for found, right in zip(leaves(answers[-1][0]), leaves(answers[0][0]), strict=True):
            assert found.shape == right.shape
            assert found.dtype == right.dtype
            rtol = 1e-2 if found.dtype == np.float16 else 1e-4
            np.testing.assert_allclose(found, right, rtol=rtol, atol=rtol)


@each(ONE_PER_OP)
def test_missing_unknown_and_repeated_arguments(case: Case) -> None:
    forward, arrays = case.module.forward, case.arrays()
    bound = case.arguments(arrays)
    first = next(iter(arrays.values()))
    calls: list[Callable[[], Any]] = [
        lambda: forward(),
        lambda: forward(*bound.args, *(None,) * 30, **bound.kwargs),
        lambda: forward(*bound.args, **bound.kwargs, colour="red"),
        lambda: forward(*bound.args, **{**bound.kwargs, next(iter(arrays)): first}),
    ]
    for call in calls:
        assert set(both_engines(call)) == {None}


def wrong_gradients(y: Any) -> dict[str, Any]:
    """Gradients that are not like y."""
    first = next(leaves(y))
    array = np.asarray(first)
    return {
        **{name: value for name, value in WRONG.items() if not isinstance(value, np.ndarray)},
        "list of it": array.tolist(),
        "integers": np.ones(array.shape, int),
        "booleans": np.ones(array.shape, bool),
        "complex": np.ones(array.shape, complex),
        "objects": np.ones(array.shape, object),
        "float16": np.ones(array.shape, np.float16),
        "float32": np.ones(array.shape, np.float32),
        "longdouble": np.ones(array.shape, np.longdouble),
        "one more axis": array[None],
        "rows of nothing": np.zeros((0, *array.shape[1:])) if array.ndim else np.zeros(0),
        "masked": np.ma.masked_array(np.ones(array.shape)),
        "matrix": np.ones((2, 2)).view(np.matrix),
        "long": np.zeros((2**40, 0)),
    }


@each(ONE_PER_OP)
def test_a_wrong_dy_is_one_sentence(case: Case, on_engine: str) -> None:
    y, cache = case.forward(case.arrays())
    for name, wrong in wrong_gradients(y).items():
        for dy in (wrong, (wrong, wrong), [wrong]):
            if (
                dy is wrong
                and next(leaves(y)).ndim == 0
                and isinstance(dy, float)
                and name != "np.float32"
            ):
                continue
            assert outcome(lambda dy=dy: case.module.backward(dy, cache)) is None, name


@each(ONE_PER_OP)
def test_a_wrong_buffer_is_one_sentence(case: Case, on_engine: str) -> None:
    arrays = case.arrays()
    y, cache = case.forward(arrays)
    dy = mapped(np.array, case.random_like(y, "cotangent"))
    right = case.module.backward(dy, cache)
    several = isinstance(right, tuple)
    first = right[0] if several else right

    def outs_of(value: Any) -> tuple[Any, ...]:
        return (value, *(SKIP for _ in right[1:])) if several else (value,)

    big = np.zeros(sum(array.size for array in leaves(right)) + 3)
    wrong = [
        value
        for value in WRONG.values()
        if value is not None and not isinstance(value, tuple | list)
    ]
    wrong += [np.array(2), np.zeros((1, *first.shape)), first.astype(np.float32), first.tolist()]
    wrong += [np.broadcast_to(first, first.shape), np.zeros((*first.shape, 2))[..., 0]]
    for value in wrong:
        assert outcome(lambda value=value: case.module.backward(dy, cache, out=value)) is None
        if isinstance(value, np.ndarray) and value.shape == first.shape == ():
            continue
        outs = outs_of(value)
        assert outcome(lambda outs=outs: case.module.backward(dy, cache, out=outs)) is None
    for outs in ((), (None,) * 30, (*outs_of(None), None)):
        assert outcome(lambda outs=outs: case.module.backward(dy, cache, out=outs)) is None
    if several and len(right) > 1 and right[1] is not None:
        both = big[: first.size].reshape(first.shape), big[1 : 1 + right[1].size]
        outs = (both[0], both[1].reshape(right[1].shape), *(SKIP for _ in right[2:]))
        assert outcome(lambda: case.module.backward(dy, cache, out=outs)) is None
    for array in leaves(dy):
        if array.shape == first.shape and array.size:
            outs = outs_of(array)
            assert outcome(lambda outs=outs: case.module.backward(dy, cache, out=outs)) is None


@each(ONE_PER_OP)
def test_a_wrong_residual_is_one_sentence(case: Case, on_engine: str) -> None:
    bound = case.arguments(case.arrays())
    y, cache = case.forward(case.arrays())
    dy = case.random_like(y, "cotangent")
    for name, residual in WRONG.items():
        if residual is None:
            continue
        shape = getattr(residual, "shape", None)
        if name in ("0-d", "np.float32") or shape == getattr(y, "shape", 0):
            continue
        assert (
            outcome(
                lambda residual=residual: case.module.forward(
                    *bound.args, **bound.kwargs, residual=residual
                )
            )
            is None
        ), name
        assert (
            outcome(lambda residual=residual: case.module.backward(dy, cache, residual=residual))
            is None
        ), name


@each(ONE_PER_OP)
def test_a_wrong_cache_is_one_sentence(case: Case, on_engine: str) -> None:
    y, cache = case.forward(case.arrays())
    dy = case.random_like(y, "cotangent")
    for wrong in (*WRONG.values(), y, tuple(cache), type("Cache", (), {})()):
        assert outcome(lambda wrong=wrong: case.module.backward(dy, wrong)) is None
    for other in ONE_PER_OP:
        if other.op != case.op:
            _, theirs = other.forward(other.arrays())
            assert outcome(lambda theirs=theirs: case.module.backward(dy, theirs)) is None, other.op


@each(ONE_PER_OP)
def test_a_cache_that_was_changed_is_noticed(case: Case, on_engine: str) -> None:
    y, cache = case.forward(case.arrays())
    dy = case.random_like(y, "cotangent")
    kept = getattr(cache, "kept", cache)
    for field in kept._fields:
        value = getattr(kept, field)
        if kernels.native is not None and isinstance(value, np.ndarray) and value.ndim > 1:
            y, cache = case.forward(case.arrays())
            array = getattr(getattr(cache, "kept", cache), field)
            try:
                array.shape = (array.size,)
            except AttributeError:  # a view that cannot be
                continue
            if array.shape != value.shape:
                assert outcome(lambda cache=cache: case.module.backward(dy, cache)) is None, field
    if hasattr(cache, "kept"):
        y, cache = case.forward(case.arrays())
        for field in kept._fields:
            for wrong in (None, 7, "x", np.zeros(1), np.zeros((0, 2**40))):
                changed = cache._replace(kept=cache.kept._replace(**{field: wrong}))
                if wrong is getattr(kept, field):
                    continue
                assert outcome(lambda changed=changed: case.module.backward(dy, changed)) is None
        with pytest.raises(AttributeError):
            cache.kept = kept


@each(ONE_PER_OP)
def test_a_cache_put_together_by_hand_never_raises_else(case: Case) -> None:
    with engine("reference"):
        y, cache = case.forward(case.arrays())
        dy = case.random_like(y, "cotangent")
        for field in cache._fields:
            for wrong in (None, 7, "x", memoryview(b"x"), np.zeros(1), np.ones((3, 4), int)):
                fields = {**cache._asdict(), field: wrong}
                changed = case.module.Cache(**fields)
                outcome(lambda changed=changed: case.module.backward(dy, changed))
                if wrong is not getattr(cache, field):
                    changed = cache._replace(**{field: wrong})
                    with pytest.raises(ArgumentError, match="the cache was changed since forward"):
                        case.module.backward(dy, changed)


@each(ONE_PER_OP)
def test_caches_are_copied_and_pickled(case: Case, on_engine: str) -> None:
    y, cache = case.forward(case.arrays())
    dy = case.random_like(y, "cotangent")
    expected = case.backward(dy, cache)
    for again in (copy.copy(cache), copy.deepcopy(cache), pickle.loads(pickle.dumps(cache))):
        assert type(again) is type(cache)
        found = case.backward(dy, again)
        for name, right in expected.items():
            assert (found[name] is None) if right is None else (found[name] == right).all()
        assert outcome(lambda again=again: case.module.backward(None, again)) is None


@each(SMALL_CASES)
def test_outputs_that_a_cache_shares_are_read_only(case: Case, on_engine: str) -> None:
    arrays: Arrays = case.arrays()
    y, cache = case.forward(arrays)
    kept = list(leaves(getattr(cache, "kept", tuple(cache))))
    for output in leaves(y):
        if isinstance(output, np.ndarray) and any(np.shares_memory(output, k) for k in kept):
            assert not output.flags.writeable
    assert all(array.flags.writeable for array in arrays.values()), "the caller's stay as they were"


#: Values at the edges of the float types; sums of the huge ones overflow, in an order's own way.
EDGES: Final = (np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1e-45, -1e-40, 1e-20, 89.0, -746.0)


def with_edges(case: Case, name: str, array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if array.dtype.kind != "f" or name in case.samples.open_nonfinite:
        return array
    edges = rng.choice(np.array(EDGES), array.shape).astype(array.dtype)
    return np.where(rng.random(array.shape) < 0.1, edges, array)


def without_subnormals(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind != "f":
        return array
    return np.where(np.abs(array) < np.finfo(array.dtype).tiny, array.dtype.type(0), array)


def assert_same_positions(found: Any, right: Any, other: Any, name: str) -> None:
    """NaN and infinities stand at the same positions, where the two references agree on them."""
    if right is None:
        assert found is None
        return
    for is_here in (np.isnan, np.isposinf, np.isneginf):
        decided = is_here(right) == is_here(other)
        np.testing.assert_array_equal(is_here(found)[decided], is_here(right)[decided], name)


@pytest.mark.skipif(kernels.native is None, reason="nothing to compare with")
@each_float
@each([case for case in UNMASKED_CASES if not case.samples.saturates])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nan_and_infinity_come_out_where_the_reference_has_them(case: Case, dtype: Any) -> None:
    """A kernel's subnormal results are 0, and 0 · ∞ is NaN: so the reference is asked for both."""
    rng = np.random.default_rng(22)
    for _ in range(2):
        arrays = {
            name: with_edges(case, name, array, rng) for name, array in case.arrays(dtype).items()
        }
        dy = None
        found = []
        for name, given in (
            ("reference", arrays),
            ("reference", {key: without_subnormals(array) for key, array in arrays.items()}),
            ("kernels", arrays),
        ):
            with engine(name):
                y, cache = case.forward(given)
                dy = case.random_like(y, "cotangent", dtype) if dy is None else dy
                found.append((list(leaves(y)), case.backward(dy, cache)))
        (right, right_gradients), (other, other_gradients), (ours, gradients) = found
        for each_y in zip(ours, right, other, strict=True):
            assert_same_positions(*each_y, "y")
        for name, gradient in right_gradients.items():
            assert_same_positions(gradients[name], gradient, other_gradients[name], f"d{name}")


@each(SMALL_CASES)
def test_indices_may_change_after_forward(case: Case, on_engine: str) -> None:
    arrays = case.arrays()
    indices = [array for array in arrays.values() if array.dtype.kind in "ib"]
    y, cache = case.forward(arrays)
    dy = case.random_like(y, "cotangent")
    expected = case.backward(dy, cache)
    for array in indices:
        array[...] = array.dtype.type(2**62)
    for name, gradient in case.backward(dy, cache).items():
        np.testing.assert_array_equal(gradient, expected[name])


@pytest.mark.skipif(kernels.native is None, reason="a reference has no memory to reach beyond")
@pytest.mark.parametrize("wrong", [-1, 2**40, -(2**63)])
def test_kept_indices_are_looked_at_again(wrong: int) -> None:
    y, cache = ops.embedding.forward(np.array([1, 2]), _array(3, 4))
    cache.tokens[0] = wrong
    assert outcome(lambda: ops.embedding.backward(y, cache)) is None
    loss, cache = ops.cross_entropy.forward(_array(2, 4), np.array([1, 2]))
    cache.target[0] = wrong
    assert outcome(lambda: ops.cross_entropy.backward(np.ones_like(loss), cache)) is None


@pytest.mark.parametrize("integer", [np.int8, np.uint8, np.int16, np.uint32, np.uint64])
@pytest.mark.parametrize("engine_name", ["auto", "reference"])
def test_indices_are_compared_as_what_they_are(integer: Any, engine_name: str) -> None:
    """Never as what is left of them in another type: -2**63 is not 0, 2**64 - 100 is not -100."""
    x, table = _array(3, 300), _array(300, 2)
    with engine(engine_name):
        few = np.array([0, 100, 3], dtype=integer)
        loss, cache = ops.cross_entropy.forward(x, few)
        expected, expected_cache = ops.cross_entropy.forward(x, few.astype(np.int64))
        assert loss == expected
        one = np.asarray(1.0)
        np.testing.assert_array_equal(
            ops.cross_entropy.backward(one, cache), ops.cross_entropy.backward(one, expected_cache)
        )
        y, cache = ops.embedding.forward(few, table)
        np.testing.assert_array_equal(y, table[few])
        for wrong in (-(2**63), -(2**63) + 1, -1, 2**62, 2**63 - 1, 300):
            for refused in (
                lambda wrong=wrong: ops.embedding.forward(np.array([wrong]), table),
                lambda wrong=wrong: ops.cross_entropy.forward(x[:1], np.array([wrong])),
            ):
                assert outcome(refused) is None
        huge = np.array([2**64 - 100, 0, 0], dtype=np.uint64)
        assert outcome(lambda: ops.cross_entropy.forward(x, huge)) is None
        assert outcome(lambda: ops.embedding.forward(huge, table)) is None


@pytest.mark.parametrize("engine_name", ["auto", "reference"])
def test_sizes_beyond_any_memory_are_refused_before_memory_is_asked_for(engine_name: str) -> None:
    long, wide = np.zeros((2**40, 0), np.float32), np.zeros((0, 2**40), np.float32)
    with engine(engine_name):
        for call in (
            lambda: ops.matmul.forward(long, wide),
            lambda: ops.linear.forward(long, long),
            lambda: ops.dense.forward(long, long),
        ):
            with pytest.raises(ShapeError, match="would have shape"):
                call()


@pytest.mark.skipif(kernels.native is None, reason="references read any layout")
def test_a_copied_cache_of_views_is_read_as_it_lies_now() -> None:
    """A copy of (N, T, H, d) seen as (N, H, T, d), or of broadcast heads, may lie any way."""
    heads = _array(2, 5, 3, 4).swapaxes(1, 2)
    keys = np.broadcast_to(_array(1, 1, 7, 4), (2, 1, 7, 4))
    values = _array(4, 7, 2, 1).transpose(2, 3, 1, 0).copy(order="K")
    values = np.moveaxis(np.ascontiguousarray(np.moveaxis(values, 2, 0)), 0, 2)
    y, cache = ops.attention.forward(heads, keys, values)
    expected = ops.attention.backward(y, cache)
    for again in (copy.copy(cache), copy.deepcopy(cache), pickle.loads(pickle.dumps(cache))):
        for found, right in zip(ops.attention.backward(y, again), expected, strict=True):
            assert (found is None) if right is None else (found == right).all()
