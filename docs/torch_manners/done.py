"""The things that are done to modules for docs/torch-manners.md, and the modules."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch import nn
from torch.nn.utils import parametrize, prune
from torch.utils.checkpoint import checkpoint

F64: Final = torch.float64
FIRST: Final[dict[str, Any]] = {"batch_first": True}
#: The arguments of each constructor, and the shape of x.
MODULES: Final[Mapping[str, tuple[tuple[Any, ...], dict[str, Any], tuple[int, ...]]]] = {
    "Linear": ((5, 3), {}, (2, 4, 5)),
    "Conv1d": ((4, 6, 3), {"padding": 1, "groups": 2}, (2, 4, 7)),
    "Conv2d": ((2, 3, 3), {"stride": 2}, (2, 2, 5, 7)),
    "LayerNorm": ((5,), {}, (2, 3, 5)),
    "RMSNorm": ((5,), {}, (2, 3, 5)),
    "GroupNorm": ((2, 6), {}, (2, 6, 5)),
    "CrossEntropyLoss": ((), {"label_smoothing": 0.1}, (4, 5)),
    "MultiheadAttention": ((4, 2), FIRST, (2, 3, 4)),
    "TransformerEncoderLayer": ((16, 2, 8, 0.0), FIRST, (2, 3, 16)),
    "RNN": ((3, 4), FIRST, (2, 3, 3)),
    "GRU": ((3, 4), FIRST, (2, 3, 3)),
    "LSTM": ((3, 4), FIRST, (2, 3, 3)),
}
#: The same where `accelerate` takes no smaller ones.
WIDE: Final[Mapping[str, tuple[tuple[Any, ...], dict[str, Any], tuple[int, ...]]]] = {
    "Linear": ((256, 256), {}, (2, 256)),
}


class NothingThereError(Exception):
    """The module has nothing that this could be done to."""


def made(library: Any, name: str, *, wide: bool = False) -> Any:
    """A module in float64 with random weights, the same in every run."""
    args, settings, _ = WIDE.get(name, MODULES[name]) if wide else MODULES[name]
    module = getattr(library, name)(*args, **settings).double()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0.0, 0.3, generator=generator)
    return module


def drawn(module: Any, name: str) -> Any:
    """An x for the module, which its first weight gives the size and the type."""
    wide = name in WIDE and module.in_features == WIDE[name][0][0]
    shape = (WIDE if wide else MODULES)[name][2]
    x = torch.randn(shape, dtype=F64, generator=torch.Generator().manual_seed(3))
    return x.requires_grad_()


def call(module: Any, name: str, x: Any) -> Any:
    """y for this x."""
    if name == "CrossEntropyLoss":
        return module(x, torch.arange(x.shape[0]) % 5)
    if name == "MultiheadAttention":
        return module(x, x, x, need_weights=False)[0]
    return first(module(x))


def first(y: Any) -> Any:
    return y[0] if isinstance(y, tuple) else y


def gradients(y: Any, sources: list[Any]) -> list[Any]:
    """y and the gradients for a random cotangent; one that is undefined is 0."""
    dy = torch.randn(y.shape, dtype=F64, generator=torch.Generator().manual_seed(1)).to(y.dtype)
    found = torch.autograd.grad(y, sources, dy, allow_unused=True)
    pairs = zip(found, sources, strict=True)
    return [y.detach(), *(torch.zeros_like(s) if g is None else g.detach() for g, s in pairs)]


def results(module: Any, name: str, use: Callable[[Any, Any], Any] | None = None) -> list[Any]:
    """What a use of the module comes to, with the gradients of x and the parameters."""
    x = drawn(module, name)
    y = call(module, name, x) if use is None else use(lambda z: call(module, name, z), x)
    parameters = [each for each in module.parameters() if each.requires_grad]
    return gradients(y, [x, *parameters])


# What is done to a module before it is called.


class _Doubled(nn.Module):  # type: ignore[misc, unused-ignore]
    def forward(self, weight: Any) -> Any:
        return 2 * weight


def _weight_of(module: Any) -> tuple[Any, str]:
    for each in module.modules():
        for name, _ in each.named_parameters(recurse=False):
            if "weight" in name:
                return each, name
    raise NothingThereError


def _forward_hook(module: Any) -> Any:
    module.register_forward_hook(
        lambda m, args, y: (y[0] * 3, *y[1:]) if isinstance(y, tuple) else y * 3
    )
    return module


def _forward_pre_hook(module: Any) -> Any:
    module.register_forward_pre_hook(lambda m, args: (args[0] * 2, *args[1:]))
    return module


def _backward_hook(module: Any) -> Any:
    module.register_full_backward_hook(
        lambda m, dx, dy: tuple(None if d is None else d * 2 for d in dx)
    )
    return module


def _backward_pre_hook(module: Any) -> Any:
    module.register_full_backward_pre_hook(
        lambda m, dy: tuple(None if d is None else d * 2 for d in dy)
    )
    return module


def _hook_of_a_parameter(module: Any) -> Any:
    owner, name = _weight_of(module)
    getattr(owner, name).register_hook(lambda d: d * 2)
    return module


def _hook_of_a_part(module: Any) -> Any:
    parts = list(module.children())
    if not parts:
        raise NothingThereError
    return (_forward_hook(parts[-1]), module)[1]


def _parametrized(module: Any) -> Any:
    owner, name = _weight_of(module)
    parametrize.register_parametrization(owner, name, _Doubled())
    return module


def _pruned(module: Any) -> Any:
    owner, name = _weight_of(module)
    prune.l1_unstructured(owner, name, amount=0.5)
    return module


def _frozen(module: Any) -> Any:
    owner, name = _weight_of(module)
    getattr(owner, name).requires_grad_(False)
    return module


def _strided_weights(module: Any) -> Any:
    owner, name = _weight_of(module)
    wide = getattr(owner, name).detach().repeat_interleave(2, -1)
    setattr(owner, name, nn.Parameter(wide[..., ::2]))
    return module


def _reloaded(module: Any) -> Any:
    file = io.BytesIO()
    torch.save({key: value * 1.5 for key, value in module.state_dict().items()}, file)
    file.seek(0)
    module.load_state_dict(torch.load(file))
    return module


CHANGES: Final[Mapping[str, Callable[[Any], Any]]] = {
    "forward hook": _forward_hook,
    "forward pre-hook": _forward_pre_hook,
    "full backward hook": _backward_hook,
    "full backward pre-hook": _backward_pre_hook,
    "hook of a parameter": _hook_of_a_parameter,
    "forward hook of a part": _hook_of_a_part,
    "parametrization": _parametrized,
    "pruning": _pruned,
    "frozen weight": _frozen,
    "strided weight": _strided_weights,
    "deepcopy": copy.deepcopy,
    "pickle": lambda module: pickle.loads(pickle.dumps(module)),
    "state_dict, saved and loaded": _reloaded,
}

# How a module is called.


class _Undefined(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    @staticmethod
    def forward(ctx: Any, y: Any) -> Any:
        return y.clone()

    @staticmethod
    def backward(ctx: Any, *dy: Any) -> Any:
        return None


USES: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "called": lambda module, x: module(x),
    "called twice": lambda module, x: module(x) + module(x * 0.5),
    "`relu_` after": lambda module, x: torch.relu_(module(x)),
    "`+=` after": lambda module, x: module(x).add_(1.0),
    "`*=` after": lambda module, x: module(x).mul_(2.0),
    "`+=` before": lambda module, x: module((x * 1.0).add_(1.0)),
    "view with strides": lambda module, x: module(x.repeat_interleave(2, -1)[..., ::2]),
    "transposed view": lambda module, x: module(x.transpose(0, 1).contiguous().transpose(0, 1)),
    "expanded view": lambda module, x: module(x[:1].expand_as(x)),
    "`_neg_view`": lambda module, x: module(torch._neg_view(x)),
    "empty batch": lambda module, x: module(x[:0]),
    "undefined gradient": lambda module, x: _Undefined.apply(module(x)) + x.sum(),
    "`checkpoint`": lambda module, x: checkpoint(module, x, use_reentrant=False),
}


def _checked(check: Any) -> Callable[[Any, str], Any]:
    def do(module: Any, name: str) -> list[Any]:
        passed = check(lambda z: call(module, name, z), drawn(module, name))
        return [torch.tensor(float(passed), dtype=F64)]

    return do


def _compiled(module: Any, name: str) -> list[Any]:
    torch.compiler.reset()
    run = torch.compile(lambda z: call(module, name, z), backend="aot_eager")
    return results(module, name, lambda own, x: run(x))


class _Called(nn.Module):  # type: ignore[misc, unused-ignore]
    def __init__(self, module: Any, name: str) -> None:
        super().__init__()
        self.module, self.name = module, name

    def forward(self, x: Any) -> Any:
        return call(self.module, self.name, x)


def _traced(module: Any, name: str) -> list[Any]:
    example = drawn(module, name).detach()
    run = torch.jit.trace(_Called(module, name), example, check_trace=False)
    return results(module, name, lambda own, x: run(x))


def _exported(module: Any, name: str) -> list[Any]:
    example = drawn(module, name).detach()
    return [torch.export.export(_Called(module, name), (example,)).module()(example).detach()]


def _functional(module: Any, name: str) -> list[Any]:
    twice = {key: value.detach() * 2 for key, value in module.named_parameters()}

    def forward(x: Any) -> Any:
        if name == "CrossEntropyLoss":
            return torch.func.functional_call(module, twice, (x, torch.arange(x.shape[0]) % 5))
        if name == "MultiheadAttention":
            settings = {"need_weights": False}
            return first(torch.func.functional_call(module, twice, (x, x, x), settings))
        return first(torch.func.functional_call(module, twice, (x,)))

    return results(module, name, lambda own, x: forward(x))


def _func_grad(module: Any, name: str) -> list[Any]:
    x = drawn(module, name).detach()
    return [torch.func.grad(lambda z: call(module, name, z).sin().sum())(x)]


def _vmap(module: Any, name: str) -> list[Any]:
    x = drawn(module, name).detach()
    return [torch.func.vmap(lambda z: call(module, name, z))(torch.stack((x, x * 2)))]


def _jvp(module: Any, name: str) -> list[Any]:
    x = drawn(module, name).detach()
    return list(torch.func.jvp(lambda z: call(module, name, z), (x,), (x.cos(),)))


def _dual(module: Any, name: str) -> list[Any]:
    x = drawn(module, name).detach()
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, x.cos())
        y = torch.autograd.forward_ad.unpack_dual(call(module, name, dual))
        return [y.primal.detach(), y.tangent.detach()]


def _autocast(module: Any, name: str) -> list[Any]:
    module, x = module.float(), drawn(module, name).detach().float().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        y = call(module, name, x)
    return gradients(y, [x, *module.parameters()])


def _narrow(dtype: Any) -> Callable[[Any, str], Any]:
    def do(module: Any, name: str) -> list[Any]:
        module, x = module.to(dtype), drawn(module, name).detach().to(dtype).requires_grad_()
        found = gradients(call(module, name, x), [x, *module.parameters()])
        return [each.bfloat16() for each in found] if dtype is torch.float16 else found

    return do


def _without_grad(mode: Any) -> Callable[[Any, str], Any]:
    def do(module: Any, name: str) -> list[Any]:
        with mode():
            return [call(module, name, drawn(module, name).detach())]

    return do


def _no_keys(module: Any, name: str) -> list[Any]:
    if name != "MultiheadAttention":
        raise NothingThereError
    x = drawn(module, name)
    y = module(x, x[:, :0], x[:, :0], need_weights=False)[0]
    return gradients(y, [x, *module.parameters()])


def _changed(change: Callable[[Any], Any]) -> Callable[[Any, str], Any]:
    return lambda module, name: results(change(module), name)


def _used(use: Callable[[Any, Any], Any]) -> Callable[[Any, str], Any]:
    return lambda module, name: results(module, name, use)


#: All that is done, as a function of a module and its name that gives tensors to compare.
MANNERS: Final[Mapping[str, Callable[[Any, str], Any]]] = {
    **{what: _changed(change) for what, change in CHANGES.items()},
    **{what: _used(use) for what, use in USES.items()},
    "attention over 0 keys": _no_keys,
    "`gradcheck`": _checked(torch.autograd.gradcheck),
    "`gradgradcheck`": _checked(torch.autograd.gradgradcheck),
    "`torch.compile`": _compiled,
    "`torch.jit.trace`": _traced,
    "`torch.export`": _exported,
    "`functional_call`": _functional,
    "`torch.func.grad`": _func_grad,
    "`torch.func.vmap`": _vmap,
    "`torch.func.jvp`": _jvp,
    "forward-mode dual numbers": _dual,
    "`no_grad`": _without_grad(torch.no_grad),
    "`inference_mode`": _without_grad(torch.inference_mode),
    "`autocast` to bfloat16": _autocast,
    "bfloat16": _narrow(torch.bfloat16),
    "float16": _narrow(torch.float16),
}
#: Those of which results have the precision of 16 bits.
NARROW: Final = ("`autocast` to bfloat16", "bfloat16", "float16")
