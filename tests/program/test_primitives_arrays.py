"""The records with samples, walked: each column of each record at two sets of lengths."""

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import scipy

from handgrad.deriving.reverse import gradient
from handgrad.program import primitives  # noqa: F401 (fills the table)
from handgrad.program.emit import Emitter
from handgrad.program.libraries import NUMPY, TORCH, Library, helper
from handgrad.program.node import PRIMITIVES, Node, Program, World, build, within
from handgrad.program.primitives.record import Sample
from handgrad.program.run import run
from handgrad.program.sizes import Size

LENGTHS = ({"M": 3, "N": 4, "L": 2, "K": 5}, {"M": 4, "N": 5, "L": 3, "K": 2})
CASES = [
    pytest.param(name, sample, id=f"{name}-{k}")
    for name, record in PRIMITIVES.items()
    for k, sample in enumerate(record.samples)
]
at_both_lengths = pytest.mark.parametrize("lengths", LENGTHS, ids=("small", "large"))
each_sample = pytest.mark.parametrize(("name", "sample"), CASES)


def shape_of(axes: str) -> tuple[Size, ...]:
    return tuple(Size.of(int(a) if a.isdigit() else a) for a in axes.split())


def world(lengths: dict[str, int]) -> World:
    w = World()
    w.lengths |= lengths
    return w


def drawn(sample: Sample, lengths: dict[str, int], seed: int = 1) -> list[Any]:
    """The operands' values on a sample."""
    rng = np.random.default_rng(seed)
    return [
        sample.draw(k)(rng, tuple(int(s.at(lengths).constant) for s in shape_of(axes)))
        for k, axes in enumerate(sample.axes)
    ]


def leaves(sample: Sample, values: list[Any]) -> list[Node]:
    return [
        Node("input", (), {}, shape_of(axes), np.asarray(v).dtype.kind, v, name)
        for axes, v, name in zip(sample.axes, values, "abcde", strict=False)
    ]


def results(name: str, xs: list[Node], attrs: Any) -> list[Node]:
    """A node, or the parts of a function of several results."""
    node = build(name, *xs, **attrs)
    if PRIMITIVES[name].parts is None:
        return [node]
    return [build("part", node, index=i) for i in range(len(node.value))]


def real_parts(nodes: list[Node]) -> list[Node]:
    """Floats as they are, complex numbers by their parts; the rest has no derivative."""
    out = []
    for n in nodes:
        if n.kind == "c":
            out += [build("real", n), build("imag", n)]
        elif n.kind == "f":
            out.append(n)
    return out


def slope(f: Callable[[float], float]) -> float:
    """A central difference of fourth order."""
    h = 1e-3
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


def directions(rng: np.random.Generator, values: list[Any]) -> list[Any]:
    """A random direction for each float or complex operand, none for others."""
    out: list[Any] = []
    for v in values:
        kind = np.asarray(v).dtype.kind
        u = rng.standard_normal(np.shape(v))
        out.append(
            u + 1j * rng.standard_normal(np.shape(v)) if kind == "c" else u if kind == "f" else None
        )
    return out


def moved(values: list[Any], us: list[Any], h: float) -> list[Any]:
    return [v if u is None else v + h * u for v, u in zip(values, us, strict=True)]


def change(gs: list[Any], us: list[Any]) -> float:
    """The change along a direction that gradients foretell."""
    return sum(float(np.sum((np.conj(g) * u).real)) for g, u in zip(gs, us, strict=True))


