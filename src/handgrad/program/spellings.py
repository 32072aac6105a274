"""Columns of the primitive records for PyTorch and JAX, where a function is not spelled as NumPy's.

A record that has a column of its own keeps it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from handgrad.program import primitives as primitives
from handgrad.program.node import PRIMITIVES, Node, number
from handgrad.program.sizes import Size

if TYPE_CHECKING:
    from handgrad.program.emit import Emitter

Text = str | tuple[str, int]
Spelling = Callable[["Emitter", Node], Text]


def _axes(node: Node) -> str:
    axis = node.attrs["axis"]
    if axis == tuple(range(node.args[0].ndim)) and not node.attrs["keepdims"]:
        return ""
    keep = ", keepdim=True" if node.attrs["keepdims"] else ""
    return f"{axis[0] - node.args[0].ndim if len(axis) == 1 else axis}{keep}"


def _method(name: str) -> Spelling:
    return lambda e, n: f"{e.arg(n.args[0], 8)}.{name}({_axes(n)})"


def _product(e: Emitter, n: Node) -> Text:
    """Over several axes one after another."""
    x = e.arg(n.args[0], 8)
    keep = n.attrs["keepdims"]
    for axis in sorted(n.attrs["axis"], reverse=True):
        x = f"{x}.prod({axis}{', keepdim=True' if keep else ''})"
    return x


def _permuted(e: Emitter, n: Node) -> Text:
    x, axes = e.arg(n.args[0], 8), n.attrs["axes"]
    return f"{x}.T" if axes == (1, 0) else f"{x}.permute({', '.join(map(str, axes))})"


def _clamped(side: str, name: str) -> Spelling:
    def text(e: Emitter, n: Node) -> Text:
        for x, bound in (n.args, n.args[::-1]):
            if e.is_number(bound) and not e.is_number(x):
                return f"{e.operand(n, x, 8)}.clamp({side}={e.text(bound)})"
        return f"torch.{name}({', '.join(e.operand(n, a) for a in n.args)})"

    return text


def _where(e: Emitter, n: Node) -> Text:
    """A choice between 1 and 0 is the truth of it as a number, of the arrays' type."""
    condition, one, other = n.args
    if e.is_number(condition):
        return f"({e.arg(one)} if {e.arg(condition)} else {e.arg(other)})"
    if (number(one), number(other)) == (1, 0) and n.kind == "f":
        return e.as_float(condition)
    if e.is_number(one) and e.is_number(other) and n.kind == "f":
        # PyTorch takes two numbers for single precision.
        numbers = f"torch.tensor(({e.arg(one)}, {e.arg(other)}){e.dtype()})"
        return f"torch.where({e.arg(condition)}, *{numbers})"
    return f"torch.where({', '.join(map(e.arg, n.args))})"


def _choice(e: Emitter, n: Node) -> Text:
    """As NumPy has it: two numbers would make an array of double precision."""
    condition, one, other = n.args
    if n.kind == "f" and number(one) is not None and number(other) is not None and e.like:
        if (number(one), number(other)) == (1, 0):
            return e.as_float(condition)
        return f"np.where({', '.join(map(e.arg, n.args))}).astype({e.float})"
    return f"np.where({', '.join(map(e.arg, n.args))})"


def _spread(e: Emitter, n: Node) -> Text:
    """A number that is spread is an array made of it."""
    x, shape = n.args[0], e.sizes(n.attrs["shape"])
    if e.is_number(x):
        return f"np.full({shape}, {e.text(x)}{e.dtype() if n.kind == 'f' else ''})"
    return f"np.broadcast_to({e.arg(x)}, {shape})"


_KINDS: Final = {"i": "int64", "b": "bool"}


def _created(name: str) -> Spelling:
    def text(e: Emitter, n: Node) -> Text:
        kind = f", dtype=torch.{_KINDS[n.kind]}" if n.kind in _KINDS else e.dtype()
        return f"torch.{name}({e.sizes(n.attrs['shape'])}{kind})"

    return text


