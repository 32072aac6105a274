"""Gradients of a program as it returns them, and central differences to compare them with."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.checking.abroad.case import Program, Wrong
from tests.tolerances import TOLERANCES

RIGHT, WRONG = TOLERANCES["abroad right"].relative, TOLERANCES["abroad wrong"].relative
Scope = dict[str, Any]
Gradients = dict[str, np.ndarray]


def array(value: Any) -> Any:
    """A torch or JAX array in NumPy."""
    return value.detach().numpy() if hasattr(value, "detach") else np.asarray(value)


def parts(value: Any, prefix: str = "") -> dict[str, Any]:
    """The arrays and numbers in nested inputs, outputs or gradients by their path."""
    if value is None or isinstance(value, str | np.random.Generator):
        return {}
    if isinstance(value, dict):
        items = list(value.items())
    elif is_dataclass(value):
        items = [(field.name, getattr(value, field.name)) for field in fields(value)]
    elif isinstance(value, list | tuple):
        items = list(enumerate(value))
    else:
        return {prefix: value}
    found: dict[str, Any] = {}
    for name, each in items:
        found |= parts(each, f"{prefix}.{name}" if prefix else str(name))
    return found


def plain(name: str) -> str:
    """The last component of a path without what marks it as a gradient."""
    last = name.rpartition(".")[2]
    for mark in ("grad_", "d_", "d"):
        last = last.removeprefix(mark) if len(last) > len(mark) else last
    return last.removesuffix("_grad")


def is_float(value: Any) -> bool:
    return isinstance(value, float) or (
        hasattr(value, "dtype") and np.issubdtype(array(value).dtype, np.floating)
    )


@contextmanager
def same_state() -> Any:
    """The global generators of NumPy and Python go back to where they were."""
    import random

    numpy_state, state = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(state)


def copied(target: Any) -> Any:
    """A target whose state no call shares; JAX's functions have none and cannot be copied."""
    return target if hasattr(target, "defvjp") else copy.deepcopy(target)


