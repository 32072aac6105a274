"""Damaged, lying and hostile files given to every reader of data, vocabularies and recipes.

Small valid files of every form are kept as bytes. A case damages one file of one of them and reads
it as a user would. Allowed are one sentence by a HandgradError and, where the form has no checksum,
whatever the damaged bytes say; where it has one (gzip, zip, PNG), what is read has to equal what
the whole file holds. The memory of a case is compared with 4 × its files + 205 MB.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import io
import json
import os
import shutil
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

import handgrad as hg
from fuzz.harness import Case, Fault
from fuzz.harness.surface import scratch
from fuzz.harness.worker import peak_kib, sanitized
from handgrad.data import digits
from handgrad.data.examples import read_examples
from handgrad.data.npy import read_npz
from handgrad.data.pairs import read_pairs
from handgrad.data.pronounce import read_dictionary
from handgrad.errors import HandgradError
from handgrad.inference.pictures import step_for
from handgrad.recipes import read as read_recipe

#: A table of millions of short rows is read for some ten seconds until it is too large.
PATIENCE: Final = 60.0
MEMORY: Final = 512

#: Bytes that a reader may take beyond 4 × its files: those of its bound, and a few of Python's own,
#: which an image of exactly the bound needs for its rows.
SPARE: Final = 205_000_000
#: A sentence is no page, though it may hold the path and a part of what was found.
_LONGEST: Final = 2000

Files = dict[str, bytes]


@dataclass(frozen=True)
class Form:
    """Files of one form, how they are read in their folder, and whether they have checksums."""

    files: Files
    read: Callable[[Path], Any]
    checked: bool = False
    damaged: tuple[str, ...] = ()  # the files that are damaged; all where empty


# -- the valid files -------------------------------------------------------------------------------


def _idx(values: np.ndarray) -> bytes:
    head = struct.pack(f">BBBB{values.ndim}I", 0, 0, 8, values.ndim, *values.shape)
    return head + values.astype(np.uint8).tobytes()


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _npz(save: Callable[..., None], **arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    save(file, **arrays)
    return file.getvalue()


def _image(values: np.ndarray, form: str) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(values).save(file, format=form)
    return file.getvalue()


def _load(name: str) -> Callable[[Path], Any]:
    return lambda folder: hg.data.load("mine", folder / name if name else folder)


def _tokens(folder: Path) -> Any:
    tokenizer = hg.data.load_tokenizer(folder / "tokens.json")
    return tokenizer.size, [tokenizer.decode([i]) for i in range(min(tokenizer.size, 300))]


def _recipe(folder: Path) -> Any:
    return read_recipe(str(folder / "mine.toml")).tables


def _predict(name: str) -> Callable[[Path], Any]:
    return lambda folder: read_examples(folder / name, (1, 4, 4), 255.0)


def _picture(name: str) -> Callable[[Path], Any]:
    return lambda folder: _frame().read(folder / name).x


@functools.cache
def _frame() -> Any:
    (step,) = step_for(digits.load().x_train)
    return step


@functools.cache
def forms() -> dict[str, Form]:
    """Every form, by a name."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (10, 4, 4), dtype=np.uint8)
    labels = np.arange(10) % 2
    table = [f"{i},{i / 4},{-i}e-1,{'ab'[i % 2]}" for i in range(10)]
    text = "The quick brown fox — naïve 日本 🦊.\n" * 3
    numbers = {"x": rng.standard_normal((10, 3)).astype("f4"), "y": labels}
    divided = {"x_train": images, "y_train": labels, "x_test": images[:4], "y_test": labels[:4]}
    idx = {
        "train-images-idx3-ubyte": _idx(images),
        "train-labels-idx1-ubyte": _idx(labels),
        "t10k-images-idx3-ubyte": _idx(images[:4]),
        "t10k-labels-idx1-ubyte": _idx(labels[:4]),
    }
    batches = [f"data_batch_{n}" for n in range(1, 6)] + ["test_batch"]
    records = rng.integers(0, 10, (2, 3073), dtype=np.uint8)
    series = (
        b"% a comment\n@problemName Some\n@univariate false\n@dimensions 2\n"
        b"@classLabel true a b\n@data\n1,2,3:4,5,6:a\n-1,2e-1:0.5,7:b\n"
    )
    dictionary = b";;; words\nA  AH0\nA(1)  EY1\nREAD  R EH1 D\nTO  T UW1\n"
    packed = b'export const dictionary = {\n  "a": "AH0",\n  "read": "R EH1 D"\n}\n'
    lines = "".join(f"source {i}\tZiel ä{i}\n" for i in range(12)).encode()
    compressed = functools.partial(_npz, np.savez_compressed)
    plain = functools.partial(_npz, np.savez)
    classes = np.array(["no", "yes"])
    header = ["first", "second", "third", "label"]
    found = {
        "idx": Form(idx, _load("")),
        "idx.gz": Form({f"{n}.gz": gzip.compress(c) for n, c in idx.items()}, _load(""), True),
        "cifar": Form({f"{name}.bin": records.tobytes() for name in batches}, _load("")),
        "npz packed": Form({"d.npz": compressed(**numbers)}, _load("d.npz"), True),
        "npz": Form({"d.npz": plain(**numbers, classes=classes)}, _load("d.npz"), True),
        "npz divided": Form({"d.npz": compressed(**divided)}, _load("d.npz"), True),
        "csv": Form({"d.csv": "\n".join(table).encode()}, _load("d.csv")),
        "csv header": Form(
            {"d.csv": "\r\n".join([",".join(header), *table]).encode()}, _load("d.csv")
        ),
        "csv.gz": Form(
            {"d.csv.gz": gzip.compress("\n".join(table).encode())}, _load("d.csv.gz"), True
        ),
        "ts": Form({"Some_TRAIN.ts": series, "Some_TEST.ts": series}, _load("")),
        "inputs": Form(
            {"d.npz": compressed(**numbers)}, lambda folder: read_npz(folder / "d.npz"), True
        ),
        "predict npy": Form({"x.npy": _npy(images / 255)}, _predict("x.npy")),
        "predict npy bytes": Form({"x.npy": _npy(images)}, _predict("x.npy")),
        "predict npz": Form({"x.npz": plain(x=images, other=labels)}, _predict("x.npz"), True),
        "text": Form(
            {"t.txt": text.encode()},
            lambda folder: vars(hg.data.load_text(folder / "t.txt")),
        ),
        "text bytes": Form(
            {"t.txt": text.encode()},
            lambda folder: vars(hg.data.load_text(folder / "t.txt", unit="bytes")),
        ),
        "pairs": Form({"p.tsv": lines}, lambda folder: read_pairs(folder / "p.tsv")),
        "pairs learned": Form(
            {"p.tsv": lines},
            lambda folder: vars(hg.data.load_pairs("p", folder, unit="words")),
        ),
        "pronounce": Form(
            {"cmudict.dict": dictionary}, lambda folder: read_dictionary(folder / "cmudict.dict")
        ),
        "pronounce js": Form(
            {"index.js": packed}, lambda folder: read_dictionary(folder / "index.js")
        ),
        "characters": Form(
            {"tokens.json": json.dumps({"tokens": "characters", "symbols": list("abcé")}).encode()},
            _tokens,
        ),
        "words": Form(
            {
                "tokens.json": json.dumps(
                    {"tokens": "words", "symbols": ["<pad>", "<s>", "</s>", "<unk>", "a", "to"]}
                ).encode()
            },
            _tokens,
        ),
        **{
            f"recipe {name}": Form({"mine.toml": _shipped(name)}, _recipe)
            for name in ("digits", "cifar-cnn", "series-encoder", "translate", "text")
        },
    }
    found |= _picture_forms(images, batches)
    found |= _subword_forms()
    return found


