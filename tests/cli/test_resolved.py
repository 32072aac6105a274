"""Targets as people have them: classes with their arguments, files within packages and projects."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from typer.testing import Result

Run = Callable[..., Result]
Refused = Callable[..., str]

DENSE = """
import numpy as np

class Tanh:
    def of(self, x):
        return np.tanh(x)

def relu(x):
    return np.maximum(x, 0)

class Dense:
    def __init__(self, n_in, n_out, scale=1.0, act=np.tanh, mode="plain", bias=None):
        assert mode in ("plain", "relu") and bias is None
        self.w = scale * np.random.randn(n_in, n_out)
        self.act = act.of if isinstance(act, Tanh) else act

    def forward(self, x):
        self.x = x
        self.y = self.act(x @ self.w)
        return self.y

    def backward(self, dout):
        da = dout * (1 - self.y ** 2) if self.act is not relu else dout * (self.y > 0)
        self.dw = self.x.T @ da
        return da @ self.w.T
"""
AFFINE = """
class Affine:
    def __init__(self, W, b):
        self.W, self.b, self.dW, self.db = W, b, None, None

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, dout):
        self.dW, self.db = self.x.T @ dout, dout.sum(axis=0)
        return dout @ self.W.T
"""
SIZES = ("--set", "n_in=3", "--set", "n_out=4", "--shape", "x=5,3")


@pytest.fixture
def tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[dict[str, str]], Path]]:
    """Writes files; what is imported from them is forgotten afterwards."""
    before, finders = set(sys.modules), list(sys.meta_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text), encoding="utf-8")
        return tmp_path

    yield write
    sys.meta_path[:] = finders
    for name in set(sys.modules) - before:
        known = vars(sys.modules[name])
        if str(tmp_path) in str(known.get("__file__") or known.get("__path__")):
            del sys.modules[name]


def test_a_class_with_its_arguments(handgrad: Run, tree: Callable[..., Path]) -> None:
    tree({"layers.py": DENSE})
    result = handgrad("check", "layers.py:Dense", *SIZES)
    assert result.exit_code == 0, result.output
    assert "dw" in result.stdout
    assert handgrad("check", "layers.py:Dense", *SIZES).stdout == result.stdout
    again = handgrad("check", "layers.py:Dense", *SIZES, "--seed", 5, "--json")
    assert again.exit_code == 0, again.output


SLOPES = """
    import numpy as np
    def tanh(x):
        return np.tanh(x)
    class Slow:
        def __call__(self, x):
            return 1 - 2 / (np.exp(2 * x) + 1)
"""

TRACED = """
    def traced(function):
        def call(*args, **kwargs):
            return function(*args, **kwargs)
        return call
