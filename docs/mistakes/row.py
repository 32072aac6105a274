"""A mistake on the page: formulas as printed and as corrected, each with its run."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

import handgrad as hg

#: Text that says nothing of the mistake and may differ between machines, versions or edits.
_VARYING: Final = (
    r"; residual [^ ;,]+",
    r" \(fit [^)]*\)",
    r" ?\(line \d+( of [^)]+)?\)",
    r", with gufunc signature \S+",
    r" gufunc core with signature \S+",
)
_WIDTH: Final = 100


class Verdict(NamedTuple):
    """The result of a run, and whether it speaks for the formula."""

    good: bool
    text: str


@dataclass(frozen=True)
class Form:
    """A formula as it is read, the run that judges it, and the code of that run.

    The source of `functions` is shown, and then the `call` of hg.check.
    """

    formula: str
    run: Callable[[], Verdict]
    functions: tuple[Callable[..., Any], ...]
    call: str = ""


@dataclass(frozen=True)
class Row:
    """One mistake: where it stands, what is wrong in a sentence or two, and the runs.

    `harmless` is what is printed where the mistake does not show.
    """

    passage: str
    about: str
    printed: tuple[Form, ...]
    right: tuple[Form, ...]
    harmless: tuple[Form, ...] = ()


@dataclass(frozen=True)
class Document:
    """One set of notes, with its mistakes in the order of its sections."""

    title: str
    author: str
    rows: tuple[Row, ...]


Inputs = Sequence[tuple[int, ...]] | Callable[[], tuple[Any, ...]]


def normal(*shapes: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Arrays of standard normal values, the same in every run."""
    rng = np.random.default_rng(4)
    return tuple(rng.standard_normal(shape) for shape in shapes)


def number(value: float) -> str:
    """With two decimals, and a minus sign."""
    return f"{value:.2f}".replace("-", "−").replace("nan", "NaN")


def checked(formula: str, target: Any, inputs: Inputs = (), **settings: Any) -> Form:
    """A formula that `hg.check` judges.

    `target` and `settings` are those of `hg.check`; a function makes the target. `inputs` are
    shapes of normally distributed arrays, or a function that gives the arrays.
    """
    made = target() if callable(target) else target

    def run() -> Verdict:
        arrays = inputs() if callable(inputs) else normal(*inputs)
        return of_report(hg.check(made, *arrays, **settings))

    shown = [*(target if isinstance(target, tuple) else (target,)), inputs]
    functions = [each for each in shown if getattr(each, "__module__", "").startswith("docs.")]
    return Form(formula, run, tuple(functions), _call(target, inputs, settings))


def measured(formula: str, function: Callable[[], Verdict]) -> Form:
    """A formula that is judged by numbers which a function computes."""
    return Form(formula, function, (function,))


def of_report(report: hg.CheckReport) -> Verdict:
    """The report's own sentences, without what varies from machine to machine."""
    if report.ok:
        return Verdict(True, "every gradient is right")
    faults: Sequence[Any] = [each for each in report.faults if each.situation == "usual"]
    faults = [each for each in faults if each.kind == "forward differs"] or faults or report.faults
    reported: dict[str, list[str]] = {}
    for fault in faults:
        message = fault.message
        for pattern in _VARYING:
            message = re.sub(pattern, "", message)
        subject, colon, phrase = message.partition(": ")
        if not re.fullmatch(r"d\w+", subject):
            subject, colon, phrase = "", "", message
        reported.setdefault(colon + phrase, []).append(subject)
    sentences = [(", ".join(subjects) + phrase).strip() for phrase, subjects in reported.items()]
    if not faults:
        sentences = [f"no verdict on d{name}" for name in report.undecided]
    return Verdict(False, "; ".join(sentences))


def _call(target: Any, inputs: Inputs, settings: dict[str, Any]) -> str:
    """The call of hg.check as Python source."""
    if isinstance(target, tuple):
        arguments = [f"({', '.join(map(_name, target))})"]
    else:
        arguments = [f'"{target}"' if isinstance(target, str) else f"{_name(target)}()"]
    if callable(inputs):
        arguments.append(f"*{_name(inputs)}()")
    elif inputs:
        arguments.append(f"*normal({', '.join(map(str, inputs))})")
    arguments += [f"{name}={value!r}".replace("'", '"') for name, value in settings.items()]
    call = f"hg.check({', '.join(arguments)})"
    if len(call) <= _WIDTH:
        return call
    return "hg.check(\n" + "".join(f"    {each},\n" for each in arguments) + ")"


def _name(function: Callable[..., Any]) -> str:
    home = function.__module__
    op = f"hg.ops.{home.rpartition('.')[2]}." if home.startswith("handgrad.ops.") else ""
    return op + function.__name__
