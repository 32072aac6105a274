"""A pair as a module for PyTorch (an autograd.Function) or JAX (a custom_vjp)."""

from __future__ import annotations

import importlib.util
import inspect
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from handgrad.deriving.arguments import mapped
from handgrad.deriving.guards import written_default
from handgrad.deriving.pair import DerivedPair
from handgrad.deriving.proof import DoubleError, Proof, flat, single
from handgrad.deriving.refusals import UnprovedError
from handgrad.deriving.samples import called
from handgrad.deriving.written import Written, run_source
from handgrad.program.libraries import LIBRARIES

if TYPE_CHECKING:
    from collections.abc import Mapping

#: By how much results may differ from those for NumPy, of themselves and at all.
_NEAR: Final = {"float64": (1e-8, 1e-10), "float32": (2e-3, 2e-4)}


def module(pair: DerivedPair, name: str, library: str) -> str:
    """The source of a module for a library."""
    written = pair.written(LIBRARIES[library])
    if library == "numpy":
        return written.module()
    if library == "torch":
        return _autograd(pair, name, written)
    return _custom(pair, name, written)


def _parameters(pair: DerivedPair) -> tuple[str, str, list[str]]:
    """How the forward is defined, how it is called, and the names of its parameters."""
    found: list[str] = []
    passed: list[str] = []
    settings = {s.path: s.value for s in pair.traced.arguments.settings}
    for name, parameter in pair.traced.arguments.parameters.items():
        if parameter.default is inspect.Parameter.empty:
            # An autograd.Function is called by place: what follows a default needs one as well.
            has_default = any("=" in each for each in found)
            found.append(f"{name}=None" if has_default else name)
        else:
            value = settings.get((name,))
            own = parameter.default if value is None else value
            found.append(f"{name}={written_default(own)}")
        passed.append(f"{name}={name}" if parameter.kind == parameter.KEYWORD_ONLY else name)
    return ", ".join(found), ", ".join(passed), list(pair.traced.arguments.parameters)


def _returned(pair: DerivedPair, names: list[str], gradients: str) -> list[str]:
    """Of each parameter its gradient, or None; arrays within dicts and tuples have none here."""
    made = {path[0]: f"{gradients}[{k}]" for k, path in enumerate(pair.wanted) if len(path) == 1}
    return [made.get(name, "None") for name in names]


def _autograd(pair: DerivedPair, name: str, written: Written) -> str:
    taken, passed, names = _parameters(pair)
    several = len(pair.wanted) > 1
    title = "".join(part.title() for part in re.split(r"\W|_", name) if part) or "Derived"
    torch = written.emitters[0].alias
    call = "backward(dy if len(dy) > 1 else dy[0], ctx.cache)"
    lines = [
        f"class {title}({torch}.autograd.Function):",
        "    @staticmethod",
        f"    def forward(ctx, {taken}):",
        f"        y, ctx.cache = forward({passed})",
        "        return y",
        "",
        "    @staticmethod",
        "    def backward(ctx, *dy):",
        f"        gradients = {call if several else f'({call},)'}",
        f"        return {', '.join(_returned(pair, names, 'gradients'))}",
    ]
    return written.module("\n".join(lines) + "\n")


def _custom(pair: DerivedPair, name: str, written: Written) -> str:
    taken, passed, names = _parameters(pair)
    plain = re.sub(r"\W", "_", name)
    plain = plain if plain not in ("forward", "backward") else f"derived_{plain}"
    settings = {str(s.path[0]) for s in pair.traced.arguments.settings if len(s.path) == 1}
    static = [str(k) for k, each in enumerate(names) if each in settings]
    nondiff = f", nondiff_argnums=({', '.join(static)},)" if static else ""
    own = [each for each in names if each in settings]
    returned = _returned(pair, [each for each in names if each not in settings], "gradients")
    call = "backward(dy, cache)"
    lines = [
        f"@partial(jax.custom_vjp{nondiff})",
        f"def {plain}({taken}):",
        f"    return forward({passed})[0]",
        "",
        "",
        f"def _forward({', '.join(names)}):",
        f"    return forward({passed})",
        "",
        "",
        f"def _backward({', '.join([*own, 'cache', 'dy'])}):",
        f"    gradients = {call if len(pair.wanted) > 1 else f'({call},)'}",
        f"    return {', '.join(returned)}{',' if len(returned) == 1 else ''}",
        "",
        "",
        f"{plain}.defvjp(_forward, _backward)",
    ]
    imports = ("from functools import partial", "import jax")
    return written.module("\n".join(lines) + "\n", imports)


def prove(proof: Proof, library: str, source: str) -> str:
    """Run a source in its library beside the functions for NumPy, and say how it went.

    Raises UnprovedError where it fails there, or has other values.
    """
    if importlib.util.find_spec(library) is None:
        return f"not run: {library} is not installed"
    names = run_source(source, f"<derived for {library}>")
    trials = [trial for trial in proof.trials() if trial.is_first or "=" in trial.said]
    for precision in ("float64", "float32") if library == "torch" else ("float32",):
        for trial in trials[:2]:
            values = trial.values if precision == "float64" else single(trial.values)
            _compare(proof, library, names, values, precision)
    return "run"


def _compare(
    proof: Proof, library: str, names: Mapping[str, Any], values: dict[str, Any], precision: str
) -> None:
    parameters = proof.sampler.arguments.parameters
    rng = np.random.default_rng(6)
    with np.errstate(all="ignore"):
        try:
            y, cache = called(proof.functions["forward"], parameters, values)
        except ValueError:  # what it refuses
            return
        dys = [
            rng.standard_normal(np.shape(each)).astype(np.asarray(each).dtype) for each in flat(y)
        ]
        back = proof.functions["backward"](tuple(dys) if len(dys) > 1 else dys[0], cache)
        wanted = [*flat(y), *flat(back)]
    try:
        given = mapped(values, lambda x: _array(library, x))
        y, cache = called(names["forward"], parameters, given)
        # A library may keep float32 where NumPy goes on in float64, as behind its np.eye.
        kinds = [np.asarray(each).dtype for each in flat(y)]
        own = [_array(library, dy.astype(kind)) for dy, kind in zip(dys, kinds, strict=True)]
        back = names["backward"](tuple(own) if len(own) > 1 else own[0], cache)
        found = [*flat(y), *flat(back)]
    except Exception as error:  # of code that no one wrote
        raise UnprovedError(
            f"the source for {library} fails ({type(error).__name__}: {error})"
        ) from error
    for k, (one, two) in enumerate(zip(found, wanted, strict=True)):
        one = np.asarray(one)
        if k >= len(dys) and precision == "float32" and one.dtype != np.float32:
            raise DoubleError(k - len(dys))
        near, least = _NEAR["float32" if proof.is_single else precision]
        scale = float(np.max(np.abs(two), initial=0.0)) or 1.0
        if one.shape != np.shape(two) or not np.allclose(
            one, two, near, least * scale, equal_nan=True
        ):
            raise UnprovedError(f"the source for {library} has other values than that for numpy")


def _array(library: str, value: Any) -> Any:
    if not isinstance(value, np.ndarray | np.generic):
        return value
    return import_module("jax.numpy" if library == "jax" else library).asarray(np.asarray(value))
