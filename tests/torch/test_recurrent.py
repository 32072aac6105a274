"""LSTM, GRU and RNN beside PyTorch's own: outputs, gradients, states, packed sequences."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from tests.rows import rows
from tests.tolerances import assert_close

torch = pytest.importorskip("torch")
ours = pytest.importorskip("handgrad.torch")

from handgrad import kernels  # noqa: E402

pytestmark = [
    pytest.mark.skipif(kernels.native is None, reason="no compiled kernels"),
    pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN"),
]

PRECISE = {torch.float32: "float32 functions", torch.float64: "torch float64"}

#: Of all three: sizes and settings.
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "batch first": {"batch_first": True},
    "no biases": {"bias": False},
    "layers": {"num_layers": 3, "batch_first": True},
    "both directions": {"bidirectional": True, "num_layers": 2},
}
CASES = [
    pytest.param(name, settings, id=f"{name}, {title}")
    for name in ("LSTM", "GRU", "RNN")
    for title, settings in SETTINGS.items()
]
CASES += [
    pytest.param("RNN", {"nonlinearity": "relu", "bidirectional": True}, id="RNN, relu"),
    pytest.param("LSTM", {"proj_size": 3}, id="LSTM, projection"),
    pytest.param(
        "LSTM", {"proj_size": 3, "bidirectional": True, "num_layers": 2}, id="LSTM, all of it"
    ),
]


def both(name: str, *sizes: int, dtype: Any = torch.float64, **settings: Any) -> tuple[Any, Any]:
    """PyTorch's module and ours, of the same weights."""
    torch.manual_seed(0)
    theirs = getattr(torch.nn, name)(*sizes, dtype=dtype, **settings)
    mine = getattr(ours, name)(*sizes, dtype=dtype, **settings)
    mine.load_state_dict(theirs.state_dict())
    return theirs, mine


def leaves(value: Any) -> list[Any]:
    """The tensors of floats in a result: of a PackedSequence its rows."""
    if isinstance(value, torch.nn.utils.rnn.PackedSequence):
        return [value.data]
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


def values_and_gradients(module: Any, inputs: list[Any], call: Any) -> list[Any]:
    """Outputs, and gradients of inputs and parameters for cotangents that are always the same."""
    generator = torch.Generator().manual_seed(7)
    outputs = leaves(call(module, *inputs))
    cotangents = [torch.randn(y.shape, generator=generator, dtype=y.dtype) for y in outputs]
    wanted = [*inputs, *module.parameters()]
    return [*outputs, *torch.autograd.grad(outputs, wanted, cotangents)]


def assert_same(theirs: Any, mine: Any, inputs: list[Any], call: Any) -> None:
    expected = values_and_gradients(theirs, inputs, call)
    found = values_and_gradients(mine, inputs, call)
    for mine_here, theirs_here in zip(found, expected, strict=True):
        assert mine_here.shape == theirs_here.shape
        assert mine_here.dtype == theirs_here.dtype
        assert_close(
            mine_here.detach().numpy(), theirs_here.detach().numpy(), PRECISE[mine_here.dtype]
        )


def random(*shape: int, dtype: Any = torch.float64) -> Any:
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


def states_of(module: Any, *batch: int) -> list[Any]:
    numbers = module.num_layers * (2 if module.bidirectional else 1)
    sizes = [getattr(module, "proj_size", 0) or module.hidden_size, module.hidden_size]
    count = 2 if module.mode == "LSTM" else 1
    dtype = module.weight_ih_l0.dtype
    return [random(numbers, *batch, size, dtype=dtype) for size in sizes[:count]]


def with_states(module: Any, x: Any, *states: Any) -> Any:
    if not states:
        return module(x)
    return module(x, states if len(states) > 1 else states[0])


