from __future__ import annotations

import sys

import pytest

from fuzz import readers
from fuzz.harness.surface import generator
from handgrad.errors import HandgradError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "_folder", lambda: tmp_path)


@pytest.mark.parametrize("name", readers.forms())
def test_every_form_is_read_where_it_is_whole(name):
    assert readers._whole.__wrapped__(name) == readers._whole.__wrapped__(name)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is asked of /proc")
@pytest.mark.parametrize("bomb", range(len(readers._bombs())))
def test_a_bomb_takes_no_memory_under_any_name(bomb, tmp_path, monkeypatch):
    monkeypatch.setenv("HANDGRAD_DATA_MB", "20")  # of 150, which take longer to fill
    for form in readers.forms().values():
        for victim in form.damaged or list(form.files)[:1]:
            files = {**form.files, victim: readers._bombs()[bomb]}
            readers._write(files)
            taken = readers.peak(lambda form=form: _read(form, tmp_path / "mine"))
            assert taken <= 4 * sum(map(len, files.values())) + 70_000_000


def _read(form, folder):
    try:
        form.read(folder)
    except HandgradError as error:
        readers.sentence(error)


def test_damaged_files_of_every_form():
    for number in range(500):
        readers.draw(generator("readers", 7, number)).run()