@at_both_lengths
@each_sample
def test_first_and_second_gradients_meet_differences(
    name: str, sample: Sample, lengths: dict[str, int]
) -> None:
    if PRIMITIVES[name].vjp is None:
        assert not any(v.dtype.kind in "fc" for v in drawn(sample, lengths))
        return
    values = drawn(sample, lengths)
    rng = np.random.default_rng(2)
    us = directions(rng, values)
    with within(world(lengths)) as w:
        xs = leaves(sample, values)
        outs = real_parts(results(name, xs, sample.attrs))
        wrt = [x for x, u in zip(xs, us, strict=True) if u is not None]
        if not outs or not wrt:
            return
        dys, gs = gradient(Program(xs, outs), wrt)
        first = Program([*xs, *dys], gs)
        dy_values = [rng.standard_normal(np.shape(d.value)) for d in dys]
        for x, g in zip(wrt, gs, strict=True):
            assert [w.length(s) for s in g.shape] == [w.length(s) for s in x.shape]
            assert g.kind == x.kind or g.kind == "f"
        vs, seconds = gradient(Program([*xs, *dys], real_parts(gs)), wrt)
        second = Program([*xs, *dys, *vs], seconds)
        v_values = [rng.standard_normal(np.shape(v.value)) for v in vs]
        forward, slopes = Program(xs, outs), Program([*xs, *dys], real_parts(gs))

    def along(program: Program, rest: list[Any], weights: list[Any]) -> float:
        def at(h: float) -> float:
            ys = run(program, [*moved(values, us, h), *rest], w.lengths)
            return sum(float(np.sum(a * b)) for a, b in zip(ys, weights, strict=True))

        return slope(at)

    used = [u for u in us if u is not None]
    got = change(run(first, [*values, *dy_values], w.lengths), used)
    np.testing.assert_allclose(got, along(forward, [], dy_values), rtol=1e-6, atol=1e-7)
    got = change(run(second, [*values, *dy_values, *v_values], w.lengths), used)
    np.testing.assert_allclose(got, along(slopes, dy_values, v_values), rtol=1e-5, atol=1e-6)


def spelled(
    name: str, sample: Sample, library: Library, lengths: dict[str, int]
) -> tuple[str, Any, Emitter]:
    """A record's spelling in a library on operands called a, b, c, its value, and its writer."""
    with within(world(lengths)):
        xs = leaves(sample, drawn(sample, lengths))
        node = build(name, *xs, **sample.attrs)
        e = Emitter(library, [x.name for x in xs])
        for x in xs:
            e.name(x, x.name)
        return e.text(node), node.value, e


def scope(library: Library, e: Emitter) -> dict[str, Any]:
    """The names that a text of the emitter's may use, at the second lengths."""
    found: dict[str, Any] = {"scipy": scipy, "math": math, **e.tables, **LENGTHS[1]}
    found |= {library.alias: import_module("numpy" if library is NUMPY else "torch")}
    for name in e.helpers:
        exec(helper(name, library).replace("np.", f"{library.alias}."), found)
    return found


def flat(value: Any) -> list[Any]:
    """Results as arrays, those of torch with what it has put off."""
    if isinstance(value, tuple):
        return [x for v in value for x in flat(v)]
    return [np.asarray(value.resolve_conj() if hasattr(value, "resolve_conj") else value)]


CHANGES = ("add_at", "store")


@each_sample
def test_numpy_spelling_holds_at_other_lengths(name: str, sample: Sample) -> None:
    if name in CHANGES:
        pytest.skip("statements of the emitter's own")
    text, _, e = spelled(name, sample, NUMPY, LENGTHS[0])
    _, want, _ = spelled(name, sample, NUMPY, LENGTHS[1])
    space = dict(zip("abcde", drawn(sample, LENGTHS[1]), strict=False))
    got = eval(text, scope(NUMPY, e), space)
    for g, v in zip(flat(got), flat(want), strict=True):
        assert g.shape == v.shape
        np.testing.assert_allclose(g, v, rtol=1e-12, atol=1e-12)


@each_sample
def test_torch_spelling(name: str, sample: Sample) -> None:
    torch = pytest.importorskip("torch")
    if name in CHANGES:
        pytest.skip("statements of the emitter's own")
    text, _, e = spelled(name, sample, TORCH, LENGTHS[0])
    if "flip" in text and name == "getitem":
        pytest.skip("a step backwards, which is a flip")
    _, want, _ = spelled(name, sample, TORCH, LENGTHS[1])
    arrays = drawn(sample, LENGTHS[1])
    space = {
        k: torch.tensor(np.ascontiguousarray(v)) for k, v in zip("abcde", arrays, strict=False)
    }
    got = eval(text, scope(TORCH, e), space)
    if name in ("eigh", "eig", "svd", "qr"):  # vectors have a sign of their own
        got, want = map(of_signs, (got, want))
    got = tuple(got) if isinstance(got, tuple | list) else got
    for g, v in zip(flat(got), flat(want), strict=True):
        assert g.shape == v.shape
        np.testing.assert_allclose(g, v, rtol=1e-10, atol=1e-10)


def of_signs(parts: Any) -> tuple[Any, ...]:
    """Sizes of the elements in order: the same for vectors of either sign."""
    return tuple(np.sort(np.abs(np.asarray(p)), axis=-1) for p in parts)
