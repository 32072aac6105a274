"""NumPy's .npy and .npz files, read as numbers and nothing else.

    bytes 0-5   93 4e 55 4d 50 59, "\\x93NUMPY"
    bytes 6-7   version: 1, 2 or 3
    then        the length of the header, 2 bytes (version 1) or 4, least significant first
    then        the header, {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
    then        the values

A .npz file is a zip of them. Headers are compared with the size of the file before memory is asked
for, arrays nobody asks for are not read, and the header is matched, never evaluated.

Source: Kern, A simple file format for NumPy arrays (2007).
"""

from __future__ import annotations

import math
import os
import re
import sys
import zipfile
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.data.files import opened, read_raw, shortened
from handgrad.errors import DataError
from handgrad.escaping import quoted

_MAGIC: Final = b"\x93NUMPY"
_LONGEST_HEADER: Final = 10_000
#: The directory of an archive that is read: some 10,000 arrays.
_LONGEST_DIRECTORY: Final = 2**20
#: The number of entries of an archive, from its end; above 65,534 it stands elsewhere.
_COUNT_AT: Final = -12
_COUNT_ELSEWHERE: Final = 0xFFFF
_MOST_AXES: Final = 32
_ENTRY: Final = re.compile(
    r"""["'](\w+)["']\s*:\s*(?:["']([<>=|]?[biufcSU]\d{1,6})["']|(True|False)|"""
    r"""\((\s*(?:\d{1,18}L?\s*,\s*)*(?:\d{1,18}L?\s*)?)\))\s*"""
)
_HEADER: Final = re.compile(rf"\{{\s*(?:{_ENTRY.pattern}(?:,\s*)?){{3}}\}}\s*")


@dataclass(frozen=True)
class Header:
    """The header of a .npy file; its values begin at `offset`."""

    dtype: np.dtype[Any]
    fortran: bool
    shape: tuple[int, ...]
    offset: int

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.count * self.dtype.itemsize


#: The memory that an array will need in all, from its name and its header.
Needs = Callable[[str, Header], float]


def as_read(name: str, header: Header) -> float:
    """The values, and a copy of them."""
    return 2 * header.nbytes


def read_npy(path: Path) -> Array:
    """The array in a .npy file, whose values have to be the whole rest of it.

    Raises DataError where it holds none of numbers or of text, or is damaged.
    """
    what = "a whole .npy file of numbers, without pickles"
    with opened(path, what) as (file, bound):
        try:
            header = _header(file, bound.size)
            return _values(file, header)
        except _DamageError as damage:
            raise DataError(f"{path} cannot be read: {damage}; expected {what}") from None


def read_npz(
    path: Path, wanted: Collection[str] | None = None, needs: Needs = as_read
) -> tuple[dict[str, Array], list[str]]:
    """The arrays of a .npz file that are `wanted` (None: all) and there, and the names of all.

    Raises DataError where it is no such file, one of them is damaged, or packed arrays need more
    memory than the bound of the file.
    """
    what = "a whole .npz file of numbers, without pickles"
    with opened(path, what) as (file, bound):
        try:
            with zipfile.ZipFile(_Archive(file)) as archive:
                members = _members(archive, file)
                chosen = {n: m for n, m in members.items() if wanted is None or n in wanted}
                headers = {}
                for name, member in chosen.items():
                    with archive.open(member) as values:
                        headers[name] = _header(values, member.file_size)
                if sum(header.nbytes for header in headers.values()) > bound.size:
                    needed = sum(needs(name, header) for name, header in headers.items())
                    bound.check(needed, "save it with numpy.savez, which does not pack, or ")
                arrays = {}
                for name, member in chosen.items():
                    with archive.open(member) as values:
                        arrays[name] = _values(values, _header(values, member.file_size))
                return arrays, list(members)
        except (DataError, MemoryError):
            raise
        except Exception as error:  # zipfile raises a dozen kinds of errors for what is damaged
            raise DataError(f"{path} cannot be read: {shortened(error)}; expected {what}") from None


