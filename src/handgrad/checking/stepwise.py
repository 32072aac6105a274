"""The wrong lines of a backward: every intermediate gradient is judged by itself.

A line such as `dscores = ...` makes the gradient of a node of the forward out of gradients of later
nodes. It is right if it is the derivative of <later nodes, the gradients that it was made from>,
whatever is wrong with those. So faults in several lines do not hide one another.

The node is found by numbers: a random direction separates the gradients of two nodes. A name like
`dscores` for `scores` only says which to try first, because names lie: `dz` is often the gradient
of what goes into the sigmoid that makes z. A line that is the gradient of no node is wrong if it
stands for one certainly (it is returned), if lines made from it are right once it is taken for one,
or else if its name says so.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, takewhile
from types import MappingProxyType
from typing import Any

import numpy as np

from handgrad.checking.attempts import attempt, attempted
from handgrad.checking.backward_trace import BackwardTrace
from handgrad.checking.diagnosis import best_fault, diagnose
from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.hypotheses import Draw
from handgrad.checking.local_hypotheses import of_lines
from handgrad.checking.report import Fault
from handgrad.checking.steps import IntermediateGradient, Search
from handgrad.program import Recorder, as_execution


def stepwise(
    forward: Callable[..., Any],
    backward: Callable[..., Any],
    arrays: Sequence[Any],
    dys: Sequence[Any],
    gradients: Mapping[int, str],
    rng: np.random.Generator,
    options: Mapping[str, Any] = MappingProxyType({}),
    end: float = math.inf,
) -> list[IntermediateGradient]:
    """The intermediate gradients of a backward, in the order in which it makes them.

    `arrays` are forward's positional arguments, `options` its settings. `dys` are cotangents of y,
    one run each; the first finds what is wrong. `gradients` maps positions of backward's result to
    names of forward's arguments. After the processor time `end` none is looked at. Empty where one
    of the two cannot be followed, or backward has a loop.
    """
    try:
        recorder = Recorder()
        run = ForwardTrace(recorder, forward, arrays, options)
        programs = [recorder.run(backward, dy, run.cache) for dy in dys]
        runs = [each for program in programs if (each := as_execution(programs[0], program))]
        if len(runs) < len(dys):
            return []
        lines = BackwardTrace(programs[0], runs)
    except Exception:  # a function we know nothing of: it cannot be read, or runs only as it stands
        return []
    found = Search(run, lines, dys, gradients, rng).steps()
    return list(takewhile(lambda _: time.process_time() < end, found))


def explained(
    steps: Iterable[IntermediateGradient],
    wrong: Container[str],
    arrays: Mapping[str, np.ndarray],
    y: Any,
    end: float = math.inf,
) -> list[Fault]:
    """A fault for every wrong step that has an explanation and reaches a gradient of `wrong`.

    Its `gradient` is the first of these; the message names the others, and the line.
    """
    found: dict[tuple[str, str, str], tuple[Fault, list[str], list[str]]] = {}
    for step in steps:
        reaches = [each for each in step.reaches if each in wrong]
        is_open = step.verdict == "wrong" and bool(reaches)
        fault = attempt(partial(_explained, step, arrays, y, end), None) if is_open else None
        if fault is not None:
            line = fault.message.rpartition("(line ")[2]
            # One line that several are made from is reported once.
            _, variables, inputs = found.setdefault((fault.kind, fault.term, line), (fault, [], []))
            variables.append(step.variable)
            inputs += [each for each in reaches if each not in inputs]
    return [_reported_once(*each) for each in found.values()]


def _explained(
    step: IntermediateGradient, arrays: Mapping[str, np.ndarray], y: Any, end: float
) -> Fault | None:
    """The fault of one wrong step, with its line in the message; None if nothing explains it."""
    name = step.variable.removeprefix("d")
    draws = tuple(
        Draw(arrays, y, dy, {name: found}, {name: right}, {name: bound}, own_run=run)
        for found, right, bound, run, dy in zip(
            step.found, step.expected, step.bounds, step.runs, step.cotangents, strict=True
        )
    )
    (fault,) = diagnose((name,), draws, gradients=(name,), end=end)
    if fault.kind in ("unknown", "some rows"):
        more = chain([step.paths], attempted(of_lines(draws, name)))
        better = best_fault(name, more, draws, "usual", end)
        fault = fault if better.kind == "unknown" else better
    if fault.kind == "unknown":
        return None
    phrase = fault.message.removeprefix(f"d{name}: ")
    line = "" if "(line " in phrase else f" (line {step.line})"
    return replace(fault, message=phrase + line)


def _reported_once(fault: Fault, variables: list[str], inputs: list[str]) -> Fault:
    """The fault with the variables it shows in and the gradients that are made from them."""
    message = f"{' and '.join(variables)}: {fault.message}"
    results = [f"d{each}" for each in inputs]
    if results != variables:
        verb = "is" if len(results) == 1 else "are"
        message += f"; {' and '.join(results)} {verb} made from it"
    return replace(fault, gradient=inputs[0], message=message)
