from __future__ import annotations

import io
import zipfile
from collections import Counter

import numpy as np
import pytest

from handgrad.data import npy
from handgrad.data.npy import read_npy, read_npz
from handgrad.errors import DataError

ARRAYS = {
    "table": np.arange(12, dtype="f4").reshape(3, 4),
    "scalar": np.float64(3),
    "nothing": np.zeros((0, 5)),
    "text": np.array(["a", "bc"]),
    "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "big-endian": np.arange(5, dtype=">i2"),
    "mask": np.array([True, False]),
}


def saved(array) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_as_numpy_reads_them(tmp_path, name):
    np.save(tmp_path / "x.npy", ARRAYS[name])
    np.savez_compressed(tmp_path / "x.npz", x=ARRAYS[name], y=1)
    for found in (read_npy(tmp_path / "x.npy"), read_npz(tmp_path / "x.npz")[0]["x"]):
        assert (found.dtype, found.shape) == (ARRAYS[name].dtype, ARRAYS[name].shape)
        np.testing.assert_array_equal(found, ARRAYS[name])


def test_headers_of_versions_1_to_3_and_of_python_2(tmp_path):
    for version in ((1, 0), (2, 0), (3, 0)):
        with open(tmp_path / "x.npy", "wb") as file:
            np.lib.format.write_array(file, ARRAYS["table"], version)
        np.testing.assert_array_equal(read_npy(tmp_path / "x.npy"), ARRAYS["table"])
    content = saved(np.arange(12.0)).replace(b"(12,), ", b"(12L,),")
    (tmp_path / "x.npy").write_bytes(content)
    np.testing.assert_array_equal(read_npy(tmp_path / "x.npy"), np.arange(12.0))


def changed(old: bytes, new: bytes) -> bytes:
    """An array of 12 numbers with another header of the same length."""
    content = saved(np.arange(12.0))
    assert old in content
    return content.replace(old + b" " * max(0, len(new) - len(old)), new)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "does not start as a .npy file"),
        (b"\x93NUMPY", "does not start as a .npy file"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff{", "its header has 4,294,967,295 bytes"),
        (changed(b"(12,), }", b"(1000000000000,), }"), "its header says 8,000,000,000,000"),
        (changed(b"(12,), }", b"(" + b"1," * 12 + b"), }"), "its header says 8"),
        (changed(b"'<f8'", b"'|O8'"), "does not describe an array of numbers"),
        (changed(b"'<f8'", b"'<f7'"), "its header has the type '<f7'"),
        (changed(b"(12,)", b"(12.)"), "does not describe"),
        (changed(b"(12,)", "(１２,)".encode()[:5]), "does not describe"),
        (changed(b"'shape'", b"'shap\\'"), "does not describe"),
        (saved(np.arange(12.0))[:-1], "has 95 bytes of values and its header says 96"),
        (saved(np.arange(12.0)) + b"x", "has 97 bytes of values and its header says 96"),
        (saved(np.array([True]))[:-1] + b"\x07", "has the byte 7 for true or false"),
        (saved(np.array(["a"]))[:-4] + b"\xff" * 4, "text that is not Unicode"),
    ],
)
def test_a_damaged_array_is_one_sentence(tmp_path, content, message):
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(DataError, match=rf"x\.npy cannot be read: .*({message})"):
        read_npy(tmp_path / "x.npy")


def test_arrays_that_nobody_asks_for_are_not_read(tmp_path):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, x=np.arange(3), other=np.zeros(80_000_000, np.uint8))
    arrays, names = read_npz(path, ("x",))
    assert (list(arrays), names) == (["x"], ["x", "other"])
    with pytest.raises(DataError, match=r"needs 160 MB of memory.*HANDGRAD_DATA_MB"):
        read_npz(path)


def test_a_member_that_unpacks_to_more_than_its_header_says(tmp_path):
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", saved(np.arange(3)) + bytes(10**6))
    with pytest.raises(DataError, match=r"has 1,000,024 bytes of values and its header says 24"):
        read_npz(path)


def archive(tmp_path, method=zipfile.ZIP_STORED):
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w", method) as file:
        for name in ("x", "classes"):
            file.writestr(f"{name}.npy", saved(np.arange(4)))
    return path


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_another_way_to_pack_is_refused(tmp_path, method):
    with pytest.raises(DataError, match="packed in a way that NumPy does not use"):
        read_npz(archive(tmp_path, method))


def test_an_encrypted_archive_is_one_sentence(tmp_path):
    path = archive(tmp_path)
    content = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + offset] |= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"x\.npz cannot be read: .*encrypted"):
        read_npz(path)


def test_an_array_twice_and_a_name_that_is_damaged(tmp_path):
    path = archive(tmp_path)
    content = path.read_bytes()
    last = content.rindex(b"classes.npy")
    path.write_bytes(content[:last] + b"clasres" + content[last + 7 :])
    # Read without `classes` this would be a set with other names and no word said.
    with pytest.raises(DataError, match="cannot be read: File name in directory"):
        read_npz(path, ("x", "classes"))
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("x.npy", saved(np.arange(3)))
        file.writestr("z.npy", saved(np.arange(4)))
    path.write_bytes(path.read_bytes().replace(b"z.npy", b"x.npy"))
    with pytest.raises(DataError, match="two arrays 'x'"):
        read_npz(path)


def test_an_entry_that_damage_hides_is_missed(tmp_path):
    path = archive(tmp_path)
    content = bytearray(path.read_bytes())
    first = content.index(b"PK\x01\x02")
    comment = 46 + len("classes.npy")
    content[first + 32 : first + 34] = comment.to_bytes(2, "little")
    path.write_bytes(content)
    with pytest.raises(DataError, match="directory has 1 entries and says 2"):
        read_npz(path)


def test_a_directory_of_many_entries_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(npy, "_LONGEST_DIRECTORY", 100)
    with pytest.raises(DataError, match=r"its directory has .* bytes, and 100 are read"):
        read_npz(archive(tmp_path))


@pytest.mark.slow
def test_every_flipped_bit_is_seen_or_changes_nothing(tmp_path):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, x=np.arange(5, dtype=np.uint8))
    content = path.read_bytes()
    outcomes = Counter()
    for bit in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            arrays, names = read_npz(path)
        except DataError:
            outcomes["seen"] += 1
            continue
        outcomes["harmless"] += 1
        assert names == ["x"]
        np.testing.assert_array_equal(arrays["x"], np.arange(5))
    assert outcomes["seen"] > outcomes["harmless"]
