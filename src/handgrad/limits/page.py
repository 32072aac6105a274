"""The page of a model's limit: its program, its kernel, how networks come to it, and how deep."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.documents.document import (
    Block,
    Document,
    Equation,
    Heading,
    List,
    Mono,
    Paragraph,
    Span,
    Table,
)
from handgrad.documents.formulas.formula import Fenced, Formula, Number, Script, Symbol
from handgrad.equations.notes import Notes
from handgrad.errors import ArgumentError
from handgrad.limits.convergence import Convergence, convergence
from handgrad.limits.depth import critical_weight_variance, fixed_point, signals
from handgrad.limits.equations import Equations
from handgrad.limits.figures import NamedCurve, lines, shades
from handgrad.limits.kernel import program
from handgrad.limits.variables import Nonlin
from handgrad.limits.variances import ParameterDistribution
from handgrad.recipes import Recipe, build_model, completed, load_task

#: Examples in the picture of the kernel, and networks of each width beside it.
EXAMPLES: Final = 24
NETWORKS: Final = 10
WIDTHS: Final = (32, 64, 128, 256, 512)
#: Draws where there is no closed form; in the picture three digits are enough.
_SAMPLES: Final = 8192
_DEPTH: Final = 40
_BIAS: Final = 0.05
_SOURCES: Final = (
    "Yang, Tensor programs I: wide feedforward or recurrent neural networks of any architecture "
    "are Gaussian processes (2019)",
    "Schoenholz, Gilmer, Ganguli, Sohl-Dickstein, Deep information propagation (2017)",
)
#: Lines beyond which equations repeat what is above.
_MOST_LINES: Final = 60


def limit_notes(
    recipe: Recipe,
    *,
    data: Any = None,
    examples: int = EXAMPLES,
    widths: Sequence[int] = WIDTHS,
    networks: int = NETWORKS,
    seed: int = 0,
) -> Notes:
    """The limit of a recipe's model on the first of its own examples, as notes.

    Raises RecipeError and DataError as training does, ArgumentError for a model without a limit.
    """
    if examples < 2:
        raise ArgumentError(f"limit: examples is {examples}; allowed: 2 or more")
    task = load_task(recipe, data)
    full = completed(recipe, task)
    model = build_model(full)
    x, lengths = _examples(task.data, examples)
    given: dict[str, Any] = {"lengths": lengths}
    found = program(model, x, **given)
    drawn = found.drawn
    # Every width has the variances of the recipe's own one, else they would have no common limit.
    given |= {
        f"{kind}_variance": {
            name: each.variance for name, each in drawn.items() if each.kind == kind
        }
        for kind in ("weight", "bias")
    }
    made = convergence(
        lambda width: build_model(_of_width(full, width)),
        x,
        widths=widths,
        networks=networks,
        samples=_SAMPLES,
        seed=seed,
        **given,
    )
    equations = Equations(found.variables)
    blocks = [
        Paragraph(
            (
                "A network with random weights is a Gaussian process when its hidden sizes go to "
                "infinity. Below are the vectors of the recipe ",
                Mono(recipe.name),
                " as a NETSOR program, read from its layers: G is Gaussian, a matrix with "
                "independent entries times a vector, and H a function of such; then the "
                "expectations that make the kernel, and how random networks come to it.",
            )
        ),
        *_weights(equations, drawn),
        *_program(equations),
        *_kernel(made),
        *_convergence(made, networks),
        *_depth(found.variables),
        Heading("Sources", anchor="sources"),
        List(_SOURCES),
    ]
    return Notes(Document(f"{recipe.name}: the limit of infinite width", "en", tuple(blocks)))


def _examples(data: Any, count: int) -> tuple[Array, Array | None]:
    """The first test examples, with their lengths where these differ."""
    if not hasattr(data, "x_test"):
        raise ArgumentError("limit: the recipe's data are no examples; allowed: classification")
    batch = data.x_test[np.arange(min(count, len(data.x_test)))]
    if hasattr(batch, "lengths"):
        return np.asarray(batch.x, dtype=np.float64), np.asarray(batch.lengths)
    return np.asarray(batch, dtype=np.float64), None


def _of_width(recipe: Recipe, width: int) -> Recipe:
    """The recipe with all hidden sizes, and its number of outputs, at `width`."""
    tables = copy.deepcopy(recipe.tables)
    _widen(tables["model"], width)
    tables["data"]["classes"] = [str(i) for i in range(width)]
    return Recipe.from_tables(recipe.name, tables)


def _widen(table: dict[str, Any], width: int) -> None:
    for key, value in table.items():
        if key in ("channels", "features", "hidden_size"):
            table[key] = width
        for each in value if isinstance(value, list) else ():
            if isinstance(each, dict):
                _widen(each, width)


def _numbered(letter: str, number: int) -> Formula:
    return Script(Symbol(letter), sup=Fenced(Number(str(number))))


def _weights(equations: Equations, drawn: Mapping[str, ParameterDistribution]) -> Iterator[Block]:
    yield Heading("Weights", anchor="weights")
    yield Paragraph(
        "The variance of a matrix is that of an entry times the number of its columns, at the "
        "recipe's own sizes; that of a vector is of an entry."
    )
    rows = []
    for letter, numbers in (("W", equations.weights), ("b", equations.biases)):
        for name, number in numbers.items():
            variance = drawn[name.partition("[")[0]].variance
            rows.append((_numbered(letter, number), Mono(name), f"{variance:.4g}"))
    yield Table(("symbol", "parameter", "variance"), tuple(rows), align="llr")


def _program(equations: Equations) -> Iterator[Block]:
    found = equations.lines()
    shown = found[:_MOST_LINES]
    yield Heading("Program", anchor="program")
    for i, line in enumerate(shown, start=1):
        yield Equation(line.definition, number=str(i), name=line.kind)
    if len(found) > len(shown):
        yield Paragraph(f"{len(found) - len(shown)} more lines go on in the same way.")
    yield Heading("Expectations", anchor="expectations")
    yield Paragraph(
        "Products are of one entry of a vector and that of another example, marked by a prime; "
        "sums are taken term by term, and matrices that differ are independent. Of the other "
        "functions the expectation is over the joint distribution of the Gaussian vectors."
    )
    for i, line in enumerate(shown, start=1):
        if line.moment is not None:
            yield Equation(line.moment, number=f"{i}′")


def _kernel(made: Convergence) -> Iterator[Block]:
    yield Heading("Kernel", anchor="kernel")
    diagonal = np.diag(made.limit)
    root = np.sqrt(np.outer(diagonal, diagonal))
    correlation = made.limit / np.where(root > 0, root, 1.0)
    off = correlation[~np.eye(len(correlation), dtype=bool)]
    caption = (
        f"The kernel of {len(made.limit)} examples. Variances go from {diagonal.min():.3g} to "
        f"{diagonal.max():.3g}, correlations from {off.min():.3g} to {off.max():.3g}."
    )
    yield shades(made.limit, caption, "Kernel matrix, the larger the darker.")


def _convergence(made: Convergence, networks: int) -> Iterator[Block]:
    yield Heading("Networks of finite width", anchor="convergence")
    yield Paragraph(
        f"The squared distance of the kernel of a random network from the limit, as a fraction of "
        f"it, on average over {networks} networks; it falls as 1/width where the slope is −1. "
        f"Measured slope: {made.slope:.2f}."
    )
    rows = tuple(
        (str(width), f"{deviation:.3g}")
        for width, deviation in zip(made.widths, made.deviations, strict=True)
    )
    yield Table(("width", "squared distance"), rows, align="rr")
    first = made.deviations[0] * made.widths[0]
    yield lines(
        [
            NamedCurve("networks", made.widths, made.deviations),
            NamedCurve(
                "1/width", made.widths, [first / width for width in made.widths], dashed=True
            ),
        ],
        "Both axes are logarithmic.",
        "How random networks come to the limit.",
        x_label="width",
        y_label="squared distance",
        logarithmic="xy",
    )


def _depth(variables: Sequence[Any]) -> Iterator[Block]:
    """The correlation map of dense layers with the model's activation."""
    names = [each.activation for each in variables if isinstance(each, Nonlin)]
    if not names:
        return
    activation = max(set(names), key=names.count)
    yield Heading("Depth", anchor="depth")
    try:
        critical = critical_weight_variance(activation)
    except ArgumentError as error:
        yield Paragraph(f"No weight variance lets signals through at any depth: {error}.")
        return
    scale = fixed_point(activation, 0.8 * critical)
    text: list[Span] = [
        "How alike two examples become in a deep stack of dense layers with ",
        Mono(activation),
        " and no bias: the slope χ of the correlation is 1 at a weight variance of "
        f"{critical:.4g}, the one to start from in depth. Below it gradients vanish, above it "
        f"they explode; at 0.8 times it, χ is {scale.chi:.3g} and differences fall by e in "
        f"{scale.depth_scale:.1f} layers. Skip connections and normalisation change that.",
    ]
    yield Paragraph(tuple(text))
    steps = list(range(_DEPTH + 1))
    found = {
        factor * critical: signals(activation, factor * critical, _BIAS, depth=_DEPTH)
        for factor in (0.8, 1.0, 1.25)
    }
    yield lines(
        [NamedCurve(f"{each:.3g}", steps, list(found[each].variance)) for each in found],
        f"Variance of the values by layer, for three weight variances and bias variance {_BIAS}; "
        "logarithmic.",
        "Variance of the values by layer.",
        x_label="layer",
        y_label="variance",
        logarithmic="y",
    )
    yield lines(
        [NamedCurve(f"{each:.3g}", steps, list(found[each].correlation)) for each in found],
        "Correlation of two examples that start at 0.5, for the same.",
        "Correlation of two examples by layer.",
        x_label="layer",
        y_label="correlation",
    )
