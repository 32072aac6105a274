"""What people do to modules, done to each drop-in: as PyTorch's, to the same numbers.

A row of the table is a drop-in, a column is what is done. Each is tried on the class of
handgrad.torch, and on what `accelerate` makes of a module that it was done to, or is done to later.
"""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

from handgrad import kernels
from tests.rows import rows
from tests.tolerances import assert_close

torch = pytest.importorskip("torch")
hgt = pytest.importorskip("handgrad.torch")
nn = torch.nn
from torch.nn.utils import parametrize, prune  # noqa: E402

from docs.torch_manners import done  # noqa: E402

pytestmark = [
    pytest.mark.skipif(kernels.native is None, reason="no compiled kernels"),
    pytest.mark.filterwarnings("ignore"),
]

#: The arguments of each constructor, and the shape of x.
MODULES: Final = {
    **done.MODULES,
    "TransformerEncoderLayer": ((4, 2, 5, 0.0), {"batch_first": True}, (2, 3, 4)),
}


class Doubled(nn.Module):  # type: ignore[misc]
    """A parametrization."""

    def forward(self, weight: Any) -> Any:
        return 2 * weight


def first_weight(module: Any) -> tuple[Any, str] | None:
    """A module with a weight of its own, and the weight's name; None where there is none."""
    for each in module.modules():
        for name, parameter in each.named_parameters(recurse=False):
            if parameter is not None and "weight" in name:
                return each, name
    return None


def hooked(module: Any) -> Any:
    module.register_forward_hook(lambda m, args, y: first(y) * 3)
    return module


def hooked_before(module: Any) -> Any:
    module.register_forward_pre_hook(lambda m, args: (args[0] * 2, *args[1:]))
    return module


def hooked_in_a_child(module: Any) -> Any:
    for each in list(module.modules())[-1:]:
        if each is not module and not isinstance(module, nn.MultiheadAttention):
            each.register_forward_hook(lambda m, args, y: first(y) * 3)
    return module


def hooked_backward(module: Any) -> Any:
    module.register_full_backward_hook(lambda m, dx, dy: tuple(d * 2 for d in dx if d is not None))
    return module


def parametrized(module: Any) -> Any:
    found = first_weight(module)
    if found and not isinstance(module, nn.RNNBase):
        parametrize.register_parametrization(found[0], found[1], Doubled())
    return module


def pruned(module: Any) -> Any:
    found = first_weight(module)
    if found and not isinstance(module, nn.RNNBase):
        prune.l1_unstructured(found[0], found[1], amount=0.5)
    return module


def copied(module: Any) -> Any:
    return copy.deepcopy(module)


def pickled(module: Any) -> Any:
    return pickle.loads(pickle.dumps(module))


def saved(module: Any) -> Any:
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    module.load_state_dict({k: v * 1.5 for k, v in torch.load(file).items()})
    return module


def frozen(module: Any) -> Any:
    for parameter in list(module.parameters())[:1]:
        parameter.requires_grad_(False)
    return module


def single(module: Any) -> Any:
    return module.float().double()


CHANGES: Final[dict[str, Callable[[Any], Any]]] = {
    each.__name__: each
    for each in (
        *(hooked, hooked_before, hooked_in_a_child, hooked_backward, parametrized, pruned, copied),
        *(pickled, saved, frozen, single),
    )
}


def first(y: Any) -> Any:
    return y[0] if isinstance(y, tuple) else y


def twins(name: str) -> tuple[Any, Any]:
    """PyTorch's module and ours with the same weights."""
    args, settings, _ = MODULES[name]
    theirs, ours = (getattr(of, name)(*args, **settings).double() for of in (nn, hgt))
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_(0.0, 0.5, generator=generator)
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


def call(module: Any, name: str, x: Any) -> Any:
    if name == "CrossEntropyLoss":
        return module(x, torch.tensor([0, 3, 1, 4]))
    return first(module(x, x, x)) if name == "MultiheadAttention" else first(module(x))


def drawn(name: str) -> Any:
    values = np.random.default_rng(3).standard_normal(MODULES[name][2])
    return torch.tensor(values, requires_grad=True)


def results(module: Any, name: str, use: Callable[[Any, Any], Any]) -> list[np.ndarray]:
    """The results of a use of the module, and the gradients of x and the parameters."""
    x = drawn(name)
    y = use(lambda z: call(module, name, z), x)
    dy = np.random.default_rng(1).standard_normal(tuple(y.shape))
    parameters = [each for each in module.parameters() if each.requires_grad]
    found = torch.autograd.grad(y, [x, *parameters], torch.tensor(dy), allow_unused=True)
    return [y.detach().numpy(), *(None if g is None else g.numpy() for g in found)]


