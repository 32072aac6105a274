"""Lists of ops and layers are what `python -m tests.generated` writes, and packages are lazy."""

from __future__ import annotations

import subprocess
import sys

import pytest

import handgrad as hg
from handgrad.ops import OPS
from tests.generated import FILES, ROOT


@pytest.mark.parametrize("path", FILES)
def test_a_list_is_what_the_modules_declare(path: str) -> None:
    assert (ROOT / path).read_text("utf-8") == FILES[path](), "run python -m tests.generated"


@pytest.mark.parametrize("package", [hg, hg.layers], ids=["handgrad", "layers"])
def test_every_name_of_a_stub_is_there(package):
    assert package.__all__ == dir(package)
    for name in package.__all__:
        assert getattr(package, name) is vars(package)[name]
    with pytest.raises(AttributeError, match="has no attribute 'Dens'"):
        getattr(package, "Dens")  # noqa: B009


def test_ops_are_the_modules_with_a_forward() -> None:
    assert tuple(name for name in OPS if callable(getattr(hg.ops, name).forward)) == OPS
    assert {"relu", "lstm", "attention"} < set(OPS)
    assert not {"activation", "arguments", "samples", "windows"} & set(OPS)


def test_importing_handgrad_loads_nothing_else() -> None:
    program = "import sys; old = set(sys.modules); import handgrad; print(*set(sys.modules) - old)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert set(found.stdout.decode().split()) <= {"__future__", "handgrad", "handgrad.lazy"}
