"""Files of weights by others: safetensors with other types, odd names, damaged headers."""

from __future__ import annotations

import json
import resource
from shutil import rmtree
from typing import Any, Final

import numpy as np

from fuzz._judge import check_sentence
from fuzz.harness import Case, Fault
from fuzz.harness.surface import scratch
from handgrad.errors import HandgradError
from handgrad.io.checkpoint import load_arrays, save_arrays

PATIENCE = 10.0
MEMORY = 256
_ALLOWANCE: Final = 200 << 20

#: The format's types, those of NumPy among them with its name for them.
_TYPES: Final = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U8": "u1",
    "U16": "<u2",
    "U32": "<u4",
    "U64": "<u8",
    "BOOL": "?",
}
_OTHERS: Final = {"BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "F4": 1, "C64": 8, "X": 4}
_NAMES: Final = (
    *("weight", "0.weight", "a.b.c", "", " ", "__metadata__", "é", "\x00", "\n", "../x", "/etc"),
    *("x" * 3000, "weight\u202e", "model", "optimizer.m.0.weight", "😀", "%s", "{}"),
)
_JUNK: Final[tuple[Any, ...]] = (
    *(None, True, 0, -1, 2**63, 2**64, 1e308, "", "F32", [], [0], [0, 4], [4, 0], [0, 2**63]),
    *([2**64 - 1, 2**64], {}, {"a": 1}, [None], ["0", "4"], [0, 4, 8], [-4, 0], [2**40, 2**40]),
)


def _pick(rng: np.random.Generator, choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _well_formed(rng: np.random.Generator) -> tuple[dict[str, Any], bytes, dict[str, np.ndarray]]:
    """A header, its data, and the arrays that NumPy can have of them."""
    header: dict[str, Any] = {}
    data = b""
    arrays: dict[str, np.ndarray] = {}
    for _ in range(int(rng.integers(0, 4))):
        name = _pick(rng, _NAMES)
        if name in header or name == "__metadata__":
            continue
        shape = tuple(int(n) for n in rng.choice((0, 1, 2, 3, 5), int(rng.integers(0, 4))))
        count = int(np.prod(shape))
        if rng.random() < 0.8:
            kind = _pick(rng, list(_TYPES))
            dtype = np.dtype(_TYPES[kind])
            array = rng.integers(0, 2, shape).astype(dtype)
            content = array.tobytes()
            arrays[name] = array
        else:
            kind = _pick(rng, list(_OTHERS))
            content = rng.bytes(count * _OTHERS[kind])
        span = [len(data), len(data) + len(content)]
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": span}
        data += content
    if rng.random() < 0.3:
        header["__metadata__"] = {"format": "pt", "state": _pick(rng, ("{}", "x", "\x00", "1"))}
    return header, data, arrays


def _damage_header(header: dict[str, Any], rng: np.random.Generator) -> None:
    key = _pick(rng, list(header)) if header and rng.random() < 0.9 else _pick(rng, _NAMES)
    entry = header.get(key)
    if isinstance(entry, dict) and entry and rng.random() < 0.8:
        field = _pick(rng, list(entry))
        if rng.random() < 0.2:
            del entry[field]
        elif field == "shape" and rng.random() < 0.4:
            entry[field] = [_pick(rng, (2**31, 2**32, 2**62, -1, 0, 1)) for _ in range(3)]
        else:
            entry[field] = _pick(rng, _JUNK)
    else:
        header[key] = _pick(rng, _JUNK)


def _damage_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    found = bytearray(content)
    way = int(rng.integers(6))
    if way == 0:
        del found[int(rng.integers(0, len(found) + 1)) :]
    elif way == 1:
        found += rng.bytes(int(rng.integers(1, 50)))
    elif way == 2 and found:
        for _ in range(int(rng.integers(1, 4))):
            found[int(rng.integers(len(found)))] ^= 1 << int(rng.integers(8))
    elif way == 3:
        found[:8] = int(_pick(rng, (0, 1, 2, 2**31, 2**40, 2**63, 2**64 - 1))).to_bytes(8, "little")
    elif way == 4:
        deep = _pick(rng, (b"[" * 100_000, b'{"a":' * 100_000, b"9" * 1_000_000, b"\xff" * 50))
        found[:] = len(deep).to_bytes(8, "little") + deep
    else:
        at = int(rng.integers(0, len(found) + 1))
        found[at:at] = rng.bytes(int(rng.integers(1, 20)))
    return bytes(found)


def _own(arrays: dict[str, np.ndarray]) -> bytes:
    """The file that a run would write of these."""
    path = scratch() / "model.safetensors"
    save_arrays(path, arrays, {"state": "{}"})
    content = path.read_bytes()
    rmtree(path.parent)
    return content


def draw(rng: np.random.Generator) -> Case:
    header, data, arrays = _well_formed(rng)
    way = rng.random()
    right: dict[str, np.ndarray] | None = None
    if way < 0.2:  # as a run writes it
        content, right = _own(arrays), arrays
    elif way < 0.5:
        whole = _own(arrays)
        content = _damage_bytes(whole, rng)
        right = arrays if content == whole else None
    else:  # by others
        if way < 0.7:
            _damage_header(header, rng)
        text = json.dumps(header).encode()
        text += b" " * (int(rng.integers(2)) * (-len(text) % 8))
        content = len(text).to_bytes(8, "little") + text + data
        if way > 0.85:
            content = _damage_bytes(content, rng)

    def program() -> str:
        return (
            "from pathlib import Path\n"
            "from handgrad.io.checkpoint import load_arrays, save_arrays\n\n"
            f"Path('x.safetensors').write_bytes({content[:5000]!r})\n"
            "load_arrays(Path('x.safetensors'))"
        )

    return Case("load_arrays", lambda: guided(content, right), program)


def guided(content: bytes, right: dict[str, np.ndarray] | None = None) -> None:
    """Load the file; only one that a run wrote, with all its bytes as they were, may be taken.

    Nor may it take more memory than the file is worth.
    """
    path = scratch() / "model.safetensors"
    path.write_bytes(content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        found, _ = load_arrays(path)
    except HandgradError as error:
        check_sentence(error)
        if right is not None:
            raise Fault("refused", str(error)) from None
        return
    finally:
        rmtree(path.parent)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
        if grown > 4 * len(content) + _ALLOWANCE:
            raise Fault("memory", f"{grown >> 20} MiB for a file of {len(content)} bytes")
    if right is None:
        raise Fault("silent acceptance", f"a file that no run wrote is taken: {sorted(found)}")
    if found.keys() != right.keys():
        raise Fault("silent mismatch", f"{sorted(found)}; right: {sorted(right)}")
    for name, array in right.items():
        if found[name].dtype != array.dtype or not np.array_equal(found[name], array):
            raise Fault("silent mismatch", f"{name!r} has other values")
