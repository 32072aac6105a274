from __future__ import annotations

import unicodedata
from io import StringIO

import pytest
from rich.table import Table
from rich.text import Text

from handgrad.console import Console
from handgrad.escaping import cut, listed, one_line, printable, quoted

ACTS = [
    *(chr(i) for i in (*range(32), *range(127, 160)) if chr(i) not in "\t\n"),
    *("\u061c", "\u200e", "\u200f", "\u2028", "\u2029", "\u202a", "\u202e", "\u2066", "\u2069"),
]


@pytest.mark.parametrize("character", ACTS, ids=map(ascii, ACTS))
def test_what_acts_is_shown(character):
    shown = printable(f"a{character}b")
    assert shown == f"a{ascii(character)[1:-1]}b"
    assert printable(shown) == shown


def test_every_character_of_a_direction_or_a_control_is_among_them():
    moving = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    for i in range(0x110000):
        c = chr(i)
        if unicodedata.bidirectional(c) in moving or unicodedata.category(c) in ("Cc", "Zl", "Zp"):
            assert c in "\t\n" or printable(c) != c, ascii(c)


@pytest.mark.parametrize("text", ["straße σ 猫 🐈", "می‌خواهم", "👩‍🚀", "a\u00a0b\u3000c", "a\tb\n"])
def test_what_is_only_shown_stays(text):
    assert printable(text) == text


def test_one_line_has_no_other():
    assert one_line("a\nb\tc\rd") == r"a\nb\tc\rd"


HOSTILE = "\x1b]0;owned\x07\r\u202e\x9b2J"
SHOWN = r"\x1b]0;owned\x07\r\u202e\x9b2J"


def printed(renderable: object, **settings: object) -> str:
    out = StringIO()
    Console(file=out, force_terminal=True, color_system="standard", width=80, **settings).print(
        renderable
    )
    return out.getvalue()


def test_a_console_escapes_texts_and_keeps_its_own_colours():
    assert printed(f"[red]{HOSTILE}[/red]", highlight=False) == f"\x1b[31m{SHOWN}\x1b[0m\n"
    assert printed(Text("a\x1b[31mb", style="red")) == "\x1b[31ma\\x1b[31mb\x1b[0m\n"


def test_a_table_has_room_for_escapes():
    table = Table(HOSTILE, title=HOSTILE, caption=HOSTILE, header_style="", title_style="")
    table.add_row(HOSTILE)
    lines = printed(table, highlight=False)
    assert lines.count(SHOWN) == 4
    widths = {len(line) for line in lines.splitlines() if line[0] in "┏┃┡│└"}
    assert len(widths) == 1


def test_what_is_quoted_keeps_its_ends():
    assert quoted("it") == "'it'"
    assert quoted(7) == "'7'"
    found = quoted("begin" + 3000 * "x" + "end")
    assert found.startswith("'beginxx")
    assert found.endswith("xxend'")
    assert len(found) == 62


@pytest.mark.parametrize("letter", ["\x1b", "\U000e0001", "\udcff", "'"])
def test_escapes_count_as_letters(letter):
    assert len(quoted(3000 * letter)) <= 122


def test_a_list_says_how_many_more_there_are():
    assert listed([]) == "none"
    assert listed("abc") == "a, b, c"
    assert listed(map(str, range(2000))) == "0, 1, 2, 3, 4, 5, 6, 7 and 1,992 more"
    assert len(listed(2 * ["x" * 3000])) == 2 * 60 + 2


def test_a_text_is_cut_to_its_length():
    assert cut("x" * 60) == "x" * 60
    assert len(cut("x" * 61)) == 60
