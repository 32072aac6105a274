"""jax.lax: functions of arrays with JAX's own names and arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from handgrad.program.jax_arrays.table import JAX_FUNCTIONS, jax_function
from handgrad.program.primitives.table import refuse
from handgrad.program.tensors.table import along, special, xp
from handgrad.program.tensors.windows import windows

#: NumPy's functions by JAX's names, with the arguments in the same order.
_NAMES: Final = {
    **{name: name for name in ("exp", "exp2", "expm1", "log", "log1p", "sqrt", "square", "sign")},
    **{name: name for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "cbrt", "floor")},
    **{name: name for name in ("ceil", "round", "reshape", "transpose", "expand_dims", "cumsum")},
    **{name: name for name in ("cumprod", "nextafter", "conj", "real", "imag", "argmax", "argmin")},
    "abs": "absolute",
    "neg": "negative",
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "rem": "remainder",
    "pow": "power",
    "integer_pow": "power",
    "max": "maximum",
    "min": "minimum",
    "atan2": "arctan2",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "is_finite": "isfinite",
    "bitwise_not": "logical_not",
    "bitwise_and": "logical_and",
    "bitwise_or": "logical_or",
    "batch_matmul": "matmul",
    "full": "full",
    "full_like": "full_like",
    "rev": "flip",
    "stack": "stack",
}
JAX_FUNCTIONS.update({f"lax.{name}": getattr(xp, own) for name, own in _NAMES.items()})
_SPECIAL: Final = {"erf": "erf", "erfc": "erfc", "erf_inv": "erfinv", "lgamma": "gammaln"}
_SPECIAL_TOO: Final = {"digamma": "digamma", "bessel_i0e": "i0e"}
JAX_FUNCTIONS.update(
    {f"lax.{name}": getattr(special, own) for name, own in (_SPECIAL | _SPECIAL_TOO).items()}
)
for _name in ("sum", "prod", "max", "min"):
    JAX_FUNCTIONS[f"lax.reduce_{_name}"] = getattr(xp, _name)


@jax_function("lax.rsqrt")
def rsqrt(x: Any, **_: Any) -> Any:
    return 1.0 / xp.sqrt(x)


@jax_function("lax.reciprocal", "numpy.reciprocal")
def reciprocal(x: Any) -> Any:
    return 1.0 / x


@jax_function("lax.select")
def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    return xp.where(pred, on_true, on_false)


@jax_function("lax.clamp")
def clamp(min: Any, x: Any, max: Any) -> Any:
    return xp.clip(x, min, max)


@jax_function("lax.concatenate")
def concatenate(operands: Sequence[Any], dimension: int) -> Any:
    return xp.concatenate(operands, axis=dimension)


@jax_function("lax.broadcast_in_dim")
def broadcast_in_dim(x: Any, shape: Any, broadcast_dimensions: Sequence[int], **_: Any) -> Any:
    key = tuple(slice(None) if k in broadcast_dimensions else None for k in range(len(shape)))
    return xp.broadcast_to(x[key], shape)


@jax_function("lax.broadcast")
def broadcast(x: Any, sizes: Sequence[Any], **_: Any) -> Any:
    return xp.broadcast_to(x, (*sizes, *x.shape))


@jax_function("lax.squeeze")
def squeeze(x: Any, dimensions: Any) -> Any:
    return xp.squeeze(x, axis=tuple(dimensions))


@jax_function("lax.iota")
def iota(dtype: Any, size: Any) -> Any:
    return xp.arange(size).astype(dtype)


@jax_function("lax.convert_element_type")
def convert_element_type(x: Any, new_dtype: Any) -> Any:
    return x.astype(new_dtype)


@jax_function("lax.dynamic_slice")
def dynamic_slice(x: Any, start_indices: Sequence[Any], slice_sizes: Sequence[Any]) -> Any:
    ends = zip(start_indices, slice_sizes, strict=True)
    return x[tuple(slice(start, start + size) for start, size in ends)]


@jax_function("lax.dynamic_slice_in_dim")
def dynamic_slice_in_dim(x: Any, start_index: Any, slice_size: Any, axis: int = 0) -> Any:
    return along(x, axis, slice(start_index, start_index + slice_size))


@jax_function("lax.slice")
def slice_of(x: Any, starts: Sequence[Any], limits: Sequence[Any], strides: Any = None) -> Any:
    steps = strides or (None,) * len(starts)
    return x[tuple(slice(*each) for each in zip(starts, limits, steps, strict=True))]


@jax_function("lax.slice_in_dim")
def slice_in_dim(x: Any, start_index: Any, limit_index: Any, stride: Any = 1, axis: int = 0) -> Any:
    return along(x, axis, slice(start_index, limit_index, stride))


@jax_function("lax.index_in_dim", "lax.dynamic_index_in_dim")
def index_in_dim(x: Any, index: Any, axis: int = 0, keepdims: bool = True) -> Any:
    found = along(x, axis, index)
    return xp.expand_dims(found, axis) if keepdims else found


@jax_function("lax.dynamic_update_slice")
def dynamic_update_slice(x: Any, update: Any, start_indices: Sequence[Any]) -> Any:
    made = x.copy()
    ends = zip(start_indices, update.shape, strict=True)
    made[tuple(slice(start, start + size) for start, size in ends)] = update
    return made


@jax_function("lax.dynamic_update_slice_in_dim", "lax.dynamic_update_index_in_dim")
def dynamic_update_slice_in_dim(x: Any, update: Any, start_index: Any, axis: int) -> Any:
    made = x.copy()
    size = update.shape[axis] if update.ndim == x.ndim else 1
    place = (*(slice(None),) * (axis % x.ndim), slice(start_index, start_index + size))
    made[place] = update if update.ndim == x.ndim else xp.expand_dims(update, axis)
    return made


@jax_function("lax.dot")
def dot(a: Any, b: Any, **_: Any) -> Any:
    return xp.dot(a, b)


@jax_function("lax.dot_general")
def dot_general(a: Any, b: Any, dimension_numbers: Any, **_: Any) -> Any:
    """Batch axes, then the rest of a, then the rest of b."""
    (left, right), (left_batch, right_batch) = dimension_numbers
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    names = [next(letters) for _ in range(a.ndim)]
    others = [next(letters) for _ in range(b.ndim)]
    for i, j in zip((*left_batch, *left), (*right_batch, *right), strict=True):
        others[j] = names[i]
    used = [names[i] for i in (*left_batch, *left)]
    out = [names[i] for i in left_batch]
    out += [x for x in names if x not in used] + [x for x in others if x not in used]
    return xp.einsum(f"{''.join(names)},{''.join(others)}->{''.join(out)}", a, b)


@jax_function("lax.top_k")
def top_k(x: Any, k: Any, **_: Any) -> Any:
    order = xp.take(xp.argsort(-x, axis=-1, kind="stable"), xp.arange(k), axis=-1)
    return xp.take_along_axis(x, order, axis=-1), order


@jax_function("lax.sort")
def sort(x: Any, dimension: int = -1, **_: Any) -> Any:
    return xp.sort(x, axis=dimension)


def _convolution(
    x: Any,
    weight: Any,
    window_strides: Sequence[int],
    padding: Any,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    **options: Any,
) -> Any:
    """The layouts are brought to that of images by channels (NCHW) and of kernels (OIHW)."""
    axes = x.ndim - 2
    places = "HWD"[:axes]
    unknown = [name for name, value in options.items() if value not in (None, 1, (1,) * axes)]
    if unknown or feature_group_count != 1:
        refuse("a convolution with groups, lhs_dilation or batch groups is not known")
    plain = (f"NC{places}", f"OI{places}", f"NC{places}")
    given = plain if dimension_numbers is None else dimension_numbers
    if not all(isinstance(each, str) for each in given):
        refuse(
            "dimension_numbers of a convolution are known as text; write ('NHWC', 'HWIO', 'NHWC')"
        )
    x = xp.transpose(x, tuple(given[0].index(c) for c in plain[0]))
    weight = xp.transpose(weight, tuple(given[1].index(c) for c in plain[1]))
    spread = tuple(rhs_dilation or (1,) * axes)
    reach = [d * (k - 1) + 1 for k, d in zip(weight.shape[2:], spread, strict=True)]
    x = xp.pad(x, [(0, 0), (0, 0), *_widths(padding, x.shape[2:], reach, window_strides)])
    view = windows(x, weight.shape[2:], tuple(window_strides), spread)
    small = places.lower()
    y = xp.einsum(f"nc{small}{places},oc{places}->no{small}", view, weight)
    return xp.transpose(y, tuple(plain[2].index(c) for c in given[2]))


def _widths(padding: Any, sizes: Any, reach: Any, strides: Any) -> list[tuple[Any, Any]]:
    if not isinstance(padding, str):
        return [tuple(each) for each in padding]
    if padding.upper() == "VALID":
        return [(0, 0)] * len(reach)
    if any(s != 1 for s in strides):
        refuse("padding 'SAME' is known for strides of 1; give the widths")
    return [((r - 1) // 2, (r - 1) - (r - 1) // 2) for r in reach]


@jax_function("lax.conv_general_dilated")
def conv_general_dilated(
    lhs: Any, rhs: Any, window_strides: Sequence[int], padding: Any, *args: Any, **options: Any
) -> Any:
    if args:
        refuse("further arguments of conv_general_dilated are known by their names")
    return _convolution(lhs, rhs, window_strides, padding, **options)


@jax_function("lax.conv")
def conv(lhs: Any, rhs: Any, window_strides: Sequence[int], padding: Any, **_: Any) -> Any:
    return _convolution(lhs, rhs, window_strides, padding)


@jax_function("lax.reduce_window")
def reduce_window(
    x: Any,
    init_value: Any,
    computation: Any,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    **options: Any,
) -> Any:
    """Windows over all axes, of which a sum or the largest element is left."""
    reductions = {id(JAX_FUNCTIONS[f"lax.{name}"]): name for name in ("add", "max", "min")}
    name = reductions.get(id(computation))
    if name is None or any(value is not None for value in options.values()):
        refuse("reduce_window is known for lax.add, lax.max and lax.min without dilation")
    window, steps = tuple(window_dimensions), tuple(window_strides or (1,) * x.ndim)
    widths = _widths(padding, x.shape, window, steps)
    if any(width != (0, 0) for width in widths):
        x = xp.pad(x, widths, constant_values=init_value)
    view = windows(x, window, steps, (1,) * x.ndim)
    last = tuple(range(-x.ndim, 0))
    return {"add": xp.sum, "max": xp.max, "min": xp.min}[name](view, axis=last)


@jax_function("ops.segment_sum")
def segment_sum(data: Any, segment_ids: Any, num_segments: Any = None, **_: Any) -> Any:
    if num_segments is None:
        refuse("segment_sum without num_segments has as many as its values say; give num_segments")
    made = xp.zeros((num_segments, *data.shape[1:]))
    made.assign_at("add_at", segment_ids, data)
    return made
