"""Pronunciations of English words: letters and phonemes, from a file like the CMU dictionary.

    ABACUS  AE1 B AH0 K AH0 S
    ABACUS(1)  ...                 another way to say it; (2) and so on too
    ;;; a line of comment          and whatever stands behind #

Vowels end in their stress, 0 to 2. The same as `"abacus": "AE1 B AH0 K AH0 S"`, the form of .json
and .js packages, is read too.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from handgrad.data.files import Bound, decoded, find_file, read_bytes
from handgrad.data.pairs import PairData, Row, assemble, divide
from handgrad.data.tokens import Symbols, TextCodec
from handgrad.errors import DataError
from handgrad.escaping import quoted
from handgrad.paths import StrPath, as_path

EXPECTED: Final = "the CMU pronouncing dictionary, a file with a word and its phonemes in each line"
_FILES: Final = ("cmudict.dict", "cmudict*.txt", "cmudict-0.7?", "cmudict*.js*", "index.js")
_QUOTED: Final = re.compile(r'"([^"]+)"\s*:\s*"([^"]+)"')
#: Bytes of an entry in a dictionary and a set.
_ENTRY: Final = 300
_PHONEME: Final = re.compile(r"[A-Z]{1,2}[012]?")


def find(path: StrPath | None = None) -> Path:
    """The file at `path` or where HANDGRAD_DATA points. Raises DataError where there is none."""
    return find_file("pronounce", path, EXPECTED, _FILES, ("cmudict",))


def load(
    path: StrPath | None = None,
    seed: int = 0,
    *,
    stress: bool = True,
    alternates: bool = True,
    validation: float = 0.05,
    test: float = 0.05,
) -> PairData:
    """Words letter by letter, their phonemes as words; all ways to say a word are in one part.

    stress: whether vowels keep their 0, 1 or 2. alternates: whether a word has all its ways, or
    the first alone. The file is at `path` or where HANDGRAD_DATA points.
    Raises DataError where it is missing or naming the line that is wrong.
    """
    rows = read_dictionary(find(path), stress=stress, alternates=alternates)
    return assemble("pronounce", divide(rows, validation, test, seed), _learn)


def _learn(train: list[Row]) -> tuple[TextCodec, TextCodec]:
    letters = Symbols.learn((word for word, _ in train), marked=True)
    return letters, Symbols.learn((said for _, said in train), words=True, marked=True)


def read_dictionary(path: StrPath, *, stress: bool = True, alternates: bool = True) -> list[Row]:
    """(word in small letters, phonemes with spaces between) for each way to say each word.

    Words that are no words but names of punctuation marks are passed over. Raises DataError for a
    line of another kind, and where there is none.
    """
    found: dict[Row, None] = {}
    known: set[str] = set()
    held = 0
    for number, line, bound in _lines(path):
        entry = line.partition("#")[0].split()
        if not entry or line.startswith(";;;"):
            continue
        word = re.sub(r"\(\d+\)$", "", entry[0]).lower()
        phonemes = entry[1:]
        if not phonemes:
            raise DataError(f"{path}: line {number:,} has no phonemes; expected {EXPECTED}")
        for phoneme in phonemes:
            if not _PHONEME.fullmatch(phoneme):
                raise DataError(
                    f"{path}: line {number:,} has the phoneme {quoted(phoneme)}; "
                    "expected one or two capital letters, for a vowel with its stress, 0 to 2"
                )
        if not (word[:1].isalpha() or word[:1] == "'"):
            continue
        said = " ".join(phonemes if stress else [phoneme.rstrip("012") for phoneme in phonemes])
        if alternates or word not in known:
            found[word, said] = None
        known.add(word)
        held += _ENTRY + sys.getsizeof(word) + sys.getsizeof(said)
        bound.check(held)
    if not found:
        raise DataError(f"{path} has no words; expected {EXPECTED}")
    return list(found)


def _lines(given: StrPath) -> Iterator[tuple[int, str, Bound]]:
    path = as_path("read_dictionary", given)
    content = read_bytes(path, EXPECTED)
    bound = Bound(path, len(content))
    encoding = "utf-8"
    try:
        for _ in decoded(content):
            pass
    except UnicodeDecodeError:
        # The dictionary's own version 0.7b writes DÉJÀ VU in Latin-1.
        encoding = "latin-1"
    if path.suffix not in (".js", ".json"):
        for number, line in enumerate(io.TextIOWrapper(io.BytesIO(content), encoding), 1):
            yield number, line, bound
        return
    text = content.decode(encoding)
    end = number = 0
    for number, match in enumerate(_QUOTED.finditer(text), 1):
        end = match.end()
        yield number, f"{match[1]} {match[2]}", bound
    if number and "}" not in text[end:]:
        raise DataError(f"{path} ends within its words; expected a whole .js or .json file")
