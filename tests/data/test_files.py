from __future__ import annotations

import gzip
import os
import socket
from pathlib import Path

import pytest

from handgrad import recipes
from handgrad.data import load as load_set
from handgrad.data import load_pairs
from handgrad.data.files import (
    Bound,
    entries,
    find,
    find_file,
    read_bytes,
    read_json,
    read_lines,
    read_text,
    read_utf8,
)
from handgrad.data.published import COMMANDS
from handgrad.errors import ArgumentError, DataError
from handgrad.paths import as_path


def test_a_folder_inside_goes_by_the_name_of_the_set_or_another(tmp_path, monkeypatch):
    (tmp_path / "cmudict").mkdir()
    monkeypatch.setenv("HANDGRAD_DATA", str(tmp_path))
    assert find("pronounce", None, "words", ["cmudict"]) == tmp_path / "cmudict"
    assert find("pronounce", tmp_path / "cmudict", "words") == tmp_path / "cmudict"
    (tmp_path / "pronounce").mkdir()
    assert find("pronounce", None, "words", ["cmudict"]) == tmp_path / "pronounce"


def test_earlier_patterns_go_before_later_ones(tmp_path):
    for name in ("b.tsv", "pets.tsv"):
        (tmp_path / name).write_text("")
    assert find_file("pets", tmp_path, "pairs", ["pets.tsv", "*.tsv"]).name == "pets.tsv"
    assert find_file("pets", tmp_path / "b.tsv", "pairs", ["*.tsv"]).name == "b.tsv"
    with pytest.raises(DataError, match=r"holds b.tsv, pets.tsv; expected the path of one"):
        find_file("cars", tmp_path, "pairs", ["cars.tsv", "*.tsv"])
    with pytest.raises(DataError, match="is a folder without cars; expected wheels"):
        find_file("cars", tmp_path, "wheels", ["*.csv"])


def test_nothing_given_or_nothing_there(tmp_path, monkeypatch):
    monkeypatch.delenv("HANDGRAD_DATA", raising=False)
    with pytest.raises(DataError, match=r"cars: no data given.*PATH is wheels"):
        find("cars", None, "wheels")
    with pytest.raises(DataError, match="nowhere does not exist; expected wheels"):
        find("cars", tmp_path / "nowhere", "wheels")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_published_set_says_the_one_command_that_brings_it(name, tmp_path, monkeypatch):
    monkeypatch.delenv("HANDGRAD_DATA", raising=False)
    load = load_pairs if name == "pronounce" else load_set
    for path in (None, tmp_path / "nowhere"):
        with pytest.raises(DataError) as raised:
            load(name, path)
        assert str(raised.value).endswith(f"; get it with: {COMMANDS[name]}")
    assert "\n" not in COMMANDS[name]
    page = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text("utf-8")
    assert f"    {COMMANDS[name]}\n" in page


def test_every_recipe_with_published_data_has_a_command():
    named = {recipes.read(recipe).data["name"] for recipe in recipes.names()}
    own = {"digits", "series", "vectors", "dates", "table", "pictures", "text", "translate"}
    assert named - own == COMMANDS.keys()


def test_lines_end_in_one_way_and_a_byte_order_mark_goes(tmp_path):
    path = tmp_path / "text"
    path.write_bytes("\ufeffone\r\ntwo\rthree\n".encode())
    assert read_utf8(path) == "one\ntwo\nthree\n"


def test_the_first_byte_that_is_not_utf8_is_named(tmp_path):
    path = tmp_path / "text"
    path.write_bytes("é\nnaïve ".encode() + b"\xff")
    with pytest.raises(DataError, match=r"byte 0xff at position 10 \(line 2\), which is not UTF-8"):
        read_utf8(path)


def test_what_cannot_be_read_is_named(tmp_path):
    with pytest.raises(DataError, match="text is missing; expected a poem"):
        read_utf8(tmp_path / "text", "a poem")
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        read_utf8(tmp_path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission_is_named(tmp_path):
    path = tmp_path / "text"
    path.write_text("secret")
    path.chmod(0)
    with pytest.raises(DataError, match="cannot be read: Permission denied"):
        read_utf8(path)


def _pipe(path):
    os.mkfifo(path)


def _socket(path):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(path))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes in folders")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_pipe, "cannot be read: Is a named pipe; expected a poem, in a regular file"),
        (_socket, "cannot be read: Is a socket"),
        (lambda path: path.mkdir(), "cannot be read: Is a directory"),
        (lambda path: path.symlink_to("/dev/zero"), "cannot be read: Is a device"),
        (lambda path: path.symlink_to(path.name), "cannot be read: Too many levels of symbolic"),
        (lambda path: path.symlink_to("nowhere"), "is missing; expected a poem"),
    ],
)
def test_only_regular_files_are_opened(tmp_path, monkeypatch, make, message):
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "text")
    with pytest.raises(DataError, match=rf"text {message}"):
        read_bytes(tmp_path / "text", "a poem")


