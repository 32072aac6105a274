"""Damaged and hostile files of every reader: one sentence, within 2 s and 500 MB, or what they say.

Files are damaged by their bytes, with the fuzzers' damages, and by their structure: lengths,
offsets, types, nesting and counts of what is otherwise well formed. HANDGRAD_DAMAGED says how many
of each reader; 20,000 take some minutes each.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import handgrad as hg
from fuzz import readers, run_folders
from fuzz._judge import check_sentence
from fuzz.harness.surface import generator
from handgrad.errors import HandgradError
from handgrad.io.hf.weights import arrays_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="memory is asked of /proc"),
]

COUNT: Final = int(os.environ.get("HANDGRAD_DAMAGED", "1500"))
SECONDS: Final = 2.0
BYTES: Final = 500_000_000

Make = Callable[[np.random.Generator], bytes]

#: What stands in the place of a value of JSON, of any type.
VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, -(2**63), 10**30, 0.5, 1e308, "", "a"),
    *("\u0000", "\udcff", "x" * 3000, "F32", "a" * 16, [], {}, [[]], [0], [-1], [2**40, 2**40]),
    *([0, 10**12], {"a": 1}, [None], {"type": "Sequence"}, {"type": None}, {"String": ""}),
    json.loads("[" * 100 + "]" * 100),
)


def spots(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all values in a tree of JSON."""
    found = []
    for key, each in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value if isinstance(value, list) else [])
    ):
        found += [(*path, key), *spots(each, (*path, key))]
    return found


def changed(tree: Any, rng: np.random.Generator) -> Any:
    """The tree with up to three values replaced, removed, doubled, renamed or nested."""
    tree = json.loads(json.dumps(tree))
    for _ in range(int(rng.integers(1, 4))):
        places = spots(tree)
        if not places:
            break
        *way, last = places[rng.integers(len(places))]
        owner = tree
        for key in way:
            owner = owner[key]
        choice = rng.random()
        if choice < 0.6:
            owner[last] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])
        elif choice < 0.7:
            del owner[last]
        elif choice < 0.8:
            owner[last] = [copy.deepcopy(owner[last]) for _ in range(int(rng.integers(1, 4)))]
        elif choice < 0.9 and isinstance(owner, dict):
            owner[f"{last}x"] = owner.pop(last)
        else:
            owner[last] = {"type": last, "a": owner[last]}
    return tree


def bytes_of(content: bytes, rng: np.random.Generator) -> bytes:
    for _ in range(int(rng.integers(1, 4))):
        content = readers._PLAIN[rng.integers(len(readers._PLAIN))](content, rng)
    return content


def either(whole: bytes, structured: Make) -> Make:
    """Half of the files are damaged by their bytes, half by their structure."""
    return lambda rng: bytes_of(whole, rng) if rng.random() < 0.5 else structured(rng)


def read_file(name: str, make: Make, read: Callable[[Path], object]) -> Any:
    def draw(rng: np.random.Generator, folder: Path) -> Callable[[], object]:
        (folder / name).write_bytes(make(rng))
        return lambda: read(folder)

    return draw


# -- the readers -----------------------------------------------------------------------------------


def safetensors() -> Any:
    from safetensors.numpy import save

    whole = save({"a": np.ones((2, 3), np.float32), "b": np.arange(4)}, {"format": "pt"})
    length = int.from_bytes(whole[:8], "little")
    header, data = json.loads(whole[8 : 8 + length]), whole[8 + length :]

    def structured(rng: np.random.Generator) -> bytes:
        text = json.dumps(changed(header, rng)).encode()
        told = len(text) if rng.random() < 0.9 else int(rng.choice([0, 2**31, 2**40, 2**63 - 1]))
        return struct.pack("<Q", told) + text + data

    make = either(whole, structured)
    return read_file("x.safetensors", make, lambda folder: arrays_of(folder / "x.safetensors"))


def npy() -> Any:
    whole = readers._npy(np.arange(60, dtype=np.float32).reshape(10, 6))
    shapes = ("()", "(0,)", "(-1,)", "(10, -6)", "(10**9,)", "(2,)*99", "(1000000000000, 6)", "[6]")
    types = ("'<f4'", "'|O'", "'<f3'", "'|V8'", "'<U9999999'", "[('a', '<f4')]", "'M8[x]'", "None")

    def structured(rng: np.random.Generator) -> bytes:
        header = {"descr": "'<f4'", "fortran_order": "False", "shape": "(10, 6)"}
        header["shape"] = shapes[rng.integers(len(shapes))]
        header["descr"] = types[rng.integers(len(types))]
        if rng.random() < 0.3:
            header[str(rng.choice(["descr", "shape", "fortran_order", "more"]))] = "(" * 90
        text = ("{" + ", ".join(f"'{k}': {v}" for k, v in header.items()) + "}\n").encode()
        told = len(text) if rng.random() < 0.8 else int(rng.integers(65536))
        version = bytes([int(rng.choice([0, 1, 2, 3, 9])), 0])
        size = struct.pack("<H" if version[0] == 1 else "<I", told)
        return b"\x93NUMPY" + version + size + text + whole[-240:]

    form = readers.forms()["predict npy"]
    return read_file("x.npy", either(whole, structured), form.read)