def _shipped(name: str) -> bytes:
    return (Path(hg.__file__).parent / "recipes" / f"{name}.toml").read_bytes()


def _picture_forms(images: np.ndarray, batches: list[str]) -> dict[str, Form]:
    try:
        import PIL  # noqa: F401
    except ImportError:
        return {}
    sheet = np.resize(images, (1, 1024, 3))
    labels = {
        "train_labels.json": json.dumps([0, 1, 2, 3, 4]).encode(),
        "test_labels.json": b"[9]",
    }
    colour = np.resize(images, (4, 4, 3))
    found = {
        "cifar sheets": Form(
            {**{f"{name}.png": _image(sheet, "PNG") for name in batches}, **labels},
            _load(""),
            True,
            damaged=("data_batch_3.png", "test_batch.png"),
        ),
        "cifar labels": Form(
            {**{f"{name}.png": _image(sheet, "PNG") for name in batches}, **labels},
            _load(""),
            damaged=tuple(labels),
        ),
        "predict png": Form({"x.png": _image(colour, "PNG")}, _picture("x.png"), True),
    }
    for form in ("PNG", "JPEG", "BMP", "GIF", "PPM", "WEBP"):
        ending = {"JPEG": "jpg"}.get(form, form.lower())
        pictures = {
            f"{kind}/{i}.{ending}": _image(images[2 * i + j], form)
            for j, kind in enumerate(("cat", "dog"))
            for i in range(2)
        }
        found[f"folder {form}"] = Form(pictures, _load(""), form == "PNG")
        if form != "PNG":
            name = f"x.{ending}"
            found[f"predict {form}"] = Form({name: _image(colour, form)}, _picture(name))
    return found


