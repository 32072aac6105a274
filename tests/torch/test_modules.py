"""Modules on the kernels beside PyTorch's own, on the inputs of PyTorch's tests of its modules."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from handgrad import kernels
from tests.tolerances import assert_close

torch = pytest.importorskip("torch")
hgt = pytest.importorskip("handgrad.torch")
nn = torch.nn
checkpoint = torch.utils.checkpoint.checkpoint

pytestmark = pytest.mark.skipif(kernels.native is None, reason="no compiled kernels")

F64: dict[str, Any] = {"dtype": torch.float64}
NAMES = (
    "Linear",
    "Conv1d",
    "Conv2d",
    "LayerNorm",
    "RMSNorm",
    "GroupNorm",
    "CrossEntropyLoss",
    "MultiheadAttention",
    "TransformerEncoderLayer",
)


def inputs_of_pytorch(name: str, training: bool) -> Iterator[tuple[Any, Any]]:
    """The inputs of the constructor and of forward in PyTorch's own tests."""
    pytest.importorskip("expecttest")  # which PyTorch's tests need
    from torch.testing._internal.common_modules import module_db

    torch.manual_seed(0)
    (info,) = (each for each in module_db if each.module_cls is getattr(nn, name))
    settings: dict[str, Any] = {"device": "cpu", "requires_grad": True, "training": training}
    for each in info.module_inputs_func(info, dtype=torch.float64, **settings):
        yield each.constructor_input, each.forward_input


def without_dropout(module: Any) -> Any:
    for each in module.modules():
        if isinstance(each, nn.Dropout):
            each.p = 0.0
        if isinstance(each, nn.MultiheadAttention):
            each.dropout = 0.0
    return module


def twins(name: str, *args: Any, **settings: Any) -> tuple[Any, Any]:
    """PyTorch's module and ours in float64, with the same weights drawn anew."""
    theirs, ours = (getattr(of, name)(*args, **settings).double() for of in (nn, hgt))
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_(0.0, 0.5, generator=generator)
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


def first(y: Any) -> Any:
    return y[0] if isinstance(y, tuple) else y