"""


def test_a_class_whose_methods_are_decorated(handgrad: Run, tree: Callable[..., Path]) -> None:
    text = dedent(TRACED) + dedent(DENSE).replace("    def ", "    @traced\n    def ")
    tree({"layers.py": text})
    result = handgrad("check", "layers.py:Dense", *SIZES)
    assert result.exit_code == 0, result.output


SETTINGS = ["act=relu", "act=Tanh()", "act=np.tanh", "act=slopes.tanh", "act=slopes.Slow()"]


@pytest.mark.parametrize("setting", [*SETTINGS, "mode=relu"])
def test_settings_are_literals_names_and_texts(
    handgrad: Run, tree: Callable[..., Path], setting: str
) -> None:
    tree({"layers.py": DENSE, "slopes.py": SLOPES})
    values = ("--set", "bias=None", "--set", "scale=1/2" if "mode" in setting else "scale=.5")
    if "mode" in setting:
        assert handgrad("check", "layers.py:Dense", *SIZES, *values).exit_code == 2
        values = ("--set", "scale=0.5")
    result = handgrad("check", "layers.py:Dense", *SIZES, *values, "--set", setting)
    assert result.exit_code == 0, result.output


def test_arrays_go_to_the_constructor_that_has_their_names(
    handgrad: Run, tree: Callable[..., Path]
) -> None:
    tree({"affine.py": AFFINE, "wrong.py": AFFINE.replace("axis=0", "axis=0) / len(dout")})
    shapes = ("--shape", "W=3,4", "--shape", "b=4", "--shape", "x=5,3")
    result = handgrad("check", "affine.py:Affine", *shapes)
    assert result.exit_code == 0, result.output
    assert all(f"d{name}" in result.stdout for name in ("x", "W", "b"))
    result = handgrad("check", "wrong.py:Affine", *shapes)
    assert result.exit_code == 1
    assert "db: " in result.stdout


def test_notes_and_derive_make_the_object_too(handgrad: Run, tree: Callable[..., Path]) -> None:
    tree(
        {
            "scale.py": """
            class Scale:
                '''Scale by a number.'''
                def __init__(self, by):
                    self.by = by
                def forward(self, x):
                    return x * self.by, self.by
                def backward(self, dy, by):
                    return dy * by
            """
        }
    )
    result = handgrad(
        "notes", "scale.py:Scale", "--set", "by=3.0", "--shape", "x=4", "--format", "md", "-o", "-"
    )
    assert result.exit_code == 0, result.output
    assert "Scale" in result.stdout
    result = handgrad("derive", "scale.py:Scale", "--set", "by=3.0", "--shape", "x=N")
    assert result.exit_code == 0, result.output
    assert "def backward" in result.stdout


def test_arrays_in_a_dictionary(handgrad: Run, tree: Callable[..., Path]) -> None:
    tree(
        {
            "loss.py": """
            def loss_and_grads(params, x):
                y = x @ params["w"] + params["b"]
                return (y * y).sum(), {"w": 2 * x.T @ y, "b": 2 * y.sum(0)}
            """
        }
    )
    shapes = ("--shape", "params.w=3,2", "--shape", "params.b=2", "--shape", "x=5,3")
    result = handgrad("check", "loss.py:loss_and_grads", *shapes)
    assert result.exit_code == 0, result.output
    assert "db" in result.stdout


RELATIVE = {
    "net/__init__.py": "",
    "net/common/__init__.py": "",
    "net/common/functions.py": "import numpy as np\nfrom net.settings import GAIN\n\n"
    "def act(x):\n    return GAIN * np.tanh(x)\n",
    "net/settings.py": "GAIN = 2.0\n",
    "net/layers/__init__.py": "from .act import Act\n",
    "net/layers/act.py": "from ..common.functions import act\nfrom net.settings import GAIN\n\n"
    "class Act:\n    def forward(self, x):\n        self.y = act(x)\n        return self.y\n\n"
    "    def backward(self, dy):\n        return dy * (GAIN - self.y ** 2 / GAIN)\n",
}
#: The same without the files that say that folders are packages.
FOLDERS = {name: text for name, text in RELATIVE.items() if not name.endswith("__init__.py")}
#: Chapters beside a folder of what they share, as scripts import it.
CHAPTERS = {
    "repo/.git/config": "",
    "repo/common/functions.py": "import numpy as np\nimport helper\n\ndef act(x):\n"
    "    return helper.GAIN * np.tanh(x)\n",
    "repo/common/helper.py": "",
    "repo/helper.py": "GAIN = 2.0\n",
    "repo/ch05/deep/act.py": RELATIVE["net/layers/act.py"]
    .replace("from ..common", "from common")
    .replace("from net.settings", "from helper"),
}
#: The file itself imports its neighbour alone, and that imports from the folder above.
THROUGH = {
    "lib/layers/act.py": "from ._base import Base\nimport numpy as np\n\nclass Act(Base):\n"
    "    def _compute_gradients(self, grads):\n        return grads * (1 - self.y ** 2)\n",
    "lib/layers/_base.py": "from ..engine import np\n\nclass Base:\n    def forward(self, x):\n"
    "        self.y = np.tanh(x)\n        return self.y\n",
    "lib/engine.py": "import numpy as np\n",
}
PROJECTS = {
    "lib/layers/act.py": THROUGH,
    "net/layers/act.py": RELATIVE,
    "net/layers/./act.py": FOLDERS,
    "repo/ch05/deep/act.py": CHAPTERS,
    "code/layers/act.py": {
        name.replace("net/", "code/"): text.replace("from net.settings", "from ..settings")
        for name, text in RELATIVE.items()
    },
}


@pytest.mark.parametrize("file", PROJECTS)
@pytest.mark.parametrize("inside", [False, True], ids=["from outside", "from its folder"])
def test_a_file_imports_its_neighbours(tree: Callable[..., Path], file: str, inside: bool) -> None:
    root = tree(PROJECTS[file])
    path = (root / file).resolve()
    where = path.parent if inside else root
    target = path.name if inside else str(path.relative_to(root))
    command = [sys.executable, "-P", "-m", "handgrad", "check", f"{target}:Act", "--shape", "x=5,3"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=where, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "every gradient is right" in result.stdout


def test_a_library_gets_no_folder_of_the_project(
    tree: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A library that tries whether another is installed must not find the user's of that name."""
    library = tmp_path_factory.mktemp("library")
    (library / "triesanother.py").write_text(
        "try:\n    import notinstalled\n    found = True\nexcept ImportError:\n    found = False\n"
    )
    root = tree(
        {
            "repo/.git/config": "",
            "repo/notinstalled/code.py": "",
            "repo/part/act.py": "import triesanother\nassert not triesanother.found\n"
            "import notinstalled\ndef forward(x):\n    return x, x\n"
            "def backward(dy, x):\n    return dy\n",
        }
    )
    command = [sys.executable, "-m", "handgrad", "check", "repo/part/act.py:forward,backward"]
    result = subprocess.run(
        [*command, "--shape", "x=5,3"],
        capture_output=True,
        text=True,
        cwd=root,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(library), *sys.path])},
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_file_of_a_package_is_run_anew(handgrad: Run, tree: Callable[..., Path]) -> None:
    root = tree(RELATIVE)
    act = root / "net/layers/act.py"
    assert handgrad("check", "net/layers/act.py:Act", "--shape", "x=5,3").exit_code == 0
    act.write_text(act.read_text().replace("GAIN - self", "GAIN + self"))
    assert handgrad("check", "net/layers/act.py:Act", "--shape", "x=5,3").exit_code == 1


