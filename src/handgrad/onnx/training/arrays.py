"""Arrays that record: what the references do with them becomes nodes of a program.

They follow the array API, as those of JAX do, so a model, a loss and an optimizer run on them as
they are. All floats are traced as doubles, which stand for the type of the model.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NoReturn

import numpy as np

from handgrad.errors import ArgumentError
from handgrad.program import loop_records as loop_records
from handgrad.program import primitives as primitives
from handgrad.program.indexing import template
from handgrad.program.node import Node, as_node, build
from handgrad.program.operators import Operators
from handgrad.program.primitives.kinds import cast
from handgrad.program.primitives.table import signature_of
from handgrad.program.sizes import ONE

#: Arguments of the array API that say nothing of values.
_IGNORED: Final = ("device", "copy")


class TracedArray(Operators):
    """An array of a traced step."""

    def __init__(self, node: Node) -> None:
        self.node = node

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(np.shape(self.node.value))

    @property
    def ndim(self) -> int:
        return self.node.ndim

    @property
    def size(self) -> int:
        return int(np.size(self.node.value))

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.asarray(self.node.value).dtype

    @property
    def device(self) -> str:
        return "cpu"

    def __array_namespace__(self, *, api_version: str | None = None) -> Functions:
        return NAMESPACE

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"traced {self.node!r}"

    def __getitem__(self, key: Any) -> TracedArray:
        arrays, index = template(self.node, unwrapped(key))
        if None not in index:
            return TracedArray(build("getitem", self.node, *arrays, index=index))
        # New axes are a reshape of what the rest of the index selects.
        found = build("getitem", self.node, *arrays, index=tuple(i for i in index if i is not None))
        sizes = iter(found.shape)
        places = (i for i in index if i is None or isinstance(i, slice))
        return TracedArray(
            build("reshape", found, shape=tuple(ONE if i is None else next(sizes) for i in places))
        )

    def __getattr__(self, name: str) -> Any:
        """A function of NumPy as a method, where NumPy's arrays have it too."""
        if name.startswith("_") or not callable(getattr(np.ndarray, name, None)):
            raise AttributeError(f"a traced array has no attribute {name!r}")
        return partial(applied, getattr(np, name), self)

    def apply(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        return applied(function, *args, **kwargs)

    def is_fixed(self) -> bool:
        return True

    def assign(self, value: Any) -> None:
        raise _refusal("changes an array in place")

    def _number(self, *_: Any) -> NoReturn:
        raise _refusal("asks for the number of an array, which is known when the graph runs")

    __bool__ = __float__ = __int__ = __index__ = _number
    __array__ = _number


class Functions:
    """The functions of the array API on traced arrays."""

    __name__ = __name__

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if isinstance(found, type) or not callable(found) or name in ("finfo", "iinfo", "isdtype"):
            return found
        return _function(found)


NAMESPACE: Final = Functions()


def applied(function: Any, *args: Any, **kwargs: Any) -> Any:
    """A function of NumPy on traced arrays, as the nodes of its primitives."""
    if function is np.astype:
        array, dtype, *_ = args
        return TracedArray(cast(array.node, dtype))
    known = signature_of(function)
    if known is None:
        raise _refusal(f"calls {getattr(function, '__name__', function)}")
    return wrapped(known(*map(unwrapped, args), **{k: unwrapped(v) for k, v in kwargs.items()}))


def unwrapped(x: Any) -> Any:
    """Nodes in the place of arrays, in tuples, lists and slices too."""
    if isinstance(x, TracedArray):
        return x.node
    if isinstance(x, np.ndarray):
        return as_node(x)
    return type(x)(map(unwrapped, x)) if type(x) in (tuple, list) else x


def wrapped(x: Any) -> Any:
    """TracedArray arrays in the place of nodes."""
    if isinstance(x, Node):
        return TracedArray(x)
    return type(x)(map(wrapped, x)) if type(x) in (tuple, list) else x


def _function(function: Any) -> Callable[..., Any]:
    def traced(*args: Any, **kwargs: Any) -> Any:
        return applied(function, *args, **{k: v for k, v in kwargs.items() if k not in _IGNORED})

    return traced


def _refusal(does: str) -> ArgumentError:
    return ArgumentError(
        f"export_training: the step {does}; allowed: the layers, losses and optimizers that "
        "docs/onnx.md lists for training"
    )