@rows(("name", "settings"), CASES)
@rows(("steps", "batch"), [(7, 5), (1, 3), (4, 1)])
def test_batches(name: str, settings: Any, steps: int, batch: int) -> None:
    theirs, mine = both(name, 5, 11, **settings)
    shape = (batch, steps, 5) if mine.batch_first else (steps, batch, 5)
    x = random(*shape)
    assert_same(theirs, mine, [x], with_states)
    assert_same(theirs, mine, [x, *states_of(mine, batch)], with_states)


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("sizes", [(5, 123, 123, 7), (3, 1, 1, 1), (17, 33, 64, 129)])
def test_float32_at_awkward_sizes(name: str, sizes: tuple[int, int, int, int]) -> None:
    steps, batch, inputs, hidden = sizes
    theirs, mine = both(name, inputs, hidden, dtype=torch.float32)
    x = random(steps, batch, inputs, dtype=torch.float32)
    assert_same(theirs, mine, [x], with_states)


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_unbatched(name: str, settings: Any) -> None:
    theirs, mine = both(name, 5, 11, **settings)
    x = random(7, 5)
    assert_same(theirs, mine, [x], with_states)
    assert_same(theirs, mine, [x, *states_of(mine)], with_states)


@rows(("name", "settings"), CASES)
@rows("lengths", [[6, 6, 4, 1], [2, 5, 1, 3], [1, 1, 1, 1], [4]])
def test_packed(name: str, settings: Any, lengths: list[int]) -> None:
    theirs, mine = both(name, 5, 11, **settings)
    in_order = lengths == sorted(lengths, reverse=True)
    batch, steps = len(lengths), max(lengths)
    x = random(batch, steps, 5) if mine.batch_first else random(steps, batch, 5)

    def call(module: Any, x: Any, *states: Any) -> Any:
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            x, lengths, batch_first=module.batch_first, enforce_sorted=in_order
        )
        y, final = with_states(module, packed, *states)
        assert torch.equal(y.batch_sizes, packed.batch_sizes)
        padded, found = torch.nn.utils.rnn.pad_packed_sequence(y)
        assert found.tolist() == lengths
        return padded, final

    assert_same(theirs, mine, [x], call)
    assert_same(theirs, mine, [x, *states_of(mine, batch)], call)


