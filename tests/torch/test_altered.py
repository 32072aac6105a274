"""Modules that compute otherwise than their class says: left to PyTorch, with the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from handgrad import kernels
from tests.tolerances import assert_close

torch = pytest.importorskip("torch")
hgt = pytest.importorskip("handgrad.torch")
nn = torch.nn
prune = pytest.importorskip("torch.nn.utils.prune")

pytestmark = pytest.mark.skipif(kernels.native is None, reason="no compiled kernels")


class Doubled(nn.Linear):  # type: ignore[misc, name-defined]
    def forward(self, x: Any) -> Any:
        return 2 * super().forward(x)


class Twice(nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, weight: Any) -> Any:
        return 2 * weight


class Adapter(nn.Module):  # type: ignore[misc, name-defined]
    """A product with two small ones beside it, as adapters are put into a model."""

    def __init__(self, base: Any) -> None:
        super().__init__()
        self.base, self.down = base, nn.Linear(base.in_features, 2)
        self.up = nn.Linear(2, base.out_features)

    @property
    def weight(self) -> Any:
        return self.base.weight

    @property
    def bias(self) -> Any:
        return self.base.bias

    def forward(self, x: Any) -> Any:
        return self.base(x) + self.up(self.down(x))


def layer() -> Any:
    return nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True)


def hooked(path: str) -> Callable[[Any], None]:
    def change(module: Any) -> None:
        module.get_submodule(path).register_forward_hook(lambda module, args, y: change_y(y))

    def change_y(y: Any) -> Any:
        return (y[0] * 3, *y[1:]) if isinstance(y, tuple) else y * 3

    return change


def patched(module: Any) -> None:
    own = module.linear2.forward
    module.linear2.forward = lambda x: 3 * own(x)


def pruned(module: Any) -> None:
    prune.random_unstructured(module.linear1, "weight", 0.5)


def parametrized(path: str) -> Callable[[Any], None]:
    def change(module: Any) -> None:
        part = module.get_submodule(path)
        nn.utils.parametrize.register_parametrization(part, "weight", Twice())

    return change


#: Changes of an encoder layer, and the reason for leaving it.
LAYERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "hook": (hooked("linear1"), "its linear1 has hooks"),
    "hook on a norm": (hooked("norm2"), "its norm2 has hooks"),
    "hook on dropout": (hooked("dropout1"), "its dropout1 has hooks"),
    "hook on attention": (hooked("self_attn"), "its self_attn has hooks"),
    "backward hook": (
        lambda m: m.linear2.register_full_backward_hook(lambda m, dx, dy: (dx[0] * 2,)),
        "its linear2 has hooks",
    ),
    "pre-hook": (
        lambda m: m.linear2.register_forward_pre_hook(lambda m, args: (args[0] * 2,)),
        "its linear2 has hooks",
    ),
    "parametrization": (parametrized("linear1"), "its linear1 is of the class ParametrizedLinear"),
    "pruning": (pruned, "its linear1 has hooks"),
    "own class": (
        lambda m: setattr(m, "linear1", Doubled(16, 32)),
        "its linear1 is of the class Doubled",
    ),
    "adapter": (
        lambda m: setattr(m, "linear1", Adapter(m.linear1)),
        "its linear1 is of the class Adapter",
    ),
    "no norm": (
        lambda m: setattr(m, "norm1", nn.Identity()),
        "its norm1 is of the class Identity",
    ),
    "other norm": (
        lambda m: setattr(m, "norm2", nn.RMSNorm(16)),
        "its norm2 is of the class RMSNorm",
    ),
    "no dropout": (
        lambda m: setattr(m, "dropout", nn.Identity()),
        "its dropout is of the class Identity",
    ),
    "own forward of a part": (patched, "its linear2 has a forward of its own"),
    "own half": (
        lambda m: setattr(m, "_ff_block", lambda x, own=m._ff_block: 2 * own(x)),
        "its _ff_block is its own",
    ),
    "zero attention": (
        lambda m: setattr(m.self_attn, "add_zero_attn", True),
        "in its self_attn add_bias_kv and add_zero_attn have no kernel",
    ),
    "hook on the activation": (
        lambda m: (
            setattr(m, "activation", nn.ReLU()),
            m.activation.register_forward_hook(lambda module, args, y: y * 2),
        ),
        "its activation has hooks",
    ),
}


def results(module: Any, training: bool) -> list[Any]:
    torch.manual_seed(1)
    x = torch.randn(2, 5, 16, dtype=torch.float64, requires_grad=True)
    module.double().train(training).zero_grad()
    y = module(x)
    y.sum().backward()
    return [y.detach(), x.grad, *(each.grad for each in module.parameters())]


def assert_same(found: list[Any], expected: list[Any]) -> None:
    for own, wanted in zip(found, expected, strict=True):
        assert_close(own.numpy(), wanted.numpy(), "torch float64", "altered")


# PyTorch's own layer asks an Identity for its eps where it does not train.
@pytest.mark.parametrize(
    ("what", "training"),
    [(what, mode) for what in LAYERS for mode in (True, False) if mode or what != "no norm"],
)
def test_an_altered_encoder_layer_is_left(what: str, training: bool) -> None:
    change, reason = LAYERS[what]
    module = layer()
    change(module)
    expected = results(module, training)
    assert hgt.accelerate(module).left[""] == reason
    assert type(module) is nn.TransformerEncoderLayer
    assert_same(results(module, training), expected)


@pytest.mark.parametrize("what", [what for what in LAYERS if what != "zero attention"])
def test_what_is_altered_keeps_its_bits(what: str) -> None:
    """All parts of an altered layer stay, large ones too: not even a rounding is another."""
    module = nn.TransformerEncoderLayer(16, 2, 8192, 0.0, batch_first=True)
    for each in (module.linear1, module.linear2):
        assert each.weight.numel() > 65536
    if what == "own class":
        module.linear2 = nn.Linear(32, 16)
    LAYERS[what][0](module)
    expected = results(module, True)
    report = hgt.accelerate(module)
    assert not report.replaced
    assert report.left[""] == LAYERS[what][1]
    assert all(map(torch.equal, results(module, True), expected))


@pytest.mark.parametrize("what", LAYERS)
def test_an_encoder_layer_altered_later_is_pytorchs(what: str) -> None:
    change, reason = LAYERS[what]
    torch.manual_seed(0)
    theirs, mine = layer(), layer()
    hgt.accelerate(mine)
    mine.load_state_dict(theirs.state_dict())
    for module in (theirs, mine):
        torch.manual_seed(2)
        change(module)
    with pytest.warns(RuntimeWarning, match=f"TransformerEncoderLayer: {reason}, so PyTorch's own"):
        found = results(mine, True)
    assert_same(found, results(theirs, True))


def test_hooks_of_all_modules_see_the_parts() -> None:
    module = layer()
    hgt.accelerate(module)
    calls: list[str] = []
    handle = nn.modules.module.register_module_forward_hook(
        lambda module, args, y: calls.append(type(module).__name__)
    )
    with pytest.warns(RuntimeWarning, match="hooks of all modules are registered"), handle:
        module(torch.randn(2, 5, 16))
    assert "LayerNorm" in calls


def test_parametrized_modules_are_left_with_the_reason() -> None:
    model = nn.Sequential(nn.Linear(256, 256), nn.LSTM(4, 4))
    nn.utils.parametrizations.weight_norm(model[0])
    nn.utils.parametrize.register_parametrization(model[1], "weight_hh_l0", Twice())
    report = hgt.accelerate(model)
    assert report.left == dict.fromkeys("01", "it has parametrizations")
    assert not report.replaced


def test_a_forward_of_its_own_is_left() -> None:
    module = nn.Linear(256, 256)
    module.forward = lambda x: x
    assert hgt.accelerate(module).left == {"": "it has a forward of its own"}


def test_attention_with_another_product_is_left() -> None:
    module = nn.MultiheadAttention(16, 2, batch_first=True)
    module.out_proj = Doubled(16, 16)
    assert hgt.accelerate(module).left[""] == "its out_proj is of the class Doubled"


@pytest.mark.parametrize("change", ["hook", "prune", "old weight norm"])
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_hooks_of_a_replaced_module_run(change: str) -> None:
    torch.manual_seed(0)
    module = nn.Linear(256, 256).double()
    if change == "hook":
        module.register_forward_hook(lambda module, args, y: y * 3)
    elif change == "prune":
        prune.random_unstructured(module, "weight", 0.5)
    else:
        nn.utils.weight_norm(module)
    x = torch.randn(2, 256, dtype=torch.float64)
    expected = module(x).detach()
    hgt.accelerate(module)
    assert_close(module(x).detach().numpy(), expected.numpy(), "torch float64", change)
