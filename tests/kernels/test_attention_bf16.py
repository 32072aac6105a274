"""Attention in bfloat16: its six products take rounded operands, written out by hand here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.ops import attention
from tests.kernels.test_attention import SETTINGS, few, heads
from tests.test_precision import bf16, needs_unit, rounded
from tests.tolerances import assert_close

__all__ = ["bf16"]

pytestmark = needs_unit

MORE: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "nothing even": ((1, 1, 1, 3, 1, 1), {}),
    "a pair left over": ((2, 2, 2, 33, 31, 31), {}),
    "full sides": ((1, 2, 2, 64, 128, 64), {"causal": True}),
    "one beyond": ((1, 2, 1, 65, 129, 65), {"causal": True, "offset": 64}),
    "wide heads": ((1, 1, 1, 70, 97, 130), {"scale": 0.1}),
    "negative scale": ((1, 1, 1, 40, 50, 12), {"scale": -0.3}),
    "queries that see nothing": ((1, 1, 1, 40, 50, 12), {"causal": True, "offset": -37}),
    "mask, causal": ((1, 2, 2, 100, 100, 24), {"causal": True, "mask": few(100, 100)}),
}
MANY = {name: setting for name, setting in SETTINGS.items() if "quer" not in name} | MORE


def float32(*given: Any) -> tuple[Any, ...]:
    return tuple(None if one is None else one.astype(np.float32) for one in given)


def transposed(x: np.ndarray) -> np.ndarray:
    return np.swapaxes(x, -1, -2)


class ByHand:
    """Every product in float64 on rounded operands, one head of keys for each of queries."""

    def __init__(self, arrays: Any, bias: Any, options: dict[str, Any]) -> None:
        q, k, v = arrays
        self.repeats = q.shape[1] // k.shape[1]
        self.scale = np.float32(options.get("scale") or 1 / np.sqrt(q.shape[3]))
        self.q = rounded(self.scale * q)
        self.k, self.v = (rounded(np.repeat(x, self.repeats, axis=1)) for x in (k, v))
        _, cache = attention.forward.reference(*arrays, bias, **drawn(options))  # type: ignore[attr-defined]
        self.keep = 1.0 if cache.keep is None else cache.keep * np.float64(cache.keep_scale)
        s = self.q @ transposed(self.k) + (0.0 if bias is None else bias.astype(np.float64))
        self.s = np.where(cache.a > 0.0, s, -np.inf)

    def forward(self) -> tuple[np.ndarray, np.ndarray]:
        highest = self.s.max(axis=-1, keepdims=True, initial=-1e30)
        a = np.exp(self.s - highest)
        total = a.sum(axis=-1, keepdims=True)
        sees = total > 0.0
        safe = np.where(sees, total, 1.0)
        y = rounded(a * self.keep) @ self.v / safe
        return y, np.where(sees, highest + np.log(safe), np.inf)[..., 0]

    def backward(self, dy: np.ndarray, y: np.ndarray, log_sums: np.ndarray) -> list[np.ndarray]:
        dy = rounded(dy)
        a = np.exp(self.s - log_sums[..., None])
        da = self.keep * (dy @ transposed(self.v))
        ds = a * (da - (y * dy).sum(axis=-1, keepdims=True))
        dq = self.scale * (rounded(ds) @ self.k)
        return [dq, self.summed(ds, self.q), self.summed(a * self.keep, dy), ds]

    def summed(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """leftᵀ right of all heads that share their keys."""
        product = transposed(rounded(left)) @ right
        n, h, *rest = product.shape
        total: np.ndarray = product.reshape(n, h // self.repeats, self.repeats, *rest).sum(axis=2)
        return total


def drawn(options: dict[str, Any]) -> dict[str, Any]:
    return options | ({"rng": np.random.default_rng(3)} if "dropout_p" in options else {})


def run(arrays: Any, options: dict[str, Any]) -> list[Any]:
    bias = options.pop("bias", None)
    bias = None if bias is None else bias.astype(arrays[0].dtype)
    y, cache = attention.forward(*arrays, bias, **drawn(options))
    dy = np.random.default_rng(42).standard_normal(y.shape).astype(y.dtype)
    return [y, *attention.backward(dy, cache)]


@pytest.mark.parametrize("name", MANY)
def test_products_are_those_of_rounded_operands(name: str, bf16: None) -> None:
    sizes, options = MANY[name]
    options = dict(options)
    arrays = float32(*heads(*sizes))
    (bias,) = float32(options.pop("bias", None))
    exact = ByHand(arrays, bias, options)
    y, cache = attention.forward(*arrays, bias, **drawn(options))
    kept = cache.kept
    expected, log_sums = exact.forward()
    assert y.dtype == np.float32
    assert_close(y, expected, "bf16 of computed operands", "y")
    assert_close(kept.log_sums, log_sums, "bf16", "log_sums")
    (dy,) = float32(np.random.default_rng(42).standard_normal(y.shape))
    *gradients, dbias = attention.backward(dy, cache)
    *wanted, dscores = exact.backward(dy, y.astype(np.float64), kept.log_sums)
    for what, one, right in zip(("dq", "dk", "dv"), gradients, wanted, strict=True):
        assert one.dtype == np.float32
        assert_close(one, right, "bf16 of computed operands", what)
    if bias is not None:
        axes = tuple(range(4 - bias.ndim))
        right = dscores.sum(axis=axes)
        ones = tuple(i for i, size in enumerate(bias.shape) if size == 1)
        assert_close(dbias, right.sum(axis=ones, keepdims=True), "bf16", "dbias")


@pytest.mark.parametrize("name", MANY)
def test_bits_do_not_depend_on_threads_or_layout(name: str, bf16: None) -> None:
    sizes, options = MANY[name]
    arrays = float32(*heads(*sizes))
    before = hg.get_threads()
    bits = set()
    try:
        for threads in (1, 2, 4):
            hg.set_threads(threads)
            found = run(arrays, dict(options))
            bits.add(tuple(None if one is None else one.tobytes() for one in found))
            arrays = tuple(np.ascontiguousarray(array) for array in arrays)
    finally:
        hg.set_threads(before)
    assert len(bits) == 1


@pytest.mark.parametrize("name", ["one query", "two queries"])
def test_few_queries_stay_float32(name: str, bf16: None) -> None:
    """Their keys are read once, where they lie: nothing would be won."""
    sizes, options = SETTINGS[name]
    arrays = float32(*heads(*sizes))
    found = run(arrays, dict(options))
    with hg.precision("float32"):
        for one, same in zip(found, run(arrays, dict(options)), strict=True):
            np.testing.assert_array_equal(one, same)


def test_the_precision_is_that_of_each_call() -> None:
    q, k, _ = float32(*heads(1, 2, 2, 40, 50, 16))
    gradients = {}
    with hg.engine("kernels"):
        for name in ("float32", "bf16"):
            with hg.precision(name):
                _, cache = attention.forward(q, k, k)
            for later in ("float32", "bf16"):
                with hg.precision(later):
                    gradients[name, later] = attention.backward(q, cache)[0]
    for name in ("float32", "bf16"):
        assert not np.array_equal(gradients[name, "float32"], gradients[name, "bf16"])


def test_keys_beyond_the_lengths_are_not_read(bf16: None) -> None:
    q, k, v = float32(*heads(2, 2, 2, 5, 300, 8))
    lengths = np.array([141, 7])
    expected = run((q, k, v), {"lengths": lengths})
    for n, length in enumerate(lengths):
        k[n, :, length:] = np.nan
        v[n, :, length:] = np.nan
    for one, right in zip(run((q, k, v), {"lengths": lengths})[:4], expected[:4], strict=True):
        np.testing.assert_array_equal(one, right)


def test_nan_stays_nan_in_its_head(bf16: None) -> None:
    q, k, v = float32(*heads(2, 3, 3, 37, 45, 7))
    q[0, 1, 36, 6] = np.nan
    v[1, 2, 44, 9] = np.inf
    y, dq, dk, dv, _ = run((q, k, v), {})
    not_finite = np.zeros((2, 3), dtype=bool)
    not_finite[0, 1] = not_finite[1, 2] = True
    np.testing.assert_array_equal(~np.isfinite(y).all(axis=(2, 3)), not_finite)
    assert np.isnan(y[0, 1, 36]).all()
    assert np.isfinite(y[0, 1, :36]).all()
    for gradient in (dq, dk):
        np.testing.assert_array_equal(~np.isfinite(gradient).all(axis=(2, 3)), not_finite)
    np.testing.assert_array_equal(~np.isfinite(dv).all(axis=(2, 3))[1], False)


@pytest.mark.parametrize("queries", [3, 4, 31, 33])
def test_a_key_that_all_weights_leave_out_has_no_gradient(bf16: None, queries: int) -> None:
    """Its score is −∞. Zeros that pad the queries make NaN of it, which must not be added."""
    q, k, v = float32(*heads(1, 1, 1, queries, 5, 4))
    q[..., 3] = np.abs(q[..., 3]) + 0.1
    k[0, 0, 2, 3] = -np.inf
    y, _, dk, dv, _ = run((q, k, v), {})
    assert np.isfinite(y).all()
    for gradient in (dk, dv):
        np.testing.assert_array_equal(gradient[0, 0, 2], 0)
        assert np.isfinite(gradient).all()


def test_float64_is_not_rounded() -> None:
    arrays = heads(1, 2, 2, 40, 50, 16)
    with hg.engine("kernels"):
        plain = run(arrays, {})
        with hg.precision("bf16"):
            for one, right in zip(run(arrays, {}), plain, strict=True):
                np.testing.assert_array_equal(one, right)
