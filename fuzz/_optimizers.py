"""Optimizers: their kernels against their update rules, and malformed steps."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from fuzz._judge import Judge, arithmetic_of, bounded, bounds_of, check_sentence, extent
from fuzz._operands import Operand, evaluated, junk, random_layout, sprinkle
from fuzz.harness import Case, Fault
from handgrad import optimizers
from handgrad.errors import HandgradError
from handgrad.layers import FlatArrays

_SETTINGS: Final[dict[str, tuple[str, ...]]] = {
    "SGD": ("weight_decay",),
    "Momentum": ("momentum", "weight_decay"),
    "Nesterov": ("momentum", "weight_decay"),
    "RMSProp": ("alpha", "eps", "weight_decay"),
    "Adam": ("betas", "eps", "weight_decay"),
    "AdamW": ("betas", "eps", "weight_decay"),
}
_KINDS: Final = tuple(_SETTINGS)


def _pick(rng: np.random.Generator, *choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _setting(name: str, rng: np.random.Generator) -> Any:
    if name == "betas":
        return _pick(rng, (0.9, 0.999), (0.0, 0.0), (0.5, 0.25))
    if name == "eps":
        return _pick(rng, 1e-8, 1e-3, 1.0)
    return _pick(rng, 0.0, 0.01, 0.9)


def draw(rng: np.random.Generator) -> Case:
    kind = _pick(rng, *_KINDS)
    known = optimizers_signature(kind)
    settings = {name: _setting(name, rng) for name in _SETTINGS[kind] if name in known}
    dtype = np.dtype(_pick(rng, np.float32, np.float32, np.float64))
    count = int(rng.integers(1, 4))
    shapes = [
        tuple(int(n) for n in rng.choice((0, 1, 2, 3, 7, 17, 65), int(rng.integers(0, 3))))
        for _ in range(count)
    ]
    steps = int(rng.integers(1, 4))
    extreme = rng.random() < 0.2

    def values(shape: tuple[int, ...]) -> Operand:
        made = np.asarray(rng.standard_normal(shape)).astype(dtype)
        operand = Operand(sprinkle(made, rng) if extreme else made)
        if rng.random() < 0.2:
            operand.lay(random_layout(rng))
        return operand

    start = {f"p{i}": Operand(values(shape).values) for i, shape in enumerate(shapes)}
    gradients = [{f"p{i}": values(s) for i, s in enumerate(shapes)} for _ in range(steps)]
    flat = rng.random() < 0.5
    scale = _pick(rng, 1.0, 1.0, 0.5, 1e-3)
    lr = _pick(rng, 1e-3, 0.1, 1.0)
    wrong = _draw_wrong(rng, settings) if rng.random() < 0.3 else None
    if wrong is not None:
        where, code = wrong

        def refuse() -> None:
            with np.errstate(all="ignore"):
                _malformed(kind, settings, start, gradients[0], lr, where, code)

        text = f"import handgrad as hg\n# {kind}({settings}), one step with {where} = {code}"
        return Case(f"optimizers.{kind}: {where}", refuse, text)

    def run() -> None:
        with np.errstate(all="ignore"):
            _compare(kind, settings, start, gradients, flat, scale, lr, dtype, not extreme)

    shown = ", ".join(f"{o.values.dtype}{o.values.shape}" for o in start.values())
    text = f"# {kind}(lr={lr}, {settings}), {steps} steps on {shown}, scale {scale}, flat {flat}"
    return Case(f"optimizers.{kind}", run, text)


def optimizers_signature(kind: str) -> frozenset[str]:
    """The settings that an optimizer takes."""
    code = getattr(optimizers, kind).__init__.__code__
    return frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


def _compare(
    kind: str,
    settings: dict[str, Any],
    start: dict[str, Operand],
    gradients: list[dict[str, Operand]],
    flat: bool,
    scale: float,
    lr: float,
    dtype: Any,
    ordinary: bool,
) -> None:
    optimizer = getattr(optimizers, kind)(lr, **settings)
    parameters: Any = {name: o.values.copy() for name, o in start.items()}
    if flat:
        parameters = FlatArrays.of(parameters)
    for given in gradients:
        arrays: Any = {name: o.array() for name, o in given.items()}
        before = {name: a.tobytes() for name, a in arrays.items()}
        if flat:
            arrays = FlatArrays.of({name: o.values for name, o in given.items()})
        optimizer.step(parameters, arrays, scale=scale)
        if not flat and any(a.tobytes() != before[name] for name, a in arrays.items()):
            raise Fault("modified input", "a gradient was changed")
    cls = type(optimizer)

    def results(enter: Any) -> list[Any]:
        """Every parameter and slot after the steps, by the update rule itself."""
        found = []
        for name, operand in start.items():
            parameter = enter(operand.values)
            slots = [enter(np.zeros_like(operand.values)) for _ in cls.slots]
            for number, given in enumerate(gradients):
                options = {"lr": lr, **optimizer.hyperparameters}
                if cls.counts_steps:
                    options["step"] = number + 1
                gradient = enter(given[name].values)
                gradient = gradient if scale == 1 else gradient * scale
                parameter, *slots = cls.update(parameter, gradient, *slots, **options)
            found += [parameter, *slots]
        return found

    def bounds(skips_zeros: bool) -> list[Any] | None:
        arithmetic = arithmetic_of(dtype.name, skips_zeros)
        try:
            entered = results(lambda array: bounded(array, arithmetic))
            return bounds_of(tuple(entered), dtype.name)
        except Exception:
            return None

    def reach() -> tuple[float, float, bool]:
        arrays = (o.values for g in (start, *gradients) for o in g.values())
        smallest, largest, all_finite = extent(arrays)
        return smallest**2, largest**2, all_finite

    exact = results(lambda array: array.astype(np.float64))
    judge = Judge(
        False,
        2**30,
        dtype.name,
        ordinary,
        lambda: results(lambda array: array),
        bounds,
        lambda index: 0.0,
        reach,
    )
    state = optimizer.state
    found: list[tuple[str, Any]] = []
    for name in start:
        found += [(name, parameters[name]), *((s, state[f"{s}.{name}"]) for s in cls.slots)]
    for index, (name, array) in enumerate(found):
        if array.dtype != dtype:
            raise Fault("wrong dtype", f"{name} is of {array.dtype}")
        judge.compare(index, name, array, exact[index])


def _draw_wrong(rng: np.random.Generator, settings: dict[str, Any]) -> tuple[str, str]:
    arguments = ("lr", "scale", "gradient", "parameter", "gradients", "parameters", "state")
    where = _pick(rng, *arguments, *settings)
    array = np.ones(3, np.float32) if where in ("gradient", "parameter", "state") else None
    return where, junk(rng, array)


def _malformed(
    kind: str,
    settings: dict[str, Any],
    start: dict[str, Operand],
    gradients: dict[str, Operand],
    lr: float,
    where: str,
    code: str,
) -> None:
    """One step with one wrong thing: taken, or a sentence, and the parameters as they were."""
    first = next(iter(start))
    parameters: Any = {name: o.values.copy() for name, o in start.items()}
    given: Any = {name: o.array() for name, o in gradients.items()}
    wrong = evaluated(code, start[first].values)
    kept = dict(parameters)
    before = {name: a.tobytes() for name, a in parameters.items()}
    try:
        options = {**settings, where: wrong} if where in settings else settings
        optimizer = getattr(optimizers, kind)(wrong if where == "lr" else lr, **options)
        if where == "state":
            optimizer.step(parameters, given)
            state: Any = optimizer.state
            key = list(state)[-1]
            before = {name: a.tobytes() for name, a in parameters.items()}
            optimizer.load_state({**state, key: wrong})
        elif where == "parameter":
            parameters[first] = wrong
            kept.pop(first)
        elif where == "gradient":
            given[first] = wrong
        elif where == "parameters":
            parameters = wrong
        elif where == "gradients":
            given = wrong
        optimizer.step(parameters, given, **({"scale": wrong} if where == "scale" else {}))
    except HandgradError as error:
        check_sentence(error)
        if any(a.tobytes() != before[name] for name, a in kept.items()):
            raise Fault("changed in part", "a refused step changed a parameter") from None
    except MemoryError:  # of a huge array that was given on purpose
        return
