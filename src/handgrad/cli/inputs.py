"""Arrays to check a target with: from a file, from shapes, or from forward's annotations."""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

from handgrad.errors import ArgumentError
from handgrad.ops import OPS
from handgrad.targets import CONTEXTS, Target, op_of, pair_of

#: A batch for the model of a recipe or a run.
_EXAMPLES: Final = 5
#: The most that an integer of 64 bits, and an array of NumPy, has room for.
_DIGITS: Final = 18
_MOST_AXES: Final = 32
#: Sizes for the letters of annotations: distinct, so that a transpose shows.
_PRIMES: Final = (5, 3, 7, 2, 11, 13, 17, 19)

_SHAPE: Final = re.compile(r"(?:(?:int(?P<below>\d+)|(?P<bool>bool)):)?(?P<sizes>[\d, ]*)")
_ANNOTATION: Final = re.compile(r"""\w*Float\w*\[.+,\s*["'](?P<shape>[^"']*)["']\]""")
#: Names of the labels of a loss, and of what it compares with them.
_LABEL: Final = re.compile(
    r"(labels?|targets?)(_\w+)?|\w*_true|true_\w+|truth|gt|actual|expected|one_?hot", re.I
)
_PREDICTION: Final = re.compile(r"\w*pred\w*|y_?hat|logits|scores|probs?", re.I)