def _cast(e: Emitter, n: Node) -> Text:
    kind = n.attrs["kind"]
    return f"{e.arg(n.args[0], 8)}.to({f'torch.{_KINDS[kind]}' if kind in _KINDS else e.float})"


def _selected(e: Emitter, n: Node) -> Text:
    """PyTorch has no steps backwards: those axes are flipped before."""
    index = list(n.attrs["index"])
    back = [
        k
        for k, part in enumerate(index)
        if isinstance(part, slice) and part.step is not None and Size.of(part.step) == Size.of(-1)
    ]
    whole = [k for k in back if index[k].start is None and index[k].stop is None]
    text: Spelling = _OWN["getitem"]
    if not back or back != whole or len(n.args) > 1:
        return text(e, n)
    flipped = f"{e.arg(n.args[0], 8)}.flip({', '.join(map(str, whole))})"
    for k in whole:
        index[k] = slice(None)
    if all(isinstance(part, slice) and part == slice(None) for part in index):
        return flipped
    e.name(base := Node("input", (), {}, n.args[0].shape, n.args[0].kind), flipped)
    return text(e, Node("getitem", (base,), {"index": tuple(index)}, n.shape, n.kind))


def _einsum(e: Emitter, n: Node) -> Text:
    text, precedence = _OWN["contract"](e, n)
    return str(text).replace(", optimize=True)", ")"), precedence


def _sorting(module: str) -> Spelling:
    return lambda e, n: (
        f"{module}.argsort({e.arg(n.args[0])}, {'dim' if module == 'torch' else 'axis'}="
        f"{n.attrs['axis']}, stable=True)"
    )


_TORCH: Final[dict[str, str | Spelling]] = {
    "max": _method("amax"),
    "min": _method("amin"),
    "prod": _product,
    "transpose": _permuted,
    "maximum": _clamped("min", "maximum"),
    "minimum": _clamped("max", "minimum"),
    "where": _where,
    "zeros": _created("zeros"),
    "ones": _created("ones"),
    "astype": _cast,
    "getitem": _selected,
    "contract": _einsum,
    "argsort": _sorting("torch"),
    "degrees": "torch.rad2deg",
    "radians": "torch.deg2rad",
    "erf": "torch.erf",
}
#: SciPy's functions are written with their module, which sources then import.
_NUMPY: Final[dict[str, str | Spelling]] = {
    name: f"scipy.special.{name}"
    for name, record in PRIMITIVES.items()
    if name == record.text and name == "erf"
}
_JAX: Final[dict[str, str | Spelling]] = {
    "where": _choice,
    "argsort": _sorting("jnp"),
    "sigmoid": "jax.nn.sigmoid",
    "erf": "jax.scipy.special.erf",
}
#: What NumPy's own column is, for spellings that differ in a part of it alone.
_OWN: Final[dict[str, Any]] = {name: PRIMITIVES[name].text for name in ("getitem", "contract")}


def _mean(e: Emitter, n: Node) -> Text:
    """PyTorch has no axes kept where none is named."""
    axes = _axes(n)
    axis = n.attrs["axis"]
    if axis == tuple(range(n.args[0].ndim)) and n.attrs["keepdims"]:
        axes = f"{axis}, keepdim=True"
    elif axis == tuple(range(n.args[0].ndim)):
        axes = ""
    return f"{e.arg(n.args[0], 8)}.{n.op}({axes})"


for _name, _spelling in {**_TORCH, "broadcast_to": _spread, "mean": _mean, "sum": _mean}.items():
    _own = PRIMITIVES[_name].torch
    if not _own or _name in ("broadcast_to", "mean", "sum", "where"):
        PRIMITIVES[_name] = replace(PRIMITIVES[_name], torch=_spelling)
for _name, _spelling in _JAX.items():
    if not PRIMITIVES[_name].jax:
        PRIMITIVES[_name] = replace(PRIMITIVES[_name], jax=_spelling)
for _name, _spelling in {"where": _choice, "broadcast_to": _spread, **_NUMPY}.items():
    PRIMITIVES[_name] = replace(PRIMITIVES[_name], text=_spelling)