def _subword_forms() -> dict[str, Form]:
    try:
        import tokenizers  # noqa: F401
    except ImportError:
        return {}
    from handgrad.data.subwords import Subwords

    folder = scratch()
    Subwords.learn(["some words to learn", "and some more"], 270).save(folder / "t.json")
    content = (folder / "t.json").read_bytes()
    shutil.rmtree(folder)
    return {"subwords": Form({"tokens.json": content}, _tokens)}


# -- damage ----------------------------------------------------------------------------------------

Damage = Callable[[bytes, np.random.Generator], bytes]

#: Strings that are put into text.
_WORDS: Final = (
    *(b"\xff", b"\xc3", b"\xf0\x9f", b"\xed\xa0\x80", b"\0", b"\x1b[31m", b"\x7f", b"\\u0000"),
    *(word.encode() for word in ("²", "١", "\ufeff", "\ufffd", "\u2028", "\x85")),
    *(b"nan", b"inf", b"-inf", b"1e999", b"1_0", b"0x10", b"-1", b"1e5", b"NaN", b"Infinity"),
    *(b"1979-05-27", b'"', b"'", b'"""', b",", b":", b"@data", b"@classLabel", b"[[", b"]]"),
    *(b"#", b";;;", b"(1)", b"(", b"%", b"?", b"true", b"null", b"{}", b"[]", b"=", b".", b".."),
    *(b"\r", b"\n", b"\r\n", b"\t", b"9" * 30, b"9" * 5000, b"0x" + b"f" * 5000, b"[" * 2000),
    *(b"{" * 2000, b"a = " + b"[" * 3000, b"a." * 1500 + b"b = 1", b"a" * 200_000, b"1," * 5000),
)


