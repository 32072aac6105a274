"""Help texts: at once, with examples that the commands take, in the words of the commands."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import Any

import pytest
import typer

from handgrad.cli.app import app

GROUP: Any = typer.main.get_command(app)


def commands() -> list[tuple[str, Any]]:
    """Every command, and every command of a group, by what is typed."""
    found = []
    for name, command in GROUP.commands.items():
        found.append((name, command))
        below = getattr(command, "commands", {})
        found += [(f"{name} {inner}", each) for inner, each in below.items()]
    return found


@pytest.mark.parametrize(("name", "command"), commands())
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_every_command_has_help_and_examples(handgrad, name, command, option):
    result = handgrad(*name.split(), option)
    assert result.exit_code == 0
    assert "Examples:" in result.stdout
    assert f"    handgrad {name}" in result.stdout


@pytest.mark.parametrize(("name", "command"), commands())
def test_examples_are_commands_that_exist(name, command):
    for line in command.epilog.splitlines()[2:]:
        words = shlex.split(line)
        typed = words[words.index("handgrad") + 1 :]
        GROUP.make_context("handgrad", typed, resilient_parsing=False).close()
        inner = GROUP.commands[typed[0]]
        below = getattr(inner, "commands", {})
        rest = typed[1:]
        if rest and rest[0] in below:
            inner, rest = below[rest[0]], rest[1:]
        inner.make_context(name, rest).close()


def typed(*arguments: str, **environment: str) -> str:
    """The output of the command line in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "handgrad", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


@pytest.mark.slow
def test_no_line_about_a_command_is_cut_at_80_columns():
    assert "..." not in typed("--help", COLUMNS="80").split("Commands:")[1]


@pytest.mark.slow
@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("command", ["train", "check", "notes", "recipes"])
def test_help_keeps_to_the_width_of_the_terminal(command, width):
    text = typed(command, "-h", COLUMNS=str(width)).split("Examples:")[0]
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["train", "-h"], ["check", "-h"]])
def test_nothing_heavy_is_imported_for_help(arguments):
    program = (
        "import sys; sys.argv = ['handgrad', *sys.argv[1:]]\n"
        "from handgrad.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'rich', 'handgrad.ops', 'handgrad.layers', 'handgrad.training'}\n"
        "print('imported:', *sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("imported:\n"), done.stdout[-200:] + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("handgrad tr", "train"),
        ("handgrad train dig", "digits"),
        ("handgrad notes soft", "softmax"),
    ],
)
def test_the_shell_completes_commands_recipes_and_ops(words, found):
    program = "import sys; sys.argv = ['handgrad']; from handgrad.cli import main; main()"
    asked = {
        "_HANDGRAD_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found in done.stdout.split(), done.stderr
