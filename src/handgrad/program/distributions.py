"""Distributions of scipy.stats as the traced function sees them.

SciPy writes each by functions of the standardised variable, such as `_logpdf`, in functions that
traced arrays know; what is around them, loc, scale and the support, stands here.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, Final, NoReturn

import numpy as np

from handgrad.program.node import world
from handgrad.program.tracer import call, traced

_HOME: Final = "scipy.stats."


def is_distribution(x: Any) -> bool:
    """True for a distribution of scipy.stats, with parameters or without."""
    home = getattr(type(x), "__module__", None) or ""
    return home.startswith(_HOME) and hasattr(x, "rvs") and not isinstance(x, type)


def shown_distribution(x: Any) -> Any:
    own = getattr(x, "dist", None)
    if own is None or not hasattr(x, "kwds"):
        return Distribution(x)
    return Distribution(own)(*x.args, **x.kwds)


class Distribution:
    """A distribution; a call of it gives one with parameters."""

    def __init__(self, own: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> None:
        self._own, self._args, self._kwargs = own, args, kwargs or {}

    def __call__(self, *args: Any, **kwargs: Any) -> Distribution:
        return Distribution(self._own, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        own = getattr(self._own, name)
        if not callable(own):
            return own

        def method(*given: Any, **more: Any) -> Any:
            args, kwargs = (*given, *self._args), {**self._kwargs, **more}
            if name == "rvs":
                world().refuse("rvs draws random numbers; give them as an array")
            if not traced((args, kwargs)):
                return own(*args, **kwargs)
            if type(self._own).__name__ == "multivariate_normal_gen":
                return _of_vectors(name, *args, **kwargs)
            return _value(self._own, name, *args, **kwargs)

        return method


def _value(own: Any, name: str, x: Any, *args: Any, **kwargs: Any) -> Any:
    known = name in (*_FILLED, "ppf", "isf") and hasattr(own, "_parse_args")
    if not known or own.name in _BY_CASES:
        _refuse(own, name)
    shapes, loc, scale = own._parse_args(*args, **kwargs)
    if name in ("ppf", "isf"):
        return _function(own, "_ppf")(x if name == "ppf" else 1 - x, *shapes) * scale + loc
    z = (x - loc) / scale if traced(scale) or np.any(scale != 1) else x - loc
    least, most = own._get_support(*shapes)
    inside = _inside(z, least, most)
    if "pm" in name:  # of whole numbers alone
        whole = call(np.equal, call(np.floor, z), z)
        inside = whole if inside is None else call(np.logical_and, inside, whole)
    if inside is not None:
        z = call(np.where, inside, z, _middle(least, most))
    found = _function(own, f"_{name}")(z, *shapes)
    if name == "pdf":
        found = found / scale
    if name == "logpdf":
        found = found - call(np.log, scale)
    if inside is None:
        return found
    below, above = _FILLED[name]
    outside = below if below == above else call(np.where, _above(x, loc, scale, most), above, below)
    return call(np.where, inside, found, outside)


def _refuse(own: Any, name: str) -> NoReturn:
    called = getattr(own, "name", type(own).__name__.removesuffix("_gen"))
    world().refuse(f"{called}.{name} of scipy.stats is not known; write its formula")


#: The values below and above the support.
_FILLED: Final = {
    "pdf": (0.0, 0.0),
    "pmf": (0.0, 0.0),
    "logpdf": (-np.inf, -np.inf),
    "logpmf": (-np.inf, -np.inf),
    "cdf": (0.0, 1.0),
    "sf": (1.0, 0.0),
    "logcdf": (-np.inf, 0.0),
    "logsf": (0.0, -np.inf),
}


def _above(x: Any, loc: Any, scale: Any, most: Any) -> Any:
    return call(np.greater_equal, x, loc + scale * most)


def _is_infinite(end: Any) -> bool:
    return not traced(end) and bool(np.all(np.isinf(end)))


def _inside(z: Any, least: Any, most: Any) -> Any:
    """Truths of what lies in the support; None where all does."""
    ends = [
        call(compare, z, end)
        for compare, end in ((np.greater_equal, least), (np.less_equal, most))
        if not _is_infinite(end)
    ]
    return functools.reduce(lambda a, b: call(np.logical_and, a, b), ends) if ends else None


def _middle(least: Any, most: Any) -> Any:
    """A number in the support, for what lies outside and has no part in the result."""
    if _is_infinite(most):
        return least + 1.0
    return most - 1.0 if _is_infinite(least) else (least + most) / 2


def _function(own: Any, name: str) -> Callable[..., Any]:
    """A function of the standardised variable: SciPy's, or by the logarithm or the other side."""
    if (written := _WRITTEN.get((own.name, name))) is not None:
        return written
    if f"_log{name[1:]}" in ("_logpdf", "_logpmf"):
        logarithm = f"_log{name[1:]}"
        if (own.name, logarithm) in _WRITTEN or not _has(own, name):
            inner = _function(own, logarithm)
            return lambda *args: call(np.exp, inner(*args))
    if name.startswith("_log") and not _has(own, name):
        plain = _function(own, f"_{name[4:]}")
        return lambda *args: call(np.log, plain(*args))
    if name == "_sf" and not _has(own, name):
        cdf = _function(own, "_cdf")
        return lambda *args: 1 - cdf(*args)
    if not _has(own, name):
        _refuse(own, name[1:])
    function: Callable[..., Any] = getattr(own, name)
    return function


