from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from handgrad.ops import OPS

LAYER_NORM = """\
import numpy as np

EPS = 1e-5


def forward(x, gamma, beta):
    centred = x - x.mean(axis=-1, keepdims=True)
    inv_std = 1 / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + EPS)
    x_hat = centred * inv_std
    return gamma * x_hat + beta, (x_hat, inv_std, gamma)


def backward(dy, cache):
    x_hat, inv_std, gamma = cache
    dgamma = (dy * x_hat).sum(axis=0)
    dbeta = dy.sum(axis=0)
    dx_hat = dy * gamma
    mean = dx_hat.mean(axis=-1, keepdims=True)
    mean_x_hat = (dx_hat * x_hat).mean(axis=-1, keepdims=True)
    dx = (dx_hat - mean - x_hat * mean_x_hat) * inv_std
    return dx, dgamma, dbeta
"""
WRONG = LAYER_NORM.replace("dx_hat - mean -", "dx_hat + mean -")
LAYER_NORM_SHAPES = ("--shape", "x=5,7", "--shape", "gamma=7", "--shape", "beta=7")

SCALED = """\
def forward(x, factor=2.0):
    print("forward runs")
    return x * factor, factor


def backward(dy, factor):
    return dy * factor


pair = forward, backward
number = 3


class Static:
    forward = staticmethod(forward)
    backward = staticmethod(backward)


class Scaled:
    def forward(self, x):
        return forward(x)

    def backward(self, dy, cache):
        return backward(dy, cache)


scaled = Scaled()


def interrupted(dy, cache):
    raise KeyboardInterrupt


def raising(dy, cache):
    raise RuntimeError("not written yet")


def two(dy, cache):
    return dy, dy
"""