def compare(theirs: Any, ours: Any, name: str, use: Callable[[Any, Any], Any]) -> None:
    expected, found = results(theirs, name, use), results(ours, name, use)
    for wanted, each in zip(expected, found, strict=True):
        assert (wanted is None) == (each is None)
        if wanted is not None:
            assert_close(each, wanted, "torch float64", name)


def plainly(module: Any, x: Any) -> Any:
    return module(x)


@rows("change", CHANGES)
@rows("name", MODULES)
def test_a_changed_module_computes_as_pytorchs(name: str, change: str) -> None:
    theirs, ours = twins(name)
    compare(CHANGES[change](theirs), CHANGES[change](ours), name, plainly)


@rows("change", CHANGES)
@rows("name", MODULES)
def test_a_module_changed_before_or_after_it_is_accelerated_computes_the_same(
    name: str, change: str
) -> None:
    theirs, _ = twins(name)
    expected = nn.Sequential(CHANGES[change](copy.deepcopy(theirs)))
    before = nn.Sequential(CHANGES[change](copy.deepcopy(theirs)))
    hgt.accelerate(before)
    after = nn.Sequential(copy.deepcopy(theirs))
    hgt.accelerate(after)
    after[0] = CHANGES[change](after[0])
    for found in (before, after):
        compare(expected[0], found[0], name, plainly)


#: What stands beside a module, that changes arrays in their place.
NEIGHBOURS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "relu after": lambda module, x: torch.relu_(module(x)),
    "added after": lambda module, x: module(x).add_(1.0),
    "multiplied after": lambda module, x: module(x).mul_(2.0),
    "in place before": lambda module, x: module((x * 1.0).add_(1.0)),
    "on a view": lambda module, x: module(x.flip(-1).flip(-1)),
    "strided": lambda module, x: module(x.repeat_interleave(2, -1)[..., ::2]),
    "transposed": lambda module, x: module(x.transpose(0, 1).contiguous().transpose(0, 1)),
    "twice": lambda module, x: module(x) + module(x * 0.5),
}


@rows("neighbour", NEIGHBOURS)
@rows("name", MODULES)
def test_neighbours_that_write_in_place(name: str, neighbour: str) -> None:
    theirs, ours = twins(name)
    try:
        results(theirs, name, NEIGHBOURS[neighbour])
    except RuntimeError:  # what PyTorch refuses, such as an array that backward needs
        return
    compare(theirs, ours, name, NEIGHBOURS[neighbour])


@pytest.mark.parametrize("name", MODULES)
def test_checks_of_gradients_pass_where_pytorchs_do(name: str) -> None:
    theirs, ours = twins(name)
    for check in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
        passed = []
        for module in (theirs, ours):
            try:
                passed.append(check(lambda z, m=module: call(m, name, z), drawn(name)))
            except RuntimeError:
                passed.append(False)
        assert passed[1] >= passed[0]


@pytest.mark.parametrize("name", MODULES)
def test_autocast_to_bfloat16(name: str) -> None:
    theirs, ours = (each.float() for each in twins(name))
    x = drawn(name).detach().float()
    with torch.autocast("cpu", torch.bfloat16):
        try:
            expected = call(theirs, name, x)
        except RuntimeError as error:  # oneDNN has its LSTM in bfloat16 on some CPUs alone
            pytest.skip(f"PyTorch: {error}")
        found = call(ours, name, x)
    assert_close(found.detach().float().numpy(), expected.detach().float(), "bf16 training", name)


@pytest.mark.parametrize("name", [n for n in MODULES if n not in ("RNN", "GRU", "LSTM")])
def test_what_does_not_fit_is_pytorchs_error_in_compiled_code_too(name: str) -> None:
    theirs, ours = twins(name)
    x = drawn(name).detach()
    wrong = x[..., :-1].contiguous() if name != "GroupNorm" else x[:, :-1].contiguous()
    wrong = x[:, :-1].contiguous() if name.startswith("Conv") else wrong
    wrong = x[0] if name == "CrossEntropyLoss" else wrong
    with pytest.raises((RuntimeError, ValueError, AssertionError)) as expected:
        call(theirs, name, wrong)
    compiled = torch.compile(ours, backend="aot_eager")
    for module in (ours, compiled):
        with pytest.raises((RuntimeError, ValueError, AssertionError)) as found:
            call(module, name, wrong)
        if module is ours:
            assert type(found.value) is type(expected.value)