class Run:
    """A program that can be called as its style is called."""

    def __init__(self, scope: Scope, inputs: tuple[Any, ...]) -> None:
        self.scope, self.inputs = scope, inputs
        self.target = scope.get("PAIR", scope["TARGET"])
        self.call = scope.get("CALL", "dy, cache")
        self.is_pair = isinstance(self.target, tuple)
        self.is_torch = hasattr(self.target, "apply") and not hasattr(self.target, "parameters")
        self.is_jax = hasattr(self.target, "defvjp")
        self.keep = scope.get("GRADS", {})

    def names(self) -> list[str]:
        """The parameters of forward."""
        function = self.target[0] if self.is_pair else self.target
        if self.is_torch:
            function = self.target.forward
        elif hasattr(function, "forward"):
            function = function.forward
        given = [each for each in inspect.signature(function).parameters if each != "ctx"]
        return given[: len(self.inputs)] + [f"_{i}" for i in range(len(given), len(self.inputs))]

    def output(self, inputs: tuple[Any, ...], target: Any = None) -> tuple[Any, Any]:
        """Forward's output and what backward needs."""
        meant = self.scope.get("meant")
        if target is None and meant is not None:
            return meant(*inputs), None
        target = copied(self.target) if target is None else target
        with same_state():
            if self.is_pair:
                result = target[0](*inputs)
                return (result, None) if self.call == "dy" else result
            if self.is_torch:
                return target.apply(*inputs), None
            if self.call == "step":
                result = target(*inputs)
                return (result[0], result[1:]) if isinstance(result, tuple) else (result, None)
            if self.is_jax:
                return target(*inputs), None
            return target.forward(*inputs), None

    def returned(self, result: Any, names: list[str]) -> Gradients:
        """The gradients that came back, by the input that each belongs to."""
        if isinstance(result, dict) or is_dataclass(result):
            owners = parts(dict(zip(names, self.inputs, strict=False)))
            by_plain = {plain(name): name for name in owners} | {
                name.rpartition(".")[2]: name for name in owners
            }
            found = parts(result)
            return {
                next(by_plain[k] for k in (n.rpartition(".")[2], plain(n)) if k in by_plain): g
                for n, g in found.items()
            }
        wanted = self.scope.get("OPTIONS", {}).get("wrt") or [
            name
            for name, value in zip(names, self.inputs, strict=True)
            if any(map(is_float, parts(value).values()))
        ]
        if not isinstance(result, tuple | list) or len(wanted) == 1 < len(result) < len(names):
            result = (result,)
        if len(result) != len(names):
            names = list(wanted)
        return parts(dict(zip(names, result, strict=True)))

    def gradients(self, dy: Any, how: str = "") -> Gradients:
        """The gradients that backward returns, or leaves behind, for this cotangent."""
        inputs = copy.deepcopy(self.inputs)
        target, names = copied(self.target), self.names()
        if self.is_jax:
            import jax

            _, pull = jax.vjp(target, *inputs)
            return {n: array(g) for n, g in self.returned(pull(dy), names).items()}
        if self.is_torch:
            inputs = tuple(
                each.clone().requires_grad_() if is_float(each) and hasattr(each, "clone") else each
                for each in inputs
            )
        y, cache = self.output(inputs, target)
        if how == "twice" and not self.call == "step":
            self.backward(target, dy, cache, y, inputs, names)
            if not self.is_pair:
                y, cache = self.output(inputs, target)
        elif how == "twice":
            y, cache = self.output(inputs, target)
        found = self.backward(target, dy, cache, y, inputs, names)
        found = {name: array(value).copy() for name, value in found.items()}
        if how == "writes":
            now, before = parts(list(inputs)), parts(list(self.inputs))
            if any(not np.array_equal(array(now[k]), array(v)) for k, v in before.items()):
                found["written"] = np.ones(())
        return found

    def backward(
        self, target: Any, dy: Any, cache: Any, y: Any, inputs: Any, names: list[str]
    ) -> Gradients:
        if self.is_torch:
            outs = y if isinstance(y, tuple) else (y,)
            cotangents = dy if isinstance(dy, tuple) else (dy,)
            total = sum(
                (o * c).sum() for o, c in zip(outs, cotangents, strict=True) if o.requires_grad
            )
            total.backward()
            return {
                n: each.grad
                for n, each in zip(names, inputs, strict=True)
                if getattr(each, "grad", None) is not None
            }
        if self.call == "step":
            (result,) = cache if len(cache) == 1 else (cache,)
            return self.returned(result, names)
        if self.is_pair:
            calls: dict[str, Callable[[], Any]] = {
                "dy, cache": lambda: target[1](dy, cache),
                "cache, dy": lambda: target[1](cache, dy),
                "dy, *cache": lambda: target[1](dy, *cache),
                "dy": lambda: target[1](dy),
            }
            return self.returned(calls[self.call](), names)
        result = target.backward(dy)
        found = {} if result is None else self.returned(result, names)
        for name, where in self.keep.items():
            found[name] = eval(where, {}, {"self": target})
        return found

    def differences(self, dy: Any, wanted: Gradients) -> Gradients:
        """Central differences of fourth order of <dy, y>, element by element."""
        names, inputs = self.names(), copy.deepcopy(self.inputs)
        target = copied(self.target)
        owners = parts(dict(zip(names, inputs, strict=True)))
        numeric = {}

        def value() -> float:
            with same_state():
                again = (copied(target), copy.deepcopy(inputs)) if self.stateful() else (target, inputs)
                y, _ = self.output(again[1], None if "meant" in self.scope else again[0])
            outs, cotangents = parts(y), parts(dy)
            return float(sum(np.sum(array(outs[k]) * array(c)) for k, c in cotangents.items()))

        for name in wanted:
            if name in self.keep:
                x = eval(name, {}, {"self": target})
            else:
                x = owners[name]
            fixed = not hasattr(x, "shape") or self.is_jax or (x.ndim == 0 and not self.is_torch)
            if fixed and name not in self.keep:
                numeric[name] = self.replaced(name, dy)
                continue
            slopes, flat = np.zeros(tuple(x.shape)), array(x)
            for index in np.ndindex(*x.shape):
                kept, found = flat[index].copy(), []
                for h in (1e-3, -1e-3, 2e-3, -2e-3):
                    flat[index] = kept + h
                    found.append(value())
                flat[index] = kept
                slopes[index] = (8 * (found[0] - found[1]) - (found[2] - found[3])) / 12e-3
            numeric[name] = slopes
        return numeric

    def replaced(self, name: str, dy: Any) -> np.ndarray:
        """The same for an input that cannot be written to: a number, or an array of JAX."""
        at = self.names().index(name)
        x = np.array(self.inputs[at], dtype=float)
        slopes = np.zeros(x.shape)
        for index in np.ndindex(*x.shape):
            found = []
            for h in (1e-3, -1e-3, 2e-3, -2e-3):
                moved = x.copy()
                moved[index] += h
                inputs = list(copy.deepcopy(self.inputs))
                inputs[at] = moved if x.ndim else float(moved)
                y, _ = self.output(tuple(inputs))
                outs, cotangents = parts(y), parts(dy)
                found.append(sum(np.sum(array(outs[k]) * array(c)) for k, c in cotangents.items()))
            slopes[index] = (8 * (found[0] - found[1]) - (found[2] - found[3])) / 12e-3
        return slopes

    def stateful(self) -> bool:
        """Return whether a call could change what the next one sees."""
        return not self.is_torch and not self.is_jax

    def cotangent(self, how: str = "") -> Any:
        """A random cotangent of forward's output; a loss of a training step has 1."""
        if self.call == "step":
            return 1.0
        rng = np.random.default_rng(7)
        y, _ = self.output(copy.deepcopy(self.inputs), copied(self.target))

        def like(value: Any) -> Any:
            if isinstance(value, tuple | list):
                return type(value)(map(like, value))
            if isinstance(value, dict):
                return {k: like(v) for k, v in value.items()}
            drawn = rng.standard_normal(np.shape(array(value)))
            if not np.issubdtype(array(value).dtype, np.floating):
                drawn = np.zeros_like(drawn)
            if how == "layout":
                drawn = np.asfortranarray(drawn)
            if hasattr(value, "detach"):
                import torch

                return torch.as_tensor(drawn)
            return drawn if np.ndim(drawn) else float(drawn)

        return like(y)


