"""A path through time that is forgotten is told as the term that the line lacks."""

from __future__ import annotations

from typing import Any

import numpy as np

import handgrad as hg


class Gru:
    """A gated unit through time, in functions that a decorator stands before."""

    @staticmethod
    def forward(x: Any, h0: Any, wz: Any, uz: Any, wh: Any, uh: Any) -> Any:
        h, steps = h0, []
        for t in range(x.shape[0]):
            z = 1 / (1 + np.exp(-(x[t] @ wz + h @ uz)))
            c = np.tanh(x[t] @ wh + h @ uh)
            new = (1 - z) * h + z * c
            steps.append((h, z, c))
            h = new
        return h, (x, wz, uz, wh, uh, steps)

    @staticmethod
    def backward(dh: Any, cache: Any) -> Any:
        x, wz, uz, wh, uh, steps = cache
        dx = np.zeros_like(x)
        dwz, duz, dwh, duh = (np.zeros_like(w) for w in (wz, uz, wh, uh))
        for t in reversed(range(x.shape[0])):
            h, z, c = steps[t]
            dz = dh * (c - h) * z * (1 - z)
            dc = dh * z * (1 - c * c)
            dwz += x[t].T @ dz
            duz += h.T @ dz
            dwh += x[t].T @ dc
            duh += h.T @ dc
            dx[t] = dz @ wz.T + dc @ wh.T
            dh = dz @ uz.T + dc @ uh.T
        return dx, dh, dwz, duz, dwh, duh


def test_a_path_through_time_that_is_forgotten() -> None:
    rng = np.random.default_rng(5)
    shapes = ((4, 2, 3), (2, 5), (3, 5), (5, 5), (3, 5), (5, 5))
    report = hg.check(Gru, *(rng.standard_normal(shape) for shape in shapes))
    for fault in report.faults:
        assert "the term dh (1 − z) is missing" in fault.message
        assert (
            fault.diff.splitlines()[-1].strip("+ ") == "dh = dz @ uz.T + dc @ uh.T + dh * (1 - z)"
        )
    assert {fault.gradient for fault in report.faults} == {"x", "h0", "wz", "uz", "wh", "uh"}
