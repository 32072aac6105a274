"""Extremes put at an index, as by `np.maximum.at`: of a place and its values."""

from typing import Any

import numpy as np

from handgrad.program.node import Node, build
from handgrad.program.primitives.axes import unbroadcast
from handgrad.program.primitives.index import Index, Slot, changed, filled
from handgrad.program.primitives.record import Gradients, Sample, normal, record, whole
from handgrad.program.primitives.table import HELPERS

_HELPERS = {
    "numpy": '''def {0}_at(x, value, index):
    """x with the {1} of x[index] and the values there, where places may come more than once."""
    found = x.copy()
    np.{0}.at(found, index, value)
    return found
''',
    "torch": '''def {0}_at(x, value, index):
    """x with the {1} of x[index] and the values there, where places may come more than once."""
    places = torch.arange(x.numel(), device=x.device).reshape(x.shape)[index]
    value = torch.as_tensor(value, dtype=x.dtype, device=x.device).broadcast_to(places.shape)
    found = x.reshape(-1).scatter_reduce(0, places.reshape(-1), value.reshape(-1), "{2}")
    return found.reshape(x.shape)
''',
}


def vjp(g: Node, y: Node, base: Node, value: Node, *arrays: Node, index: Index) -> Gradients:
    """The gradient of a place is shared by all that reach its extreme."""
    reached = build("getitem", y, *arrays, index=index)
    won = build("where", build("equal", value, reached), 1.0, 0.0)
    stayed = build("where", build("equal", base, y), 1.0, 0.0)
    share = g / build("add_at", stayed, won, *arrays, index=index)
    read = build("getitem", share, *arrays, index=index) * won
    return (share * stayed, unbroadcast(read, value), *(None,) * len(arrays))


def register(name: str, words: str, reduction: str) -> None:
    """A record for an extreme, with its helpers."""
    ufunc = getattr(np, name)

    def evaluate(base: Any, value: Any, *arrays: Any, index: Index) -> Any:
        found = np.array(base, dtype=np.result_type(base, value))
        ufunc.at(found, filled(index, arrays), value)
        return found

    def text(e: Any, n: Node) -> str:
        is_torch = e.library.name == "torch"
        where = f"({e.slices(e.index(n))},)" if is_torch else f"{e.alias}.s_[{e.index(n)}]"
        return str(e.call(f"{name}_at", n.args[:2], index=where))

    for library, source in _HELPERS.items():
        made = source.format(name, words, reduction)
        HELPERS.setdefault(f"{name}_at", {})[library] = made
    record(
        f"{name}_at",
        evaluate,
        changed,
        vjp,
        text=text,
        torch=text,
        jax=lambda e, n: (
            f"{e.arg(n.args[0], 9)}.at[{e.index(n)}].{reduction[1:]}({e.arg(n.args[1])})"
        ),
        samples=(
            Sample(("M N", "K N", "K"), {"index": (Slot(0), slice(None))}, (normal, normal, whole)),
            Sample(("M", "K", "K"), {"index": (Slot(0),)}, (normal, normal, whole)),
        ),
    )


register("maximum", "largest", "amax")
register("minimum", "smallest", "amin")
