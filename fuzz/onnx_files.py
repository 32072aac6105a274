"""ONNX files, exported ones with bytes changed, cut or repeated: `hg.import_onnx`."""

from __future__ import annotations

import resource
from pathlib import Path
from shutil import rmtree
from typing import Final

import numpy as np

import handgrad as hg
from fuzz._judge import check_sentence
from fuzz.harness import Case, Fault
from fuzz.harness.surface import scratch
from handgrad.errors import ArgumentError, HandgradError

PATIENCE = 20.0
MEMORY = 512
_ALLOWANCE: Final = 200 << 20


def _files() -> list[bytes]:
    """Files to begin with; none where onnx is not installed, as import_onnx says in a sentence."""
    rng = np.random.default_rng(0)
    models = (
        hg.CNN((1, 6, 6), (2, 3), 4, rng=rng, batch_norm=True, activation="gelu"),
        hg.Sequential(hg.LSTM(3, 2, rng=rng, bidirectional=True), hg.LastStep()),
        hg.GPT(7, context=5, width=4, heads=2, blocks=1, rng=rng),
    )
    path = Path(scratch()) / "model.onnx"
    found = []
    try:
        for model in models:
            hg.export_onnx(model, path)
            found.append(path.read_bytes())
    except ArgumentError:
        found = [b"onnx"]
    rmtree(path.parent)
    return found


_SEEDS: Final = [
    *_files(),
    *(path.read_bytes() for path in sorted(Path("tests/onnx/files").glob("*.onnx"))),
]


def _damaged(content: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(content)
    for _ in range(int(rng.integers(1, 6))):
        if not changed:
            break
        first, end = sorted(map(int, rng.integers(0, len(changed) + 1, 2)))
        way = rng.random()
        if way < 0.6:
            at = int(rng.integers(len(changed)))
            changed[at] = int(rng.integers(256))
        elif way < 0.7:
            del changed[first : min(end, first + 64)]
        elif way < 0.8:
            changed[first:first] = changed[first : min(end, first + 64)]
        elif way < 0.9:
            changed[first : first + 8] = rng.bytes(8)
        else:
            del changed[end:]
    return bytes(changed)


def draw(rng: np.random.Generator) -> Case:
    content = _damaged(_SEEDS[int(rng.integers(len(_SEEDS)))], rng)

    def program() -> str:
        return (
            "from pathlib import Path\n\nimport handgrad as hg\n\n"
            f"Path('x.onnx').write_bytes({content!r})\nhg.import_onnx('x.onnx')\n"
        )

    return Case("hg.import_onnx", lambda: _read(content), program)


def _read(content: bytes) -> None:
    """Read the file: a model, or one sentence, in memory that the file's size explains."""
    path = Path(scratch()) / "model.onnx"
    path.write_bytes(content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        hg.import_onnx(path)
    except HandgradError as error:
        check_sentence(error)
    finally:
        rmtree(path.parent)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
        if grown > 4 * len(content) + _ALLOWANCE:
            raise Fault("memory", f"{grown >> 20} MiB for a file of {len(content)} bytes")
