"""hg.check on random programs with a backward pass, right or with one mistake in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from fuzz.harness import Case, Fault
from handgrad.checking import check

PATIENCE = 60.0

#: A mistake counts where it changes a gradient by this part of its size.
_CHANGES: Final = 1e-3
#: Programs with larger values than this are drawn again.
_LARGEST: Final = 1e4

#: Text of forward from operands, and the contribution to each operand's gradient; {d} is the
#: gradient of the result, {y} the result, {a} and {b} the operands. Operands of one shape, or of
#: shapes that broadcast.
_UNARY: Final = {
    "tanh": ("np.tanh({a})", "{d} * (1 - {y} ** 2)"),
    "sine": ("np.sin({a})", "{d} * np.cos({a})"),
    "sigmoid": ("1 / (1 + np.exp(-{a}))", "{d} * {y} * (1 - {y})"),
    "square": ("{a} * {a}", "2 * {a} * {d}"),
    "root": ("np.sqrt({a} ** 2 + 0.1)", "{d} * {a} / {y}"),
    "logarithm": ("np.log1p({a} ** 2)", "{d} * 2 * {a} / (1 + {a} ** 2)"),
    "relu": ("np.maximum({a}, 0)", "{d} * ({a} > 0)"),
    "closed relu": ("{a} * ({a} >= 0)", "{d} * ({a} >= 0)"),
    "leaky relu": ("np.where({a} > 0, {a}, 0.1 * {a})", "np.where({a} > 0, {d}, 0.1 * {d})"),
    "absolute": ("np.abs({a})", "{d} * np.sign({a})"),
    "clip": ("np.clip({a}, -1, 1)", "{d} * (np.abs({a}) <= 1)"),
    "scale": ("0.7 * {a} - 0.3", "0.7 * {d}"),
    "running sum": (
        "np.cumsum({a}, axis=-1)",
        "np.flip(np.cumsum(np.flip({d}, -1), axis=-1), -1)",
    ),
    "softmax": (
        "np.exp({a}) / np.exp({a}).sum(-1, keepdims=True)",
        "{y} * ({d} - ({d} * {y}).sum(-1, keepdims=True))",
    ),
    "centred": ("{a} - {a}.mean(-1, keepdims=True)", "{d} - {d}.mean(-1, keepdims=True)"),
    "flip": ("{a}[::-1]", "{d}[::-1]"),
    "sorted": (
        "np.sort({a}, axis=-1)",
        "np.take_along_axis({d}, np.argsort(np.argsort({a}, axis=-1, kind='stable'), axis=-1), -1)",
    ),
}
_BINARY: Final = {
    "sum": ("{a} + {b}", "{d}", "{d}"),
    "difference": ("{a} - {b}", "{d}", "-{d}"),
    "product": ("{a} * {b}", "{d} * {b}", "{d} * {a}"),
    "quotient": (
        "{a} / ({b} ** 2 + 1)",
        "{d} / ({b} ** 2 + 1)",
        "-2 * {d} * {a} * {b} / ({b} ** 2 + 1) ** 2",
    ),
    "larger": ("np.maximum({a}, {b})", "{d} * ({a} >= {b})", "{d} * ({a} < {b})"),
    "choice": ("np.where({a} > 0.1, {b}, 0.5)", "0 * {d} * {a}", "{d} * ({a} > 0.1)"),
}
_REDUCED: Final = {
    "sums": ("{a}.sum(axis=-1)", "np.broadcast_to({d}[..., None], {a}.shape)"),
    "means": ("{a}.mean(axis=-1)", "np.broadcast_to({d}[..., None], {a}.shape) / {a}.shape[-1]"),
    "largest": (
        "{a}.max(axis=-1)",
        "{d}[..., None] * (np.arange({a}.shape[-1]) == {a}.argmax(-1)[..., None])",
    ),
    "norms": (
        "np.sqrt(({a} ** 2).sum(-1))",
        "({d} / np.where({y} > 0, {y}, 1))[..., None] * {a}",
    ),
    "log of sums": (
        "np.log(np.exp({a}).sum(-1))",
        "{d}[..., None] * np.exp({a} - {y}[..., None])",
    ),
}
_MATMUL: Final = ("{a} @ {b}", "{d} @ {b}.T", "{a}.T @ {d}")

_HEAD: Final = """\
import numpy as np