Draw = Callable[[np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class GivenArrays:
    """The arrays of the command line, by the names of arguments; or all of forward's in order."""

    arrays: Mapping[str, np.ndarray]
    source: str
    in_order: bool = False

    def without(self, names: Collection[str]) -> GivenArrays:
        """The rest, when a constructor took those of these names."""
        kept = {name: x for name, x in self.arrays.items() if name not in names}
        return replace(self, arrays=kept)


def given_arrays(shapes: Sequence[str], file: Path | None, seed: int) -> GivenArrays:
    """The arrays that `--shape` or `--inputs` give.

    `shapes` are `NAME=2,3` (standard normal), `NAME=int10:2,3` (whole numbers below 10) and
    `NAME=bool:2,3`; a `file` without names has the inputs in order. Raises ArgumentError for both
    together, DataError for a file that cannot be read.
    """
    if file is None:
        rng = np.random.default_rng(seed)
        return GivenArrays({name: draw(rng) for name, draw in map(_described, shapes)}, "--shape")
    if shapes:
        raise ArgumentError("check: --inputs and --shape are given; allowed: one of them")
    # Here, because what reads data, and recipes below, take longer to load than a check takes.
    from handgrad.data.npy import read_npz

    arrays, _ = read_npz(file)
    unnamed = [f"arr_{i}" for i in range(len(arrays))]
    if set(arrays) == set(unnamed):
        return GivenArrays({name: arrays[name] for name in unnamed}, str(file), in_order=True)
    return GivenArrays(arrays, str(file))


def arrays_for(
    target: Target, given: GivenArrays, *, like: str | None, options: Iterable[str], seed: int
) -> list[Any]:
    """The inputs in the order of forward; none where `hg.check` has its own.

    Raises ArgumentError for anything that does not fit forward, and where there is nothing to go
    by.
    """
    is_alone = inspect.isfunction(target.value) and pair_of(target.value) is None
    if is_alone and like is None and not given.arrays:
        raise ArgumentError(
            f"check: {target.name} is one function; allowed: two, MODULE:FORWARD,BACKWARD, or "
            "--like with the op whose backward it is meant to be"
        )
    if given.in_order:
        return list(given.arrays.values())
    parameters = _parameters(target.value, like)
    left = given.without(target.made_of)
    if left.arrays:
        is_drawn = left.source == "--shape"
        arrays = _of_a_loss(left.arrays, seed) if is_drawn else left.arrays
        return _ordered(_nested(arrays), parameters, options, left.source)
    if like is not None or op_of(target.value) is not None:
        return []
    rng = np.random.default_rng(seed)
    if target.recipe is not None:
        from handgrad.recipes import tasks

        return list(tasks.example(target.recipe, _EXAMPLES, rng))
    return _annotated(target, parameters, options, rng)


def _parameters(value: Any, like: str | None) -> dict[str, inspect.Parameter]:
    """The positional parameters of forward by name; none where it cannot be asked."""
    forward = _forward(value, like)
    if not callable(forward):
        return {}
    try:
        signature = inspect.signature(forward)
    except (TypeError, ValueError):
        return {}
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = {name: e for name, e in signature.parameters.items() if e.kind in kinds}
    if next(iter(positional), "") in CONTEXTS:  # which nobody has before there is a pass
        positional.pop(next(iter(positional)))
    return positional


def settings_for(target: Target, options: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of forward, lists of numbers that it has to be given as arrays.

    Labels are one such; a list with a default is meant as it is written.
    """
    required = {name for name, e in _parameters(target.value, None).items() if e.default is e.empty}
    return {
        name: _as_array(each) if name in required and isinstance(each, list) else each
        for name, each in options.items()
    }


def _as_array(values: list[Any]) -> Any:
    try:
        array = np.asarray(values)
    except ValueError:  # rows that differ in length
        return values
    return array if array.dtype.kind in "fiub" else values


def _forward(value: Any, like: str | None) -> Any:
    """The function that the inputs go to."""
    if isinstance(value, tuple) and value:
        return value[0]
    function = value.__self__ if getattr(value, "__name__", None) == "apply" else value
    torch: Any = sys.modules.get("torch")
    if torch is not None and _is_class(function, torch.autograd.Function):
        takes_context = function.setup_context is torch.autograd.Function.setup_context
        return partial(function.forward, None) if takes_context else function.forward
    if callable(getattr(value, "forward", None)):
        return value.forward
    if (pair := pair_of(value)) is not None:
        return pair[0]
    if like in OPS:  # of a backward alone
        return import_module(f"handgrad.ops.{like}").forward
    return value


def _is_class(value: Any, base: Any) -> bool:
    return isinstance(value, type) and issubclass(value, base)


def _nested(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The arrays, those of names such as `params.w` in a dictionary of their own."""
    found: dict[str, Any] = {}
    for name, array in arrays.items():
        first, dot, rest = name.partition(".")
        if dot and isinstance(inner := found.setdefault(first, {}), dict):
            inner[rest] = array
        else:
            found[name] = array
    return found


def _ordered(
    arrays: Mapping[str, Any],
    parameters: Mapping[str, inspect.Parameter],
    options: Iterable[str],
    source: str,
) -> list[Any]:
    """The arrays in the order of forward's arguments, which go in by position."""
    if not parameters:
        return list(arrays.values())
    allowed = ", ".join(parameters)
    for name in arrays:
        if name not in parameters:
            raise ArgumentError(f"check: {source} has {name!r}; allowed: {allowed}")
    last = max((list(parameters).index(name) for name in arrays), default=-1)
    for i, (name, parameter) in enumerate(parameters.items()):
        required = parameter.default is inspect.Parameter.empty and name not in options
        if name not in arrays and (required or i < last):
            raise ArgumentError(f"check: {source} lacks {name!r}; allowed: {allowed}")
    return [arrays[name] for name in parameters if name in arrays]


# -- shapes ----------------------------------------------------------------------------------------


def _described(text: str) -> tuple[str, Draw]:
    """`--shape` as the name of an input and how to draw it."""
    name, equals, described = (part.strip() for part in text.partition("="))
    match = _SHAPE.fullmatch(described)
    sizes = [each.strip() for each in match["sizes"].split(",")] if match else [""]
    if sizes[-1] == "":  # a scalar, or a comma at the end as in (3,)
        sizes.pop()
    if not name or not equals or match is None or not all(map(str.isdigit, sizes)):
        raise ArgumentError(
            f"check: --shape {text}: found no name and sizes; allowed: NAME=2,3, or "
            "NAME=int10:2,3 for whole numbers below 10, or NAME=bool:2,3"
        )
    if max(map(len, (*sizes, match["below"] or ""))) > _DIGITS or len(sizes) > _MOST_AXES:
        raise ArgumentError(
            f"check: --shape {name}: found {len(sizes)} sizes, or one with too many digits; "
            f"allowed: {_MOST_AXES} sizes of {_DIGITS} digits"
        )
    shape = tuple(map(int, sizes))
    if math.prod(shape) * 8 >= 2**63:
        raise ArgumentError(f"check: --shape {text}: found 2⁶⁰ values or more; allowed: fewer")
    if match["bool"]:
        return name, lambda rng: rng.integers(0, 2, shape).astype(bool)
    if match["below"]:
        below = int(match["below"])
        if below == 0:
            raise ArgumentError(f"check: --shape {text}: nothing is below 0; allowed: int1 and up")
        return name, lambda rng: np.asarray(rng.integers(0, below, shape))
    return name, lambda rng: np.asarray(rng.standard_normal(shape))


def _of_a_loss(arrays: Mapping[str, np.ndarray], seed: int) -> Mapping[str, np.ndarray]:
    """The arrays, where some are labels of floats: those one-hot, and their like within (0, 1).

    A loss may take logarithms, and its gradient may stand on labels that add up to 1.
    """
    is_loss = any(_PREDICTION.fullmatch(name) for name in arrays)
    of_floats = {name: array for name, array in arrays.items() if array.dtype.kind == "f"}
    labels = [
        name
        for name in of_floats
        if _LABEL.fullmatch(name) or (is_loss and name in ("y", "t", "true"))
    ]
    if not 0 < len(labels) < len(of_floats):
        return arrays
    rng = np.random.default_rng((seed, len(labels)))
    found = dict(arrays)
    for name, array in of_floats.items():
        if name in labels:
            found[name] = _one_hot(array.shape, rng)
        elif array.shape in [arrays[each].shape for each in labels]:
            found[name] = rng.uniform(0.05, 0.95, array.shape)
    return found


def _one_hot(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """A class for each row; where there is one class alone, whether it is this."""
    if len(shape) < 2 or shape[-1] == 1:
        return rng.integers(0, 2, shape).astype(np.float64)
    return np.asarray(np.eye(shape[-1])[rng.integers(0, shape[-1], shape[:-1])])


# -- annotations -----------------------------------------------------------------------------------


def _annotated(
    target: Target,
    parameters: Mapping[str, inspect.Parameter],
    options: Iterable[str],
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """Arrays in the shapes that forward's annotations say, `x: Float[Array, "N D"]`."""
    required = [
        each
        for each in parameters.values()
        if each.default is inspect.Parameter.empty and each.name not in options
    ]
    shapes = [_shape_of(each) for each in required]
    if not shapes or None in shapes:
        names = " ".join(f"--shape {each.name}=..." for each in required) or "--shape x=..."
        raise ArgumentError(
            f"check: no inputs are given for {target.name}; allowed: {names}, or --inputs FILE.npz,"
            " or --like with the op that it is meant to be, or shapes in forward's annotations, "
            'x: Float[Array, "N D"]'
        )
    sizes: dict[str, int] = {}
    return [
        rng.standard_normal([_size(axis, sizes) for axis in shape if axis != "..."])
        for shape in shapes
        if shape is not None
    ]


def _shape_of(parameter: inspect.Parameter) -> list[str] | None:
    """The axes of `Float[Array, "N D"]`; None for any other annotation."""
    annotation = parameter.annotation
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    match = _ANNOTATION.fullmatch(text.strip())
    return match["shape"].split() if match else None


def _size(axis: str, sizes: dict[str, int]) -> int:
    """A number as it is, and a prime for every letter."""
    name = axis.lstrip("*#")
    if name.isdigit():
        return int(name)
    if not name.isidentifier() or (name not in sizes and len(sizes) == len(_PRIMES)):
        raise ArgumentError(
            f"check: the axis {axis!r} in forward's annotations gets no size; allowed: --shape"
        )
    return sizes.setdefault(name, _PRIMES[len(sizes)])
