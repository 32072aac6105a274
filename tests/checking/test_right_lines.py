"""Of changes with one effect that in the line which departs is told, in forms met outside."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from tests.checking.alignment.passes import module
from tests.checking.functions import normal

WHITENED = """
import numpy as np


def forward(x, g):
    mu = x.mean(axis=0)
    c = x - mu
    sd = np.sqrt((c**2).mean(axis=0) + 1e-3)
    h = c / sd
    return h * g, (c, sd, h, g)


def backward(dy, cache):
    c, sd, h, g = cache
    n = len(dy)
    dg = np.sum(dy * h, axis=0)
    dh = dy * g
    dr = np.sum(c * dh, axis=0)
    dsd = -dr / sd**2
    dv = 0.5 * dsd / sd
    dc = dh / sd + 2 * c * dv / n
    dmu = -np.sum(dc, axis=0)
    dx = dc + dmu / n
    return dx, dg
"""
SCORED = """
import numpy as np


def forward(a, b, v):
    u = np.tanh(a[:, :, None] + b[:, None])
    return u @ v, (u, v)


def backward(dy, cache):
    u, v = cache
    dv = np.einsum("ijlk,ijl->k", u, dy)
    du = np.expand_dims(dy, -1) * v
    dz = du * (1.0 - u * u)
    return dz.sum(axis=2), dz.sum(axis=1), dv
"""
NORMS = """
import numpy as np


def forward(x, a):
    n = 0.5 * (1.0 + np.linalg.norm(x, axis=1))
    return a * n**2, (x, a)


def backward(dy, cache):
    x, a = cache
    half = 0.5 * (1.0 + np.linalg.norm(x, axis=1))
    dn = 2 * dy * a * half
    r = np.sqrt((x * x).sum(axis=1))
    return 0.5 * (dn / r)[:, None] * x, dy * half**2
"""


def checked(text: str, right: str, wrong: str, folder: Path, *arrays: Any) -> set[int]:
    """The lines of the faults that are told of a pass with one line changed, and its own."""
    assert text.count(right) == 1
    made = module(text.replace(right, wrong), folder)
    report = hg.check((made.forward, made.backward), *arrays)
    assert report.faults
    own = text.splitlines().index(next(each for each in text.splitlines() if right in each)) + 1
    return {fault.line - own for fault in report.faults}


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("-dr / sd**2", "-dr / sd"),
        ("dc + dmu / n", "dc + dmu"),
        ("-np.sum(dc, axis=0)", "np.sum(dc, axis=0)"),
        ("dh = dy * g", "dh = dy * 1.0"),
    ],
)
def test_the_step_that_departs_is_changed_and_not_one_beside_it(
    right: str, wrong: str, tmp_path: Path
) -> None:
    assert checked(WHITENED, right, wrong, tmp_path, normal(6, 3), normal(3)) == {0}


def test_a_factor_may_spread_what_it_multiplies(tmp_path: Path) -> None:
    right, wrong = "np.expand_dims(dy, -1) * v", "np.expand_dims(dy, -1)"
    arrays = normal(2, 3, 4), normal(2, 5, 4), normal(4)
    assert checked(SCORED, right, wrong, tmp_path, *arrays) == {0}


def test_what_a_function_of_a_library_gives_to_a_line_is_known(tmp_path: Path) -> None:
    right = "half = 0.5 * (1.0 + np.linalg.norm(x, axis=1))"
    wrong = "half = 1.0 + np.linalg.norm(x, axis=1)"
    assert checked(NORMS, right, wrong, tmp_path, normal(5, 3), normal(5)) == {0}


class Scaled:
    """A product with a matrix, divided by a number, of which there are several in a layer."""

    def __init__(self, w: Any, scale: float) -> None:
        self.w, self.scale = w, scale

    def forward(self, x: Any) -> Any:
        self.t = np.tanh(x @ self.w / self.scale)
        return self.t

    def back_through(self, dt: Any) -> Any:
        return dt * (1 - self.t**2)

    def backward(self, dt: Any) -> Any:
        dz = self.back_through(dt)
        return dz @ self.w.T


class Both:
    def __init__(self) -> None:
        rng = np.random.default_rng(4)
        self.parts = [Scaled(rng.normal(size=(3, 3)), 1.7) for _ in range(2)]

    def forward(self, x: Any) -> Any:
        return np.concatenate([each.forward(x) for each in self.parts], axis=-1)

    def backward(self, dy: Any) -> Any:
        dys = np.split(dy, 2, axis=-1)
        return sum(each.backward(own) for each, own in zip(self.parts, dys, strict=True))


def test_a_line_that_several_layers_run_is_changed_once() -> None:
    (fault,) = hg.check(Both(), normal(4, 3)).faults
    assert "the factor 1/scale is missing" in fault.message
    assert fault.line in range(*(Scaled.backward.__code__.co_firstlineno + i for i in (1, 3)))


STORED = """
import numpy as np


def forward(x, w):
    h = np.zeros((len(x) + 1, x.shape[1]))
    for t in range(len(x)):
        h[t + 1] = np.tanh(x[t] + h[t] * w)
    return h[1:], (h, w)


def backward(dy, cache):
    h, w = cache
    n = len(dy)
    dh, dz = np.zeros((n + 1, len(w))), np.zeros((n + 1, len(w)))
    for t in reversed(range(n)):
        dh[t] = dy[t] + dz[t + 1] * w
        dz[t] = dh[t] * (1 - h[t + 1] ** 2)
    return dz[:n], (dz[:n] * h[:n]).sum(axis=0)
"""


def test_the_line_that_departs_in_the_first_round_is_told(tmp_path: Path) -> None:
    wrong = "np.sin(7 * dh[t]) + 0.123 * h[t + 1] ** 3"
    made = module(STORED.replace("dh[t] * (1 - h[t + 1] ** 2)", wrong), tmp_path)
    report = hg.check((made.forward, made.backward), normal(4, 3), normal(3))
    line = next(
        each.lineno
        for each in ast.walk(ast.parse(STORED))
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "dz[t]"
    )
    assert {fault.line for fault in report.faults} == {line}


SLOPED = """
import numpy as np


def forward(x):
    e = np.exp(x)
    return e / (1 + e) * np.cos(x), (x, e)


def backward(dy, cache):
    x, e = cache
    s = e / (1 + e)
    slope = s * (1 - s) * np.cos(x) - s * np.sin(x)
    dx = dy * slope
    return dx
"""


def test_what_a_line_needs_of_another_says_where_it_is_wrong(tmp_path: Path) -> None:
    right, wrong = "s * (1 - s) * np.cos(x) - s * np.sin(x)", "0.3 * s + 0.1"
    assert checked(SLOPED, right, wrong, tmp_path, normal(5, 3)) == {0}
