"""No reader of models and data waits for a pipe, or opens a device, in the place of a file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import handgrad as hg
from handgrad import recipes
from handgrad.data.examples import read_examples
from handgrad.data.files import read_json, read_utf8
from handgrad.data.npy import read_npy, read_npz
from handgrad.data.stream import Tokens, mapped
from handgrad.data.tokenizers import load_tokenizer
from handgrad.errors import HandgradError
from handgrad.io.hf.weights import arrays_of
from handgrad.targets import resolve

#: Functions that read the file of a user, by the file's name in a folder of its own.
READERS: dict[str, Callable[[Path], object]] = {
    "model.onnx": hg.import_onnx,
    "model.safetensors": hg.load,
    "weights.safetensors": hg.Dense(2, 3).load_weights,
    "others.safetensors": arrays_of,
    "config.json": lambda path: hg.GPT.from_pretrained(path.parent),
    "tokenizer.json": lambda path: hg.hf.Tokenizer.from_pretrained(path.parent),
    "adapter_config.json": lambda path: hg.lora.load(hg.Dense(2, 3), path.parent),
    "config.toml": lambda path: hg.load(path.parent),
    "recipe.toml": recipes.read,
    "array.npy": read_npy,
    "mapped.npy": mapped,
    "tokens.npy": lambda path: Tokens(path, 4),
    "arrays.npz": read_npz,
    "rows.csv": hg.data.load,
    "picture.png": lambda path: read_examples(path, (1, 8, 8)),
    "tokens.json": load_tokenizer,
    "any.json": lambda path: read_json(path, "a table"),
    "any.txt": read_utf8,
    "functions.py": lambda path: resolve(f"{path}:forward"),
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes in folders")
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
@pytest.mark.parametrize("name", READERS)
def test_what_is_no_file_is_refused_at_once(name: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    with pytest.raises(HandgradError, match=re.escape(str(tmp_path))) as caught:
        READERS[name](path)
    assert "\n" not in str(caught.value)


def test_nothing_else_in_the_package_opens_files_to_read() -> None:
    """One function does for data, one for runs; the others read what handgrad or the system has."""
    package = Path(hg.__file__).parent
    own = {"data/files.py", "io/checksums.py", "writing.py", "kernels/", "dispatch/", "lazy.py"}
    own |= {
        "importing.py",
        "checking/alignment/memory.py",
        "documents/alive.py",
        "documents/skeleton.py",
        "training/folder.py",
    }
    pattern = re.compile(r"[. ](read_text|read_bytes)\(\)|[.]read_text\(|(?<![A-Za-z_.])open\(")
    found = {
        file.relative_to(package).as_posix()
        for file in package.rglob("*.py")
        if pattern.search(file.read_text(encoding="utf-8"))
    }
    assert {name for name in found if not name.startswith(tuple(own))} == set()