def gradients(
    module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[np.ndarray | None]:
    """y and the gradients of inputs and parameters for a random cotangent."""
    y = first(module(*args, **kwargs))
    dy = torch.tensor(np.random.default_rng(1).standard_normal(y.shape), dtype=y.dtype)
    values = (*args, *kwargs.values(), *module.parameters())
    sources = [each for each in values if torch.is_tensor(each) and each.requires_grad]
    found = torch.autograd.grad(y, sources, dy, allow_unused=True)
    return [None if each is None else each.detach().numpy() for each in (y, *found)]


def compare(theirs: Any, ours: Any, *args: Any, **kwargs: Any) -> None:
    expected, found = gradients(theirs, args, kwargs), gradients(ours, args, kwargs)
    if np.isnan(expected[0]).any():  # where PyTorch has 0/0, ours has the 0 of its documentation
        return
    for each, wanted in zip(found, expected, strict=True):
        assert (each is None) == (wanted is None)
        if each is not None:
            assert_close(each, wanted, "torch float64", str(ours))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("name", NAMES)
def test_outputs_and_gradients_are_pytorch_s_on_its_own_inputs(name: str, training: bool) -> None:
    for constructed, given in inputs_of_pytorch(name, training):
        theirs, ours = twins(name, *constructed.args, **constructed.kwargs)
        for each in (theirs, ours):
            without_dropout(each).train(training)
        compare(theirs, ours, *given.args, **given.kwargs)


def x(*shape: int) -> Any:
    values = np.random.default_rng(sum(shape)).standard_normal(shape)
    return torch.tensor(values, requires_grad=True)


PADDING = torch.tensor([[False] * 4, [False, False, True, True]])
#: Arguments of forward beside query, key and value, of 5 queries and 4 keys.
MASKS: dict[str, dict[str, Any]] = {
    "none": {},
    "padding": {"key_padding_mask": PADDING},
    "bool": {"attn_mask": torch.ones(5, 4, dtype=torch.bool).triu(1)},
    "float": {"attn_mask": torch.arange(80.0, **F64).reshape(4, 5, 4) / 20},
    "both": {
        "attn_mask": torch.linspace(-1, 1, 20, **F64).reshape(5, 4),
        "key_padding_mask": torch.zeros(2, 4, **F64).masked_fill(PADDING, -torch.inf),
    },
    "causal": {"attn_mask": torch.ones(5, 4, dtype=torch.bool).triu(1), "is_causal": True},
}


@pytest.mark.parametrize("mask", MASKS)
def test_attention_to_a_memory(mask: str) -> None:
    sizes = {"kdim": 6, "vdim": 3} if mask == "none" else {}
    theirs, ours = twins("MultiheadAttention", 8, 2, bias=mask != "both", batch_first=True, **sizes)
    inputs = (x(2, 5, 8), x(2, 4, sizes.get("kdim", 8)), x(2, 4, sizes.get("vdim", 8)))
    compare(theirs, ours, *inputs, need_weights=False, **MASKS[mask])


def test_attention_of_one_sequence_and_with_time_first() -> None:
    theirs, ours = twins("MultiheadAttention", 6, 3)
    z = x(5, 6)
    compare(theirs, ours, z, z, z, need_weights=False)
    z = x(5, 2, 6)
    compare(theirs, ours, z, z, z, need_weights=False)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu", nn.GELU("tanh"), nn.SiLU()])
def test_an_encoder_layer(norm_first: bool, activation: Any) -> None:
    settings = {"norm_first": norm_first, "activation": activation, "bias": not norm_first}
    theirs, ours = twins("TransformerEncoderLayer", 12, 3, 7, 0.0, batch_first=True, **settings)
    causal = torch.ones(4, 4, dtype=torch.bool).triu(1)
    compare(theirs, ours, x(2, 4, 12))
    compare(theirs, ours, x(1, 1, 12))
    compare(theirs, ours, x(2, 4, 12), causal, is_causal=True)
    compare(theirs, ours, x(2, 4, 12), causal, PADDING)
    compare(theirs, ours, x(4, 12))


def test_a_stack_of_encoder_layers() -> None:
    theirs, ours = (
        nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        for layer in twins("TransformerEncoderLayer", 8, 2, 12, 0.0, batch_first=True)
    )
    compare(theirs, ours, x(2, 4, 8), src_key_padding_mask=PADDING)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_stack_at_inference_leaves_padding_out_as_pytorch_does() -> None:
    theirs, ours = (
        nn.TransformerEncoder(layer, 2).eval()
        for layer in twins("TransformerEncoderLayer", 8, 2, 12, batch_first=True)
    )
    with torch.no_grad():
        y, z = (each(x(2, 4, 8), src_key_padding_mask=PADDING) for each in (theirs, ours))
    assert_close(z.numpy(), y.numpy(), "torch float64")


def test_a_layer_computed_again_drops_the_same_values() -> None:
    _, ours = twins("TransformerEncoderLayer", 8, 2, 12, 0.4, batch_first=True)
    z = x(2, 4, 8)
    found = []
    for call in (ours, partial(checkpoint, ours, use_reentrant=False)):
        torch.manual_seed(3)
        y = call(z)
        found.append((y, *torch.autograd.grad(y, z, z.detach())))
    assert all(torch.equal(each, other) for each, other in zip(*found, strict=True))


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_dropout_has_the_gradients_of_its_own_masks(norm_first: bool, activation: str) -> None:
    settings = {"norm_first": norm_first, "activation": activation}
    _, ours = twins("TransformerEncoderLayer", 8, 2, 12, 0.4, batch_first=True, **settings)
    z = x(2, 5, 8)
    found = []
    for again in (False, True):  # derivatives of gradients need PyTorch's own operations
        torch.manual_seed(3)
        y = ours(z)
        dy = x(*y.shape).detach()
        sources = [z, *ours.parameters()]
        if again:
            with pytest.warns(RuntimeWarning, match="a derivative of gradients is asked for"):
                found.append(torch.autograd.grad(y, sources, dy, create_graph=True))
        else:
            found.append(torch.autograd.grad(y, sources, dy))
    for each, wanted in zip(*found, strict=True):
        assert_close(each.detach().numpy(), wanted.detach().numpy(), "torch float64")
    assert (ours(z) != y).any()
    assert torch.equal(ours.eval()(z), ours(z))


def test_dropout_of_attention_follows_pytorch_s_seed() -> None:
    _, ours = twins("MultiheadAttention", 8, 2, dropout=0.5, batch_first=True)
    z = x(2, 5, 8)
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        found.append(ours(z, z, z, need_weights=False)[0])
    assert torch.equal(found[0], found[1])
    assert (found[0] != found[2]).any()


def test_a_dropped_share_is_the_rate() -> None:
    torch.manual_seed(0)
    layer = hgt.TransformerEncoderLayer(8, 2, 4, 0.25, batch_first=True)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        layer.linear2.bias.fill_(1.0)
        layer.norm2.weight.fill_(1.0)
    y = layer(torch.zeros(50, 10, 8))  # rows of 0 and 4/3, normalised
    dropped = (y < 0).float().mean().item()
    assert abs(dropped - 0.25) < 0.03


MODULES: dict[str, tuple[Any, tuple[int, ...]]] = {
    "Linear": ((5, 3), (2, 7, 5)),
    "Conv1d": ((4, 6, 3, 2, 1, 2, 2), (2, 4, 7)),
    "Conv2d": ((2, 3, (3, 1), (2, 1), (1, 0)), (2, 2, 5, 3)),
    "LayerNorm": (((3, 5),), (2, 3, 5)),
    "RMSNorm": ((5,), (2, 3, 5)),
    "GroupNorm": ((2, 6), (2, 6, 5)),
    "TransformerEncoderLayer": ((4, 2, 5, 0.0), (3, 2, 4)),
}


@pytest.mark.parametrize("name", MODULES)
def test_the_compiler_takes_the_whole_module(name: str) -> None:
    args, shape = MODULES[name]
    _, ours = twins(name, *args)
    compiled = torch.compile(ours, fullgraph=True, backend="aot_eager")
    compare(ours, compiled, x(*shape))


@pytest.mark.parametrize("name", MODULES)
def test_derivatives_of_gradients_are_right(name: str) -> None:
    args, shape = MODULES[name]
    _, ours = twins(name, *args)
    with pytest.warns(RuntimeWarning, match="a derivative of gradients is asked for, so PyTorch's"):
        assert torch.autograd.gradgradcheck(ours, (x(*shape),), fast_mode=True)


@pytest.mark.parametrize("name", MODULES)
def test_a_copy_and_what_was_pickled_compute_the_same(name: str) -> None:
    args, shape = MODULES[name]
    _, ours = twins(name, *args)
    for other in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert torch.equal(other(x(*shape)), ours(x(*shape)))


@pytest.mark.parametrize("name", MODULES)
def test_fixed_parameters_and_inputs_get_no_gradient(name: str) -> None:
    args, shape = MODULES[name]
    theirs, ours = twins(name, *args)
    for number, each in enumerate(zip(theirs.parameters(), ours.parameters(), strict=True)):
        for parameter in each:
            parameter.requires_grad_(number % 2 == 0)
    compare(theirs, ours, x(*shape))
    compare(theirs, ours, x(*shape).detach())


@pytest.mark.parametrize("name", MODULES)
def test_bfloat16_and_autocast(name: str) -> None:
    args, shape = MODULES[name]
    _, ours = twins(name, *args)
    wide = ours(x(*shape)).detach().numpy()
    z = x(*shape).detach()
    with torch.autocast("cpu", torch.bfloat16):
        autocast = ours.float()(z.float())
    assert_close(autocast.detach().float().numpy(), wide, "bf16 training", "autocast")
    narrow = ours.bfloat16()(z.bfloat16().requires_grad_())
    assert narrow.dtype is torch.bfloat16
    narrow.backward(torch.ones_like(narrow))
    assert all(parameter.grad.dtype is torch.bfloat16 for parameter in ours.parameters())
    assert_close(narrow.detach().float().numpy(), wide, "bf16 training", "bfloat16")


OPERATORS: dict[str, tuple[Any, ...]] = {
    "linear": (x(2, 3, 5), x(4, 5), None, False),
    "conv2d": (x(2, 4, 9, 5), x(6, 2, 3, 1), x(6), [2, 1], [1, 0], [1, 1], 2, False),
    "layer_norm": (x(2, 3, 5), x(5), None, 1e-5),
    "rms_norm": (x(2, 3, 5), x(5), 1e-5),
    "group_norm": (x(2, 6, 5), x(6), x(6), 2, 1e-5),
    "cross_entropy": (x(3, 5, 2), torch.tensor([[0, 4], [-100, 2], [1, 1]]), None, 0.1, -100),
    "attention": (x(2, 5, 2, 3), x(2, 4, 2, 3), x(2, 4, 2, 2), None, None),
    "encoder_layer": tuple(x(2, 5, 8) for _ in range(1)),
}


def arguments(name: str, variant: int) -> tuple[Any, ...]:
    given = OPERATORS[name]
    if name == "cross_entropy":
        return (*given, ("mean", "none")[variant])
    if name == "attention":
        return (*given, torch.tensor(7) if variant else None, 0.5, bool(variant), False)
    if name == "encoder_layer":
        weights = (x(24, 8), x(24), x(8, 8), None, x(7, 8), x(7), x(8, 7), x(8))
        norms = (x(8), None, x(8), x(8))
        seed = torch.tensor(7) if variant else None
        settings = (2, "gelu", "none", 0.5, 1e-5, 1e-5, bool(variant), False, False)
        return (*given, *weights, *norms, None, None, seed, *settings)
    return given


@pytest.mark.parametrize("variant", [0, 1])
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_keep_pytorch_s_rules(name: str, variant: int) -> None:
    operator = getattr(torch.ops.handgrad, name).default
    torch.library.opcheck(operator, arguments(name, variant))


def test_a_loss_without_a_target_is_zero() -> None:
    scores = x(3, 4)
    loss = hgt.CrossEntropyLoss()(scores, torch.full((3,), -100))
    loss.backward()
    assert loss.item() == 0.0
    assert not scores.grad.any()


@pytest.mark.parametrize(
    ("module", "call", "sentence"),
    [
        (
            hgt.Conv1d(1, 2, 3, padding=1, padding_mode="reflect"),
            lambda m: m(torch.ones(1, 1, 5)),
            "Conv1d: its padding, .* with reflect, has no kernel, so PyTorch's own Conv1d computes",
        ),
        (
            hgt.MultiheadAttention(4, 2),
            lambda m: m(*[torch.ones(3, 2, 4)] * 3),
            "need_weights=True asks for the weights, which the kernel does not store, so PyTorch's",
        ),
        (
            hgt.TransformerEncoderLayer(4, 2, 3, activation=nn.Tanh()),
            lambda m: m(torch.ones(3, 2, 4)),
            "its activation is none of relu, gelu, silu, so PyTorch's own TransformerEncoderLayer",
        ),
        (
            hgt.Linear(3, 2).to(torch.float16),
            lambda m: m(torch.ones(2, 3, dtype=torch.float16)),
            "the tensors are of torch.float16, so PyTorch's own Linear computes; allowed",
        ),
    ],
    ids=["padding", "weights", "activation", "float16"],
)
def test_calls_that_are_not_for_kernels_say_so(module: Any, call: Any, sentence: str) -> None:
    with pytest.warns(RuntimeWarning, match=sentence):
        call(module)


@pytest.mark.parametrize("name", ["Linear", "Conv1d", "LayerNorm", "GroupNorm"])
def test_what_does_not_fit_has_pytorch_s_own_words(name: str) -> None:
    theirs, ours = twins(name, *MODULES[name][0])
    for shape in ((2, 3), (2, 99, 98), (0,)):
        found = []
        for module in (theirs, ours):
            with pytest.raises(Exception, match=r".") as error:
                module(torch.ones(shape, **F64))
            found.append((type(error.value), str(error.value)))
        assert found[0] == found[1]