MATMUL = """\
{future}
import numpy as np
from jaxtyping import Float

Array = np.ndarray


def forward(a: Float[Array, "N D"], b: Float[Array, "{columns}"], alpha=1.0):
    assert a.shape == (5, 3), a.shape
    return a @ b, (a, b)


def backward(dy, cache):
    a, b = cache
    return dy @ b.T, a.T @ dy
"""


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """An empty current directory; what is imported from it is forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def scaled(here) -> Path:
    (here / "scaled_file.py").write_text(SCALED)
    return here


# Targets


def test_an_op_is_right(handgrad, here):
    result = handgrad("check", "tanh")
    assert result.exit_code == 0, result.output
    assert "every gradient is right" in result.stdout


def test_all_ops_take_a_line_each(handgrad, here):
    result = handgrad("check", "all", "--seed", 1)
    assert result.exit_code == 0, result.output
    assert [line.split()[0] for line in result.stdout.splitlines()] == list(OPS)


def test_all_ops_as_json(handgrad, here, monkeypatch):
    monkeypatch.setattr("handgrad.ops.OPS", ("relu", "tanh"))
    found = json.loads(handgrad("check", "all", "--json").stdout)
    assert list(found) == ["relu", "tanh"]
    assert found["tanh"]["ok"] is True


@pytest.mark.parametrize("target", ["my_norm.py", "my_norm", "my_norm:forward,backward"])
def test_a_wrong_term_is_named_with_its_line(handgrad, here, target):
    (here / "my_norm.py").write_text(WRONG)
    result = handgrad("check", target, *LAYER_NORM_SHAPES)
    assert result.exit_code == 1, result.output
    words = " ".join(result.stdout.split())
    assert words.startswith(f"{target} against layer_norm")
    assert "dx: term mean = mean(dx̂) has the wrong sign" in words
    assert "line 20" in words


def test_a_right_pair(handgrad, here):
    (here / "my_norm.py").write_text(LAYER_NORM)
    result = handgrad("check", "my_norm.py", *LAYER_NORM_SHAPES)
    assert result.exit_code == 0, result.output


def test_a_backward_alone_needs_no_inputs_with_like(handgrad, here):
    (here / "my_norm.py").write_text(WRONG)
    result = handgrad("check", "my_norm.py:backward", "--like", "layer_norm")
    assert result.exit_code == 1, result.output
    assert "dx: term mean = mean(dx̂) has the wrong sign" in result.stdout


@pytest.mark.parametrize("name", ["pair", "forward,backward", "Static", "scaled"])
def test_the_forms_of_an_object(handgrad, scaled, name):
    result = handgrad("check", f"scaled_file:{name}", "--shape", "x=5,3")
    assert result.exit_code == 0, result.output


def test_a_layer(handgrad, here):
    (here / "layers_file.py").write_text(
        "import numpy as np\nimport handgrad as hg\n"
        "model = hg.Sequential(hg.Dense(3, 2, rng=np.random.default_rng(0)), hg.LayerNorm(2))\n"
        "table = hg.Embedding(10, 3, rng=np.random.default_rng(0))\n"
    )
    result = handgrad("check", "layers_file.py:model", "--shape", "x=5,3")
    assert result.exit_code == 0, result.output
    assert "d0.weight" in result.stdout
    result = handgrad("check", "layers_file.py:table", "--shape", "x=int10:5")
    assert result.exit_code == 0, result.output


def test_the_model_of_a_recipe_needs_no_data(handgrad, here, monkeypatch):
    monkeypatch.delenv("HANDGRAD_DATA", raising=False)
    result = handgrad("check", "mnist-mlp", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["target"] == "mnist-mlp"


def test_the_model_of_a_run(handgrad, digits_run):
    result = handgrad("check", digits_run)
    assert result.exit_code == 0, result.output


def test_a_torch_function(handgrad, here):
    pytest.importorskip("torch")
    (here / "torch_file.py").write_text(
        "import torch\n\n\nclass Tanh(torch.autograd.Function):\n    @staticmethod\n"
        "    def forward(ctx, x):\n        y = torch.tanh(x)\n        ctx.save_for_backward(y)\n"
        "        return y\n\n    @staticmethod\n    def backward(ctx, dy):\n"
        "        (y,) = ctx.saved_tensors\n        return dy * (1 + y * y)\n"
    )
    for name in ("Tanh", "Tanh.apply"):
        result = handgrad("check", f"torch_file:{name}", "--shape", "x=5,3")
        assert result.exit_code == 1, result.output
        assert "has the wrong sign" in " ".join(result.stdout.split())


def test_a_jax_function(handgrad, here):
    pytest.importorskip("jax")
    (here / "jax_file.py").write_text(
        "import jax\n\n\n@jax.custom_vjp\ndef square(x):\n    return x * x\n\n\n"
        "square.defvjp(lambda x: (x * x, x), lambda x, dy: (dy * x,))\n"
    )
    result = handgrad("check", "jax_file:square", "--shape", "x=5,3")
    assert result.exit_code == 1, result.output


def test_a_file_may_have_the_name_of_an_imported_module(handgrad, here):
    (here / "json.py").write_text(SCALED)
    assert handgrad("check", "json.py", "--shape", "x=3").exit_code == 0


# Inputs


@pytest.mark.parametrize("future", ["", "from __future__ import annotations"])
def test_sizes_from_annotations(handgrad, here, future):
    pytest.importorskip("jaxtyping")
    (here / "product.py").write_text(MATMUL.format(future=future, columns="D M"))
    result = handgrad("check", "product.py")
    assert result.exit_code == 0, result.output


def test_an_annotation_without_a_size(refused, here):
    pytest.importorskip("jaxtyping")
    (here / "product.py").write_text(MATMUL.format(future="", columns="D M-1"))
    assert "the axis 'M-1' in forward's annotations gets no size" in refused("check", "product.py")


@pytest.mark.parametrize("names", [("x", "gamma", "beta"), ("arr_0", "arr_1", "arr_2")])
def test_inputs_from_a_file(handgrad, here, names):
    (here / "my_norm.py").write_text(LAYER_NORM)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape) for shape in ((2, 3), 3, 3)]
    np.savez(here / "inputs.npz", **dict(reversed(list(zip(names, arrays, strict=True)))))
    result = handgrad("check", "my_norm.py", "--inputs", "inputs.npz")
    assert result.exit_code == 0, result.output


def test_scalars_masks_and_settings(handgrad, here):
    (here / "masked.py").write_text(
        "import numpy as np\n\n\ndef forward(x, mask, scale, power=1):\n"
        "    assert x.ndim == 2 and mask.dtype == bool and np.shape(scale) == () and power == 2\n"
        "    return scale * mask * x**power, (x, mask, scale)\n\n\n"
        "def backward(dy, cache):\n    x, mask, scale = cache\n"
        "    return 2 * scale * mask * x * dy, (dy * mask * x * x).sum()\n"
    )
    shapes = ("--shape", "x=5,3", "--shape", "mask=bool:5,3", "--shape", "scale=")
    result = handgrad("check", "masked.py", *shapes, "--option", "power=2")
    assert result.exit_code == 0, result.output


def test_wrt(handgrad, here):
    (here / "weights.py").write_text(
        "def forward(x, w):\n    return x @ w, x\n\n\ndef backward(dy, x):\n    return x.T @ dy\n"
    )
    shapes = ("--shape", "x=5,3", "--shape", "w=3,2")
    assert handgrad("check", "weights.py", *shapes).exit_code == 1
    assert handgrad("check", "weights.py", *shapes, "--wrt", "w").exit_code == 0


def test_the_seed_is_of_everything(handgrad, scaled):
    def report(seed: int) -> str:
        arguments = ("--shape", "x=5,3", "--seed", seed, "--json")
        return handgrad("check", "scaled_file:pair", *arguments).stdout

    assert report(1) == report(1) != report(2)


# Output


def test_json_is_all_of_stdout(handgrad, scaled):
    result = handgrad("check", "scaled_file:pair", "--shape", "x=5,3", "--json")
    report = json.loads(result.stdout)
    assert (report["ok"], report["target"]) == (True, "scaled_file:pair")
    assert "forward runs" in result.stderr


def test_a_fault_in_json(handgrad, scaled):
    result = handgrad("check", "scaled_file:forward,two", "--shape", "x=5,3", "--json")
    assert result.exit_code == 1
    (fault,) = json.loads(result.stdout)["faults"]
    assert fault["kind"] == "wrong count"


def test_a_backward_that_raises_cannot_be_judged(handgrad, scaled):
    result = handgrad("check", "scaled_file:forward,raising", "--shape", "x=5,3")
    assert result.exit_code == 2, result.output
    assert "backward raises RuntimeError: not written yet" in " ".join(result.stdout.split())
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("backward", "code", "words"),
    [
        ("return 2 * x * dy", 0, "every gradient is right"),
        ("return (2 * x * dy).astype('f8')", 0, "in float32: dx is of float64"),
        ("return x * dy", 1, "dx: "),
        ("return 1 / 0", 2, "backward raises ZeroDivisionError: division by zero (line 5 of"),
        ("raise SystemExit(0)", 2, "backward raises SystemExit: 0 (line 5 of"),
        ("return exit(1)", 2, "backward raises SystemExit: 1"),
        ("return dy[7, 0] * x", 2, "backward raises IndexError: index 7 is out of bounds"),
    ],
)
def test_the_exit_code_is_the_verdict(handgrad, here, backward, code, words):
    (here / "mine.py").write_text(
        f"def forward(x):\n    return x * x, x\n\ndef backward(dy, x):\n    {backward}\n"
    )
    result = handgrad("check", "mine.py", "--shape", "x=5,3")
    assert result.exit_code == code, result.output
    assert words in " ".join(result.output.split())
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("forward", "words"),
    [
        ("x @ x, x", "forward raises ValueError: x @ x cannot be computed"),
        ("x * np.random.default_rng().random(x.shape), x", "forward is random"),
        ("str(x)", "forward returns y as a str; allowed: arrays of numbers"),
        ("exit(0)", "forward raises SystemExit: 0"),
    ],
)
def test_what_cannot_be_judged_is_2(handgrad, here, forward, words):
    (here / "mine.py").write_text(
        f"import numpy as np\n\ndef forward(x):\n    return {forward}\n\n"
        "def backward(dy, x):\n    return dy\n"
    )
    result = handgrad("check", "mine.py", "--shape", "x=5,3")
    assert result.exit_code == 2, result.output
    assert words in " ".join(result.output.split())


def test_an_interrupt_is_130(handgrad, scaled):
    result = handgrad("check", "scaled_file:forward,interrupted", "--shape", "x=5,3")
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == "handgrad: interrupted"


@pytest.mark.slow
def test_as_a_program(here):
    """The command finds a module in the current directory, which Python itself does not search."""
    (here / "my_norm.py").write_text(WRONG)
    result = subprocess.run(
        [sys.executable, "-P", "-m", "handgrad", "check", "my_norm", *LAYER_NORM_SHAPES],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "error"},
        check=False,
    )
    assert (result.returncode, result.stderr) == (1, "")
    assert "wrong sign" in result.stdout


# Misuse: what, what was found, what is allowed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["layernorm"], "did you mean layer_norm?"),
        (["nowhere:x"], "'nowhere' is no module, here or installed"),
        (["a/b:x"], "'a/b' is no module"),
        (["a/b"], "no run here"),
        (["nowhere.py:x"], "nowhere.py does not exist"),
        (["scaled_file:"], "scaled_file has no ''; allowed: forward, backward, pair"),
        (["scaled_file:bakward"], "did you mean backward?"),
        (["scaled_file:forward,backward,two"], "has 3 names; allowed: one, or two, a pair"),
        (["scaled_file:Scaled"], "allowed: --shape x=..."),
        (["scaled_file:raising"], "is one function; allowed: two, MODULE:FORWARD,BACKWARD"),
        (["scaled_file:number", "--shape", "x=3"], "target is 3; allowed"),
        (["scaled_file.py"], "no inputs are given for scaled_file.py; allowed: --shape x=..."),
        (["scaled_file", "--shape", "x=3", "--inputs", "i.npz"], "allowed: one of them"),
        (["scaled_file", "--shape", "y=3"], "--shape has 'y'; allowed: x, factor"),
        (["scaled_file", "--shape", "factor=3"], "--shape lacks 'x'; allowed: x, factor"),
        (["scaled_file", "--shape", "x=-1"], "found no name and sizes"),
        (["scaled_file", "--shape", "x"], "found no name and sizes"),
        (["scaled_file", "--shape", "x=2,,3"], "found no name and sizes"),
        (["scaled_file", "--shape", "x=int0:3"], "nothing is below 0"),
        (["scaled_file", "--shape", "x=" + "9" * 5000], "one with too many digits"),
        (["scaled_file", "--shape", "x=int" + "9" * 30 + ":3"], "one with too many digits"),
        (["scaled_file", "--shape", "x=" + "1," * 33], "found 33 sizes"),
        (["scaled_file", "--shape", "x=2000000000,2000000000"], "found 2⁶⁰ values or more"),
        (["scaled_file", "--inputs", "nowhere.npz"], "nowhere.npz is missing"),
        (["scaled_file", "--inputs", "scaled_file.py"], "expected a whole .npz file of numbers"),
        (["scaled_file", "--shape", "x=3", "--option", "factor"], "found no name and value"),
        (["scaled_file", "--shape", "x=3", "--option", "seed=1"], "a setting of the check"),
        (["scaled_file", "--shape", "x=3", "--wrt", "z"], "wrt has 'z'; allowed: x"),
        (["scaled_file", "--shape", "x=3", "--like", "norm"], "like is 'norm'"),
        (["scaled_file", "--shape", "x=99999999,99999999"], "memory ran out"),
        (["tanh", "--like", "norm"], "like is 'norm'"),
        (["tanh", "--like", "relu"], "like is 'relu' for an op; allowed: no other than itself"),
        (["tanh", "--wrt", "z"], "wrt has 'z'; allowed: x"),
        (["all", "--like", "tanh"], "--like is given with all"),
    ],
)
def test_misuse_is_one_sentence(refused, scaled, arguments, message):
    assert message in refused("check", *arguments)


def test_a_file_named_like_an_op_is_not_taken_for_it(refused, here):
    (here / "layer_norm.py").write_text(WRONG)
    assert "allowed: layer_norm.py for the file" in refused("check", "layer_norm")


def test_a_single_array_is_no_input_file(refused, scaled):
    np.save(scaled / "x.npy", np.zeros(3))
    assert "expected a whole .npz file of numbers" in refused(
        "check", "scaled_file", "--inputs", "x.npy"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def forward(x:\n", "broken.py, line 1: SyntaxError: '(' was never closed"),
        (
            "class f(__import__('nowhere_at_all').Base): ...\n",
            "broken.py, line 1: ModuleNotFoundError",
        ),
        ("def f():\n    return 1 / 0\n\n\nf()\n", "broken.py, line 2: ZeroDivisionError"),
        ("import numpy as np\n\nnp.zeros(3).reshape(2, 2)\n", "broken.py, line 3: ValueError"),
        ("import helper\n", "helper.py, line 2: RuntimeError: two\n"),
        ("raise SystemExit(3)\n", "broken.py, line 1: SystemExit: 3"),
    ],
)
@pytest.mark.parametrize("target", ["broken", "broken.py", "broken:forward"])
def test_what_a_module_raises_is_one_sentence_with_its_line(refused, here, text, message, target):
    (here / "broken.py").write_text(text)
    (here / "helper.py").write_text('\nraise RuntimeError("two\\nlines")\n')
    assert message in refused("check", target)


def test_a_module_without_forward_and_backward(refused, here):
    (here / "one.py").write_text("def step(x):\n    return x\n")
    assert "allowed: one:NAME, or one:FORWARD,BACKWARD, of step" in refused("check", "one")
    (here / "none.py").write_text("")
    assert "it defines no functions or classes" in refused("check", "none")


def test_parameters_that_were_not_judged_are_in_the_first_line(handgrad, here):
    (here / "mine.py").write_text(
        "import numpy as np\n\n"
        "class Scale:\n"
        "    def __init__(self):\n        self.w = np.arange(1.0, 4.0)\n"
        "    def forward(self, x):\n        return x * self.w\n"
        "    def backward(self, dy):\n        return dy * self.w\n\n"
        "layer = Scale()\n"
    )
    result = handgrad("check", "mine.py:layer", "--shape", "x=4,3")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("✓ dx is right; the gradient of w was not judged: y depends")
