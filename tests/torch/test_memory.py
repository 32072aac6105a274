"""No memory but a call's own: settings changed after construction, empty axes, strange layouts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad import kernels
from handgrad.errors import ArgumentError, ShapeError
from tests.ops.fresh_memory import fill_fresh_memory
from tests.rows import rows
from tests.threads.program import run
from tests.tolerances import assert_close

torch = pytest.importorskip("torch")
ours = pytest.importorskip("handgrad.torch")
hostile = pytest.importorskip("tests.torch.hostile")
MODULES, gradients_of = hostile.MODULES, hostile.gradients_of
nn = torch.nn

pytestmark = pytest.mark.skipif(kernels.native is None, reason="no compiled kernels")

F64: dict[str, Any] = {"dtype": torch.float64}


def made(name: str, library: Any, **options: Any) -> Any:
    settings, own, _ = MODULES[name]
    torch.manual_seed(0)
    return getattr(library, name)(*settings, **{**own, **options}).double()


@pytest.mark.slow
def test_changed_modules_are_pytorchs_or_refused() -> None:
    lines = run("-m", "tests.torch.hostile", *MODULES).splitlines()
    assert not [line for line in lines if line.startswith(("otherwise", "looser"))]
    ends = {line.split(" ", 2)[2]: int(line.split()[1]) for line in lines if line[:5] == "ended"}
    assert set(ends) <= {"same", "refused", "refused by handgrad", "not made"}
    assert ends["same"] > 1000
    assert ends["refused"] > 1000


def test_a_bias_of_one_element_is_broadcast() -> None:
    module = ours.Linear(4, 3)
    module.bias = nn.Parameter(torch.ones(1))
    assert torch.equal(
        module(torch.zeros(2, 4)),
        nn.functional.linear(torch.zeros(2, 4), module.weight, module.bias),
    )
    with hg.engine("kernels"), pytest.raises(ShapeError, match=r"bias has shape \(1,\)"):
        module(torch.zeros(2, 4))


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("Conv2d", {"padding": (-1, -1)}),
        ("Conv2d", {"padding": -1}),
        ("Conv2d", {"padding": (2**62, 2**62)}),
        ("Conv2d", {"stride": (0, 0)}),
        ("Conv2d", {"dilation": (0, 0)}),
        ("Conv2d", {"groups": 4}),
        ("Conv1d", {"groups": 0}),
        ("GroupNorm", {"num_groups": 3}),
        ("GroupNorm", {"num_groups": 0}),
        ("LayerNorm", {"normalized_shape": (3, 4)}),
        ("RNN", {"hidden_size": 5}),
        ("RNN", {"num_layers": 2}),
        ("GRU", {"batch_first": "yes"}),
        ("LSTM", {"dropout": -1}),
        ("LSTM", {"bias_hh_l0": None}),
        ("GroupNorm", {"weight": None}),
        ("LSTM", {"proj_size": 3}),
        ("MultiheadAttention", {"num_heads": 3}),
    ],
)
def test_a_changed_setting_is_refused_in_pytorchs_words(
    name: str, settings: dict[str, Any]
) -> None:
    errors = []
    for library in (nn, ours):
        module = made(name, library)
        for key, value in settings.items():
            setattr(module, key, value)
        kinds = (RuntimeError, ValueError, TypeError, AssertionError, ZeroDivisionError)
        with pytest.raises(kinds) as error:
            gradients_of(module, name, MODULES[name][2])
        errors.append(str(error.value))
    assert errors[1] == errors[0]


@pytest.mark.filterwarnings("ignore:.*some of its parts train")
def test_a_part_that_does_not_train_drops_nothing() -> None:
    x = torch.randn(2, 3, 4, **F64)
    found = []
    for library in (nn, ours):
        torch.manual_seed(0)
        module = library.TransformerEncoderLayer(4, 2, 6, 0.5, batch_first=True).double()
        for part in (module.dropout, module.dropout1, module.dropout2):
            part.eval()
        module.self_attn.eval()
        found.append(module(x).detach().numpy())
    assert_close(found[1], found[0], "torch float64")


def test_operators_look_at_all_that_backward_gets() -> None:
    x, weight, dy = torch.ones(2, 3), torch.ones(4, 3), torch.ones(2, 4)
    backward = torch.ops.handgrad.linear_backward
    wanted = [True, True, False, False]
    assert len(backward([dy], [None], wanted, x, weight, None, False)) == 2
    with pytest.raises(ShapeError, match=r"cotangent 0 .* shape \(1, 4\); allowed: .*\(2, 4\)"):
        backward([dy[:1]], [None], wanted, x, weight, None, False)
    with pytest.raises(ShapeError, match="weight has shape"):
        backward([dy], [None], wanted, x, weight[:, :2].contiguous(), None, False)
    with pytest.raises(ArgumentError, match=r"the tensors are of torch\.float32, torch\.float64"):
        backward([dy], [None], wanted, x, weight.double(), None, False)
    norm = (x, torch.ones(3), None, 1e-5)
    with pytest.raises(ShapeError, match=r"output 1 .* \(1, 2\); allowed: .*\(2, 2\)"):
        torch.ops.handgrad.layer_norm_backward([x, None], [None, x[:1, :2]], wanted, *norm)


def test_the_rows_of_a_recurrent_operator_are_its_steps() -> None:
    x, weights = torch.ones(2, 3, 4), (torch.ones(5, 4), torch.ones(5, 5))
    for lengths, count in ((None, 5), (torch.tensor([3, 1]), 6)):
        given = (x, *weights, None, None, None, lengths, count, False, False, False)
        with pytest.raises(ArgumentError, match=f"rnn: rows is {count}; allowed: "):
            torch.ops.handgrad.rnn(*given)


def test_a_weight_that_shrinks_before_backward_is_refused() -> None:
    module = ours.Linear(4, 3)
    y = module(torch.zeros(2, 4, requires_grad=True))
    module.weight.data = torch.ones(1, 1)
    with pytest.raises(ShapeError, match="weight has shape"):
        y.sum().backward()


EMPTY: dict[str, list[tuple[int, ...]]] = {
    "Linear": [(0, 4), (2, 0, 4)],
    "Conv1d": [(0, 4, 7)],
    "Conv2d": [(0, 4, 5, 6)],
    "LayerNorm": [(0, 3, 4), (2, 0, 4)],
    "RMSNorm": [(0, 3, 4)],
    "GroupNorm": [(2, 4, 0), (0, 4, 3), (2, 4, 3, 0)],
    "LSTM": [(0, 3, 4)],
    "GRU": [(3, 0, 4)],
    "RNN": [(3, 0, 4)],
    "MultiheadAttention": [(0, 3, 4)],
    "TransformerEncoderLayer": [(0, 3, 4)],
}


@pytest.mark.parametrize(("name", "shape"), [(n, s) for n, sizes in EMPTY.items() for s in sizes])
def test_gradients_over_an_empty_axis_are_zero(
    name: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = made(name, ours)
    with hg.engine("kernels"):
        fill_fresh_memory(monkeypatch, 7.0)
        y, _, *gradients = gradients_of(module, name, shape)
    assert y.numel() == 0
    for gradient in gradients:
        assert torch.equal(gradient, torch.zeros_like(gradient))


@pytest.mark.parametrize("name", [name for name in MODULES if name != "CrossEntropyLoss"])
def test_fresh_memory_is_in_no_result(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for value in (math.nan, 7.0):
        with hg.engine("kernels"), monkeypatch.context() as patch:
            fill_fresh_memory(patch, value)
            found.append(gradients_of(made(name, ours), name, MODULES[name][2]))
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


class _Undefined(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *dy: Any) -> None:
        return None


@pytest.mark.parametrize("name", [name for name in MODULES if name != "CrossEntropyLoss"])
def test_an_undefined_gradient_is_zero(name: str) -> None:
    module = made(name, ours)
    x = torch.randn(MODULES[name][2], **F64, requires_grad=True)
    y = module(x, x, x, need_weights=False) if name == "MultiheadAttention" else module(x)
    output = y[0] if isinstance(y, tuple) else y
    _Undefined.apply(output).sum().backward()
    for tensor in (x, *module.parameters()):
        assert tensor.grad is None or not tensor.grad.any()


LAYOUTS = {
    "negative bit": lambda x: torch._neg_view(-x),
    "strided last axis": lambda x: torch.stack([x, x], -1)[..., 1],
    "last axis first": lambda x: x.movedim(-1, 0).contiguous().movedim(0, -1),
    "broadcast": lambda x: x[:1].expand(x.shape),
    "unaligned": lambda x: _unaligned(x),
}


def _unaligned(x: Any) -> Any:
    memory = bytearray(x.numel() * 8 + 1)
    y = torch.frombuffer(memory, dtype=x.dtype, offset=1).view(x.shape)
    return y.copy_(x)


@rows("layout", LAYOUTS)
@rows("name", [name for name in MODULES if name != "CrossEntropyLoss"])
def test_layouts_are_read_as_pytorch_reads_them(name: str, layout: str) -> None:
    def layouts(x: Any) -> Any:
        return LAYOUTS[layout](x.detach()).requires_grad_()

    expected = gradients_of(made(name, nn), name, MODULES[name][2], layouts)
    with hg.engine("kernels"):
        found = gradients_of(made(name, ours), name, MODULES[name][2], layouts)
    for own, wanted in zip(found, expected, strict=True):
        assert_close(own.numpy(), wanted.numpy(), "torch float64", name)


def test_cotangents_and_zeros_without_memory_are_read() -> None:
    module = made("Linear", ours)
    x = torch.randn(2, 4, **F64, requires_grad=True)
    dy = torch._neg_view(torch.ones(2, 3, **F64))
    module(x).backward(dy)
    assert_close(
        x.grad.numpy(), -module.weight.detach().sum(0).expand(2, 4).numpy(), "torch float64"
    )
    zeros = torch._efficientzerotensor(2, 4, **F64)
    assert torch.equal(module(zeros), module.bias.expand(2, 3))


def test_attention_over_no_keys_is_pytorchs() -> None:
    given = [torch.randn(2, steps, 4, **F64) for steps in (3, 0, 0)]
    expected = made("MultiheadAttention", nn)(*given, need_weights=False)[0]
    found = made("MultiheadAttention", ours)(*given, need_weights=False)[0]
    assert_close(found.detach().numpy(), expected.detach().numpy(), "torch float64", "y")


@pytest.mark.parametrize("name", [name for name in MODULES if name != "CrossEntropyLoss"])
def test_an_output_may_be_written_over(name: str) -> None:
    found = []
    for library in (nn, ours):
        module = made(name, library)
        x = torch.linspace(-1, 1, math.prod(MODULES[name][2]), **F64).reshape(MODULES[name][2])
        y = module(x, x, x, need_weights=False) if name == "MultiheadAttention" else module(x)
        outputs = [leaf for leaf in torch.utils._pytree.tree_leaves(y) if leaf is not None]
        for output in outputs:
            output += 1
            torch.relu_(output)
        sum((output * output.detach()).sum() for output in outputs).backward()
        found.append([parameter.grad for parameter in module.parameters()])
    for wanted, own in zip(*found, strict=True):
        assert_close(own.numpy(), wanted.numpy(), "torch float64", name)


def test_a_model_with_activations_in_place_trains() -> None:
    model = nn.Sequential(nn.Conv2d(64, 64, 3), nn.ReLU(inplace=True))
    assert hg.torch.accelerate(model).replaced == {"0": "Conv2d"}
    model(torch.randn(2, 64, 9, 9)).sum().backward()
    assert model[0].weight.grad.any()


@pytest.mark.filterwarnings("ignore:.*a derivative of gradients is asked for")
@pytest.mark.parametrize("name", [name for name in MODULES if name != "CrossEntropyLoss"])
def test_gradcheck_passes(name: str) -> None:
    module = made(name, ours)
    names = [name for name, _ in module.named_parameters()]

    def call(x: Any, *weights: Any) -> Any:
        given = (x, x, x) if name == "MultiheadAttention" else (x,)
        options = {"need_weights": False} if name == "MultiheadAttention" else {}
        for key, weight in zip(names, weights, strict=True):
            path, _, last = key.rpartition(".")
            owner = module.get_submodule(path)
            owner._parameters.pop(last, None)
            setattr(owner, last, weight)
        y = module(*given, **options)
        return y[0] if isinstance(y, tuple) else y

    x = torch.randn(MODULES[name][2], **F64, requires_grad=True)
    weights = [each.detach().clone().requires_grad_() for each in module.parameters()]
    assert torch.autograd.gradcheck(call, (x, *weights), fast_mode=True)
    assert torch.autograd.gradgradcheck(call, (x, *weights), fast_mode=True)


@pytest.mark.filterwarnings("ignore:.*a derivative of gradients is asked for")
def test_second_derivatives_of_inputs_that_depend_on_one_another() -> None:
    module = made("GRU", ours, bidirectional=False)

    def call(x: Any) -> Any:
        return module(x, torch.sin(x[:1, :, :3]))[0]

    x = torch.randn(3, 2, 4, **F64, requires_grad=True)
    assert torch.autograd.gradgradcheck(call, (x,))


def test_memory_is_filled_where_a_kernel_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests above would see nothing otherwise."""
    from handgrad.kernels import dense, memory

    fill_fresh_memory(monkeypatch, 7.0)
    assert (dense.empty((2, 3), np.float32) == 7).all()
    assert (memory.empty_like(np.ones(3)) == 7).all()


def test_no_input_makes_a_module_compute_otherwise_than_pytorch() -> None:
    """Sizes, layouts, types, places, packed sequences and targets that were not thought of."""
    lines = run("-m", "tests.torch.hostile_inputs", *MODULES).splitlines()
    assert [line for line in lines if line.startswith("otherwise")] == []
    ended = {line.split(maxsplit=2)[2]: int(line.split()[1]) for line in lines if "ended" in line}
    assert ended["same"] > 250
    assert ended["refused"] > 600