def test_a_script_that_reads_its_arguments_as_it_is_imported(
    handgrad: Run, tree: Callable[..., Path]
) -> None:
    tree(
        {
            "script.py": """
            import argparse
            parser = argparse.ArgumentParser()
            parser.add_argument("--gain", type=float, default=2.0)
            gain = parser.parse_args().gain

            def fwd(x):
                return gain * x * x, x

            def bwd(dy, x):
                return 2 * gain * dy * x
            """
        }
    )
    result = handgrad("check", "script.py:fwd,bwd", "--shape", "x=3")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["layers.py:Dense", "--shape", "x=5,3"], "is a class that needs n_in, n_out; allowed:"),
        (["layers.py:Dense", *SIZES, "--set", "n_oud=4"], "takes no argument 'n_oud'; allowed: n_"),
        (["layers.py:Dense", *SIZES, "--set", "mode=no"], "cannot be made: AssertionError"),
        (["layers.py:Dense", *SIZES, "--set", "act=Dense()"], "cannot be made: TypeError"),
        (["layers.py:Dense", *SIZES, "--set", "n_out"], "found no name and value; allowed: NAME="),
        (
            ["layers.py:Dense", *SIZES, "--set", "n_in=3,n_out=4"],
            "holds several settings; allowed: one",
        ),
        (["layers.py:relu", *SIZES], "has no constructor for n_in, n_out"),
        (["tanh", "--set", "n_in=3"], "tanh has no constructor for n_in"),
        (["all", "--set", "n_in=3"], "--set is given with all"),
        (["up/one.py:f"], "one.py, line 2: ModuleNotFoundError: No module named 'nowhere_at_all'"),
        (["up/two.py:f"], "two.py cannot be imported: "),
        (["empty"], "empty is a folder without a run or a package; allowed: a file in it, empty/F"),
        (["empty/"], "empty/ is a folder without a run or a package; allowed: a file in it"),
        (["rows.csv"], "rows.csv is a file that is no Python; allowed: file.py, file.py:NAME"),
    ],
)
def test_misuse_is_one_sentence(
    refused: Refused, tree: Callable[..., Path], arguments: list[str], message: str
) -> None:
    tree(
        {
            "layers.py": DENSE,
            "rows.csv": "a,b\n1,2\n",
            "empty/notes.txt": "",
            "up/one.py": "import nowhere_at_all as n\nclass f(n.Layer): pass\n",
            "up/two.py": "from ....... import nothing\n" + "from ." + "." * 40 + " import a\n",
        }
    )
    assert message in refused("check", *arguments)


