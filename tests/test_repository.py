"""The files around the code: workflows, hooks, versions and the messages of commits."""

from __future__ import annotations

import importlib.resources
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import handgrad
from tests.rows import rows

ROOT = Path(__file__).parents[1]
CI = (ROOT / ".ci/run").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
OTHERS = (ROOT / ".pre-commit-config.yaml", ROOT / "CITATION.cff", ROOT / "action.yml")


def script(name: str) -> ModuleType:
    """A module of .ci."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f".ci/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


COMMIT_MESSAGE = script("commit_message")
RELEASE_NOTES = script("release_notes")
TOUCHED = script("touched")


def load(path: Path) -> dict[Any, Any]:
    return yaml.safe_load(path.read_text("utf-8"))


@pytest.mark.parametrize(
    "path", [*sorted(ROOT.glob(".github/**/*.yml")), *OTHERS], ids=lambda path: path.name
)
def test_yaml_can_be_read(path: Path) -> None:
    assert isinstance(load(path), dict)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_do_only_what_each_job_names(path: Path) -> None:
    workflow = load(path)
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert job["permissions"]
        assert "timeout-minutes" in job or job["uses"].startswith("./")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_to_a_commit_and_say_its_version(path: Path) -> None:
    used = re.findall(r"\buses: (?!\./)(.*)", path.read_text("utf-8"))
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each) for each in used)


def test_one_version_of_an_action_is_used_everywhere() -> None:
    texts = [path.read_text("utf-8") for path in WORKFLOWS]
    used = {use for text in texts for use in re.findall(r"uses: (\S+@\S+)", text)}
    assert len(used) == len({use.split("@")[0] for use in used})


def test_hooks_run_what_ci_runs() -> None:
    (hooks,) = (repo["hooks"] for repo in load(ROOT / ".pre-commit-config.yaml")["repos"])
    checks = [hook["entry"] for hook in hooks if not hook["entry"].startswith("python .ci/")]
    assert len(checks) == 4
    assert [entry for entry in checks if entry not in CI] == []


@pytest.mark.parametrize(
    ("changed", "run"),
    [
        (["src/handgrad/ops/layer_norm.py"], {"tests/ops"}),
        (["src/handgrad/ops/samples/gru.py"], {"tests/ops"}),
        (["src/handgrad/models/gpt.py", "tests/models/test_gpt.py"], {"tests/models"}),
        (["src/handgrad/checking/rounding/table.py"], {"tests/checking"}),
        (["src/handgrad/kernels/core/gemm/matmul.h"], {"tests/kernels"}),
        (["src/handgrad/products.py"], {"tests/test_products.py"}),
        (["tests/test_pages.py", "tests/tolerances.py"], {"tests/test_pages.py"}),
        (["src/handgrad/nowhere.py"], set()),
        (["docs/find-the-bug.md"], {"tests/test_readme.py"}),
        (["README.md", ".ci/run"], {"tests/test_readme.py", "tests/test_repository.py"}),
    ],
)
def test_the_tests_of_what_a_commit_touches(changed: list[str], run: set[str]) -> None:
    assert set(TOUCHED.tests(changed)) == run


def test_hooks_find_their_tools_in_the_dev_extra() -> None:
    (hooks,) = (repo["hooks"] for repo in load(ROOT / ".pre-commit-config.yaml")["repos"])
    tools = {shlex.split(hook["entry"])[0] for hook in hooks} - {"python"}
    pinned = {need.split("==")[0] for need in PROJECT["project"]["optional-dependencies"]["dev"]}
    assert tools <= pinned


def test_the_version_stands_in_one_file() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert (
        PROJECT["tool"]["scikit-build"]["metadata"]["version"]["input"]
        == "src/handgrad/__init__.py"
    )
    assert RELEASE_NOTES.version() == handgrad.__version__


def test_the_version_can_be_released() -> None:
    assert RELEASE_NOTES.fault(f"v{handgrad.__version__}") is None
    assert f"the tag is 'v0'; expected 'v{handgrad.__version__}'" in RELEASE_NOTES.fault("v0")


def test_every_released_section_of_the_changelog_has_a_date() -> None:
    dates = {name: date for name, (date, _) in RELEASE_NOTES.sections().items()}
    assert dates.pop("Unreleased") == ""
    assert list(dates.values()) == sorted(dates.values(), reverse=True)
    assert all(dates.values())


@pytest.mark.parametrize(
    ("changelog", "said"),
    [
        ("## [1.0.0]\n\ntext\n", "no dated section"),
        ("## [1.0.0] - 2030-01-01\n", "no dated section"),
        ("## [1.0.0] - 2030-01-02\n\ntext\n", "CITATION.cff has 1.0.0 of 2030-01-01"),
        ("## [1.0.0] - 2030-01-01\n\ntext\n", None),
    ],
)
def test_a_version_without_its_changes_is_not_released(
    tmp_path: Path, changelog: str, said: str | None
) -> None:
    (tmp_path / "src/handgrad").mkdir(parents=True)
    (tmp_path / "src/handgrad/__init__.py").write_text('__version__ = "1.0.0"\n', "utf-8")
    (tmp_path / "CITATION.cff").write_text("version: 1.0.0\ndate-released: 2030-01-01\n", "utf-8")
    (tmp_path / "CHANGELOG.md").write_text(changelog, "utf-8")
    found = RELEASE_NOTES.fault("v1.0.0", tmp_path)
    assert found is None if said is None else said in found


def test_the_changelog_has_one_row_for_each_change() -> None:
    """So changes can be searched by line, and two branches that add some merge."""
    lines = (ROOT / "CHANGELOG.md").read_text("utf-8").partition("## [Unreleased]")[2].splitlines()
    assert [line for line in lines if line and not line.startswith(("- ", "#"))] == []


WHY = "Because users asked for it."


@pytest.mark.parametrize(
    "message",
    [
        f"Add group_norm\n\n{WHY}",
        f"matmul: reuse a packed B\n\n{WHY}",
        "Checker: name the term\n\nBecause a line of it\nis not enough.\n",
        f"Embed tokens of every width\n\n{WHY}",
        "Merge branch 'kernels' into main, however long the name of the branch may be, as Git says",
        'Revert "Add group_norm"',
        f"{'x' * 72}\n\n{WHY}",
        f"# a comment of Git's\nAdd group_norm\n\n{WHY}\n\nReviewed-by: A. Stranger",
    ],
)
def test_a_message_that_is_taken(message: str) -> None:
    assert COMMIT_MESSAGE.fault(message) is None


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("x" * 73, "73 characters; allowed: 72"),
        ("Added group_norm", "'Added'; expected an imperative"),
        ("matmul: reusing a packed B", "'reusing'; expected an imperative"),
        ("Add group_norm.", "without a full stop"),
        ("", "without a full stop"),
        ("Add group_norm\nand a test", "expected an empty line"),
        ("Add group_norm", "its body is 'nothing'; expected a sentence that says why"),
        ("Add group_norm\n\nSee above.\n", "its body is 'See above.'"),
        ("Add group_norm\n\nSigned-off-by: A. B. C. Stranger <a@b.c>\n", "'nothing'"),
    ],
)
def test_a_message_that_is_refused(message: str, said: str) -> None:
    assert said in COMMIT_MESSAGE.fault(message)


def test_type_checkers_are_told_that_handgrad_has_types() -> None:
    assert "Typing :: Typed" in PROJECT["project"]["classifiers"]
    assert importlib.resources.files("handgrad").joinpath("py.typed").is_file()


@pytest.mark.slow
def test_mypy_sees_the_types_in_a_program_of_a_user(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text("import handgrad as hg\n\nreveal_type(hg.MLP([3, 2]))\n")
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(handgrad.__file__).parents[1])},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stdout
    assert 'Revealed type is "handgrad.models.mlp.MLP"' in found.stdout


#: Pages whose commands are typed in a checkout, which is all that a fresh environment has.
INSTALLING = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@rows("path", INSTALLING, ids=lambda path: path.name)
def test_an_extra_is_installed_from_the_checkout(path: Path) -> None:
    asked = re.findall(r"pip install (?:--\S+ )?'?([\w.-]*)\[([\w,]+)\]", path.read_text("utf-8"))
    extras = [name for _, names in asked for name in names.split(",")]
    assert {package for package, _ in asked} <= {"."}
    assert set(extras) <= set(PROJECT["project"]["optional-dependencies"])


def test_messages_name_extras_that_there_are() -> None:
    sources = [path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py")]
    named = {name for text in sources for name in re.findall(r"handgrad\[(\w+)\]", text)}
    assert "torch" in named
    assert named <= set(PROJECT["project"]["optional-dependencies"])


RIGHT = "import numpy as np\nforward = lambda x: (x**2, x)\nbackward = lambda dy, x: 2 * x * dy\n"


def test_the_action_checks_every_line_and_fails_as_the_worst(tmp_path: Path) -> None:
    steps = load(ROOT / "action.yml")["runs"]["steps"]
    assert all(step["shell"] == "bash" for step in steps)
    assert not any("${{" in step["run"] for step in steps), "inputs come as variables"
    (tmp_path / "right.py").write_text(RIGHT, encoding="utf-8")
    (tmp_path / "wrong.py").write_text(RIGHT.replace("2 * x", "3 * x"), encoding="utf-8")

    def status(*lines: str) -> int:
        environment = {**os.environ, "PYTHON": sys.executable, "TARGETS": "\n".join(lines)}
        command = ["bash", "-euo", "pipefail", "-c", steps[-1]["run"]]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True
        ).returncode

    right, wrong = (f"{name}.py:forward,backward --shape x=4,3" for name in ("right", "wrong"))
    assert status(right, "") == 0
    assert status(wrong, right) == 1


def test_the_hook_for_others_calls_a_command_that_there_is() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    command, sub = hook["entry"].split()
    assert command in PROJECT["project"]["scripts"]
    assert sub == "check"
    assert hook["pass_filenames"] is False
