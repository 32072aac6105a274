"""The covariance of a model's outputs, and its tangent kernel, in the limit of infinite width."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.dispatch import get_threads
from handgrad.errors import ArgumentError, ShapeError
from handgrad.layers import MultiHeadAttention
from handgrad.layers.base import Layer, walk
from handgrad.layers.recurrent import Recurrent
from handgrad.limits import recurrent, transformer  # noqa: F401  their rules
from handgrad.limits.inputs import Side, joined, sides
from handgrad.limits.lattice import Lattice
from handgrad.limits.moments import Moments, SamplesNeededError
from handgrad.limits.program import Build, Raw, Signal
from handgrad.limits.rules import lower
from handgrad.limits.samples import Samples
from handgrad.limits.variables import Function, Gated, Variable, behind
from handgrad.limits.variances import ParameterDistribution, Variances
from handgrad.limits.windows import are_windows
from handgrad.ops.arguments import check_choice

KINDS: Final = ("nngp", "ntk")
#: Examples that are compared with as many others at a time: what is known of all pairs of a block
#: stays in the second-level cache for a network of a few dozen positions.
_BLOCK: Final = 128

#: Points of a lattice are worth more than draws: for this many draws there is one of them.
DRAWS_PER_POINT: Final = 16

#: Gates take points of every pair of examples: of more examples draws, which all pairs share, take
#: less time, and what they give is a covariance even of examples that are almost equal.
_MOST_WITH_GATES: Final = 16

VarianceLike = float | Mapping[str, float] | None


class Program(NamedTuple):
    """The vectors at the end of a model, one per position of its output.

    `drawn` says how each parameter that counts as drawn is drawn, by name.
    """

    outputs: Signal
    drawn: Mapping[str, ParameterDistribution]

    @property
    def variables(self) -> list[Variable]:
        """All vectors, each after those that it is made of."""
        return behind([self.outputs.variables[position] for position in self.outputs.positions])


def program(
    model: Layer,
    x: Array,
    x2: Array | None = None,
    *,
    lengths: Array | None = None,
    lengths2: Array | None = None,
    weight_variance: VarianceLike = None,
    bias_variance: VarianceLike = None,
) -> Program:
    """The NETSOR program of a model on inputs like x; arguments and errors as `kernel`."""
    return _compared(model, x, x2, lengths, lengths2, weight_variance, bias_variance)[2]


def _compared(
    model: Layer,
    x: Array,
    x2: Array | None,
    lengths: Array | None,
    lengths2: Array | None,
    weight_variance: VarianceLike,
    bias_variance: VarianceLike,
) -> tuple[Side, Side | None, Program]:
    """Both sides, and the program that the model is on them."""
    if not isinstance(model, Layer):
        raise ArgumentError(f"limits: the model is a {type(model).__name__}; allowed: a layer")
    if x2 is not None:
        try:
            model.output_shape(np.shape(x2)[1:])
        except ShapeError as error:
            raise ShapeError(f"limits: x2 has shape {np.shape(x2)}: {error}") from None
    left, right = sides(x, x2, lengths, lengths2)
    both = (left,) if right is None else (left, right)
    takes_lengths = any(
        isinstance(layer, Recurrent | MultiHeadAttention) for _, layer in walk(model)
    )
    if any(side.is_ragged for side in both) and not takes_lengths:
        raise ArgumentError(
            "limits: lengths for a model without recurrent layers or attention, which would not "
            "see them; allowed: None"
        )
    shape = left.x.shape[1:]
    model.output_shape(shape)
    variances = Variances(weight_variance, bias_variance)
    build = Build(variances, both)
    made = lower(model, Raw(shape, left.x.dtype.kind in "iu"), build)
    outputs = made if isinstance(made, Signal) else build.read(made, "last")
    variances.check_used()
    return left, right, Program(outputs, variances.used)


def kernel(
    model: Layer,
    x: Array,
    x2: Array | None = None,
    kind: str = "nngp",
    *,
    lengths: Array | None = None,
    lengths2: Array | None = None,
    weight_variance: VarianceLike = None,
    bias_variance: VarianceLike = None,
    samples: int = 65536,
    seed: int = 0,
) -> Array:
    """E[f(x) f(x′)] of one output of an infinitely wide random `model`, for all x and x′.

    kind "nngp" is the covariance of the Gaussian process that the outputs then are; "ntk" the
    tangent kernel Σ ∂f(x)/∂θ ∂f(x′)/∂θ over all weights and biases, with each of them its standard
    deviation times a parameter θ (so parameters that start from a fixed value add nothing).

    Hidden sizes of the model do not matter but for the variances of its weights: those of the
    layers' initializers at their own sizes, or `weight_variance` (of an entry times the number of
    columns) and `bias_variance`, a number for all or a mapping by parameter name.

    Closed forms for erf, sin, ReLU, leaky ReLU, GELU and the identity, series for tanh, sigmoid and
    SiLU, an integral for BatchNorm (with the statistics of each side's batch) of single vectors
    before ReLU, leaky ReLU or nothing. GRU, of at most 16 examples on both sides, and max-pooling
    of windows of at most nine are means over `samples`/16 points of a lattice, which `seed` shifts;
    LSTM, more examples of GRU and its kind "ntk", larger windows and other batches over `samples`
    draws with `seed`. LayerNorm, RMSNorm and BatchNorm count as they start, with γ = 1 and β = 0;
    BatchNorm as the first layer makes another input of each side's batch.

    Shapes: x (N, …) and x2 (M, …), x itself if None, as the model takes them; `lengths` (N,) and
    `lengths2` (M,) of sequences; the result (N, M), or (N, *P, M, *P) where the model has a vector
    for every position of shape P.
    Raises ArgumentError for a layer without a Gaussian limit, ShapeError for inputs that do not
    fit.
    Source: Yang, Tensor programs I: wide feedforward or recurrent neural networks of any
    architecture are Gaussian processes (2019); Yang, Tensor programs II: neural tangent kernel for
    any architecture (2020); Lee et al., Deep neural networks as Gaussian processes (2018); Novak et
    al., Bayesian deep convolutional networks with many channels are Gaussian processes (2019).
    """
    check_choice("limits.kernel", "kind", kind, KINDS)
    left, right, (outputs, _) = _compared(
        model, x, x2, lengths, lengths2, weight_variance, bias_variance
    )
    try:
        return _in_blocks(
            outputs, left, right, kind, _points(outputs, (left, right), kind, samples, seed)
        )
    except SamplesNeededError:
        found = _of_draws(outputs, left, right, kind, samples, seed)
    if right is None:
        return found
    positions = (slice(None),) * outputs.variables.ndim
    half: tuple[Any, ...] = (slice(0, left.count), *positions, slice(left.count, None))
    return found[half]


def _of_draws(
    outputs: Signal, left: Side, right: Side | None, kind: str, samples: int, seed: int
) -> Array:
    """The kernel of all examples of both sides with all, by one set of draws."""
    whole = left if right is None else joined(left, right)
    return _finite(_table(outputs, _sampled(whole, samples, seed), kind))


def _finite(table: Array) -> Array:
    if not np.isfinite(table).all():
        raise ArgumentError(
            "limits: a kernel beyond the largest number; allowed: smaller inputs or variances"
        )
    return table


def blocks_of(
    model: Layer,
    x: Array,
    x2: Array,
    kind: str = "nngp",
    *,
    lengths: Array | None = None,
    lengths2: Array | None = None,
    weight_variance: VarianceLike = None,
    bias_variance: VarianceLike = None,
    samples: int = 65536,
    seed: int = 0,
) -> tuple[Array | None, Array, Array]:
    """The kernel of x with itself, of x with x2, and the diagonal of x2, that belong together.

    The first is None where there are closed forms, by which any call of `kernel` gives the same;
    where there are none all three are from one set of draws, so that the whole is a covariance.
    """
    left, right, (outputs, _) = _compared(
        model, x, x2, lengths, lengths2, weight_variance, bias_variance
    )
    assert right is not None
    points = _points(outputs, (left, right), kind, samples, seed)
    try:
        return (
            None,
            _in_blocks(outputs, left, right, kind, points),
            _diagonals(outputs, right, kind, points),
        )
    except SamplesNeededError:
        whole = _of_draws(outputs, left, right, kind, samples, seed)
        n = left.count
        return whole[:n, :n], whole[:n, n:], np.diag(whole)[n:]


def diagonal(
    model: Layer,
    x: Array,
    kind: str = "nngp",
    *,
    lengths: Array | None = None,
    weight_variance: VarianceLike = None,
    bias_variance: VarianceLike = None,
    samples: int = 65536,
    seed: int = 0,
) -> Array:
    """The diagonal of `kernel`, (N,) or (N, *P); arguments and errors as there."""
    check_choice("limits.diagonal", "kind", kind, KINDS)
    side, _, (outputs, _) = _compared(model, x, None, lengths, None, weight_variance, bias_variance)
    try:
        return _diagonals(outputs, side, kind, _points(outputs, (side,), kind, samples, seed))
    except SamplesNeededError:
        return _diagonal(outputs, _sampled(side, samples, seed).alone[0], kind)


def _points(
    outputs: Signal, sides: tuple[Side | None, ...], kind: str, samples: int, seed: int
) -> Lattice | None:
    """The points of integrals; None where there is none, or one that takes draws."""
    _check_draws(samples, seed)
    examples = sum(side.count for side in sides if side is not None)
    every = behind([outputs.variables[position] for position in outputs.positions])
    functions = [each for each in every if isinstance(each, Function)]
    others = [each for each in functions if kind == "ntk" or not isinstance(each, Gated)]
    if not functions or not all(are_windows(each, each) for each in others):
        return None
    if examples > _MOST_WITH_GATES and len(others) < len(functions):
        return None
    return Lattice(samples // DRAWS_PER_POINT, seed)


def _check_draws(samples: int, seed: int) -> None:
    for name, value, least in (("samples", samples, 2), ("seed", seed, 0)):
        if not isinstance(value, int | np.integer) or value < least:
            raise ArgumentError(f"limits: {name} is {value!r}; allowed: whole numbers from {least}")


def _blocks(outputs: Signal, side: Side, points: Lattice | None) -> list[Moments]:
    """Some examples at a time with themselves, one where there are gates at points."""
    every = behind([outputs.variables[position] for position in outputs.positions])
    has_gates = points is not None and any(isinstance(each, Gated) for each in every)
    size = 1 if has_gates else _BLOCK
    starts = range(0, max(side.count, 1), size)
    return [Moments(side.part(slice(at, at + size)), points=points) for at in starts]


def _diagonals(outputs: Signal, side: Side, kind: str, points: Lattice | None) -> Array:
    found = [_diagonal(outputs, alone, kind) for alone in _blocks(outputs, side, points)]
    return np.concatenate(found)


def _diagonal(outputs: Signal, alone: Moments, kind: str) -> Array:
    """The kernel of each output with itself."""
    answer = alone.second if kind == "nngp" else alone.tangent
    found = np.empty((alone.sides[0].count, *outputs.variables.shape))
    for position in outputs.positions:
        variable = outputs.variables[position]
        entry: tuple[Any, ...] = (slice(None), *position)
        found[entry] = answer(variable, variable)
    return _finite(found)


def _sampled(side: Side, samples: int, seed: int) -> Moments:
    """All examples with all others, with draws where there is no closed form."""
    drawn = Samples(samples, np.random.default_rng(seed))
    alone = Moments(side, samples=drawn)
    drawn.moments = Moments(side, side, alone=(alone, alone), samples=drawn)
    return drawn.moments


def _in_blocks(
    outputs: Signal, left: Side, right: Side | None, kind: str, points: Lattice | None
) -> Array:
    """Blocks of examples, on all threads; without x2 those below the diagonal are turned ones."""
    rows = _blocks(outputs, left, points)
    columns = rows if right is None else _blocks(outputs, right, points)
    axes = outputs.variables.ndim
    turned = (*range(1 + axes, 2 + 2 * axes), *range(1 + axes))
    pairs = [
        (i, j) for i in range(len(rows)) for j in range(len(columns)) if right is not None or j >= i
    ]

    def block(pair: tuple[int, int]) -> Array:
        row, column = rows[pair[0]], columns[pair[1]]
        if row.gates is None or column.gates is None:
            both = Moments(row.sides[0], column.sides[0], alone=(row, column), points=points)
            return _table(outputs, both, kind)
        if row is column:
            return _table(outputs, row, kind)
        # In one order, so that the kernel of two examples is the same in every call.
        swapped = row.sides[0].x.tobytes() > column.sides[0].x.tobytes()
        first, second = (column, row) if swapped else (row, column)
        both = Moments(first.sides[0], second.sides[0], alone=(first, second), points=points)
        return _table(outputs, both, kind).transpose(turned if swapped else None)

    with ThreadPoolExecutor(get_threads()) as pool:
        # Each task needs a copy of the context, in which the engine and the precision are set.
        def each(function: Callable[[Any], Array], given: list[Any]) -> list[Array]:
            tasks = [pool.submit(copy_context().run, function, one) for one in given]
            return [task.result() for task in tasks]

        if points is not None:
            # The draws of gates come from here, not from the pair that happens to be first.
            each(lambda alone: _diagonal(outputs, alone, kind), [*{*rows, *columns}])
        found = dict(zip(pairs, each(block, pairs), strict=True))
    whole = np.concatenate(
        [
            np.concatenate(
                [
                    found[i, j] if (i, j) in found else found[j, i].transpose(turned)
                    for j in range(len(columns))
                ],
                axis=1 + axes,
            )
            for i in range(len(rows))
        ],
        axis=0,
    )
    return _finite(whole)


def _table(outputs: Signal, moments: Moments, kind: str) -> Array:
    """The kernel of all outputs of one side with all of the other."""
    counts = moments.sides[0].count, moments.sides[1].count
    answer = moments.second if kind == "nngp" else moments.tangent
    shape = outputs.variables.shape
    found = np.empty((counts[0], *shape, counts[1], *shape))
    for one in outputs.positions:
        for other in outputs.positions:
            value = answer(outputs.variables[one], outputs.variables[other])
            pair: tuple[Any, ...] = (slice(None), *one, slice(None), *other)
            found[pair] = value
    return found
