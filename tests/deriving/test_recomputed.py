"""Pages of derivations are true by themselves: computed from what they print, they give the
gradients that the derived backward gives."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.documents.formulas.formula import Symbol, row
from tests.deriving import forwards, loops_in_loops
from tests.deriving.lettered import same
from tests.deriving.recomputing import Page

#: Lengths of axes, all different.
_LENGTHS = {letter: 3 + k for k, letter in enumerate("NDSETHCKMGW")} | {"G": 2}


def names_set_anew(x, w, v):
    h = np.tanh(x @ w)
    h = h * h + x
    h = np.exp(-h) * h
    y = h @ v
    y = y / np.sum(y**2)
    return y


def an_array_by_the_letter_of_an_index(i, k):
    return np.einsum("nd,ndm->nm", i, k) * i.sum(-1, keepdims=True)


def groups_and_pieces(x, w):
    g = x.reshape(x.shape[0], 2, x.shape[1] // 2)
    c = g - g.mean(axis=2, keepdims=True)
    return (c * c).reshape(x.shape) @ w + x.mean(axis=0) @ w


_CASES = [
    *forwards.CASES,
    *forwards.LOOPS,
    *loops_in_loops.CASES,
    (names_set_anew, {"x": ("N", "D"), "w": ("D", "D"), "v": ("D", "E")}),
    (an_array_by_the_letter_of_an_index, {"i": ("N", "D"), "k": ("N", "D", "M")}),
    (groups_and_pieces, {"x": ("N", "2*K"), "w": ("2*K", "E")}),
]


def _length(size: Any) -> int:
    return size if isinstance(size, int) else int(eval(size, {}, dict(_LENGTHS)))


def _array(shape: tuple[Any, ...], rng: np.random.Generator) -> np.ndarray:
    *sizes, last = shape or (None,)
    if last is bool:
        found = rng.random(tuple(map(_length, sizes))) < 0.7
        found[:, 0] = True
        return found
    return rng.standard_normal(tuple(map(_length, shape)))


def recomputed(forward: Any, given: dict[str, Any], rng: np.random.Generator) -> None:
    derivation = hg.derive(forward, **given)
    defaults = {
        name: each.default
        for name, each in inspect.signature(forward).parameters.items()
        if each.default is not inspect.Parameter.empty
    }
    named = {
        name: _array(shape, rng) if isinstance(shape, tuple) else _length(shape)
        for name, shape in given.items()
        if name not in ("wrt", "assume")
    }
    if "assume" in given:
        named["q"] = np.exp(named["q"]) / np.exp(named["q"]).sum(-1, keepdims=True)
    inputs = {**defaults, **named}
    results, cache = derivation.forward(**inputs)
    several = results if isinstance(results, tuple) else (results,)
    cotangents = [rng.standard_normal(np.shape(each)) for each in several]
    wanted = derivation.backward(cotangents[0] if len(several) == 1 else tuple(cotangents), cache)
    page = Page(derivation, inputs, cotangents, _LENGTHS)
    page.run()
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for path, gradient in zip(derivation.pair.wanted, wanted, strict=True):
        found = page.values[row(Symbol("d"), page.of_input("_".join(map(str, path))))]
        same(found.array, gradient)


@pytest.mark.parametrize(("forward", "given"), _CASES, ids=[case[0].__name__ for case in _CASES])
def test_a_page_gives_the_gradients_by_itself(forward, given):
    recomputed(forward, given, np.random.default_rng(0))
