"""JAX functions: values, gradients, precision and integers."""

from __future__ import annotations

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import ArgumentError
from handgrad.interop import forward_backward
from handgrad.interop.jax import from_function
from tests.tolerances import assert_close

jax = pytest.importorskip("jax")
jnp = jax.numpy

DTYPES = {np.float32: "float32 functions", np.float64: "other arrays"}


def normal(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(dtype)


def make_layer_norm(sign):
    """Layer normalisation whose backward has this sign before mean(dx̂)."""

    @jax.custom_vjp
    def layer_norm(x, gamma, beta):
        return forward(x, gamma, beta)[0]

    def forward(x, gamma, beta):
        centred = x - x.mean(-1, keepdims=True)
        inv_std = 1 / jnp.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
        x_hat = centred * inv_std
        return gamma * x_hat + beta, (x_hat, inv_std, gamma)

    def backward(saved, dy):
        x_hat, inv_std, gamma = saved
        dx_hat = dy * gamma
        mean = dx_hat.mean(-1, keepdims=True)
        dx = (dx_hat + sign * mean - x_hat * (dx_hat * x_hat).mean(-1, keepdims=True)) * inv_std
        return dx, (dy * x_hat).sum(0), dy.sum(0)

    layer_norm.defvjp(forward, backward)
    return layer_norm


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("jitted", [False, True])
def test_a_custom_vjp_gives_its_own_values_and_gradients(dtype, jitted):
    function = make_layer_norm(-1)
    inputs = [normal(3, 5, dtype=dtype), normal(5, dtype=dtype), normal(5, dtype=dtype, seed=1)]
    dy = np.broadcast_to(normal(5, dtype=dtype, seed=2), (3, 5))
    functions = forward_backward(jax.jit(function) if jitted else function, inputs)
    assert functions.name == "layer_norm"
    assert functions.inputs == functions.gradients == ("x", "gamma", "beta")
    assert functions.takes_float64
    y, cache = functions.forward(*inputs)
    expected, expected_cache = hg.ops.layer_norm.forward(*inputs)
    assert y.dtype == dtype
    assert_close(y, expected, DTYPES[dtype])
    gradients = hg.ops.layer_norm.backward(dy, expected_cache)
    for _ in range(2):  # backward can be called again
        for found, right in zip(functions.backward(dy, cache), gradients, strict=True):
            assert found.dtype == dtype
            assert_close(found, right, DTYPES[dtype])


def test_a_wrong_custom_vjp_keeps_its_wrong_gradients():
    inputs = normal(3, 5), normal(5), normal(5, seed=1)
    dy = normal(3, 5, seed=2)
    right, wrong = (
        functions.backward(dy, functions.forward(*inputs)[1])
        for functions in (from_function(make_layer_norm(sign), inputs) for sign in (-1, 1))
    )
    inv_std = 1 / np.sqrt(inputs[0].var(-1, keepdims=True) + 1e-5)
    mean = (dy * inputs[1]).mean(-1, keepdims=True)
    assert_close(wrong[0] - right[0], np.broadcast_to(2 * mean * inv_std, (3, 5)), "other arrays")
    np.testing.assert_array_equal(wrong[1], right[1])


def test_arrays_that_change_later_do_not_change_the_cache():
    x = normal(64)
    kept = x.copy()
    functions = from_function(lambda x: x * x, [x])
    _, cache = functions.forward(x)
    x[...] = 0.0
    assert_close(functions.backward(np.array(kept), cache), 2 * kept * kept, "other arrays")


def test_0_d_and_empty():
    for x in (np.array(0.7), normal(0, 3)):
        functions = from_function(lambda x: jnp.tanh(x), [x])
        y, cache = functions.forward(x)
        dx = functions.backward(np.ones_like(x) * 3.0, cache)
        assert y.shape == dx.shape == x.shape
        assert_close(dx, 3.0 * (1 - np.tanh(x) ** 2), "other arrays")


def test_integers_are_inputs_and_outputs_without_a_gradient():
    @jax.custom_vjp
    def embedding(table, tokens):
        return table[tokens], tokens + 1

    def forward(table, tokens):
        return embedding(table, tokens), (table.shape[0], tokens)

    def backward(saved, cotangents):
        rows, tokens = saved
        dy, _ = cotangents
        return jnp.zeros((rows, dy.shape[-1]), dy.dtype).at[tokens].add(dy), None

    embedding.defvjp(forward, backward)
    table, tokens, dy = normal(5, 3), np.array([4, 0, 4]), normal(3, 3, seed=1)
    functions = forward_backward(embedding, [table, tokens])
    assert functions.inputs == ("table", "tokens")
    assert functions.gradients == ("table",)
    (y, following), cache = functions.forward(table, tokens)
    np.testing.assert_array_equal(y, table[tokens])
    np.testing.assert_array_equal(following, tokens + 1)
    expected = np.zeros((5, 3))
    np.add.at(expected, tokens, dy)
    assert_close(functions.backward((dy, np.zeros_like(tokens)), cache), expected, "other arrays")


def test_constants_and_nested_outputs():
    def function(x, power, *others):
        return x**power, [sum(others), None]

    x, first, second = normal(3), normal(3, seed=1), normal(3, seed=2)
    functions = from_function(function, [x, 3, first, second], name="powers")
    assert functions.name == "powers"
    assert functions.inputs == functions.gradients == ("x", "others0", "others1")
    y, cache = functions.forward(x, first, second)
    assert_close(y[1][0], first + second, "other arrays")
    dy = normal(3, seed=3), (normal(3, seed=4),)
    dx, dfirst, dsecond = functions.backward(dy, cache)
    assert_close(dx, 3 * x * x * dy[0], "other arrays")
    np.testing.assert_array_equal(dfirst, dy[1][0])
    np.testing.assert_array_equal(dsecond, dy[1][0])


def test_the_precision_outside_is_left_as_it_was():
    before = jnp.ones(3).dtype
    functions = from_function(jnp.tanh, [normal(3)])
    _, cache = functions.forward(normal(3))
    functions.backward(normal(3), cache)
    assert jnp.ones(3).dtype == before


def test_a_function_for_float32_only():
    assert not from_function(lambda x: x.astype(jnp.float32) * 2, [normal(3)]).takes_float64


def test_what_is_wrong_with_a_function():
    x = normal(3)
    with pytest.raises(ArgumentError, match=r"^layer_norm: 1 inputs given; allowed: what "):
        from_function(make_layer_norm(-1), [x])
    with pytest.raises(ArgumentError, match=r"^net: a dict of arrays is given; allowed: "):
        from_function(lambda parameters: parameters["w"], [{"w": x}], name="net")
    with pytest.raises(ArgumentError, match=r"^net: forward returns a dict; allowed: "):
        from_function(lambda x: {"y": x}, [x], name="net").forward(x)


def test_what_is_recognised():
    x = normal(3)
    assert forward_backward(jnp.tanh, [x]).inputs == ("x",)
    assert forward_backward(jnp.ones(3), [x]) is None
    assert forward_backward(lambda x: jnp.tanh(x), [x]) is None
