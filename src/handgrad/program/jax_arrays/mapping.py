"""Functions that JAX has made of the user's by vmap and vectorize, and vectorize itself."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Collection
from typing import Any, Final

from handgrad.program.jax_arrays.loops import vmap
from handgrad.program.jax_arrays.table import jax_function
from handgrad.program.primitives.table import refuse
from handgrad.program.sizes import ONE
from handgrad.program.tracer import Tracer

#: JAX's functions that call the user's: by their names what makes them, and the user's in them.
_MAKERS: Final = {"vmap_f": ("vmap", "fun"), "wrapped": ("vectorize", "pyfunc")}


@jax_function("numpy.vectorize")
def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Collection[Any] = (), signature: str | None = None
) -> Callable[..., Any]:
    """The function over all axes before those that its signature names."""

    def called(*args: Any, **kwargs: Any) -> Any:
        named = re.findall(r"\(([^)]*)\)", (signature or "").partition("->")[0])
        own = [k for k in range(len(args)) if k not in excluded]
        counts = [len([x for x in part.split(",") if x.strip()]) for part in named] or [0] * len(
            own
        )
        if len(counts) != len(own):
            refuse(f"vectorize with signature {signature} takes {len(counts)} arrays")
        inner = dict(zip(own, counts, strict=True))
        return _over_axes(lambda *arrays: pyfunc(*arrays, **kwargs), args, inner)

    return called


def _over_axes(function: Callable[..., Any], args: tuple[Any, ...], inner: dict[int, int]) -> Any:
    """The function over the first of the outer axes, and over the others in it."""
    outer = {k: getattr(args[k], "ndim", 0) - count for k, count in inner.items()}
    most = max(outer.values(), default=0)
    if most == 0:
        return function(*args)
    leading = {k for k, count in outer.items() if count == most}
    alone = {k for k in leading if type(args[k]) is Tracer and args[k].node.shape[0] == ONE}
    if alone != leading:  # one that has a single element there is the same for all
        args = tuple(x[0] if k in alone else x for k, x in enumerate(args))
        leading -= alone
    axes = tuple(0 if k in leading else None for k in range(len(args)))
    return vmap(lambda *rows: _over_axes(function, rows, inner), in_axes=axes)(*args)


def made_by_jax(x: Any, shown: Callable[[Any], Any]) -> Any:
    """The function that vmap or vectorize made, made anew from a stand-in; else None."""
    while isinstance(x, types.FunctionType) and _home(x) == "jax":
        cells = zip(x.__code__.co_freevars, x.__closure__ or (), strict=True)
        found = {name: cell.cell_contents for name, cell in cells}
        maker, user = _MAKERS.get(x.__code__.co_name, ("", "fun"))
        if maker == "vmap":
            return vmap(shown(found[user]), found["in_axes"], found["out_axes"])
        if maker == "vectorize":
            settings = {name: found[name] for name in ("excluded", "signature")}
            return vectorize(shown(found[user]), **settings)
        x = found.get(user)  # within what shortens tracebacks
    return None


def _home(function: types.FunctionType) -> str:
    """The package whose code it is, whatever it says of itself."""
    return str(function.__globals__.get("__name__", "")).partition(".")[0]