def test_first_weights_are_those_of_pytorch() -> None:
    torch.manual_seed(3)
    theirs = torch.nn.LSTM(4, 6, 2, bidirectional=True, proj_size=2)
    torch.manual_seed(3)
    mine = ours.LSTM(4, 6, 2, bidirectional=True, proj_size=2)
    assert list(mine.state_dict()) == list(theirs.state_dict())
    for a, b in zip(mine.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(a, b)
    assert isinstance(mine, torch.nn.LSTM)
    theirs.load_state_dict(mine.state_dict())


@pytest.mark.parametrize("again", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_compute_the_same(again: Any) -> None:
    mine = ours.GRU(4, 6, 2, bidirectional=True)
    x = torch.randn(3, 2, 4)
    assert torch.equal(again(mine)(x)[0], mine(x)[0])
    file = io.BytesIO()
    torch.save(mine.state_dict(), file)
    other = ours.GRU(4, 6, 2, bidirectional=True)
    other.load_state_dict(torch.load(io.BytesIO(file.getvalue()), weights_only=True))
    assert torch.equal(other(x)[0], mine(x)[0])


def test_only_what_requires_a_gradient_has_one() -> None:
    theirs, mine = both("LSTM", 4, 6, num_layers=2)
    cotangent = torch.randn(3, 2, 6, dtype=torch.float64)
    for module in (theirs, mine):
        for name in ("weight_hh_l0", "bias_ih_l1"):
            getattr(module, name).requires_grad_(False)
        module(torch.arange(24.0, dtype=torch.float64).reshape(3, 2, 4))[0].backward(cotangent)
    for (name, a), b in zip(theirs.named_parameters(), mine.parameters(), strict=True):
        assert (a.grad is None) == (b.grad is None) == (name in ("weight_hh_l0", "bias_ih_l1"))
        if a.grad is not None:
            assert_close(b.grad.numpy(), a.grad.numpy(), "torch float64")


def test_gradients_add_up_in_grad() -> None:
    theirs, mine = both("GRU", 4, 6)
    for _ in range(3):
        x, cotangent = torch.randn(2, 3, 5, 4).double(), torch.randn(2, 3, 5, 6).double()
        for module in (theirs, mine):
            for k in range(2):
                module(x[k])[0].backward(cotangent[k])
    for a, b in zip(theirs.parameters(), mine.parameters(), strict=True):
        assert_close(b.grad.numpy(), a.grad.numpy(), "torch float64")


def test_backward_twice_gives_the_same_bits() -> None:
    mine = ours.LSTM(4, 6, bidirectional=True)
    y = leaves(mine(torch.randn(3, 2, 4)))
    cotangents = [torch.randn_like(part) for part in y]
    parameters = list(mine.parameters())
    first = torch.autograd.grad(y, parameters, cotangents, retain_graph=True)
    second = torch.autograd.grad(y, parameters, cotangents)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_an_output_written_to_before_backward_changes_no_gradient() -> None:
    module = ours.LSTM(4, 6, batch_first=True)
    x = torch.randn(3, 2, 4)
    cotangent = torch.randn(3, 2, 6)
    expected = torch.autograd.grad(module(x)[0] * 2.0, list(module.parameters()), cotangent)
    found = torch.autograd.grad(module(x)[0].mul_(2.0), list(module.parameters()), cotangent)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_dropout_between_layers_in_training_alone() -> None:
    mine = ours.LSTM(4, 50, 2, dropout=0.5)
    x = torch.randn(3, 2, 4)
    mine.eval()
    assert torch.equal(mine(x)[0], mine(x)[0])
    mine.train()
    torch.manual_seed(1)
    first = mine(x)[0]
    assert not torch.equal(first, mine(x)[0])
    torch.manual_seed(1)
    assert torch.equal(first, mine(x)[0])


def test_a_training_loop_goes_as_pytorchs() -> None:
    losses = {}
    for module in both("LSTM", 3, 8, num_layers=2):
        torch.manual_seed(5)
        head = torch.nn.Linear(8, 4).double()
        optimizer = torch.optim.AdamW([*module.parameters(), *head.parameters()], lr=0.01)
        x, target = torch.randn(6, 5, 3).double(), torch.randint(4, (5,))
        losses[module] = []
        for _ in range(10):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(head(module(x)[0][-1]), target)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            optimizer.step()
            losses[module].append(loss.item())
    theirs, mine = losses.values()
    assert mine[-1] < mine[0]
    np.testing.assert_allclose(mine, theirs, rtol=1e-9)


def test_weights_that_others_hand_in() -> None:
    theirs, mine = both("LSTM", 3, 5, num_layers=2)
    x = torch.randn(4, 2, 3).double()
    doubled = {name: 2 * value for name, value in mine.named_parameters()}
    found, expected = (torch.func.functional_call(m, doubled, (x,))[0] for m in (mine, theirs))
    assert_close(found.detach().numpy(), expected.detach().numpy(), "torch float64")
    for module in (mine, theirs):
        torch.nn.utils.parametrizations.weight_norm(module, "weight_hh_l1")
        module.parametrizations.weight_hh_l1.original0.data.mul_(3.0)
    assert_same(theirs, mine, [x.requires_grad_()], with_states)


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointing_computes_the_same_bits(reentrant: bool) -> None:
    mine = ours.GRU(3, 5, 2)
    x, cotangent = torch.randn(4, 2, 3, requires_grad=True), torch.randn(4, 2, 5)
    expected = torch.autograd.grad(mine(x)[0], [x, *mine.parameters()], cotangent)
    y = torch.utils.checkpoint.checkpoint(lambda x: mine(x)[0], x, use_reentrant=reentrant)
    y.backward(cotangent)
    for own, gradient in zip([x, *mine.parameters()], expected, strict=True):
        assert torch.equal(own.grad, gradient)


def test_an_empty_batch() -> None:
    mine = ours.LSTM(3, 5, bidirectional=True)
    y, (h_n, _) = mine(torch.zeros(4, 0, 3))
    assert y.shape == (4, 0, 10)
    assert h_n.shape == (2, 0, 5)
    for gradient in torch.autograd.grad(y, list(mine.parameters()), torch.zeros(4, 0, 10)):
        assert not gradient.any()


def test_handgrads_own_layer_takes_the_weights() -> None:
    mine = ours.LSTM(4, 6, 2, batch_first=True, bidirectional=True)
    layer = hg.LSTM(4, 6, 2, bidirectional=True, rng=np.random.default_rng(0))
    layer.update_parameters({name: a.numpy() for name, a in mine.state_dict().items()})
    x = torch.randn(3, 7, 4)
    np.testing.assert_array_equal(mine(x)[0].detach().numpy(), layer.forward(x.numpy())[0][0])
