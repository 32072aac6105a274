"""Nothing that is read can run: no eval, no pickle, no program started, anywhere in the package."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.rows import rows

SOURCE = Path(__file__).parents[1] / "src" / "handgrad"
FILES = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))

#: Functions, by the end of their dotted name, that run what they are given or start a program.
CALLS = {
    *("eval", "exec", "compile", "__import__", "exec_module", "load_module", "run_path"),
    *("os.system", "os.popen", "os.startfile", "os.fork", "os.posix_spawn"),
    *("np.load", "numpy.load", "torch.load", "np.fromfile", "np.memmap", "yaml.load"),
}
ENDS = {call.rpartition(".")[2] for call in CALLS}
#: These run nothing of the user's.
HARMLESS = {"re.compile", "typst.compile"}
MODULES = {
    *("pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "yaml", "runpy"),
    *("subprocess", "pty", "multiprocessing", "code", "codeop", "imp", "dbm"),
}
KEYWORDS = {"allow_pickle", "shell"}
#: A file and what it uses, with the reason.
ALLOWED = {
    ("importing.py", "exec_module"): "`handgrad check file.py` runs the user's file on purpose",
    ("exercises/course.py", "exec"): "the package's own solution with a mistake of its own list",
    ("program/standins.py", "__import__"): "an import in a function that is called anyway",
    ("program/source.py", "compile"): "what runs already: the text of `python -c`, and a function "
    "that is called anyway, so that it records or with its loops marked",
    ("checking/alignment/pieces.py", "compile"): "a function that is called anyway, changed",
    ("deriving/arguments.py", "eval"): "lengths of axes in terms that the derivation wrote",
    ("deriving/in_c.py", "subprocess"): "the C compiler, on source that the derivation wrote",
    ("mpi/lost.py", "subprocess"): "a process of Python's that speaks when the ranks are gone",
    ("jax/loops.py", "exec"): "the source of an op of the package, with its loop as a scan",
    ("cli/marked.py", "subprocess"): "git, which knows what changed",
    ("cli/watching.py", "subprocess"): "handgrad itself, anew for each change of the file",
    **dict.fromkeys(
        [("deriving/written.py", name) for name in ("exec", "compile")],
        "source that the derivation wrote, so that it is proved by running it",
    ),
}


def found_in(tree: ast.AST) -> set[str]:
    """The names of the above that a module uses."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names if name.name.split(".")[0] in MODULES}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found |= {node.module} if node.module.split(".")[0] in MODULES else set()
        elif isinstance(node, ast.Call):
            found |= KEYWORDS & {keyword.arg for keyword in node.keywords}
            # Only what ends so is written out, which costs more than all else.
            end = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if end not in ENDS and not end.startswith(("exec", "spawn")):
                continue
            name = ast.unparse(node.func)
            if name not in HARMLESS:
                found |= {call for call in CALLS if name == call or name.endswith(f".{call}")}
            if name.startswith(("os.exec", "os.spawn")):
                found.add(name)
    return found


@rows("file", FILES, by=lambda file: file.partition("/")[0])
def test_a_module_runs_nothing_that_it_reads(file):
    tree = ast.parse((SOURCE / file).read_text("utf-8"))
    assert {(file, name) for name in found_in(tree)} <= set(ALLOWED)


def test_every_exception_is_still_needed():
    for file, name in ALLOWED:
        assert name in found_in(ast.parse((SOURCE / file).read_text("utf-8")))


@pytest.mark.parametrize(
    "line",
    [
        "eval('1')",
        "import pickle",
        "from subprocess import run",
        "np.load('x.npy')",
        "f(x, allow_pickle=True)",
        "os.execv('a', [])",
        "compile('1', '', 'eval')",
        "builtins.exec('1')",
    ],
)
def test_what_is_looked_for_is_found(line):
    assert found_in(ast.parse(line))
