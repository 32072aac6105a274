"""Functions and modules of PyTorch: values, gradients, strides, writes and purity."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import ArgumentError
from handgrad.interop import forward_backward
from handgrad.interop.pytorch import from_function, from_module
from tests.tolerances import assert_close

torch = pytest.importorskip("torch")
Function = torch.autograd.Function
nn = torch.nn

DTYPES = {np.float32: "float32 functions", np.float64: "torch float64"}


class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, gamma, beta, eps=1e-5):
        centred = x - x.mean(-1, keepdim=True)
        inv_std = 1 / torch.sqrt((centred * centred).mean(-1, keepdim=True) + eps)
        x_hat = centred * inv_std
        ctx.save_for_backward(x_hat, inv_std, gamma)
        return gamma * x_hat + beta

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        x_hat, inv_std, gamma = ctx.saved_tensors
        dx_hat = dy * gamma
        mean = dx_hat.mean(-1, keepdim=True)
        dx = (dx_hat - mean - x_hat * (dx_hat * x_hat).mean(-1, keepdim=True)) * inv_std
        return dx, (dy * x_hat).sum(0), dy.sum(0), None


class WrongLayerNorm(LayerNorm):
    @staticmethod
    def backward(ctx, dy):
        x_hat, inv_std, gamma = ctx.saved_tensors
        dx_hat = dy * gamma
        return dx_hat * inv_std, (dy * x_hat).sum(0), None, None


class Seen(Function):
    """Twice x; keeps the cotangent that arrived."""

    dy = None

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, dy):
        Seen.dy = dy
        return dy * 2


class Embedding(Function):
    """In the newer style: forward without ctx."""

    @staticmethod
    def forward(table, tokens):
        return table[tokens]

    @staticmethod
    def setup_context(ctx, inputs, output):
        table, tokens = inputs
        ctx.save_for_backward(tokens)
        ctx.rows = table.shape[0]

    @staticmethod
    def backward(ctx, dy):
        (tokens,) = ctx.saved_tensors
        return dy.new_zeros(ctx.rows, dy.shape[-1]).index_add(0, tokens, dy), None


class Largest(Function):
    """The largest of each row, where it is, and the sum of each row."""

    @staticmethod
    def forward(ctx, x):
        values, indices = x.max(-1)
        ctx.save_for_backward(indices)
        ctx.width = x.shape[-1]
        ctx.mark_non_differentiable(indices)
        return values, indices, x.sum(-1)

    @staticmethod
    def backward(ctx, dvalues, dindices, dsum):
        (indices,) = ctx.saved_tensors
        chosen = nn.functional.one_hot(indices, ctx.width)
        return chosen * dvalues[:, None] + dsum[:, None]


def normal(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(dtype)


def layer_norm_inputs(dtype=np.float64):
    return normal(3, 5, dtype=dtype), normal(5, dtype=dtype), normal(5, dtype=dtype, seed=1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_function_gives_its_own_values_and_gradients(dtype):
    inputs, dy = layer_norm_inputs(dtype), normal(3, 5, dtype=dtype, seed=2)
    functions = from_function(LayerNorm, [*inputs, 1e-3])
    assert functions.name == "LayerNorm"
    assert functions.inputs == functions.gradients == ("x", "gamma", "beta")
    assert functions.takes_float64
    y, cache = functions.forward(*inputs)
    expected, expected_cache = hg.ops.layer_norm.forward(*inputs, eps=1e-3)
    assert y.dtype == dtype
    assert_close(y, expected, DTYPES[dtype])
    gradients = hg.ops.layer_norm.backward(dy, expected_cache)
    for _ in range(2):  # backward can be called again
        for found, right in zip(functions.backward(dy, cache), gradients, strict=True):
            assert found.dtype == dtype
            assert_close(found, right, DTYPES[dtype])


def test_a_wrong_function_keeps_its_wrong_gradients():
    x, gamma, beta = layer_norm_inputs()
    dy = normal(3, 5, seed=2)
    functions = forward_backward(WrongLayerNorm, [x, gamma, beta])
    _, cache = functions.forward(x, gamma, beta)
    dx, _, dbeta = functions.backward(dy, cache)
    inv_std = 1 / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    assert_close(dx, dy * gamma * inv_std, "torch float64")
    assert dbeta is None


COTANGENTS = {
    "zero strides": np.broadcast_to(np.float64(0.7), (3, 4)),
    "one zero stride": np.broadcast_to(normal(4), (3, 4)),
    "transposed": normal(4, 3).T,
    "every second row": normal(6, 4)[::2],
    "0-d": np.array(0.7),
    "empty": normal(0, 4),
}


@pytest.mark.parametrize("dy", COTANGENTS.values(), ids=COTANGENTS)
def test_dy_arrives_as_it_is(dy):
    x = normal(*dy.shape)
    functions = from_function(Seen, [x])
    y, cache = functions.forward(x)
    dx = functions.backward(dy, cache)
    assert y.shape == dx.shape == dy.shape
    assert_close(dx, 2 * dy, "torch float64")
    assert Seen.dy.data_ptr() == (dy.ctypes.data if dy.size else 0)
    if dy.size:
        assert [8 * stride for stride in Seen.dy.stride()] == list(dy.strides)


def test_a_negative_stride_is_taken_as_a_copy():
    x = normal(5)[::-1]
    y, _ = from_function(Seen, [x]).forward(x)
    assert_close(y, 2 * x, "torch float64")


@pytest.mark.parametrize("writeable", [True, False])
def test_what_a_function_writes_can_be_seen(writeable):
    class Writes(Seen):
        @staticmethod
        def forward(ctx, x):
            return x.mul_(2) * 1

        @staticmethod
        def backward(ctx, dy):
            return dy.mul_(2)

    x, dy = normal(3), normal(3, seed=1)
    x_before, dy_before = x.copy(), dy.copy()
    functions = from_function(Writes, [x])
    assert_close(x, x_before, "torch float64")  # making the functions has tried copies
    x.flags.writeable = dy.flags.writeable = writeable
    _, cache = functions.forward(x)
    functions.backward(dy, cache)
    assert_close(x, 2 * x_before, "torch float64")
    assert_close(dy, 2 * dy_before, "torch float64")


def test_integers_are_inputs_without_a_gradient():
    table, tokens, dy = normal(5, 3), np.array([4, 0, 4]), normal(3, 3, seed=1)
    functions = from_function(Embedding, [table, tokens])
    assert functions.inputs == ("table", "tokens")
    assert functions.gradients == ("table",)
    y, cache = functions.forward(table, tokens)
    np.testing.assert_array_equal(y, table[tokens])
    expected = np.zeros((5, 3))
    np.add.at(expected, tokens, dy)
    assert_close(functions.backward(dy, cache), expected, "torch float64")


def test_several_outputs_of_which_one_is_not_differentiable():
    x = normal(3, 4)
    functions = from_function(Largest, [x])
    (values, indices, sums), cache = functions.forward(x)
    np.testing.assert_array_equal(indices, x.argmax(-1))
    assert_close(values, x.max(-1), "torch float64")
    dvalues, dsums = normal(3), normal(3, seed=1)
    expected = np.eye(4)[indices] * dvalues[:, None] + dsums[:, None]
    dx = functions.backward((dvalues, np.zeros_like(indices), dsums), cache)
    assert_close(dx, expected, "torch float64")
    assert sums.shape == (3,)


def test_a_function_of_no_input_has_no_gradient():
    class Constant(Seen):
        @staticmethod
        def forward(ctx, x):
            y = torch.ones(3)
            ctx.mark_non_differentiable(y)
            return y

    functions = from_function(Constant, [normal(3)])
    _, cache = functions.forward(normal(3))
    assert functions.backward(normal(3, dtype=np.float32), cache) is None


def test_what_is_wrong_with_a_function():
    class TooFew(Seen):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

    class Dictionary(Seen):
        @staticmethod
        def forward(ctx, x):
            return {"y": x}

    x = normal(3)
    functions = from_function(TooFew, [x, x])
    _, cache = functions.forward(x, x)
    with pytest.raises(RuntimeError, match="incorrect number of gradients"):
        functions.backward(x, cache)
    with pytest.raises(ArgumentError, match=r"^TooFew: 3 inputs given; .* forward\(x, y\)"):
        from_function(TooFew, [x, x, x])
    with pytest.raises(ArgumentError, match=r"^Dictionary: forward returns a dict; allowed: "):
        from_function(Dictionary, [x]).forward(x)


def test_a_function_for_float32_only():
    class Casts(Seen):
        @staticmethod
        def forward(ctx, x):
            return x.float() * 2

    class Refuses(Seen):
        @staticmethod
        def forward(ctx, x):
            if x.dtype != torch.float32:
                raise TypeError("float32 only")
            return x * 2

    assert not from_function(Casts, [normal(3)]).takes_float64
    assert not from_function(Refuses, [normal(3)]).takes_float64


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_module_gives_the_gradients_of_inputs_and_parameters(dtype, training):
    module = nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.Dropout(0.5), nn.Linear(6, 3))
    module.train(training)
    x, dy = normal(5, 4, dtype=dtype), normal(5, 3, dtype=dtype)
    functions = forward_backward(module, [x])
    assert functions.name == "Sequential"
    assert functions.inputs == functions.gradients == ("input", *dict(module.named_parameters()))
    assert list(functions.parameters) == list(functions.inputs[1:])
    parameters = [functions.parameters[name].astype(dtype) for name in functions.inputs[1:]]

    y, cache = functions.forward(x, *parameters)
    gradients = functions.backward(dy, cache)
    again, _ = functions.forward(x, *parameters)
    np.testing.assert_array_equal(y, again)  # dropout has drawn the same
    assert y.dtype == gradients[0].dtype == gradients[1].dtype == dtype

    module.to(getattr(torch, np.dtype(dtype).name))
    leaf = torch.from_numpy(x).requires_grad_()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        expected = module(leaf)
    assert_close(y, expected.detach(), DTYPES[dtype])
    expected.backward(torch.from_numpy(dy))
    for found, right in zip(gradients, [leaf, *module.parameters()], strict=True):
        assert_close(found, right.grad, DTYPES[dtype])


def test_a_module_and_torch_are_left_as_they_were():
    module = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.5))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    generator = torch.get_rng_state()
    x, dy = normal(5, 4), normal(5, 6)
    functions = from_module(module, [x], name="block")
    assert functions.name == "block"
    arrays = [x, *(2 * value.astype(np.float64) for value in functions.parameters.values())]
    _, cache = functions.forward(*arrays)
    functions.backward(dy, cache)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert all(parameter.grad is None for parameter in module.parameters())
    assert torch.equal(torch.get_rng_state(), generator)


def test_batch_norm_in_training_agrees_with_ours():
    x, dy = normal(7, 3), normal(7, 3, seed=1)
    gamma, beta = normal(3), normal(3, seed=1)
    functions = from_module(nn.BatchNorm1d(3), [x])
    y, cache = functions.forward(x, gamma, beta)
    expected, expected_cache = hg.ops.batch_norm.forward(
        x, gamma, beta, np.zeros(3), np.ones(3), training=True
    )
    assert_close(y, expected, "torch float64")
    gradients = hg.ops.batch_norm.backward(dy, expected_cache)
    for found, right in zip(functions.backward(dy, cache), gradients, strict=True):
        assert_close(found, right, "torch float64")


def test_a_module_with_nested_outputs_integers_and_frozen_parameters():
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(5, 3, sparse=True)
            self.lstm = nn.LSTM(3, 2)
            self.lstm.bias_ih_l0.requires_grad_(False)

        def forward(self, tokens, scale, missing=None):
            y, state = self.lstm(self.embedding(tokens) * scale)
            return y, missing, list(state)

    tokens, scale = np.array([[4], [0], [4]]), np.array(1.5)
    functions = from_module(Reader(), [tokens, scale, None])
    assert functions.inputs[:2] == ("tokens", "scale")
    assert functions.gradients[:2] == ("scale", "embedding.weight")
    assert set(functions.inputs) - set(functions.gradients) == {"tokens", "lstm.bias_ih_l0"}
    arrays = [value.astype(np.float64) for value in functions.parameters.values()]
    (y, (h, c)), cache = functions.forward(tokens, scale, *arrays)
    dy = (normal(*y.shape), (normal(*h.shape), normal(*c.shape, seed=1)))
    gradients = dict(zip(functions.gradients, functions.backward(dy, cache), strict=True))

    direction = normal(*scale.shape, seed=5) * 1e-5
    ahead, _ = functions.forward(tokens, scale + direction, *arrays)
    behind, _ = functions.forward(tokens, scale - direction, *arrays)
    change = (
        np.vdot(dy[0], ahead[0] - behind[0])
        + np.vdot(dy[1][0], ahead[1][0] - behind[1][0])
        + np.vdot(dy[1][1], ahead[1][1] - behind[1][1])
    )
    assert_close(gradients["scale"], change / (2 * direction), "finite differences")
    assert not gradients["embedding.weight"][1:4].any()
    assert gradients["embedding.weight"][4].all()


def test_an_input_with_a_parameters_name():
    class Scaled(nn.Linear):
        def forward(self, x, weight):
            return super().forward(x) * weight

    functions = from_module(Scaled(2, 2, bias=False), [normal(3, 2), normal(2)])
    assert functions.inputs == ("x", "input.weight", "weight")


def test_a_half_precision_module():
    x = normal(3, 2, dtype=np.float32)
    functions = from_module(nn.Linear(2, 3, dtype=torch.bfloat16), [x])
    assert {array.dtype.name for array in functions.parameters.values()} == {"float32"}
    y, _ = functions.forward(x, *functions.parameters.values())
    assert y.dtype == np.float32


def test_what_is_recognised():
    x = normal(3)
    assert forward_backward(Seen.apply, [x]).name == "Seen"
    assert forward_backward(nn.Identity(), [x]).name == "Identity"
    assert forward_backward(nn.Identity().apply, [x]) is None
    assert forward_backward(hg.ops.layer_norm, [x]) is None
    assert forward_backward(np.tanh, [x]) is None


def test_tensors_among_the_arguments_are_arrays():
    assert from_function(LayerNorm, [torch.ones(2, 3), torch.ones(3), torch.ones(3)]).inputs == (
        "x",
        "gamma",
        "beta",
    )


def test_looking_at_a_target_imports_no_framework():
    code = (
        "import sys; from handgrad.interop import forward_backward; "
        "assert forward_backward(print, []) is None; assert not {'torch', 'jax'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