def summed(d, like):
    d = np.asarray(d)
    while d.ndim > like.ndim:
        d = d.sum(0)
    axes = tuple(i for i, n in enumerate(like.shape) if n == 1 and d.shape[i] != 1)
    return d.sum(axes, keepdims=True) if axes else d


class Saved:
    pass

"""


@dataclass
class Program:
    """The lines of a forward, and for every line its contributions to gradients."""

    inputs: list[str]
    lines: list[tuple[str, str]] = field(default_factory=list)
    #: By the line they belong to: the variable, and the text of what is added to its gradient.
    contributions: list[list[tuple[str, str]]] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)

    def add(self, text: str, gradients: tuple[str, ...], operands: tuple[str, ...]) -> bool:
        """One more line, unless its value is none to go on with."""
        name = f"v{len(self.lines)}"
        known = dict(zip("ab", operands, strict=False))
        expression = text.format(**known)
        with np.errstate(all="ignore"):
            value = eval(expression, {"np": np}, dict(self.values))
        if value.size == 0 or not np.isfinite(value).all() or np.abs(value).max() > _LARGEST:
            return False
        self.values[name] = value
        self.lines.append((name, expression))
        self.contributions.append(
            [
                (operand, f"summed({gradient.format(d=f'd_{name}', y=name, **known)}, {operand})")
                for operand, gradient in zip(operands, gradients, strict=True)
            ]
        )
        return True

    def source(self, style: str, outputs: list[str], mistake: tuple[int, int, str] | None) -> str:
        """Forward and backward as people write them."""
        names = [*self.inputs, *(name for name, _ in self.lines)]
        kept = ", ".join(names)
        result = outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})"
        scalar = {"number": f"float({result}.sum())", "mean": f"{result}.mean()"}
        y = scalar.get(style, result) if len(outputs) == 1 else result
        text = [f"def forward({', '.join(self.inputs)}):"]
        text += [f"    {name} = {expression}" for name, expression in self.lines]
        if style == "dict":
            text += [f"    return {y}, {{{', '.join(f'{n!r}: {n}' for n in names)}}}"]
            opened = [f"    {name} = cache[{name!r}]" for name in names]
        elif style == "object":
            text += ["    saved = Saved()", *(f"    saved.{name} = {name}" for name in names)]
            text += [f"    return {y}, saved"]
            opened = [f"    {name} = cache.{name}" for name in names]
        else:
            text += [f"    return {y}, ({kept},)"]
            opened = [f"    {kept}, = cache"]
        text += ["", "", "def backward(dy, cache):", *opened]
        text += [f"    d_{name} = np.zeros({name}.shape)" for name in names]
        given = ["dy"] if len(outputs) == 1 else [f"dy[{i}]" for i in range(len(outputs))]
        for output, d in zip(outputs, given, strict=True):
            share = f"{d} / {output}.size" if style == "mean" and len(outputs) == 1 else d
            text += [f"    d_{output} = d_{output} + {share}"]
        for i in reversed(range(len(self.lines))):
            for j, (operand, contribution) in enumerate(self.contributions[i]):
                if mistake is not None and mistake[:2] == (i, j):
                    contribution = mistake[2].format(contribution)
                if style == "in place":
                    text += [f"    d_{operand} += {contribution}"]
                else:
                    text += [f"    d_{operand} = d_{operand} + {contribution}"]
        text += [f"    return {', '.join(f'd_{name}' for name in self.inputs)}"]
        return _HEAD + "\n" + "\n".join(text) + "\n"


def draw(rng: np.random.Generator) -> Case:
    program, arrays, kind = _program(rng)
    style = str(rng.choice(["tuple", "dict", "object", "in place", "number", "mean"]))
    names = [name for name, _ in program.lines]
    outputs = [names[-1]]
    if len(names) > 2 and rng.random() < 0.2:
        outputs.append(str(rng.choice(names[:-1])))
    mistake = _mistake(program, rng) if rng.random() < 0.5 else None
    source = program.source(style, outputs, mistake)
    seed = int(rng.integers(1000))
    right = _functions(program.source(style, outputs, None))
    if mistake is not None and not _changes(right, _functions(source), arrays, kind):
        mistake, source = None, program.source(style, outputs, None)
    wanted = "right" if mistake is None else "wrong"

    def run() -> None:
        report = check(_functions(source), *arrays, seed=seed)
        reported = "; ".join(fault.message for fault in report.faults)
        ended = [each.message for each in (*report.faults, *report.remarks) if _is_ours(each)]
        if ended:
            raise Fault("the check failed", ended[0])
        if report.verdict != wanted:
            raise Fault(f"{report.verdict}, not {wanted}", reported or str(report))
        str(report)
        report.to_json()

    lists = ", ".join(f"np.array({array.tolist()!r})" for array in arrays)
    snippet = (
        f"{source}\n\nimport handgrad as hg\n\nreport = hg.check((forward, backward), {lists}, "
        f"seed={seed})\nprint(report)\nassert report.verdict == {wanted!r}\n"
    )
    return Case(f"{wanted} program, {kind} inputs", run, snippet)


def _is_ours(fault: Any) -> bool:
    return "the check ends" in fault.message or "the search for the cause" in fault.message


def _functions(source: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    scope: dict[str, Any] = {}
    exec(compile(source, "<program>", "exec"), scope)
    return scope["forward"], scope["backward"]


def _program(rng: np.random.Generator) -> tuple[Program, list[np.ndarray], str]:
    kind = str(rng.choice(["generic", "generic", "whole"]))
    sizes = [int(n) for n in rng.integers(1, 5, 3)]
    count = int(rng.integers(1, 4))
    program = Program([f"x{i}" for i in range(count)])
    arrays = []
    for name in program.inputs:
        shape = [(sizes[0], sizes[1]), (sizes[1],), (sizes[1], sizes[2]), (sizes[0], 1)]
        array = rng.standard_normal(shape[int(rng.integers(len(shape)))])
        if kind == "whole":
            array = np.round(2 * array)
        arrays.append(array)
        program.values[name] = array
    wanted = int(rng.integers(1, 8))
    for _ in range(10 * wanted):
        if len(program.lines) == wanted:
            break
        _line(program, rng)
    if not program.lines:
        program.add("{a} * 0.5", ("0.5 * {d}",), ("x0",))
    return program, arrays, kind


def _line(program: Program, rng: np.random.Generator) -> None:
    names = list(program.values)
    # The last ones more often, so that programs are deep.
    a = names[int(rng.integers(max(0, len(names) - 3), len(names)))]
    b = str(rng.choice(names))
    choice = rng.random()
    one, other = program.values[a], program.values[b]
    if choice < 0.45:
        text, gradient = _UNARY[str(rng.choice(list(_UNARY)))]
        if one.ndim:
            program.add(text, (gradient,), (a,))
    elif choice < 0.7:
        text, of_a, of_b = _BINARY[str(rng.choice(list(_BINARY)))]
        if a != b and _broadcasts(one.shape, other.shape):
            program.add(text, (of_a, of_b), (a, b))
    elif choice < 0.85:
        text, gradient = _REDUCED[str(rng.choice(list(_REDUCED)))]
        if one.ndim:
            program.add(text, (gradient,), (a,))
    elif one.ndim == other.ndim == 2 and one.shape[1] == other.shape[0]:
        program.add(_MATMUL[0], _MATMUL[1:], (a, b))


def _broadcasts(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    try:
        np.broadcast_shapes(one, other)
    except ValueError:
        return False
    return True


def _mistake(program: Program, rng: np.random.Generator) -> tuple[int, int, str]:
    i = int(rng.integers(len(program.lines)))
    j = int(rng.integers(len(program.contributions[i])))
    edits = ["-({})", "2 * ({})", "0 * ({})", "1.05 * ({})"]
    return i, j, str(rng.choice(edits))


def _changes(right: Any, wrong: Any, arrays: list[np.ndarray], kind: str) -> bool:
    """Return whether a mistake shows in some gradient, at a kink beside the point too."""
    rng = np.random.default_rng(0)
    points = [arrays]
    if kind == "whole":
        points += [[x + 1e-3 * rng.standard_normal(x.shape) for x in arrays] for _ in range(4)]
    for point in points:
        y, cache = right[0](*point)
        dy = _like(y, rng)
        expected, found = right[1](dy, cache), wrong[1](dy, cache)
        several = isinstance(expected, tuple)
        pairs = zip(expected, found, strict=True) if several else [(expected, found)]
        if not any(np.abs(e - f).max() > max(_CHANGES * np.abs(e).max(), 1e-7) for e, f in pairs):
            return False
    return True


def _like(y: Any, rng: np.random.Generator) -> Any:
    if isinstance(y, tuple):
        return tuple(_like(part, rng) for part in y)
    return rng.standard_normal(np.shape(y))