def onnx() -> Any:
    onnx = pytest.importorskip("onnx")
    rng = np.random.default_rng(0)
    path = readers._folder() / "seed.onnx"
    hg.export_onnx(hg.CNN((1, 6, 6), (2, 3), 4, rng=rng, batch_norm=True), path)
    whole = path.read_bytes()
    values = (0, 1, -1, 2**31 - 1, -(2**31), 2**62, 5, 7)

    def structured(rng: np.random.Generator) -> bytes:
        """The model with fields of its messages at other values, removed, or doubled."""
        model = onnx.load_from_string(whole)
        for _ in range(int(rng.integers(1, 4))):
            message = model.graph
            while True:
                set_fields = message.ListFields()
                if not set_fields:
                    break
                field, value = set_fields[rng.integers(len(set_fields))]
                many = hasattr(value, "__len__") and not isinstance(value, str | bytes)
                if field.message_type is not None and rng.random() < 0.85:
                    message = value[rng.integers(len(value))] if many else value
                    continue
                alter(message, field, value, many, rng)
                break
        return bytes(model.SerializeToString())

    def alter(message: Any, field: Any, value: Any, many: bool, rng: np.random.Generator) -> None:
        if many:
            at = int(rng.integers(len(value)))
            if field.message_type is not None:
                copied = type(value[at])()
                copied.CopyFrom(value[at])
                _ = value.pop(at) if rng.random() < 0.5 else value.append(copied)
            elif isinstance(value[at], int):
                value[at] = min(values[rng.integers(len(values))], 2**31 - 1)
            elif rng.random() < 0.5:
                del value[at]
        elif isinstance(value, int) and field.enum_type is None:
            setattr(message, field.name, min(values[rng.integers(len(values))], 2**31 - 1))
        elif isinstance(value, str):
            setattr(message, field.name, str(rng.choice(["", "x" * 3000, "Gemm", "a", "0"])))
        elif isinstance(value, bytes):
            setattr(message, field.name, value[: rng.integers(len(value) + 1)])
        else:
            message.ClearField(field.name)

    make = either(whole, structured)
    return read_file("x.onnx", make, lambda folder: hg.import_onnx(folder / "x.onnx"))


def tokenizer() -> Any:
    tokenizers: Any = pytest.importorskip("tokenizers")
    words = ["[PAD]", "[UNK]", "a", "b", "ab", "##b", "Ġa"]
    numbers = {word: i for i, word in enumerate(words)}
    models = (
        tokenizers.models.WordLevel(numbers, unk_token="[UNK]"),
        tokenizers.models.BPE(numbers, [("a", "b")], unk_token="[UNK]"),
        tokenizers.models.WordPiece(numbers, unk_token="[UNK]"),
        tokenizers.models.Unigram([("a", -1.0), ("b", -2.0)], unk_id=0),
    )
    trees = []
    for model in models:
        made = tokenizers.Tokenizer(model)
        made.normalizer = tokenizers.normalizers.Sequence(
            [tokenizers.normalizers.NFC(), tokenizers.normalizers.Replace("x", "y")]
        )
        made.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
            [tokenizers.pre_tokenizers.Whitespace(), tokenizers.pre_tokenizers.Punctuation()]
        )
        made.post_processor = tokenizers.processors.TemplateProcessing("$A", "$A $B:1", [])
        made.add_special_tokens(["[PAD]"])
        made.enable_padding(length=8)
        made.enable_truncation(16)
        trees.append(json.loads(made.to_str()))

    def make(rng: np.random.Generator) -> bytes:
        tree = trees[rng.integers(len(trees))]
        if rng.random() < 0.3:
            return bytes_of(json.dumps(tree).encode(), rng)
        return json.dumps(changed(tree, rng)).encode()

    def read(folder: Path) -> None:
        found = hg.hf.Tokenizer.from_pretrained(folder)
        found.decode(found.encode("a ab xb"))
        found.batch(["a", ("b", "ab a")])

    return read_file("tokenizer.json", make, read)


def of_forms(chosen: Callable[[str], bool]) -> Any:
    """The fuzzers' damages of those forms that are chosen by their names."""

    def draw(rng: np.random.Generator, folder: Path) -> Callable[[], object]:
        while True:
            case = readers.draw(rng)
            if chosen(case.where.partition(":")[0]):
                return case.run

    return draw


def tables() -> Any:
    return of_forms(lambda name: name.startswith(("csv", "ts", "pairs", "pronounce")))


def images() -> Any:
    kinds = ("PNG", "JPEG", "BMP", "GIF", "PPM", "WEBP", "png", "sheets")
    return of_forms(lambda name: name.endswith(kinds))


def runs() -> Any:
    return lambda rng, folder: run_folders.draw(rng).run


READERS: Final[dict[str, Callable[[], Any]]] = {
    each.__name__: each for each in (safetensors, npy, onnx, tokenizer, tables, images, runs)
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", READERS)
def test_damaged_files_end_in_a_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "_folder", lambda: tmp_path)
    # Copies of runs are removed one by one: of 20,000 the disk would be full.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    draw, faults = READERS[name](), []
    for number in range(COUNT):
        read = draw(generator(name, 35, number), tmp_path)
        took = [0.0]

        def attempt(read: Callable[[], object] = read, took: list[float] = took) -> None:
            began = time.process_time()
            try:
                read()
            except HandgradError as error:
                check_sentence(error)
            finally:
                took[0] = time.process_time() - began

        try:
            taken = readers.peak(attempt)
        except BaseException as error:  # a panic of Rust's is no Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            faults.append(f"{number}: {type(error).__name__}: {str(error)[:200]}")
            continue
        finally:
            for copied in tmp_path.glob("case-*"):
                shutil.rmtree(copied)
        if taken > BYTES or took[0] > SECONDS:
            faults.append(f"{number}: {taken >> 20} MiB, {took[0]:.1f} s")
    assert not faults, f"{len(faults)} of {COUNT}:\n" + "\n".join(faults[:40])
