"""An installation of handgrad alone: without SciPy, PyTorch, JAX, pandas and scikit-learn."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import sys
from importlib.abc import MetaPathFinder

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"scipy", "torch", "jax", "jaxlib", "pandas", "sklearn"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import importlib.util
own = importlib.util.find_spec

def find_spec(name, package=None):
    try:
        return own(name, package)
    except ModuleNotFoundError:
        return None

importlib.util.find_spec = find_spec

import math
import numpy as np
import handgrad as hg
from handgrad.errors import HandgradError

def forward(x, w):
    e = np.exp(x @ w - np.max(x @ w, axis=-1, keepdims=True))
    y = e / e.sum(axis=-1, keepdims=True)
    return y, (x, w, y)

def backward(dy, cache):
    x, w, y = cache
    ds = y * (dy - (y * dy).sum(axis=-1, keepdims=True))
    return ds @ w.T, ds

derivation = hg.derive(lambda x, w: np.tanh(x @ w), x=("N", "D"), w=("D", "E"))
assert "def backward" in derivation.backward_source
try:
    hg.derive(lambda x: x * np.vectorize(math.erf)(x), x=("N",))
except HandgradError as error:
    assert "scipy.special.erf is needed; install SciPy" in str(error), error
rng = np.random.default_rng(0)
report = hg.check((forward, backward), rng.standard_normal((4, 3)), rng.standard_normal((3, 3)))
assert report.verdict == "wrong", report
hg.notes("layer_norm", numbers=True).to_html()
print("all of it")
"""


def test_deriving_checking_and_notes_need_numpy_alone():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("all of it", "")


PLAIN = """
import sys
from pathlib import Path

import numpy as np
import handgrad as hg

Path("plain.py").write_text('''
import numpy as np

def forward(x, w):
    y = np.tanh(x @ w)
    return y, (x, w, y)

def backward(dy, cache):
    x, w, y = cache
    dz = dy * (1 - y * y)
    return dz @ w.T, x.T @ dz
''')
sys.path.insert(0, ".")
import plain

arrays = np.ones((3, 4)) / 3, np.ones((4, 2)) / 4
assert hg.check((plain.forward, plain.backward), *arrays).ok
assert hg.derive(plain.forward, x=("N", "D"), w=("D", "K")).backward_source
found = {name.partition(".")[0] for name in sys.modules} & {"scipy", "torch", "jax"}
assert not found, found

import scipy.special

d = hg.derive(lambda x: scipy.special.expit(x) + scipy.special.erf(x), x=("N",))
assert "scipy.special.erf(x)" in d.forward_source
"""


def test_what_a_plain_forward_does_not_name_is_not_imported(tmp_path):
    pytest.importorskip("scipy")
    run = subprocess.run(
        [sys.executable, "-c", PLAIN], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert run.returncode == 0, run.stderr