def error(found: Gradients, right: Gradients) -> dict[str, float]:
    """The error of each gradient, relative to its size or to a thousandth of the largest."""
    largest = max((float(np.max(np.abs(g))) for g in right.values() if np.size(g)), default=1.0)
    errors = {}
    for name in right:
        if name not in found or np.shape(found[name]) != np.shape(right[name]):
            errors[name] = np.inf
            continue
        if not np.size(right[name]):
            continue
        scale = max(float(np.max(np.abs(right[name]))), 1e-3 * largest, 1e-12)
        worst = float(np.max(np.abs(np.asarray(found[name], float) - right[name]))) / scale
        errors[name] = np.inf if np.isnan(worst) else worst
    return errors


def run(program: Program, text: str, folder: Path, at: str = "inputs") -> tuple[Run, str]:
    """The program with its inputs for this situation, and the situation if it is none of inputs."""
    if "NARROWEST" in program.case:  # casts inside: verified as if they were wide
        for narrow in ("float32", "float16"):
            text = text.replace(narrow, "float64")
    scope = program.scope(text, folder)
    how = at if at in ("twice", "writes", "layout") else ""
    inputs = scope["inputs" if how else at](np.random.default_rng(3))
    if scope.get("KINK") and at == "inputs":
        moved = np.random.default_rng(5)
        for each in parts(list(inputs)).values():
            if is_float(each) and isinstance(each, np.ndarray):
                each += 0.05 * moved.standard_normal(each.shape)
    return Run(scope, inputs), how


def verify(program: Program, folder: Path) -> list[str]:
    """Everything that is not as the case says, one sentence each."""
    complaints = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        usual, _ = run(program, program.text, folder)
        dy = usual.cotangent()
        found = usual.gradients(dy)
        errors = error(found, usual.differences(dy, found))
        for name, worst in errors.items():
            if not worst < RIGHT:
                complaints.append(f"{program}: {name} of the right program is off by {worst:.1e}")
        for number, faults in enumerate(program.variants):
            wrong, right = (
                run(program, text, folder, faults[0].at)
                for text in (program.planted(faults), program.text)
            )
            try:
                worst = departure(wrong[0], right[0], right[1])
            except Exception as problem:
                complaints.append(f"{program} {number}: {type(problem).__name__}: {problem}")
                continue
            if not worst > WRONG:
                complaints.append(f"{program} {number}: is right to {worst:.1e}: {faults[0].new!r}")
            if len(faults) > 1:
                complaints += alone(program, number, faults, folder)
    return complaints


def alone(program: Program, number: int, faults: tuple[Wrong, ...], folder: Path) -> list[str]:
    """Each of several faults is a fault by itself."""
    found = []
    for fault in faults:
        wrong, _ = run(program, program.planted((fault,)), folder)
        right, _ = run(program, program.text, folder)
        if not departure(wrong, right) > WRONG:
            found.append(f"{program} {number}: alone, {fault.new!r} is right")
    return found


def departure(wrong: Run, right: Run, how: str = "") -> float:
    """By how much the worst gradient of a variant differs from the right program's."""
    return max(departures(wrong, right, how).values(), default=0.0)


def departures(wrong: Run, right: Run, how: str = "") -> dict[str, float]:
    """The same for every gradient; `how` is done to the wrong one alone."""
    dy = right.cotangent(how)
    found, wanted = wrong.gradients(dy, how), right.gradients(dy)
    errors = error(found, wanted)
    if "written" in found:
        errors["written"] = np.inf
    return errors
