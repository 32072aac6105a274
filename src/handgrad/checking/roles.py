"""The arguments of a backward, and the outputs of its forward, by names and by count."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.checking.calling import Convention

COTANGENT: Final = re.compile(
    r"(d|g|grad|delta|error|err|upstream|ct|cotangent|adjoint|top_diff|accum_grad)"
    r"|g(y|out|output|o|h|c)|d[A-Z_]\w*|\w*grad\w*|\w*gradient\w*|\w*upstream\w*|\w*cotangent\w*"
    r"|d_?(next|prev\w*?|cur\w*?|last|new|l)?_?"
    r"([a-z]{1,2}\d?|out\w*|value\w*|logits|scores|loss|hidden|pred\w*)"
    r"(_?(next|prev|cur\w*|last|new|t))?"
    r"|(delta|error)_\w+"
)

_CACHE: Final = re.compile(
    r"\w*(cache|ctx|context|saved|memory|tape|residual|intermediate|stash)\w*|res|mem|tmp"
)

#: A dictionary that backward puts the gradients of parameters into.
_STORE: Final = re.compile(r"(all_|param_)?(grads|gradients)|grad(ient)?_(dict|store)")

OUTPUT: Final = re.compile(r"y|out|output\w*|a|s|z|y_hat|y_pred|probs?|result", re.IGNORECASE)

_RATE: Final = re.compile(r"lr|eta|alpha|rate|learning_?rate|step_size|learn_rate", re.IGNORECASE)


class Ran(NamedTuple):
    """The results of forward, and the names of the arrays that it left in its object."""

    result: Any
    attributes: tuple[str, ...]


def candidates(
    base: Convention,
    required: list[str] | None,
    arguments: Sequence[str],
    done: Ran,
    *,
    dy_first: bool,
) -> Iterator[Convention]:
    """The ways in which backward may be meant, the likeliest first."""
    results = len(done.result) if isinstance(done.result, tuple) else None
    found = _roles(required, arguments, results, _spread(done), context=base.context)
    if required != [] and not base.context:
        first = [("dy",)] if dy_first and required and len(required) == 1 else []
        last = [_without_cotangent(required or arguments, arguments)] * (len(arguments) == 1)
        found = itertools.chain(first, found, last)
    for roles in found:
        for outputs, key in _outputs(roles, done):
            yield replace(base, roles=roles, outputs=outputs, key=key)
    yield from _of_losses(base, required or (), arguments, done)


def _of_losses(
    base: Convention, required: Sequence[str], arguments: Sequence[str], done: Ran
) -> Iterator[Convention]:
    """The ways in which the backward of a loss may be meant that is given what went into it.

    As `backward(dvalues, y_true)`: its first argument is the output of the network, and no
    cotangent. Forward may give the loss of each example, of which the mean is taken elsewhere.
    """
    y = done.result
    if isinstance(y, tuple) and y and is_floats(y[0]) and not np.ndim(y[0]):
        yield from _of_given_back(base, required, arguments, len(y) - 1)
    if len(required) < 2 or not is_floats(y) or np.ndim(y) > 1:
        return
    rest = [arguments.index(each) for each in required[1:] if each in arguments]
    if len(rest) == len(required) - 1:
        firsts: list[str | int] = [f".{e}" for e in done.attributes if OUTPUT.fullmatch(e)]
        firsts = [*firsts, 0]
        if required[0] in arguments:
            firsts = [arguments.index(required[0])] if np.ndim(y) else []
        for over, role in itertools.product(("mean", "sum") if np.ndim(y) else ("",), firsts):
            roles: tuple[str | int, ...] = (role, *rest)
            yield replace(base, roles=roles, over_examples=over, is_of_loss=True)


def _of_given_back(
    base: Convention, required: Sequence[str], arguments: Sequence[str], results: int
) -> Iterator[Convention]:
    """The same where forward returns more than the number, as `(loss, probabilities)`."""
    known = [arguments.index(each) if each in arguments else None for each in required]
    left = [i for i in range(len(arguments)) if i not in known]
    values: list[str | int] = [*left, *["cache"] * results]
    for chosen in dict.fromkeys(itertools.combinations(values, known.count(None))):
        rest = iter(chosen)
        roles = tuple(next(rest) if each is None else each for each in known)
        if roles:
            yield replace(base, roles=roles, outputs=1, is_of_loss=True)


def _without_cotangent(required: Sequence[str], names: Sequence[str]) -> tuple[str | int, ...]:
    """The arguments of a derivative, or of a Jacobian: x by its name, and y."""
    return tuple(names.index(each) if each in names else "output" for each in required)


def _spread(done: Ran) -> int:
    """The number of arguments that a cache makes which backward is given as `*cache`."""
    last = done.result[-1] if isinstance(done.result, tuple) and done.result else None
    return len(last) if isinstance(last, tuple | list) else 0


def _roles(
    required: list[str] | None,
    names: Sequence[str],
    results: int | None,
    spread: int,
    *,
    context: bool,
) -> Iterator[tuple[str | int, ...]]:
    inputs: tuple[int, ...] = tuple(range(len(names)))
    if required is None:
        if results is not None:
            yield ("dy", *("cache",) * (results - 1))
        yield ("dy",)
        yield ("dy", *inputs)
        return
    required = required[1:] if context else required
    known: list[str | int | None] = []
    for name in required:
        if name in names and not (COTANGENT.fullmatch(name) and len(name) > 2):
            known.append(names.index(name))
        elif _RATE.fullmatch(name):
            known.append("rate")
        elif _STORE.fullmatch(name) and "dy" in known:
            known.append("store")
        elif COTANGENT.fullmatch(name):
            known.append("dy")
        elif _CACHE.fullmatch(name):
            known.append("cache")
        else:
            known.append(None)
    if "dy" not in known and None in known:
        known[known.index(None)] = "dy"
    if None in known and known.count("dy") == 1 and spread == len(known) - 1 > 1:
        yield tuple("dy" if role == "dy" else "cache" for role in known)
    yield from _completed(known, required, names, results)
    for i, role in enumerate(known):  # an input of the same name as what flows back
        if role not in ("dy", "cache", "rate", "store") and "dy" not in known:
            yield from _completed([*known[:i], "dy", *known[i + 1 :]], required, names, results)


def _completed(
    known: Sequence[str | int | None],
    required: Sequence[str],
    names: Sequence[str],
    results: int | None,
) -> Iterator[tuple[str | int, ...]]:
    """The arguments whose names say nothing: caches, the output, or inputs in order."""
    open_ = [i for i, role in enumerate(known) if role is None]
    fillings: list[list[str | int]] = []
    if results is not None:
        fillings.append(["cache"] * len(open_))
    if open_ and OUTPUT.fullmatch(required[open_[0]]):
        fillings.append(["output", *range(len(open_) - 1)])
    left = [i for i in range(len(names)) if i not in known]
    fillings.append([*left, *range(len(names))][: len(open_)])
    fillings.append(["output"] * len(open_))
    for filling in fillings if open_ else [[]]:
        if len(filling) == len(open_):
            filled = dict(zip(open_, filling, strict=True))
            yield tuple(filled.get(i, role) or 0 for i, role in enumerate(known))


def _outputs(roles: Sequence[str | int], done: Ran) -> Iterator[tuple[int | None, str]]:
    """The number of results that are outputs, or the name of the one."""
    result = done.result
    cotangents, caches = roles.count("dy"), roles.count("cache")
    if isinstance(result, Mapping):
        keys = [str(key) for key, value in result.items() if is_floats(value)]
        for key in (*(each for each in keys if OUTPUT.fullmatch(each)), *reversed(keys)):
            yield 0, key
    elif result is None:
        likely = [each for each in done.attributes if OUTPUT.fullmatch(each)]
        for key in dict.fromkeys((*likely, *reversed(done.attributes))):
            yield 0, key
    elif not isinstance(result, tuple):
        yield None, ""
    else:
        size = len(result)
        numbers = [i for i, each in enumerate(result) if is_floats(each) and not np.ndim(each)]
        if not cotangents and len(numbers) == 1 < size and numbers != [0]:  # (probabilities, loss)
            yield 0, str(numbers[0])
        if cotangents > 1:
            yield cotangents, ""
        elif cotangents and caches > 1 and size > caches:
            yield size - caches, ""
        elif cotangents and caches == 1:
            yield from ((each, "") for each in dict.fromkeys((size - 1, 1)) if each < size)
        else:
            if all(is_floats(each) for each in result):
                yield size, ""
            yield 1, ""


def is_floats(value: Any) -> bool:
    dtype = str(getattr(value, "dtype", ""))
    return "float" in dtype or isinstance(value, float)
