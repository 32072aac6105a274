from __future__ import annotations

import os
import struct
import subprocess
import zlib

import numpy as np
import pytest

from handgrad import data
from handgrad.data.images import read_image, read_size
from handgrad.errors import DataError
from tests.data.files import write_image_folder

Image = pytest.importorskip("PIL.Image")

EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n%%EOF\n"


def test_a_program_is_never_started(tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError(f"a program is started: {args}")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(os, "system", refuse)
    write_image_folder(tmp_path)
    (tmp_path / "cat" / "2.png").write_bytes(EPS)
    with pytest.raises(DataError, match=r"2\.png is no image of a known format; expected .*PNG"):
        data.load("pets", tmp_path)


@pytest.mark.parametrize("form", ["TIFF", "ICO", "TGA", "PCX", "DDS", "SGI", "MSP"])
def test_formats_beyond_those_of_the_suffixes_are_refused(tmp_path, form):
    Image.new("1" if form == "MSP" else "L", (16, 16)).save(tmp_path / "x.png", format=form)
    with pytest.raises(DataError, match="is no image of a known format"):
        read_image(tmp_path / "x.png")


@pytest.mark.parametrize("form", ["PNG", "JPEG", "BMP", "GIF", "PPM", "WEBP"])
def test_formats_of_the_suffixes_are_read_under_any_of_them(tmp_path, form):
    Image.new("RGB", (6, 4), (255, 255, 255)).save(tmp_path / "x.jpg", format=form)
    found = read_image(tmp_path / "x.jpg")
    assert found.shape == (3, 4, 6)
    assert found.min() > 250


def test_what_is_transparent_is_white(tmp_path):
    pixels = np.zeros((4, 6, 4), np.uint8)
    pixels[:2, :, 3] = 255
    Image.fromarray(pixels).save(tmp_path / "x.png")
    found = read_image(tmp_path / "x.png", channels=1)
    np.testing.assert_array_equal(found[0], [[0] * 6] * 2 + [[255] * 6] * 2)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photograph_is_turned_as_the_camera_was_held(tmp_path, orientation):
    seen = np.zeros((24, 16), np.uint8)
    seen[:12, :8] = 255
    exif = Image.Exif()
    exif[0x0112] = orientation
    # The transposition of Pillow that undoes each orientation is proved by its own reader.
    back = {1: None, 2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}[orientation]
    kept = Image.fromarray(seen) if back is None else Image.fromarray(seen).transpose(back)
    kept.save(tmp_path / "x.jpg", exif=exif, quality=95)
    found = read_image(tmp_path / "x.jpg")[0]
    assert found.shape == (24, 16)
    assert np.abs(found.astype(int) - seen).mean() < 8
    assert read_size(tmp_path / "x.jpg")[1:3] == (24, 16)


def png_of_size(width: int, height: int) -> bytes:
    """A PNG of 16 × 16 pixels whose header says another size."""
    body = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    header = struct.pack(">I", 13) + body + struct.pack(">I", zlib.crc32(body))
    pixels = zlib.compress(bytes(17 * 16))
    chunk = struct.pack(">I", len(pixels)) + b"IDAT" + pixels
    chunk += struct.pack(">I", zlib.crc32(b"IDAT" + pixels))
    end = struct.pack(">I", 0) + b"IEND" + struct.pack(">I", zlib.crc32(b"IEND"))
    return b"\x89PNG\r\n\x1a\n" + header + chunk + end


def test_a_size_beyond_the_bytes_of_the_file_is_refused_before_it_is_unpacked(tmp_path):
    (tmp_path / "x.png").write_bytes(png_of_size(16, 16))
    assert read_image(tmp_path / "x.png").shape == (1, 16, 16)
    (tmp_path / "x.png").write_bytes(png_of_size(5000, 5000))
    with pytest.raises(DataError, match=r"needs 250 MB of memory; expected at most 150 MB"):
        read_image(tmp_path / "x.png")


def test_every_flipped_bit_of_a_png_is_seen_or_changes_nothing(tmp_path):
    path = tmp_path / "x.png"
    pixels = np.arange(16, dtype=np.uint8).reshape(4, 4)
    Image.fromarray(pixels).save(path)
    content = path.read_bytes()
    for bit in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            found = read_image(path)
        except DataError:
            continue
        np.testing.assert_array_equal(found[0], pixels)


def test_images_are_bounded_together(tmp_path):
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        for i in range(8):
            Image.new("L", (3500, 3500)).save(tmp_path / name / f"{i}.png")
    with pytest.raises(DataError, match=r"needs 196 MB of memory.*make the images smaller, or set"):
        data.load("pets", tmp_path)


def test_hidden_files_links_in_a_circle_and_files_of_other_kinds(tmp_path):
    write_image_folder(tmp_path)
    (tmp_path / "cat" / "._0.png").write_bytes(b"a file manager's")
    (tmp_path / ".trash").mkdir()
    (tmp_path / ".trash" / "0.png").write_bytes(b"gone")
    (tmp_path / "again").symlink_to(tmp_path)
    found = data.load("pets", tmp_path)
    assert found.classes == ("cat", "dog")
    assert len(found.x_train) + len(found.x_test) == 10
    (tmp_path / "cat" / "loop.png").symlink_to("loop.png")
    with pytest.raises(DataError, match=r"loop\.png cannot be read: Too many levels of symbolic"):
        data.load("pets", tmp_path)


def test_sixteen_bits_are_scaled_in_grey_and_in_colour(tmp_path):
    Image.fromarray(np.full((2, 2), 0x8000, np.uint16)).save(tmp_path / "x.png")
    assert set(read_image(tmp_path / "x.png").ravel()) == {128}
    assert set(read_image(tmp_path / "x.png", channels=3).ravel()) == {128}