PLOTTED = """
import numpy as np
from collections import Hashable, deque
import nowhere_plot.pyplot as plt
try:
    import nowhere_fast
except ImportError:
    nowhere_fast = np
from nowhere_gpu import array, compiled
from nowhere_gpu.kernels import sums

plt.rcParams["size"] = 3
plt.use("svg")

@compiled(parallel=True)
def forward(x):
    return nowhere_fast.tanh(x) if not isinstance(x, array) else sums(x)

@compiled
def backward(dy, x):
    return dy * (1 - np.tanh(x) ** 2)

def sum_forward(x):
    return sums(x)

def sum_backward(dy, x):
    return dy
"""


def test_packages_that_are_not_installed_are_read_over(
    handgrad: Run, tree: Callable[..., Path]
) -> None:
    tree({"plotted.py": PLOTTED})
    assert handgrad("check", "plotted.py:forward,backward", "--shape", "x=5,3").exit_code == 0
    said = handgrad("check", "plotted.py:sum_forward,sum_backward", "--shape", "x=5,3")
    assert said.exit_code == 2
    needed = "No module named 'nowhere_gpu', of which nowhere_gpu.kernels.sums is used"
    assert needed in " ".join(said.output.split())


LOSSES = """
import numpy as np

class Squares:
    def forloss(self, x, y):
        self.difference = x - y
        return np.sum(self.difference ** 2)

    def backloss(self):
        return 2 * self.difference

class Entropy:
    def calculate(self, logits, target):
        e = np.exp(logits - logits.max(axis=1, keepdims=True))
        self.p, self.target = e / e.sum(axis=1, keepdims=True), target.ravel()
        return -np.log(self.p[range(len(self.p)), self.target]).mean()

    def backward(self):
        d = self.p.copy()
        d[range(len(d)), self.target] -= 1
        return d / len(d)
"""


def test_losses_by_other_names_and_labels_in_a_list(
    handgrad: Run, tree: Callable[..., Path]
) -> None:
    root = tree({"losses.py": LOSSES})
    squares = handgrad("check", f"{root}/losses.py:Squares", "--shape", "x=4,3", "--shape", "y=4,3")
    assert squares.exit_code == 0, squares.output
    entropy = handgrad(
        *("check", f"{root}/losses.py:Entropy", "--shape", "logits=4,3"),
        *("--option", "target=[0, 2, 1, 1]"),
    )
    assert entropy.exit_code == 0, entropy.output


def test_a_setting_that_forward_takes_is_told_its_option(
    refused: Refused, tree: Callable[..., Path]
) -> None:
    root = tree({"losses.py": LOSSES})
    said = refused(
        *("check", f"{root}/losses.py:Entropy", "--shape", "logits=4,3"), "--set", "target=[0, 2]"
    )
    assert "--option target=" in said
