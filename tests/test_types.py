"""What type checkers see of handgrad: a type for every public name, and Any for none of them."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests import public

#: A layer knows its cache alone: each names the type of its own, which a base that says `object`
#: would forbid.
CACHE_OF_ANY_LAYER: Final = {"handgrad.layers.base.Layer.backward: cache"}
#: Records of a run, which are read from its files too, and data in any form.
RECORDS: Final = {
    "handgrad.training.history.History.epochs",
    "handgrad.training.history.History.summary",
    "handgrad.training.run.Parts.train",
}
#: For type checkers these two are NumPy's, with an element type that is open.
NUMPYS_OWN: Final = re.compile(
    r"numpy\.(?:ndarray\[tuple\[Any, \.\.\.\], numpy\.dtype\[Any\]\]|dtype\[Any\])"
)
_SETTINGS: Final = "[mypy]\nstrict = true\n[mypy-handgrad.*]\nfollow_imports = silent\n"


def test_public_parameters_and_results_have_types_that_say_something() -> None:
    open_ones = {
        f"{name}: {parameter}"
        for name, (module, function) in public.functions().items()
        for parameter, annotation in public.annotations(function)
        if public.open_types(module, annotation)
    }
    assert open_ones == CACHE_OF_ANY_LAYER


def test_fields_of_public_classes_have_types_that_say_something() -> None:
    fields = public.fields()
    assert {
        "handgrad.training.settings.TrainArguments.loss",
        "handgrad.sklearn.mlp.MLPClassifier.hidden_layer_sizes",
    } <= fields.keys()
    open_ones = {name for name, given in fields.items() if public.open_types(*given)}
    assert open_ones == RECORDS


def test_public_functions_are_found() -> None:
    names = public.functions()
    assert len(names) > 700
    assert {
        "handgrad.checking.entry.check",
        "handgrad.training.trainer.Trainer.fit",
        "handgrad.layers.base.Layer.backward",
        "handgrad.ops.gelu.forward",
        "handgrad.torch.acceleration.accelerate",
        "handgrad.jax.stepping.step",
        "handgrad.sklearn.mlp.MLPClassifier.partial_fit",
        "handgrad.inference.session.Session.__init__",
    } <= names.keys()


def test_every_public_parameter_has_a_type() -> None:
    bare = [
        f"{name}: {each.arg}"
        for name, (_, function) in public.functions().items()
        for each in [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        if each.annotation is None and each.arg not in ("self", "cls")
    ]
    assert bare == []


@pytest.mark.parametrize("package", public.PACKAGES)
def test_every_public_name_is_defined_where_its_import_says(package: str) -> None:
    for name in public.public_names(package):
        module, statement = public.home(package, name)
        if module.startswith("handgrad"):
            assert statement is not None or public.file_of(module), f"{package}.{name}"


def test_any_is_seen_through_other_names(tmp_path: Path) -> None:
    annotation = ast.parse("tuple[InputSize, Any]", mode="eval").body
    assert public.open_types("handgrad.layers.dense", annotation) == {"Any"}
    loose = ast.parse("Callable[..., Any] | None", mode="eval").body
    assert public.open_types("handgrad.layers.dense", loose) == {"Any"}


@pytest.mark.slow
def test_mypy_finds_no_fault_and_no_any_in_the_program_of_a_user(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    pytest.importorskip("torch")
    settings = tmp_path / "mypy.ini"
    settings.write_text(_SETTINGS, encoding="utf-8")
    file = Path(__file__).parent / "typed" / "program.py"
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", settings, "--cache-dir", tmp_path, file],
        capture_output=True,
        env={**os.environ, "MYPYPATH": str(public.SOURCE)},
        cwd=tmp_path,
    )
    lines = done.stdout.decode().splitlines()
    assert [line for line in lines if ": error:" in line] == [], done.stderr
    revealed = [line.partition("Revealed type is ")[2] for line in lines if "Revealed" in line]
    assert len(revealed) == file.read_text(encoding="utf-8").count("    reveal_type(")
    assert [each for each in revealed if "Any" in NUMPYS_OWN.sub("array", each)] == []


def test_the_program_of_a_user_runs(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    from tests.typed import program

    program.main()
    assert "gradients ok: True\n(5, 4)\n" in capsys.readouterr().out
