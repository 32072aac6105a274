"""jax.lax's loops and branches, and vmap: loops of the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from handgrad.program.integers import is_whole
from handgrad.program.jax_arrays.table import jax_function
from handgrad.program.node import world
from handgrad.program.primitives.table import refuse
from handgrad.program.rounds import Iterable
from handgrad.program.tensors.table import along, xp
from handgrad.program.tracer import TracedInt, Tracer


def _mapped(change: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """A tree of JAX's with every leaf replaced."""
    import jax

    return jax.tree.map(change, tree, *others)


def _element(tree: Any, axis: Any, k: Any) -> Any:
    """The tree of one element of an axis; all of it where there is no axis."""
    return tree if axis is None else _mapped(lambda x: along(x, axis, k), tree)


def _count(tree: Any, axis: int) -> Any:
    import jax

    return jax.tree.leaves(tree)[0].shape[axis]


def _rounds(count: Any) -> Iterable:
    """The numbers of rounds as a loop goes over them."""
    size = count.size if hasattr(count, "size") else count
    return Iterable(size, lambda k: TracedInt(world().length(k), k))


def _stacked(rounds: list[Any]) -> Any:
    """One tree of arrays from a list of trees, one for each round."""
    return None if not rounds else _mapped(lambda *each: xp.stack(list(each)), *rounds)


@jax_function("lax.scan")
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: Any = None,
    reverse: bool = False,
    **_: Any,
) -> tuple[Any, Any]:
    count = length if xs is None else _count(xs, 0)
    carry, made = init, []
    for k in _rounds(count):
        place = count - 1 - k if reverse else k
        carry, y = f(carry, _element(xs, 0, place))
        made.append(y)
    return carry, _stacked(made[::-1] if reverse else made)


@jax_function("lax.fori_loop")
def fori_loop(lower: Any, upper: Any, body_fun: Callable[..., Any], init_val: Any, **_: Any) -> Any:
    value = init_val
    for k in _rounds(upper - lower):
        value = body_fun(lower + k, value)
    return value


@jax_function("lax.map")
def map_rows(f: Callable[[Any], Any], xs: Any, **_: Any) -> Any:
    return vmap(f)(xs)


@jax_function("vmap")
def vmap(
    fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, **_: Any
) -> Callable[..., Any]:
    """The function for each element of an axis, in a loop."""

    def mapped(*args: Any) -> Any:
        whole = is_whole(in_axes) or in_axes is None
        axes = (in_axes,) * len(args) if whole else tuple(in_axes)
        if not all(axis is None or is_whole(axis) for axis in axes):
            refuse("in_axes of vmap is known as a number, None, or a tuple of them")
        pairs = list(zip(args, axes, strict=True))
        count = next(_count(x, axis) for x, axis in pairs if axis is not None)

        def row(k: Any) -> Any:
            return fun(*(_element(x, axis, k) for x, axis in pairs))

        found = _stacked([row(k) for k in _rounds(count)])
        if out_axes == 0:
            return found
        return _mapped(lambda y: xp.moveaxis(y, 0, out_axes), found)

    return mapped


@jax_function("lax.cond")
def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *args: Any) -> Any:
    """Both ways, of which the condition chooses, where it is traced."""
    if type(pred) is not Tracer:
        return true_fun(*args) if pred else false_fun(*args)
    return _mapped(lambda a, b: xp.where(pred, a, b), true_fun(*args), false_fun(*args))


@jax_function("lax.switch")
def switch(index: Any, branches: Any, *args: Any) -> Any:
    if type(index) is Tracer:
        refuse("switch by a traced index is not known; write cond")
    return branches[min(max(int(index), 0), len(branches) - 1)](*args)


@jax_function("lax.associative_scan")
def associative_scan(
    fn: Callable[..., Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """From the first element on, each combined with what is before it."""
    count = _count(elems, axis)

    def element(k: Any) -> Any:
        return _element(elems, axis, count - 1 - k if reverse else k)

    carry, made = element(0), [element(0)]
    for k in _rounds(count - 1):
        carry = fn(carry, element(k + 1))
        made.append(carry)
    found = _stacked(made[::-1] if reverse else made)
    return _mapped(lambda y: xp.moveaxis(y, 0, axis), found)


@jax_function("jit", "checkpoint", "remat", "named_call")
def same(fun: Any = None, **_: Any) -> Any:
    """The function itself, also as a decorator with settings."""
    return fun if fun is not None else same