class _DamageError(Exception):
    """The words for what is wrong in an array."""


class _Archive:
    """A file for `zipfile`, which reads the directory of an archive in one piece."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, count: int = -1) -> bytes:
        if count > _LONGEST_DIRECTORY:
            raise _DamageError(
                f"its directory has {count:,} bytes, and {_LONGEST_DIRECTORY:,} are read"
            )
        return self._file.read(count)


def _members(archive: zipfile.ZipFile, file: IO[bytes]) -> dict[str, zipfile.ZipInfo]:
    """The arrays by name. Opening each compares its name with the one beside its values."""
    # `zipfile` takes no notice of the count at the end, so that damage could hide an entry.
    file.seek(_COUNT_AT - len(archive.comment), os.SEEK_END)
    count = int.from_bytes(file.read(2), "little")
    if count not in (len(archive.infolist()), _COUNT_ELSEWHERE):
        raise _DamageError(f"its directory has {len(archive.infolist())} entries and says {count}")
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise _DamageError(
                f"{quoted(member.filename)} is packed in a way that NumPy does not use"
            )
        archive.open(member).close()
        name = member.filename.removesuffix(".npy")
        if name in members:
            raise _DamageError(f"there are two arrays {quoted(name)}")
        if name != member.filename:
            members[name] = member
    return members


def _header(file: IO[bytes], size: int) -> Header:
    """The header at the start of a file of `size` bytes, with which it has to agree."""
    start = file.read(8)
    if start[:6] != _MAGIC or len(start) < 8 or start[6] not in (1, 2, 3):
        raise _DamageError("it does not start as a .npy file")
    digits = file.read(2 if start[6] == 1 else 4)
    length = int.from_bytes(digits, "little")
    if length > _LONGEST_HEADER:
        raise _DamageError(f"its header has {length:,} bytes, and {_LONGEST_HEADER:,} are read")
    text = file.read(length).decode("latin-1")
    entries = {key: found for key, *found in _ENTRY.findall(text)}
    if not _HEADER.fullmatch(text) or set(entries) != {"descr", "fortran_order", "shape"}:
        raise _DamageError("its header does not describe an array of numbers")
    shape = tuple(int(n.strip(" \t\r\n\fL")) for n in entries["shape"][2].split(",") if n.strip())
    try:
        dtype = np.dtype(entries["descr"][0])
    except (TypeError, ValueError):
        raise _DamageError(f"its header has the type {quoted(entries['descr'][0])}") from None
    if dtype.itemsize == 0 or len(shape) > _MOST_AXES:
        raise _DamageError(f"its header has {len(shape)} axes of type {dtype}")
    header = Header(dtype, entries["fortran_order"][1] == "True", shape, 8 + len(digits) + length)
    if header.offset + header.nbytes != size:
        raise _DamageError(
            f"it has {size - header.offset:,} bytes of values and its header says {header.nbytes:,}"
        )
    return header


def _values(file: IO[bytes], header: Header) -> Array:
    """The values behind the header, once they are whole and each of them is of its type."""
    raw = read_raw(file, header.nbytes)
    if len(raw) != header.nbytes or file.read(1):
        raise _DamageError(f"it does not have the {header.nbytes:,} bytes that its header says")
    if header.dtype.kind == "b" and raw.size and raw.max() > 1:
        raise _DamageError(f"it has the byte {raw.max()} for true or false")
    if header.dtype.kind == "U" and raw.size:
        codes = raw.view(header.dtype.str[0].replace("|", "=") + "u4")
        if codes.max() > sys.maxunicode:
            raise _DamageError("it has text that is not Unicode")
    values = raw.view(header.dtype)
    try:
        if header.fortran:
            return values.reshape(header.shape[::-1]).T
        return values.reshape(header.shape)
    except ValueError:
        raise _DamageError(f"its header has the shape {header.shape}") from None
