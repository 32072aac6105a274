"""The operators under opcheck and the compiler, and threads and precision of their kernels."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import handgrad as hg
from handgrad import kernels

torch = pytest.importorskip("torch")
ours = pytest.importorskip("handgrad.torch")

pytestmark = pytest.mark.skipif(kernels.native is None, reason="no compiled kernels")

BATCH, STEPS, FEATURES, HIDDEN, PROJECTION = 3, 4, 2, 5, 3
LENGTHS = (4, 2, 1)


def arguments(
    name: str, *, optional: bool, lengths: bool, reverse: bool, dtype: Any = torch.float32
) -> tuple[Any, ...]:
    """Arguments of an operator, with all that is optional, or with none of it."""

    def random(*shape: int) -> Any:
        return torch.randn(*shape, dtype=dtype, requires_grad=True)

    gates = {"lstm": 4, "gru": 3, "rnn": 1}[name] * HIDDEN
    size = PROJECTION if name == "lstm" and optional else HIDDEN
    extras = [random(gates), random(gates)]
    if name == "lstm":
        extras += [random(size, HIDDEN), random(BATCH, size), random(BATCH, HIDDEN)]
    else:
        extras += [random(BATCH, size)]
    return (
        random(BATCH, STEPS, FEATURES),
        random(gates, FEATURES),
        random(gates, size),
        *(extra if optional else None for extra in extras),
        torch.tensor(LENGTHS) if lengths else None,
        sum(LENGTHS) if lengths else BATCH * STEPS,
        *([True] if name == "rnn" else []),
        reverse,
        False,
    )


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn"])
@pytest.mark.parametrize("optional", [True, False])
@pytest.mark.parametrize("lengths", [True, False])
def test_opcheck(name: str, optional: bool, lengths: bool) -> None:
    operator = getattr(torch.ops.handgrad, name).default
    given = arguments(name, optional=optional, lengths=lengths, reverse=optional != lengths)
    torch.library.opcheck(operator, given)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lstm", "gru", "rnn"])
def test_second_derivatives_are_pytorchs(name: str) -> None:
    torch.manual_seed(0)  # a draw next to the kink of relu has no finite differences
    given = arguments(name, optional=True, lengths=True, reverse=True, dtype=torch.float64)
    places = [k for k, value in enumerate(given) if torch.is_tensor(value) and value.requires_grad]

    def loss(*tensors: Any) -> Any:
        full = list(given)
        for place, tensor in zip(places, tensors, strict=True):
            full[place] = tensor
        y, h_n, *_ = getattr(torch.ops.handgrad, name)(*full)
        return torch.sin(y).sum() + (h_n**3).sum()

    with pytest.warns(RuntimeWarning, match=f"{name}: a derivative of gradients is asked for"):
        assert torch.autograd.gradgradcheck(loss, [given[place] for place in places])


@pytest.fixture
def rnn_in_graphs() -> Any:
    """PyTorch's compiler leaves recurrent modules out of its graphs unless this is set."""
    import torch._dynamo

    with torch._dynamo.config.patch(allow_rnn=True):
        torch._dynamo.reset()
        yield
    torch._dynamo.reset()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_whole_graphs_of_the_compiler(name: str, rnn_in_graphs: None) -> None:
    module = getattr(ours, name)(3, 5, 2, bidirectional=True)
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    for steps in (4, 7, 9):  # with the second the compiler takes the number as a variable
        x = torch.randn(steps, 2, 3, requires_grad=True)
        y, expected = compiled(x)[0], module(x)[0]
        assert torch.equal(y, expected)
        cotangent, wanted = torch.randn_like(y), [x, *module.parameters()]
        gradients = torch.autograd.grad(y, wanted, cotangent)
        for own, theirs in zip(
            gradients, torch.autograd.grad(expected, wanted, cotangent), strict=True
        ):
            assert torch.equal(own, theirs)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
def test_the_compiler_leaves_the_module_out_as_it_does_pytorchs() -> None:
    class Model(torch.nn.Module):
        def __init__(self, kind: Any) -> None:
            super().__init__()
            self.recurrent = kind(3, 5)
            self.head = torch.nn.Linear(5, 2)

        def forward(self, packed: Any) -> Any:
            return self.head(torch.sin(self.recurrent(packed)[0].data))

    testing = importlib.import_module("torch._dynamo.testing")
    packed = torch.nn.utils.rnn.pack_sequence([torch.randn(n, 3) for n in (4, 3, 1)])
    graphs = []
    for kind in (torch.nn.GRU, ours.GRU):
        torch._dynamo.reset()
        counter = testing.CompileCounterWithBackend("aot_eager")
        model = Model(kind)
        found = torch.compile(model, backend=counter)(packed)
        assert torch.equal(found, model(packed))
        graphs.append(counter.frame_count)
    assert graphs[0] == graphs[1]