def _has(own: Any, name: str) -> bool:
    """Return whether a distribution has a formula of its own for it."""
    general = next(k for k in type(own).__mro__ if k.__name__ in ("rv_continuous", "rv_discrete"))
    return getattr(type(own), name) is not getattr(general, name)


def _special(name: str, *args: Any) -> Any:
    """A function of scipy.special, which is there where a distribution of SciPy is."""
    return call(getattr(importlib.import_module("scipy.special"), name), *args)


def _student(z: Any, df: Any) -> Any:
    gammaln = functools.partial(_special, "gammaln")
    first = gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * call(np.log, np.pi * df)
    return first - (df + 1) / 2 * call(np.log1p, z * z / df)


def _beta(z: Any, a: Any, b: Any) -> Any:
    return z ** (a - 1) * (1 - z) ** (b - 1) * call(np.exp, -_log_beta(a, b))


def _log_of_beta(z: Any, a: Any, b: Any) -> Any:
    powers = _special("xlogy", a - 1, z) + _special("xlog1py", b - 1, -z)
    return powers - _log_beta(a, b)


def _log_beta(a: Any, b: Any) -> Any:
    gammaln = functools.partial(_special, "gammaln")
    return gammaln(a) + gammaln(b) - gammaln(a + b)


def _lognormal(z: Any, s: Any) -> Any:
    log = call(np.log, z)
    return -log * log / (2 * s * s) - log - call(np.log, s * np.sqrt(2 * np.pi))


def _cauchy(z: Any) -> Any:
    return -np.log(np.pi) - call(np.log1p, z * z)


#: Formulas of those that SciPy has in compiled code, or by cases of the parameters.
_WRITTEN: Final[dict[tuple[str, str], Callable[..., Any]]] = {
    ("t", "_logpdf"): _student,
    ("beta", "_pdf"): _beta,
    ("beta", "_logpdf"): _log_of_beta,
    ("lognorm", "_logpdf"): _lognormal,
    ("cauchy", "_logpdf"): _cauchy,
}
#: Those of which each element has a formula by where its parameters lie.
_BY_CASES: Final = frozenset({"truncnorm"})


def _of_vectors(name: str, x: Any, mean: Any = None, cov: Any = 1, allow_singular: Any = 0) -> Any:
    """The density of the multivariate normal distribution."""
    if name not in ("pdf", "logpdf") or allow_singular is True:
        world().refuse(f"multivariate_normal.{name} is not known so; write its formula")
    if not np.ndim(x):
        world().refuse("multivariate_normal of a number is not known; norm is")
    away = x if mean is None else x - mean
    size = away.shape[-1]
    if np.ndim(cov) == 0:
        cov = cov * call(np.eye, size)
    elif np.ndim(cov) == 1:
        cov = call(np.diag, cov)
    solved = call(np.linalg.solve, cov, call(np.swapaxes, call(np.atleast_2d, away), -1, -2))
    squares = (away * call(np.swapaxes, solved, -1, -2).reshape(away.shape)).sum(-1)
    whole = call(np.linalg.slogdet, cov)[1]
    found = -0.5 * (size * np.log(2 * np.pi) + whole + squares)
    return found if name == "logpdf" else call(np.exp, found)
