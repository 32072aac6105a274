"""What leaves arrays and Python is never run with a change; what runs leave behind is put back."""

from __future__ import annotations

import ctypes
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided as windows

import handgrad as hg
from handgrad.checking.alignment.kept import StateBefore
from handgrad.checking.alignment.pieces import observed
from handgrad.checking.alignment.watched import WatchedTarget
from handgrad.cli.requests import Request, outcome_of
from tests.checking.functions import normal


def forward(x: Any) -> Any:
    return np.sin(x), x


def of_pointers(dy: Any, x: Any) -> Any:
    dx = np.zeros_like(x)
    address = dx.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
    for i in range(dx.size):
        address[i] = float((dy * np.sin(x)).flat[i])
    return dx


def of_strides(dy: Any, x: Any) -> Any:
    rows = windows(dy, (2, 2), dy.strides)
    return np.sin(x) * dy + 0.0 * rows.sum()


def of_a_buffer(dy: Any, x: Any) -> Any:
    taken = np.ndarray(x.shape, x.dtype, buffer=x.copy())
    return np.sin(taken) * dy


def of_a_file(dy: Any, x: Any) -> Any:
    with open("/dev/null", "w", encoding="utf-8") as sink:
        sink.write("backward")
    return np.sin(x) * dy


def of_a_path(dy: Any, x: Any) -> Any:
    Path("/dev/null").write_text("backward", encoding="utf-8")
    return np.sin(x) * dy


LIBRARY = {"absolute": ctypes.CDLL(None).labs}


def of_a_kept_function(dy: Any, x: Any) -> Any:
    return np.sin(x) * dy * LIBRARY["absolute"](-1)


class Holder:
    def __init__(self) -> None:
        self.native = ctypes.CDLL(None).labs


HOLDER = Holder()


def of_an_object(dy: Any, x: Any) -> Any:
    return np.sin(x) * dy * HOLDER.native(-1)


def of_an_import(dy: Any, x: Any) -> Any:
    import os

    return np.sin(x) * dy * bool(os.getpid())


UNSOUND = [
    *(of_pointers, of_strides, of_a_buffer, of_a_file, of_a_path),
    *(of_a_kept_function, of_an_object, of_an_import),
]


@pytest.mark.parametrize("backward", UNSOUND)
def test_nothing_is_changed_where_a_pass_leaves_arrays_and_python(
    backward: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    own = WatchedTarget.pieces.func  # type: ignore[attr-defined]

    def pieces(seen: WatchedTarget) -> Any:
        found.append(own(seen))
        return found[-1]

    monkeypatch.setattr(WatchedTarget, "pieces", property(pieces))
    report = hg.check((forward, backward), normal(3, 4))
    assert report.verdict == "wrong"
    assert found
    assert not any(found)
    assert not any(fault.diff for fault in report.faults)


def sound(dy: Any, x: Any) -> Any:
    import math

    kept = [np.asarray(x, dtype=np.float64)]
    assert isinstance(dy, np.ndarray)
    return np.sin(kept[0]) * dy * math.copysign(1.0, 2.0)


def test_arrays_and_python_are_changed() -> None:
    assert not observed(lambda: sound(*(normal(3, 4), normal(3, 4, seed=12)))).leads_out
    assert hg.check((forward, sound), normal(3, 4)).faults[0].diff


IN_A_PACKAGE = """
import numpy as np


class Sine:
    def __call__(self, x):
        self.x = x
        return np.sin(x)

    def forward(self, x):
        return self(x)

    def backward(self, dy):
        return np.sin(self.x) * dy
"""


def test_a_package_of_the_users_may_be_called_after_an_array_library(tmp_path: Path) -> None:
    file = tmp_path / "numpy_networks" / "sine.py"
    file.parent.mkdir()
    file.parent.joinpath("__init__.py").touch()
    file.write_text(IN_A_PACKAGE, encoding="utf-8")
    [fault] = outcome_of(Request(f"{file}:Sine", shapes=["x=3,4"])).report.faults
    assert fault.line == IN_A_PACKAGE.splitlines().index("        return np.sin(self.x) * dy") + 1
    assert "cos" in fault.diff.splitlines()[-1]


CALLS: dict[str, Any] = {"count": 0, "seen": []}
GENERATOR = np.random.default_rng(0)


class Layer:
    def __init__(self) -> None:
        self.mean = np.zeros(4)


def test_what_a_run_changes_is_put_back() -> None:
    layer, total = Layer(), 0

    def run(x: Any) -> float:
        nonlocal total
        total += 1
        CALLS["count"] += 1
        CALLS["seen"].append(x)
        layer.mean += x
        layer.last = x  # type: ignore[attr-defined]
        random.random()
        return float(GENERATOR.standard_normal())

    kept = StateBefore([run])
    with kept.put_back():
        first = run(np.ones(4)), random.random()
    with kept.put_back():
        again = run(np.ones(4)), random.random()
    assert first == again
    assert total == 0
    assert CALLS == {"count": 0, "seen": []}
    assert not layer.mean.any()
    assert not hasattr(layer, "last")