def test_threads_are_pytorchs_and_change_no_bits() -> None:
    module = ours.LSTM(16, 64, bidirectional=True)
    x = torch.randn(9, 32, 16)
    cotangent = torch.randn(9, 32, 128)
    found = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        y, _ = module(x)
        found.append([y, *torch.autograd.grad(y, list(module.parameters()), cotangent)])
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


def lowest() -> str:
    """The precision of products in bf16 where the CPU has a unit for them."""
    assert kernels.native is not None
    return "float32" if kernels.native.bf16_unit == "none" else "bf16"


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
def test_bfloat16_modules_and_autocast(name: str) -> None:
    module = getattr(ours, name)(16, 32, 2)
    narrow = getattr(ours, name)(16, 32, 2, dtype=torch.bfloat16)
    narrow.load_state_dict(module.state_dict())
    module.load_state_dict(narrow.state_dict())  # rounded to what bfloat16 has
    x = torch.randn(6, 4, 16).bfloat16()
    cotangent = torch.randn(6, 4, 32).bfloat16()
    with hg.precision(lowest()):
        y = module(x.float())[0]
        expected = torch.autograd.grad(y, list(module.parameters()), cotangent.float())
    found = narrow(x)[0]
    assert torch.equal(found, y.bfloat16())
    gradients = torch.autograd.grad(found, list(narrow.parameters()), cotangent)
    with torch.autocast("cpu", torch.bfloat16):
        autocast = module(x)[0]
    assert torch.equal(autocast, y)
    # Backward keeps the precision of its forward.
    for own, rounded in zip(
        expected,
        torch.autograd.grad(autocast, list(module.parameters()), cotangent.float()),
        strict=True,
    ):
        assert torch.equal(own, rounded)
    for own, rounded in zip(gradients, expected, strict=True):
        assert torch.equal(own, rounded.bfloat16())


REFUSED = {
    "engine": (lambda module, x: _on_the_reference(module, x), "engine is set to 'reference'"),
    "torch.func": (
        lambda module, x: torch.func.grad(lambda each: module(each)[0][1, 1, 1])(x),
        "a transform of torch.func",
    ),
    "forward mode": (lambda module, x: _forward_mode(module, x), "forward-mode derivatives"),
    "meta": (lambda module, x: module.to("meta")(x.to("meta")), "a tensor is on meta"),
    "float16": (lambda module, x: module.half()(x.half()), "the tensors are of torch.float16"),
}


def _on_the_reference(module: Any, x: Any) -> Any:
    with hg.engine("reference"):
        return module(x)


def _forward_mode(module: Any, x: Any) -> Any:
    with torch.autograd.forward_ad.dual_level():
        return module(torch.autograd.forward_ad.make_dual(x, torch.ones_like(x)))


@pytest.mark.parametrize("what", REFUSED)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of PyTorch, in forward mode
def test_the_rest_is_pytorchs_with_a_sentence(what: str) -> None:
    call, reason = REFUSED[what]
    with pytest.warns(RuntimeWarning, match=f"^handgrad.torch.RNN: .*{reason}.*; allowed: "):
        call(ours.RNN(3, 5), torch.randn(4, 2, 3))


def test_nothing_is_pytorchs_where_kernels_are_asked_for() -> None:
    with (
        hg.engine("kernels"),
        pytest.raises(hg.errors.EngineError, match="float16, and the engine is set to 'kernels'"),
    ):
        ours.RNN(3, 5).half()(torch.zeros(4, 2, 3).half())


@pytest.mark.parametrize(
    ("x", "hx"),
    [
        (torch.zeros(2, 2, 2, 3), None),
        (torch.zeros(4, 2, 4), None),
        (torch.zeros(0, 2, 3), None),
        (torch.zeros(4, 2, 3).double(), None),
        (torch.zeros(4, 2, 3), torch.zeros(1, 3, 5)),
        (torch.zeros(4, 2, 3), torch.zeros(2, 5)),
        (torch.zeros(4, 3), torch.zeros(1, 1, 5)),
    ],
)
def test_what_does_not_fit_is_refused_in_pytorchs_words(x: Any, hx: Any) -> None:
    with pytest.raises((RuntimeError, ValueError)) as theirs:
        torch.nn.RNN(3, 5)(x, hx)
    with pytest.raises((RuntimeError, ValueError)) as mine:
        ours.RNN(3, 5)(x, hx)
    assert str(mine.value) == str(theirs.value)
