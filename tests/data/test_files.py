from __future__ import annotations

import os

import pytest

from handgrad.data.files import find, find_file, read_utf8
from handgrad.errors import DataError


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
