"""An installation whose kernels do not compile: what it says, where, and what is installed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    for name in ("HANDGRAD_BUILD", "CIBUILDWHEEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    spec = importlib.util.spec_from_file_location(
        "handgrad_build", ROOT / "packaging/handgrad_build.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Backend:
    """scikit-build-core with a compiler that fails."""

    def __init__(self) -> None:
        self.failures: list[str] = []

    def __call__(self, directory: str, settings: dict[str, str] | None) -> str:
        self.failures.append(Path("build/failure.txt").read_text(encoding="utf-8"))
        if settings is not None and settings.get("wheel.cmake") == "false":
            return "reference.whl"
        script = "import sys; print('src/a.cpp:3:5: error: costs $1', file=sys.stderr)"
        subprocess.run([sys.executable, "-c", script], check=True)
        raise SystemExit(1)


@pytest.mark.parametrize("hook", ["build_wheel", "build_editable"])
def test_a_build_that_fails_says_why_and_installs_the_reference(build, monkeypatch, capfd, hook):
    backend = Backend()
    monkeypatch.setattr(build.backend, hook, backend)
    assert getattr(build, hook)("wheels") == "reference.whl"
    # The file is a template, in which $$ is a dollar.
    assert backend.failures == ["", "their build failed with: a.cpp:3:5: error: costs $$1"]
    shown = capfd.readouterr()
    assert "src/a.cpp:3:5: error: costs $1" in shown.out + shown.err
    assert "the kernels did not compile: a.cpp:3:5: error: costs $1\n" in shown.err
    assert "installed instead is the reference alone" in shown.err


@pytest.mark.parametrize("variable", ["HANDGRAD_BUILD", "CIBUILDWHEEL"])
def test_a_build_that_was_asked_for_fails(build, monkeypatch, variable):
    monkeypatch.setenv(variable, "all")
    backend = Backend()
    monkeypatch.setattr(build.backend, "build_wheel", backend)
    with pytest.raises(SystemExit):
        build.build_wheel("wheels")
    assert len(backend.failures) == 1


def test_the_reference_alone_can_be_asked_for(build, monkeypatch):
    monkeypatch.setenv("HANDGRAD_BUILD", "none")
    backend = Backend()
    monkeypatch.setattr(build.backend, "build_wheel", backend)
    assert build.build_wheel("wheels") == "reference.whl"
    assert backend.failures == ["handgrad was installed with HANDGRAD_BUILD=none"]


CMAKE = "CMake Error at CMakeLists.txt:2 (project):\n"


@pytest.mark.parametrize(
    ("output", "error"),
    [
        (
            "FAILED: x.o\n../core/simd.h:32:35: error: no 'a/b'\n  32 | x\na.cpp:1:2: error: next\n"
            "ninja: build stopped: subcommand failed.\n",
            "simd.h:32:35: error: no 'a/b'",
        ),
        ("a.cpp:3:10: fatal error: cstdio: none\n", "a.cpp:3:10: fatal error: cstdio: none"),
        ("g++: fatal error: Killed signal terminated program cc1plus\n", None),
        (
            "/usr/bin/ld: a.o: in function `f':\nundefined reference to `g'\n"
            "collect2: error: ld returned 1 exit status\n",
            "undefined reference to `g'",
        ),
        (
            f'{CMAKE}  The C++ compiler\n\n    "/bin/false"\n\n  is not able to compile.\n\n',
            'The C++ compiler "/bin/false" is not able to compile',
        ),
        (f"{CMAKE}  No CMAKE_CXX_COMPILER could be found.\n\n  Tell CMake where.\n", None),
        ("CMake Error: No build program.  CMAKE_MAKE_PROGRAM is not set.\n", None),
        ("something else\n\n", "something else"),
        ("", "no output"),
    ],
)
def test_the_error_that_ended_a_build(build, output, error):
    found = build.last_error(output)
    assert "\n" not in found
    if error is None:
        assert found
        assert found in " ".join(output.split())
    else:
        assert found == error


def test_progress_says_what_is_left(build):
    told: list[str] = []
    seconds = iter([0.0, 1.0, 10.0, 20.0, 30.0])
    progress = build.Progress(told.append, lambda: next(seconds))
    progress.read(b"-- Configuring done\n[1/2] try\n")
    assert told == []
    for text in (b"[1/40] a\n", b"[4/40] b\n[5/40] c\n", b"[10/40] d\n", b"[12/40] e\n"):
        progress.read(text)
    progress.read(b"[40/40] Linking\n")
    assert "compiling 40 files" in told[0]
    assert told[1:] == [
        "\nhandgrad: 10 of 40 compiled after 10 s, about 30 s left\n",
        "\nhandgrad: 40 of 40 compiled after 30 s\n",
    ]