def test_a_link_to_a_file_is_followed(tmp_path):
    (tmp_path / "text").write_text("roses")
    (tmp_path / "link").symlink_to("text")
    assert read_bytes(tmp_path / "link", "a poem") == b"roses"


@pytest.mark.parametrize("name", ["a\0b", "x" * 300, "\ud800", "a\nb"])
def test_a_name_that_no_file_has_is_one_line(tmp_path, name):
    with pytest.raises(DataError) as caught:
        read_bytes(tmp_path / name, "a poem")
    assert "\n" not in str(caught.value)
    str(caught.value).encode()
    with pytest.raises(DataError):
        find("cars", tmp_path / name, "wheels")


def test_a_name_that_is_not_utf8(tmp_path):
    name = os.fsencode(tmp_path) + b"/caf\xe9"
    with open(name, "wb") as file:
        file.write(b"\xff")
    path = tmp_path / os.fsdecode(b"caf\xe9")
    with pytest.raises(DataError, match=r"caf\\udce9 has the byte 0xff") as caught:
        read_utf8(path)
    str(caught.value).encode("utf-8")


@pytest.mark.parametrize("given", [5, b"bytes", "~nobody-of-this-name/x"])
def test_what_is_no_path(given):
    with pytest.raises(ArgumentError, match=r"cars: path is .*; allowed: the path of a file"):
        as_path("cars", given)


def test_a_folder_that_is_gone(tmp_path):
    with pytest.raises(DataError, match="gone does not exist; expected a folder"):
        entries(tmp_path / "gone")


def test_the_bound_can_be_replaced(tmp_path, monkeypatch):
    Bound(tmp_path, 10**8).check(550e6)
    with pytest.raises(DataError, match=r"needs 551 MB of memory; expected at most 550 MB"):
        Bound(tmp_path, 10**8).check(551e6)
    monkeypatch.setenv("HANDGRAD_DATA_MB", "1000")
    Bound(tmp_path, 10**8).check(1400e6)
    for wrong in ("much", "-1", "nan", "inf"):
        monkeypatch.setenv("HANDGRAD_DATA_MB", wrong)
        with pytest.raises(DataError, match=r"HANDGRAD_DATA_MB is .*; expected a number of mega"):
            Bound(tmp_path, 10)


def test_lines_are_read_as_they_are_asked_for(tmp_path):
    path = tmp_path / "lines.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbfa\r\nb\rc"))
    assert [(n, line) for n, line, _ in read_lines(path, "lines")] == [
        (1, "a\n"),
        (2, "b\n"),
        (3, "c"),
    ]
    path = tmp_path / "long"
    path.write_bytes(b"x" * 1000)
    with pytest.raises(DataError, match="line 1 has 100 characters or more; expected shorter"):
        list(read_lines(path, "lines", longest=100))


def test_a_packed_text_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setenv("HANDGRAD_DATA_MB", "1")
    path = tmp_path / "lines.gz"
    path.write_bytes(gzip.compress(b"\n" * 2_000_000))
    with pytest.raises(DataError, match="unpack it first, or set HANDGRAD_DATA_MB"):
        for _ in read_lines(path, "lines"):
            pass


def test_characters_are_whole_at_the_ends_of_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("handgrad.data.files.CHUNK", 8)
    text = "aé日🦊" * 20
    (tmp_path / "text").write_text(text, encoding="utf-8")
    assert read_text(tmp_path / "text") == text.encode()
    (tmp_path / "text").write_bytes(text.encode() + b"\x80" * 9)
    with pytest.raises(DataError, match=r"byte 0x80 at position 200 \(line 1\)"):
        read_text(tmp_path / "text")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[" * 100_000, "is JSON nested too deep"),
        ("9" * 100_000, "is not JSON"),
        ("[" + "{}," * 700_000 + "{}]", "needs 202 MB of memory"),
        ("{", "is not JSON"),
    ],
)
def test_json_is_bounded_in_depth_and_in_objects(tmp_path, content, message):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(DataError, match=message):
        read_json(tmp_path / "x.json", "numbers")
