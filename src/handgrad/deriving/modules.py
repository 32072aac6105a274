"""A pair as a module for PyTorch (an autograd.Function) or JAX (a custom_vjp)."""

from __future__ import annotations

import importlib.util
import inspect
import re
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from handgrad.deriving.arguments import Setting, Spec, flat, mapped, parts_of
from handgrad.deriving.beside import cotangents
from handgrad.deriving.guards import written_default
from handgrad.deriving.moving import double, largest, single
from handgrad.deriving.pair import DerivedPair
from handgrad.deriving.proof import DoubleError, Proof
from handgrad.deriving.refusals import UnprovedError
from handgrad.deriving.samples import called
from handgrad.deriving.written import Written, run_source
from handgrad.program.libraries import LIBRARIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: By how much results may differ from those for NumPy, of themselves and at all.
NEAR: Final = {"float64": (1e-8, 1e-10), "float32": (2e-3, 2e-4)}


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
        is_named = parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD)
        passed.append(f"{name}={name}" if is_named else name)
    return ", ".join(found), ", ".join(passed), list(pair.traced.arguments.parameters)


def _returned(pair: DerivedPair, names: list[str], gradients: str) -> list[str]:
    """For each parameter its gradient, or that of each array in it, or None."""
    made = {path: f"{gradients}[{k}]" for k, path in enumerate(pair.wanted)}

    def written(tree: Any) -> str:
        if isinstance(tree, Spec | Setting):
            return made.get(tree.path, "None")
        if isinstance(tree, dict):
            return f"{{{', '.join(f'{key!r}: {written(each)}' for key, each in tree.items())}}}"
        if parts_of(tree) is not None:
            raise UnprovedError(f"a {type(tree).__name__} has no gradient there")
        parts = ", ".join(map(written, tree))
        return f"[{parts}]" if isinstance(tree, list) else f"({parts}{',' * (len(tree) == 1)})"

    trees = pair.traced.arguments.trees
    found = [each for each in names if any(path[0] == each for path in pair.wanted)]
    return [written(trees[each]) if each in found else "None" for each in names]


def _autograd(pair: DerivedPair, name: str, written: Written) -> str:
    """Arrays in dicts, lists and tuples are passed on their own as well, for PyTorch to see."""
    taken, passed, names = _parameters(pair)
    inside = [path for path in pair.wanted if len(path) > 1]
    title = "".join(part.title() for part in re.split(r"\W|_", name) if part) or "Derived"
    torch = written.emitters[0].alias
    call = "backward(dy if len(dy) > 1 else dy[0], ctx.cache)"
    made = {path: f"gradients[{k}]" for k, path in enumerate(pair.wanted)}
    returned = [made.get(path, "None") for path in [*((each,) for each in names), *inside]]
    lines = [
        f"class {title}({torch}.autograd.Function):",
        "    @staticmethod",
        f"    def forward(ctx, {taken}{', *arrays' if inside else ''}):",
        f"        y, ctx.cache = forward({passed})",
        "        return y",
        "",
        "    @staticmethod",
        "    def backward(ctx, *dy):",
        f"        gradients = {call if len(pair.wanted) > 1 else f'({call},)'}",
        f"        return {', '.join(returned)}",
    ]
    if inside:
        plain = _plain_name(name)
        given = ", ".join([*names, *map(pair.traced.arguments.text, inside)])
        lines += ["", "", f"def {plain}({taken}):", f"    return {title}.apply({given})"]
    return written.module("\n".join(lines) + "\n")


def _plain_name(name: str) -> str:
    """The name of a function beside forward and backward."""
    plain = re.sub(r"\W", "_", name)
    return plain if plain not in ("forward", "backward") else f"derived_{plain}"


def _custom(pair: DerivedPair, name: str, written: Written) -> str:
    taken, passed, names = _parameters(pair)
    plain = _plain_name(name)
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
    # In single precision throughout, as in a library where np.eye is of the arrays' type.
    pair = replace(proof.pair, floats_alike=True)
    alike = replace(proof, pair=pair, functions=pair.written().compiled())
    trials = [trial for trial in proof.trials() if trial.is_first or "=" in trial.said]
    for precision in ("float64", "float32"):
        for trial in trials[:2]:
            values = trial.values if precision == "float64" else single(trial.values)
            with _arrays_of(library, precision):
                _compare(proof, alike, library, names, values, precision)
    return "run"


def _arrays_of(library: str, precision: str) -> AbstractContextManager[Any]:
    """JAX has arrays of double precision where it is told so, here for as long as it takes."""
    if library != "jax":
        return nullcontext()
    found: AbstractContextManager[Any] = import_module("jax").enable_x64(precision == "float64")
    return found


def _compare(
    proof: Proof,
    alike: Proof,
    library: str,
    names: Mapping[str, Any],
    values: dict[str, Any],
    precision: str,
) -> None:
    parameters = proof.sampler.arguments.parameters
    try:
        dys, wanted = wanted_of(proof, values)
        # Double precision tells by how much single precision is off in NumPy.
        _, exact = wanted_of(proof, double(values))
        _, rough = wanted_of(alike, values)
    except ValueError:  # what it refuses
        return
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
    for k, one in enumerate(found[len(dys) :]):
        if precision == "float32" and np.asarray(one).dtype != np.float32:
            raise DoubleError(k)
    near = NEAR["float32" if proof.is_single else precision]
    compare(library, precision, near, found, wanted, exact, rough)


def compare(
    library: str,
    precision: str,
    tolerances: tuple[float, float],
    found: Sequence[Any],
    wanted: Sequence[Any],
    exact: Sequence[Any],
    rough: Sequence[Any],
) -> None:
    """Raise UnprovedError where values found are not those wanted.

    exact, rough: the same in double and in single precision, which tell how far those wanted are
    off.
    """
    # A sum that cancels is a rounding error of its terms.
    whole = max(map(largest, wanted))
    rounding = 1000 * float(np.finfo(precision).eps) * whole
    for one, two, right, low in zip(found, wanted, exact, rough, strict=True):
        one = np.asarray(one)
        near, least = tolerances
        scale = largest(two) or 1.0
        with np.errstate(invalid="ignore"):  # of infinities, as a mask has
            off = max(largest(np.asarray(x, float) - right) for x in (two, low))
        least = least * scale + 10 * off + rounding
        if one.shape != np.shape(two) or not np.allclose(one, two, near, least, equal_nan=True):
            raise UnprovedError(f"the source for {library} has other values than that for numpy")


def wanted_of(proof: Proof, values: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """Adjoints of the results, and what the functions for NumPy give: results and gradients."""
    rng = np.random.default_rng(6)
    with np.errstate(all="ignore"):
        parameters = proof.sampler.arguments.parameters
        y, cache = called(proof.functions["forward"], parameters, values)
        ys = [np.asarray(each) for each in flat(y)]
        dys = [dy.astype(y.dtype) for y, dy in zip(ys, cotangents(rng, ys), strict=True)]
        back = proof.functions["backward"](tuple(dys) if len(dys) > 1 else dys[0], cache)
    return dys, [*flat(y), *flat(back)]


def _array(library: str, value: Any) -> Any:
    if not isinstance(value, np.ndarray | np.generic):
        return value
    return import_module("jax.numpy" if library == "jax" else library).asarray(np.asarray(value))