def _flip(content: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        if changed:
            changed[rng.integers(len(changed))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _truncate(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: rng.integers(len(content) + 1)]


def _offset(content: bytes, rng: np.random.Generator) -> int:
    # Headers are where lies tell most.
    most = len(content) if rng.random() < 0.5 else min(len(content), 80)
    return int(rng.integers(most + 1))


def _insert(content: bytes, rng: np.random.Generator) -> bytes:
    at = _offset(content, rng)
    return content[:at] + rng.bytes(int(rng.integers(1, 20))) + content[at:]


def _delete(content: bytes, rng: np.random.Generator) -> bytes:
    at = _offset(content, rng)
    return content[:at] + content[at + int(rng.integers(1, 20)) :]


def _repeat(content: bytes, rng: np.random.Generator) -> bytes:
    a, b = sorted(int(v) for v in rng.integers(0, len(content) + 1, 2))
    return content[:b] + content[a:b] * int(rng.integers(1, 4)) + content[b:]


def _extreme(content: bytes, rng: np.random.Generator) -> bytes:
    """An integer of 1 to 8 bytes, in either order, becomes a limit of its type."""
    size = int(rng.choice([1, 2, 4, 8]))
    value = int(rng.choice([0, 1, 2 ** (8 * size - 1) - 1, 2 ** (8 * size - 1)], p=None))
    value = 2 ** (8 * size) - 1 if rng.random() < 0.3 else value
    at = _offset(content, rng)
    order = "little" if rng.random() < 0.5 else "big"
    return content[:at] + value.to_bytes(size, order) + content[at + size :]


def _word(content: bytes, rng: np.random.Generator) -> bytes:
    at = _offset(content, rng)
    gone = 0 if rng.random() < 0.7 else int(rng.integers(1, 10))
    return content[:at] + _WORDS[rng.integers(len(_WORDS))] + content[at + gone :]


def _lines(content: bytes, rng: np.random.Generator) -> bytes:
    lines = content.split(b"\n")
    rng.shuffle(lines)
    return b"\n".join(lines[: int(rng.integers(len(lines) + 1))])


def _inside(content: bytes, rng: np.random.Generator) -> bytes:
    """Damage the packed content, and pack it again with the right checksums."""
    damage = _PLAIN[rng.integers(len(_PLAIN))]
    if content[:2] == b"\x1f\x8b":
        return gzip.compress(damage(gzip.decompress(content), rng), 1)
    if content[:2] == b"PK":
        file = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(file, "w") as new:
            chosen = int(rng.integers(len(old.namelist())))
            for i, name in enumerate(old.namelist()):
                inner = old.read(name)
                new.writestr(name, damage(inner, rng) if i == chosen else inner)
        return file.getvalue()
    if content[:8] == b"\x89PNG\r\n\x1a\n":
        # The header of a PNG, with its checksum made right.
        body = content[12:16] + damage(content[16:29], rng)[:13].ljust(13, b"\0")
        return content[:12] + body + struct.pack(">I", zlib.crc32(body)) + content[33:]
    return damage(content, rng)


def _gzipped(head: bytes, chunk: bytes) -> bytes:
    """A head and 250 times a chunk, compressed once: after a full flush a block stands alone."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    first, block = (packer.compress(x) + packer.flush(zlib.Z_FULL_FLUSH) for x in (head, chunk))
    checksum = zlib.crc32(head)
    for _ in range(250):
        checksum = zlib.crc32(chunk, checksum)
    end = struct.pack("<2I", checksum, len(head) + 250 * len(chunk))
    return b"\x1f\x8b\x08" + bytes(7) + first + 250 * block + packer.flush() + end


@functools.cache
def _bombs() -> tuple[bytes, ...]:
    """Small files that say or unpack to 250 MB and more."""
    zeros = bytes(2**20)
    images = _gzipped(struct.pack(">BBBB3I", 0, 0, 8, 3, 10, 5000, 5000), zeros)
    line = _gzipped(b"", b"1," * 2**19)
    table = _gzipped(b"", b"1,2,3,a\n" * 2**17)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, shape in (("x", (2**24, 16)), ("y", (2**24,))):
            head = _npy(np.zeros(0, np.uint8)).replace(b"(0,)", f"{shape}".encode())
            start = head[: 10 + struct.unpack("<H", head[8:10])[0]]
            length = struct.pack("<H", len(start) - 10)
            with archive.open(f"{name}.npy", "w") as member:
                member.write(start[:8] + length + start[10:])
                for _ in range(int(np.prod(shape)) >> 20):
                    member.write(zeros)
    huge = _npy(np.zeros(1)).replace(b"(1,), }" + b" " * 14, b"(1000000000000,), }  ")
    found = [images, line, table, file.getvalue(), huge]
    try:
        from PIL import Image  # noqa: F401
    except ImportError:
        return tuple(found)
    for form in ("PNG", "JPEG", "GIF", "WEBP", "BMP"):
        small = _image(np.zeros((16, 16), np.uint8), form)
        if form == "PNG":
            body = b"IHDR" + struct.pack(">II", 30000, 30000) + small[24:29]
            small = small[:12] + body + struct.pack(">I", zlib.crc32(body)) + small[33:]
        elif form == "JPEG":
            at = small.index(b"\xff\xc0") + 5
            small = small[:at] + struct.pack(">HH", 30000, 30000) + small[at + 4 :]
        elif form == "GIF":
            small = small[:6] + struct.pack("<HH", 30000, 30000) + small[10:]
        elif form == "BMP":
            small = small[:18] + struct.pack("<ii", 30000, 30000) + small[26:]
        found.append(small)
    eps = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n"
    found += [eps, b"P5 30000 30000 255\n" + bytes(100), b"P6 99999999 99999999 255\n"]
    return tuple(found)


def _bomb(content: bytes, rng: np.random.Generator) -> bytes:
    return _bombs()[rng.integers(len(_bombs()))]


def _other(content: bytes, rng: np.random.Generator) -> bytes:
    """A file of another form under this name."""
    names = list(forms())
    files = forms()[names[rng.integers(len(names))]].files
    return list(files.values())[rng.integers(len(files))]


_PLAIN: Final[tuple[Damage, ...]] = (
    *(_flip, _flip, _truncate, _insert, _delete, _repeat, _extreme, _extreme, _word, _word),
    _lines,
)
#: Paths that are no regular files: a pipe, a folder, links to nothing, themselves and a device.
_KINDS: Final = ("pipe", "folder", "dangling", "loop", "zero", "null", "missing")


# -- reading ---------------------------------------------------------------------------------------


def digest(value: Any) -> str:
    """A short name of everything that was read, equal where that is equal."""
    found = hashlib.sha1(usedforsecurity=False)

    def add(item: Any) -> None:
        if isinstance(item, np.ndarray):
            found.update(f"{item.dtype.str}{item.shape}".encode())
            found.update(np.ascontiguousarray(item).tobytes())
        elif isinstance(item, dict):
            for key, inner in item.items():
                add(key)
                add(inner)
        elif isinstance(item, list | tuple):
            found.update(f"[{len(item)}".encode())
            for inner in item:
                add(inner)
        elif hasattr(item, "__dict__"):
            add(vars(item))
        elif hasattr(item, "__array__"):
            add(np.asarray(item))
        else:
            found.update(repr(item).encode("utf-8", "surrogatepass"))

    add(value)
    return found.hexdigest()


@functools.cache
def _folder() -> Path:
    return scratch()


@functools.cache
def _whole(name: str) -> str:
    form = forms()[name]
    _write(form.files)
    return digest(form.read(_folder() / "mine"))


def _write(files: Files) -> None:
    folder = _folder() / "mine"
    if folder.exists() or folder.is_symlink():
        shutil.rmtree(folder)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _put(path: Path, kind: str) -> None:
    """Something else than a regular file in its place."""
    path.unlink()
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "dangling":
            path.symlink_to("nowhere")
        case "loop":
            path.symlink_to(path.name)
        case "zero" | "null":
            path.symlink_to(f"/dev/{kind}")


def sentence(error: HandgradError) -> None:
    """Raise Fault unless the error is one sentence that says what is allowed."""
    text = str(error)
    if "\n" in text or len(text) > _LONGEST or not ("expected" in text or "allowed" in text):
        raise Fault("no sentence", text[:_LONGEST])


def peak(work: Callable[[], None]) -> int:
    """The bytes by which this process grew while it worked, at most."""
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    before = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * os.sysconf(
        "SC_PAGESIZE"
    )
    work()
    return 1024 * peak_kib() - before


def draw(rng: np.random.Generator) -> Case:
    """One file of one form, damaged in one or two ways."""
    names = list(forms())
    name = names[rng.integers(len(names))]
    form = forms()[name]
    files = dict(form.files)
    victims = form.damaged or tuple(files)
    victim = victims[rng.integers(len(victims))]
    kind = ""
    checked = form.checked
    chance = rng.random()
    if chance < 0.02:
        kind = _KINDS[rng.integers(len(_KINDS))]
        done, checked = kind, checked and kind != "missing"
    elif chance < 0.03:
        files[victim] = _bomb(b"", rng)
        done, checked = "bomb", False
    elif chance < 0.05:
        files[victim] = _other(b"", rng)
        done, checked = "other form", False
    elif chance < 0.25:
        files[victim] = _inside(files[victim], rng)
        done, checked = "damage inside", False
    else:
        damages = [_PLAIN[rng.integers(len(_PLAIN))] for _ in range(int(rng.integers(1, 3)))]
        for damage in damages:
            files[victim] = damage(files[victim], rng)
        done = " and ".join(damage.__name__.strip("_") for damage in damages)

    def run() -> None:
        whole = _whole(name) if checked else ""
        _write(files)
        folder = _folder() / "mine"
        if kind:
            _put(folder / victim, kind)
        read = None

        def attempt() -> None:
            nonlocal read
            try:
                read = form.read(folder)
            except HandgradError as error:
                sentence(error)

        taken, allowed = peak(attempt), 4 * sum(map(len, files.values())) + SPARE
        if taken > allowed and not sanitized():
            raise Fault("memory", f"{taken:,} bytes after {done}; allowed: {allowed:,}")
        if read is not None and checked and digest(read) != whole:
            raise Fault("silent acceptance", f"{victim} was read as something else after {done}")

    def snippet() -> str:
        return (
            "from pathlib import Path\nimport tempfile\n\nfrom fuzz.readers import forms\n\n"
            f"folder = Path(tempfile.mkdtemp())\n"
            f"for name, content in forms()[{name!r}].files.items():\n"
            "    (folder / name).parent.mkdir(parents=True, exist_ok=True)\n"
            "    (folder / name).write_bytes(content)\n"
            f"(folder / {victim!r}).write_bytes(bytes.fromhex({files[victim][:20000].hex()!r}))\n"
            f"print(forms()[{name!r}].read(folder))\n"
        )

    return Case(where=f"{name}: {victim}", run=run, snippet=snippet)


def guided(data: bytes) -> None:
    """One input for the coverage-guided mode: its first byte chooses the form, the rest is read."""
    if not data:
        return
    name = list(forms())[data[0] % len(forms())]
    form = forms()[name]
    files = {**form.files, (form.damaged or tuple(form.files))[0]: data[1:]}
    _write(files)
    try:
        form.read(_folder() / "mine")
    except HandgradError as error:
        sentence(error)


__all__ = ["Form", "digest", "draw", "forms", "guided", "peak", "sentence"]
